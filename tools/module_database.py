"""Compare our layers with PyTorch's database of modules, `torch.testing._internal`, with the same weights, in float64.

    PYTHONPATH=src:tests python tools/module_database.py            every module that is a layer, a minute
    PYTHONPATH=src:tests python tools/module_database.py Conv2d GRU these, with the reasons for failures

A sample passes if the outputs and the gradients for its inputs and all parameters agree. Modules that are
activations, losses or paddings are operators here: tools/operator_database.py tests these. It needs the package `expecttest`.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from beside_torch import require_like
from module_twins import TWINS, NotCovered
from tolerances import AUTOGRAD
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils import _pytree as pytree

__all__ = ["judge", "samples"]


def samples(info: ModuleInfo) -> Iterator[tuple[torch.nn.Module, tuple, dict[str, Any], bool]]:
    """Yield modules with random parameters, the arguments of a call, and whether it is training."""
    for training in (False, True):
        torch.manual_seed(0)
        for sample in info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=training):
            if sample.forward_input is None:
                continue
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).double()
            with torch.no_grad():
                module.train(training)(*sample.forward_input.args, **sample.forward_input.kwargs)  # a lazy one learns its sizes
            for parameter in module.parameters():
                torch.nn.init.normal_(parameter, std=0.5)
            yield module, sample.forward_input.args, dict(sample.forward_input.kwargs), training


def judge(module: torch.nn.Module, args: tuple, keywords: dict[str, Any], training: bool) -> str | None:
    """Return None if the layer agrees with the module, else the difference or the reason why there is no such layer."""
    twin = TWINS[type(module).__name__]
    leaves, shape = pytree.tree_flatten((args, keywords))
    places = [number for number, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def arguments(tensors: tuple) -> tuple[tuple, dict[str, Any]]:
        filled = list(leaves)
        for number, tensor in zip(places, tensors, strict=True):
            filled[number] = tensor
        return pytree.tree_unflatten(filled, shape)

    def ours(*vars: Any) -> Any:
        given, named = arguments(vars)
        return call(*given, **named)

    def theirs(*tensors: torch.Tensor) -> Any:
        given, named = arguments(tensors)
        return [leaf for leaf in pytree.tree_leaves(module(*given, **named)) if leaf is not None]

    try:
        call, copied = twin(module)
        require_like(ours, module, [leaves[number] for number in places], copied, call=theirs, training=training, tolerance=AUTOGRAD)
    except NotCovered as reason:
        return f"no twin: {reason}"
    except Exception as error:  # a table has room for every kind
        return f"{type(error).__name__}: {str(error).splitlines()[0][:140]}"
    return None


def main(names: list[str]) -> None:
    total, passed = 0, 0
    for info in module_db:
        name = info.module_cls.__name__.removeprefix("Lazy")
        if name not in TWINS or (names and info.module_cls.__name__ not in names):
            continue
        reasons = Counter(judge(*sample) for sample in samples(info))
        count = sum(reasons.values())
        total, passed = total + count, passed + reasons[None]
        print(f"{info.module_cls.__name__:<26}{reasons[None]:>5} of {count:>4}", flush=True)
        for reason, times in reasons.most_common():
            if reason is not None:
                print(f"    {times:>4}  {reason}")
    print(f"{passed} of {total} samples pass")


if __name__ == "__main__":
    main(sys.argv[1:])
