"""Export a module as a functional graph."""

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
from oarlock.interop.torch.report import line_in
from oarlock.ir.location import here

__all__ = ["Exported", "export_module", "find_aliases", "load_exporter", "read_program", "require_module", "suppress_output"]


@dataclass
class Exported:
    """A functional graph and the module's tensors: by name, and which of them are tied."""

    program: ExportedProgram
    name: str
    state: dict[str, torch.Tensor]  # the tensors of the module's state dict, in order
    parameters: dict[str, bool]  # parameter name -> whether it is trainable
    aliases: dict[str, str]  # name -> name of the tensor it is tied to
    constants: dict[str, object] = field(default_factory=dict)  # tensors of the module outside its state dict
    draws_only_in_training: bool = False
    trusted: bool = True  # whether constant nodes without a rule may be evaluated
    copies: dict[str, torch.Tensor] = field(default_factory=dict)  # initial values for programs, copied from the module


def load_exporter() -> None:
    """Trigger the imports that PyTorch does on the first export. They fail later in a process that cannot write files."""
    with suppress_output():
        data = io.BytesIO()
        torch.export.save(torch.export.export(torch.nn.Identity(), (torch.ones(1),)).run_decompositions({}), data)


def export_module(module: torch.nn.Module, example: Example, *, training: bool) -> Exported:
    """Export `module` for the call in `example`. Raises UnsupportedError with PyTorch's reason and the line in the module's code.

    With `training`, a module in evaluation mode is switched to training mode; in a module that already trains, submodules in evaluation
    mode stay so. All training flags are restored.
    """
    flags = {inner: inner.training for inner in module.modules()}
    if training and not module.training:
        module.train()
    elif not training:
        module.eval()
    try:
        with torch.enable_grad(), suppress_output():
            program = torch.export.export(module, example.args, example.kwargs, dynamic_shapes=example.dynamic_shapes(), strict=False)
            alone = draws_numbers(program.graph_module) and module.training and not _draws_in_evaluation(module, example)
    except Exception as error:
        raise _convert_error(error, type(module).__name__) from error
    finally:
        for inner, flag in flags.items():
            inner.training = flag
    exported = read_program(program, name=type(module).__name__, module=module)
    exported.draws_only_in_training = alone
    return exported


def _draws_in_evaluation(module: torch.nn.Module, example: Example) -> bool:
    """Return whether the module, which is in training mode, also draws random numbers in evaluation mode."""
    module.eval()
    program = torch.export.export(module, example.args, example.kwargs, dynamic_shapes=example.dynamic_shapes(), strict=False)
    return draws_numbers(program.graph_module)


def read_program(program: ExportedProgram, *, name: str, module: torch.nn.Module | None = None, trusted: bool = True) -> Exported:
    """Make an exported program functional and collect its tensors."""
    holder = module if module is not None else program
    parameters = {key: value.requires_grad for key, value in _named(holder, "named_parameters")}
    state = dict(module.state_dict(keep_vars=True) if module is not None else program.state_dict)
    state = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
    try:
        with suppress_output(), marked(program.graph_module):
            functional = program.run_decompositions({})
    except Exception as error:
        raise _convert_error(error, name) from error
    constants: dict[str, object] = {key: value for key, value in functional.constants.items() if key not in state}
    return Exported(functional, name, state, parameters, find_aliases(state), constants, trusted)


@contextlib.contextmanager
def suppress_output() -> Iterator[None]:
    """Suppress PyTorch's warnings, logs and stderr output."""
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
    """Map tied names to the first name of their tensor. Raises UnsupportedError for tensors that only partly share memory."""
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
                f'from_torch: "{name}" and "{owners[storage]}" share memory but are not the same tensor',
                location=here(),
                contract="variables of a program do not share memory; only identical tensors are tied",
                hint="clone one of them",
            )
        else:
            first[key] = owners[storage] = name
    return aliases


def _convert_error(error: Exception, name: str) -> UnsupportedError:
    """Convert PyTorch's error to UnsupportedError with its reason and the line of the module's code at which it stopped."""
    text = str(error)
    line = line_in(error)
    first = next((part.strip() for part in text.splitlines() if part.strip()), type(error).__name__)
    kind = type(error).__name__
    if "GuardOnDataDependentSymNode" in kind or "data-dependent" in text:
        return UnsupportedError(
            f"from_torch: {name} has Python control flow that depends on a tensor's value",
            location=line or here(),
            contract="a program is built before values exist; Python's `if`, `while` and int() need them",
            given=[f"PyTorch: {first}"],
            hint="use torch.cond, torch.while_loop or torch.where instead",
        )
    if "specialized" in text or "Constraints violated" in text:
        return UnsupportedError(
            f"from_torch: {name} fixes a size that dynamic declares as a symbol",
            location=here(),
            given=[part.strip() for part in text.splitlines() if part.strip()][:8],
            hint="remove that size from dynamic, or compute with x.shape in the module instead of a number",
        )
    return UnsupportedError(
        f"from_torch: torch.export cannot export {name}: {kind}",
        location=line or here(),
        given=[part for part in (part.strip() for part in text.splitlines()) if part][:8],
        hint="from_torch can only import what torch.export can export; reproduce the error with torch.export.export(module, args)",
    )


def require_module(module: object) -> torch.nn.Module:
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(f"from_torch takes a torch.nn.Module or an ExportedProgram, not {type(module).__name__}", location=here())
    return module
