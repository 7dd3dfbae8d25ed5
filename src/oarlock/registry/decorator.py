"""`@operator`, by which a kernel declares an operator."""

from collections.abc import Callable, Mapping, Sequence

from oarlock.old_names import OLD_DECLARATIONS, takes_old_keywords
from oarlock.registry.calling_convention import require_parameters
from oarlock.registry.case import Case, GradCheck, Rejects
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import OnWorkers, Operator, Rounding
from oarlock.registry.signature import parse_signature

__all__ = ["operator"]


@takes_old_keywords(OLD_DECLARATIONS)
def operator(
    signature: str,
    *,
    cases: Sequence[Case | GradCheck | Rejects] = (),
    intermediate: Sequence[str] = (),
    effects: str | None = None,
    on_workers: OnWorkers | None = None,
    checks_values: bool = False,
    variable_attributes: Sequence[str] = (),
    told_attributes: Mapping[str, int] | None = None,
    added_later: Sequence[str] = (),
    aliases: Sequence[str] = (),
    disjoint: bool = False,
    linear_in: Sequence[str] = (),
    contraction: bool = False,
    sensitive_to: Rounding | None = None,
    axis_attribute: str | None = None,
    trusted: bool = False,
    catalogue: Catalogue | None = None,
) -> Callable[[Callable[..., object]], Operator]:
    """Declare an operator by its kernel.

        @operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[-1.0, 2.0], y=[0.0, 2.0])])
        def relu(x):
            '''Clamp negatives to zero: ``y = max(x, 0)``.'''
            return torch.relu(x)

    `intermediate` outputs are kept for the gradient and not returned to callers. `effects` is "random" where two runs differ,
    "collective" where workers exchange tensors. `on_workers` is "same" where its results are the same on all of them whatever each gives,
    "own" where each has its own though all give the same; else equal inputs give equal results. `checks_values`: values, not only
    shapes, can make the kernel raise. A variable may stand for `variable_attributes` when the op runs. In the sizes of `told_attributes`
    the kernel is given numbers for symbols, as the op's inputs tell them; the number beside it says how many symbols the kernel finds by
    itself: where there are no more, they stay.
    `added_later` names attributes that are younger than files in which the operator stands: an op does not hold one that has its default,
    so that programs and plans written without it stay what they are. Kernels of gradients state that default too.
    `aliases` are the inputs whose memory an output may share: the kernel may return them, or views of them. Where nothing is
    declared, outputs are fresh memory. Where they are `disjoint`, no two of them share an element, unless two elements of an input do.
    `linear_in` are the inputs in which it is linear, each alone while the others stay; what may be left out and no gradient reads, such as
    a bias, may add to that. The gradients of such gradients follow. A `contraction` sums products, of one element of each input, over the
    dimensions of the signature that an output does not have; what may be left out is added. So each index of a dimension that it has is
    computed alone, and over any other it may be summed in parts.
    `sensitive_to="layout"` says that the kernel may round an element otherwise where there are gaps in the memory of an input: it takes
    some elements in vectors, others one by one. `sensitive_to="place"` says that a library of products does the work, which chooses its
    loops by strides and addresses: the variants of such a kernel give what it gives within rounding, those of any other its bits.
    `axis_attribute` names the attribute that says which axes are computed across, counted from the front, or from the back where it is
    negative: the first of them, several where its type is `int | tuple[int, ...]`, or all axes in their new order where that is
    `tuple[int, ...]`; `axis=-1` says that it is the last where the attribute `axis` is left out. Each index of the axes in front of the
    first is computed alone.
    `trusted` says that the kernel, and those of its gradients, keep no tensor that they are given or give, do nothing else that anybody
    sees, and ask PyTorch for no gradient. Plans then write over memory around it as they do around operators of ours; otherwise they write
    over nothing that it was given or gave. Nothing can check that.
    Raises DeclarationError where the kernel's parameters and the signature disagree.
    """

    def declare(kernel: Callable[..., object]) -> Operator:
        parsed = parse_signature(signature)
        type = kernel.__name__.removesuffix("_")
        require_parameters(type, kernel, parsed)
        return Operator(
            type,
            kernel,
            parsed,
            cases=cases,
            intermediate=intermediate,
            effects=effects,
            on_workers=on_workers,
            checks_values=checks_values,
            variable_attributes=variable_attributes,
            told_attributes=told_attributes,
            added_later=added_later,
            aliases=aliases,
            disjoint=disjoint,
            linear_in=linear_in,
            contraction=contraction,
            sensitive_to=sensitive_to,
            axis_attribute=axis_attribute,
            trusted=trusted,
            catalogue=catalogue,
        )

    return declare
