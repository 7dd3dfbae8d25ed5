"""The NumPy backend: an interpreter that computes ops with NumPy."""

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
    """Return an interpreter that computes ops with NumPy. Raises ArgumentError for a place other than the CPU."""
    from oarlock.backend.numpy.kernel_call import call  # imported only if used

    for place in (place for place in places if not place.is_cpu):
        raise ArgumentError(f'backend="numpy" needs ol.CPUPlace(), not {place}', location=here(), hint="omit place or backend")
    return Interpreter(catalogue, check=check, call=call)


def require_numpy_kernels(ops: Iterable[Op], catalogue: Catalogue) -> None:
    """Check that NumPy kernels exist for all ops. Raises ProgramError."""
    from oarlock.backend.numpy.kernel_call import has_kernel

    ops = list(ops)
    missing = {op.type: op for op in walk_ops(ops) if not has_kernel(catalogue.get(op.type))}
    of_complex = next((op for op in walk_ops(ops) if any(var.dtype.is_complex for var in (*op.reads, *op.writes))), None)
    if of_complex is not None:
        raise ProgramError(
            f"NumPy has no kernel for {of_complex.type} of complex numbers",
            location=of_complex.location,
            hint='omit backend="numpy", which supports real numbers only',
        )
    if missing:
        raise ProgramError(
            f"NumPy has no kernel for {', '.join(sorted(missing))}",
            location=next(iter(missing.values())).location,
            hint='omit backend="numpy", or declare a kernel with @oarlock.backend.numpy.kernels.kernel_of(operator)',
        )
