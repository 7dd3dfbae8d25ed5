"""What a caller feeds, checked against what the program declares before anything runs."""

import difflib
from collections.abc import Mapping

import numpy
import torch

from oarlock.errors import FeedError, OarlockError
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.op.torch_dtype import from_torch, to_torch
from oarlock.runtime.initialization import initial_value
from oarlock.runtime.place import Place
from oarlock.runtime.value import to_tensor

__all__ = ["check_feed"]


def check_feed(program: Program, feed: Mapping[str, object], needed: set[Var], place: Place) -> dict[str, torch.Tensor]:
    """The tensors to start a run with, by name. Raises FeedError; one message says all that is wrong with one input.

    Inputs that nothing needs may be left out, or fed in vain. An input with a value of its own may be left out.
    """
    inputs = {var.name: var for var in program.main.inputs}
    for name in feed:
        if name not in inputs:
            raise FeedError(
                f'"{name}" is not an input of the program',
                contract=_contract(program),
                given=[f'"{name}" fed'],
                hint=_nearest(name, list(inputs)),
            )
    tensors: dict[str, torch.Tensor] = {}
    sizes: dict[str, tuple[int, str]] = {}
    for name, var in inputs.items():
        if name in feed:
            tensors[name] = _check_one(program, var, feed[name], sizes, place, "fed as")
        elif var in needed and var.initializer is not None:
            tensors[name] = _check_one(program, var, initial_value(var, program.seed), sizes, place, "carries")
        elif var in needed:
            fed = ", ".join(f'"{other}"' for other in feed) or "nothing"
            raise FeedError(f'"{name}" is not fed', location=var.location, contract=_contract(program), given=[f"{fed} fed"])
    return tensors


def _check_one(program: Program, var: Var, value: object, sizes: dict[str, tuple[int, str]], place: Place, verb: str) -> torch.Tensor:
    try:
        tensor = to_tensor(value)
    except OarlockError as error:
        raise FeedError(f'"{var.name}": {error.message}', location=var.location, contract=_contract(program)) from None
    if not isinstance(value, numpy.ndarray | numpy.generic | torch.Tensor):
        tensor = tensor.to(to_torch(var.dtype)) if _fits(tensor, var) else tensor  # Python numbers have no dtype of their own
    actual = f'"{var.name}" {verb} {from_torch(tensor.dtype)}{list(tensor.shape)}'
    if tensor.dtype != to_torch(var.dtype):
        raise FeedError(
            f'"{var.name}" must be {var.dtype}, not {from_torch(tensor.dtype)}',
            location=var.location,
            contract=_contract(program),
            given=[actual],
            hint=f'feed={{"{var.name}": array.astype("{var.dtype}")}}',
        )
    declared = var.shape or ()
    agrees = len(declared) == tensor.ndim
    wrong = None
    for size, number in zip(declared, tensor.shape, strict=False):
        if isinstance(size, int):
            agrees = agrees and size == number
        else:
            known = sizes.setdefault(size, (number, var.name))
            if known[0] != number:
                wrong = f'"{var.name}" has {size} = {number}, yet "{known[1]}" has {size} = {known[0]}'
    if not agrees:
        wrong = f'"{var.name}" must have the shape {var.type_text.removeprefix(str(var.dtype))}, not {list(tensor.shape)}'
    if wrong:
        raise FeedError(wrong, location=var.location, contract=_contract(program), given=[actual])
    return tensor.to(place.device)


def _fits(tensor: torch.Tensor, var: Var) -> bool:
    """Whether Python numbers, read as `tensor`, may become the dtype of `var` without losing a fraction."""
    if tensor.dtype == torch.bool or var.dtype.value == "bool":
        return var.dtype.value == "bool" and tensor.dtype == torch.bool
    return var.dtype.is_floating or not tensor.is_floating_point() or tensor.numel() == 0


def _contract(program: Program) -> str:
    return "the program takes " + ", ".join(f"{var.name}: {var.type_text}" for var in program.main.inputs)


def _nearest(name: str, known: list[str]) -> str | None:
    near = difflib.get_close_matches(name, known, n=1)
    return f'did you mean "{near[0]}"?' if near else None
