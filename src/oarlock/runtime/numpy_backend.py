"""The interpreter by another backend: NumPy computes what each op does."""

from collections.abc import Iterable, Sequence

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.location import here
from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.interpreter import Interpreter
from oarlock.runtime.place import Place

__all__ = ["interpret_by_numpy", "require_numpy_kernels"]


def interpret_by_numpy(catalogue: Catalogue, places: Sequence[Place], *, check: bool) -> Interpreter:
    """An interpreter whose ops NumPy computes. Raises ArgumentError for a place where it cannot."""
    from oarlock.backend.numpy.kernel_call import call  # which only those load who ask for it

    for place in (place for place in places if not place.is_cpu):
        raise ArgumentError(
            f'backend="numpy" computes at ol.CPUPlace(), not at {place}', location=here(), hint="leave out place or backend"
        )
    return Interpreter(catalogue, check=check, call=call)


def require_numpy_kernels(ops: Iterable[Op], catalogue: Catalogue) -> None:
    """Raise ProgramError for ops that NumPy does not compute."""
    from oarlock.backend.numpy.kernel_call import has_kernel

    ops = list(ops)
    missing = {op.type: op for op in walk_ops(ops) if not has_kernel(catalogue.get(op.type))}
    of_complex = next((op for op in walk_ops(ops) if any(var.dtype.is_complex for var in (*op.reads, *op.writes))), None)
    if of_complex is not None:
        raise ProgramError(
            f"NumPy has no kernel for {of_complex.type} of complex numbers",
            location=of_complex.location,
            hint='leave out backend="numpy": its kernels are of real numbers',
        )
    if missing:
        raise ProgramError(
            f"NumPy has no kernel for {', '.join(sorted(missing))}",
            location=next(iter(missing.values())).location,
            hint='leave out backend="numpy", or declare a kernel: @oarlock.backend.numpy.kernels.kernel_of(operator)',
        )
