"""`@operator`, which declares an operator from its kernel."""

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

    `intermediate`: outputs that are kept for the gradient and not returned to callers.

    `effects`: "random" if two runs differ, "collective" if workers exchange tensors.

    `on_workers`: "same" if results are equal on all workers even for different inputs, "own" if they differ even for equal inputs. By
    default, equal inputs give equal results.

    `checks_values`: whether values, not only shapes, can make the kernel raise.

    `variable_attributes`: attributes whose value a variable may provide in the run.

    `told_attributes`: shape attributes in which the kernel gets numbers for symbols, inferred from the op's inputs. The number is how many
    unknown sizes the kernel can infer by itself; if there are at most that many symbols, they are passed unchanged.

    `added_later`: attributes that did not exist in earlier files. An op does not store them if they have their default, so that existing
    programs and plans do not change. Kernels of gradients declare the same default.

    `aliases`: inputs whose memory an output may share: the kernel may return them or views of them. Without it, outputs are new memory.
    `disjoint`: no two outputs share an element, unless two elements of an input do.

    `linear_in`: inputs in which the operator is linear, each while the others are constant. An optional input that no gradient reads, such
    as a bias, may add to that. The gradients of such gradients are derived.

    `contraction`: the operator sums products, of one element of each input, over the dimensions that an output does not have, and adds
    optional inputs. So the indexes of the output's dimensions are computed independently, and sums over the others may be split.

    `sensitive_to="layout"`: the kernel may round differently if an input has gaps in memory, because it processes some elements in vectors
    and others one by one. `sensitive_to="place"`: a matrix product library chooses its loops by strides and addresses. Variants of such a
    kernel agree within rounding; variants of all others agree bit for bit.

    `axis_attribute`: the attribute with the axes that are computed across (negative values count from the back): the first of them, several
    if its type is `int | tuple[int, ...]`, or a permutation of all if it is `tuple[int, ...]`. `axis=-1` means that the default of the
    attribute `axis` is the last axis. Indexes of the axes before the first one are computed independently.

    `trusted`: the kernel and those of its gradients keep no reference to tensors, have no visible side effects, and need no gradient from
    PyTorch. Plans then reuse memory around it as for built-in operators; otherwise they never overwrite its inputs and outputs. This cannot
    be checked.

    Raises DeclarationError if the kernel's parameters do not match the signature.
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
