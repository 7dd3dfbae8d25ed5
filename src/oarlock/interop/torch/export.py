"""A module as a graph: exported, marked, and made functional."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch.export import ExportedProgram

from oarlock.errors import ArgumentError, UnsupportedError
from oarlock.interop.torch.chance import draws_numbers
from oarlock.interop.torch.example import Example
from oarlock.interop.torch.marks import marked
from oarlock.interop.torch.refusals import line_in
from oarlock.ir.location import here

__all__ = ["Exported", "export_module", "find_aliases", "load_exporter", "quietly", "read_program", "require_module"]


@dataclass
class Exported:
    """A functional graph, and what stands behind it: the tensors of the module by their names, and which of them are the same."""

    program: ExportedProgram
    name: str
    state: dict[str, torch.Tensor]  # what the module's state dict holds, in its order
    parameters: dict[str, bool]  # a parameter's name -> whether it is trained
    aliases: dict[str, str]  # a name -> the name of the tensor that it shares
    constants: dict[str, object] = field(default_factory=dict)  # tensors of the module that its state dict does not hold
    draws_in_training_alone: bool = False
    trusted: bool = True  # whether everything that is constant may be run at once
    copies: dict[str, torch.Tensor] = field(default_factory=dict)  # what programs start from


def load_exporter() -> None:
    """Let PyTorch import what it exports and reads with, which it does when it is first used, and only where files may be written."""
    with quietly():
        data = io.BytesIO()
        torch.export.save(torch.export.export(torch.nn.Identity(), (torch.ones(1),)).run_decompositions({}), data)


def export_module(module: torch.nn.Module, example: Example, *, training: bool) -> Exported:
    """Export `module` as it is called by the example. Raises UnsupportedError where PyTorch cannot, with its reason and the line.

    In training it is exported as it trains: as a module that is in evaluation, as one whole, would if it were not; parts that evaluate in
    a module that trains stay so. Flags are afterwards what they were.
    """
    flags = {inner: inner.training for inner in module.modules()}
    if training and not module.training:
        module.train()
    elif not training:
        module.eval()
    try:
        with torch.enable_grad(), quietly():
            program = torch.export.export(module, example.args, example.kwargs, dynamic_shapes=example.dynamic_shapes(), strict=False)
            alone = draws_numbers(program.graph_module) and module.training and not _draws_in_evaluation(module, example)
    except Exception as error:
        raise _explain(error, type(module).__name__) from error
    finally:
        for inner, flag in flags.items():
            inner.training = flag
    exported = read_program(program, name=type(module).__name__, module=module)
    exported.draws_in_training_alone = alone
    return exported


def _draws_in_evaluation(module: torch.nn.Module, example: Example) -> bool:
    """Whether the module, which trains, draws numbers in evaluation too."""
    module.eval()
    program = torch.export.export(module, example.args, example.kwargs, dynamic_shapes=example.dynamic_shapes(), strict=False)
    return draws_numbers(program.graph_module)


def read_program(program: ExportedProgram, *, name: str, module: torch.nn.Module | None = None, trusted: bool = True) -> Exported:
    """An exported program, functional, with the tensors it was exported with."""
    holder = module if module is not None else program
    parameters = {key: value.requires_grad for key, value in _named(holder, "named_parameters")}
    state = dict(module.state_dict(keep_vars=True) if module is not None else program.state_dict)
    state = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
    try:
        with quietly(), marked(program.graph_module):
            functional = program.run_decompositions({})
    except Exception as error:
        raise _explain(error, name) from error
    constants: dict[str, object] = {key: value for key, value in functional.constants.items() if key not in state}
    return Exported(functional, name, state, parameters, find_aliases(state), constants, trusted)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without what PyTorch warns of, logs and prints about its own code."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _named(holder: object, method: str) -> list[tuple[str, torch.Tensor]]:
    named = getattr(holder, method)
    return list(named(remove_duplicate=False) if isinstance(holder, torch.nn.Module) else named())


def find_aliases(state: dict[str, torch.Tensor]) -> dict[str, str]:
    """Names of one tensor: each but the first -> the first. Raises UnsupportedError for tensors that share a part of their memory."""
    first: dict[tuple[object, ...], str] = {}
    owners: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for name, value in state.items():
        if not value.numel():
            continue
        storage = value.untyped_storage().data_ptr()
        key = (storage, value.storage_offset(), tuple(value.shape), value.stride(), value.dtype)
        if key in first:
            aliases[name] = first[key]
        elif storage in owners:
            raise UnsupportedError(
                f'from_torch: "{name}" and "{owners[storage]}" share memory, yet are not one tensor',
                location=here(),
                contract="each variable of a program has a value of its own; tied parameters are one",
                hint="clone one of them, or tie them whole",
            )
        else:
            first[key] = owners[storage] = name
    return aliases


def _explain(error: Exception, name: str) -> UnsupportedError:
    """PyTorch's reason in short, with the line of the author's at which it stopped."""
    text = str(error)
    line = line_in(error)
    first = next((part.strip() for part in text.splitlines() if part.strip()), type(error).__name__)
    kind = type(error).__name__
    if "GuardOnDataDependentSymNode" in kind or "data-dependent" in text:
        return UnsupportedError(
            f"from_torch: {name} chooses in Python by a value that only a run tells",
            location=line or here(),
            contract="a program is written before there are values; Python's `if`, `while` and int() ask for them",
            given=[f"PyTorch says: {first}"],
            hint="torch.cond, torch.while_loop or torch.where in the place of it",
        )
    if "specialized" in text or "Constraints violated" in text:
        return UnsupportedError(
            f"from_torch: {name} fixes a size that was to be a symbol",
            location=here(),
            given=[part.strip() for part in text.splitlines() if part.strip()][:8],
            hint="leave that size out of dynamic, or let the module compute with x.shape instead of a number",
        )
    return UnsupportedError(
        f"from_torch: torch.export refuses {name}: {kind}",
        location=line or here(),
        given=[part for part in (part.strip() for part in text.splitlines()) if part][:8],
        hint="what torch.export takes is what comes in: torch.export.export(module, args) alone says the same",
    )


def require_module(module: object) -> torch.nn.Module:
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(
            f"from_torch takes a torch.nn.Module, or what torch.export.export gives, not {type(module).__name__}", location=here()
        )
    return module
