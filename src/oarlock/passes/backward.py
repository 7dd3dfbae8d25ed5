"""Gradients, as ops of the same program.

One scan over the ops, backwards. Each op's gradients are what its operator declares, called on variables;
where several arrive at one variable they are added up before anyone reads the sum. A block operator builds
its own gradient with the same machinery, applied to the ops of its block.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, overload

from oarlock.errors import ArgumentError, GradientError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.names import gradient_name
from oarlock.ir.operation import Op, Role
from oarlock.ir.rollback import restored_on_error
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.size import Shape, Size, add, multiply, solve
from oarlock.ir.traversal import needed_ops
from oarlock.ir.var import Var, is_among
from oarlock.ir.verification import verify_ownership
from oarlock.op.composed.row_gradients import as_table, joined
from oarlock.op.creation import full_like
from oarlock.op.elementwise import sum_
from oarlock.op.manipulation import reshape_like
from oarlock.passes.missing_path import depended_on, explain_missing_path
from oarlock.passes.sparse_tables import find_sparse_tables
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import describe_value, require_open
from oarlock.registry.gradient import Rule, parameter_source

__all__ = ["append_backward", "gradients", "require_variables", "trained_by"]


@overload
def append_backward(cost: Var, parameters: Sequence[Var] | None = None, *, sparse: Literal[False] = False) -> list[tuple[Var, Var]]: ...


@overload
def append_backward(
    cost: Var, parameters: Sequence[Var] | None = None, *, sparse: Literal[True]
) -> list[tuple[Var, Var | RowGradient]]: ...


def append_backward(cost: Var, parameters: Sequence[Var] | None = None, *, sparse: bool = False) -> Sequence[tuple[Var, Var | RowGradient]]:
    """Append the gradient of a scalar with respect to parameters; return (parameter, gradient) pairs.

    `cost` is one number, float[]. `parameters` are the trainable ones that `cost` depends on, unless given. With `sparse`, the gradient
    of a table is a `RowGradient` where a lookup asks for that, ``ol.layer.embedding(..., sparse=True)``, and nothing but lookups read the
    table; where something does, it is the whole table, and a warning says what does. Raises ArgumentError for what is no variable,
    GradientError where `cost` is no scalar, or where a parameter is reached only through an operator that has no gradient.
    """
    (cost,) = require_variables("the cost", [cost])
    if cost.shape != () or not cost.dtype.is_floating:
        hint = "ol.op.real(x) and ol.op.abs(x) are floats" if cost.dtype.is_complex else "ol.layer.mean(x) makes a cost of many values"
        raise GradientError(f'the cost must be one float, yet "{cost.name}" is {cost.type_text}', location=cost.location, hint=hint)
    chosen = trained_by(cost) if parameters is None else list(dict.fromkeys(require_variables("parameters", parameters)))
    with restored_on_error(cost.block.program):
        found = _append_gradients([cost], chosen, [None], sparse=sparse)
        pairs: list[tuple[Var, Var | RowGradient]] = []
        for parameter, gradient in zip(chosen, found, strict=True):
            if gradient is None:
                raise explain_missing_path(cost, parameter)
            pairs.append((parameter, gradient))
    return pairs


def require_variables(what: str, given: object) -> list[Var]:
    """The variables that are given, several or one. Raises ArgumentError for anything else."""
    several: list = [given] if isinstance(given, Var | str) or not isinstance(given, Iterable) else list(given)
    for each in several:
        if not isinstance(each, Var):
            raise ArgumentError(
                f"{what}: {describe_value(each)} is no variable",
                location=here(),
                hint=f'ol.get_variable("{each}") is the variable of that name' if isinstance(each, str) else None,
            )
    return several


def trained_by(cost: Var) -> list[Var]:
    """The trainable parameters that `cost` depends on, in the order of their declaration.

    A parameter that a loop reads for an output that nobody reads is none of them, as if the loop did not have that output.
    """
    read = depended_on(cost)
    return [var for var in cost.block.program.parameters() if var.trainable and var in read]


def gradients(
    targets: Var | Sequence[Var], inputs: Var | Sequence[Var], target_gradients: Sequence[Var | None] | None = None
) -> list[Var | None]:
    """Append the gradient of the sum of `targets` with respect to each of `inputs`; None where it does not depend on it.

    One variable stands for a list of it. `target_gradients` weighs the targets, 1 everywhere unless given, each of its target's shape.
    An input may be any float or complex variable of the main block, fed ones included. A gradient with respect to ``x + iy`` is that with
    respect to x, and i times that with respect to y; one that begins at a complex target is to be given. Gradients of gradients are had by
    calling again. Raises ArgumentError for what is no variable, GradientError for what has no gradient, ProgramError for targets of a
    program that is not open while another is, VerifyError for a block that no op has.
    """
    targets, inputs = require_variables("targets", targets), require_variables("inputs", inputs)
    given = [None] * len(targets) if target_gradients is None else list(target_gradients)
    return [gradient for gradient in _append_gradients(targets, inputs, given) if not isinstance(gradient, RowGradient)]


def _append_gradients(
    targets: Sequence[Var], inputs: Sequence[Var], given: Sequence[Var | None], *, sparse: bool = False
) -> list[Var | RowGradient | None]:
    """Do what `gradients` does; where it is `sparse`, by rows where that is asked for and may be."""
    if not targets:
        raise GradientError("there is nothing to differentiate: no targets", location=here())
    require_open(targets[0], "gradients")
    verify_ownership(targets[0].block.program)
    block = targets[0].block
    for var in (*targets, *inputs):
        if var.block is not block or block.parent is not None:
            raise GradientError(f'"{var.path}" is not a variable of the main block', location=here())
        if not var.dtype.is_inexact:
            raise GradientError(f'"{var.name}" is {var.type_text}; only floats and complex numbers have gradients', location=var.location)
    if len(given) != len(targets):
        raise GradientError(f"{len(given)} target gradients are given for {len(targets)} targets", location=here())
    for target, start in zip(targets, given, strict=True):
        if start is not None and not isinstance(start, Var):
            require_variables("target_gradients", [start])
        if start is None and target.dtype.is_complex:
            message = f'"{target.name}" is {target.type_text}, and no gradient is given that begins there'
            hint = "a gradient is one of real numbers: take ol.op.real(x) or ol.op.abs(x), or give target_gradients"
            raise GradientError(message, location=target.location, given=[target.describe()], hint=hint)
        if start is not None and (start.dtype, start.shape) != (target.dtype, target.shape):
            message = f'the gradient that begins at "{target.name}" has another type'
            raise GradientError(message, location=here(), given=[target.describe(), start.describe()])
    ops = needed_ops(block.ops, targets)
    tables = find_sparse_tables(ops, inputs) if sparse else set[Var]()
    with restored_on_error(block.program), block, block.program.write_as(Role.BACKWARD):
        arrived = [
            (target, start if start is not None else full_like(target, value=1.0, dtype=target.dtype))
            for target, start in zip(targets, given, strict=True)
        ]
        differentiation = _Differentiation(ops, block, arrived, inputs, lambda var: var, tables)
        found = differentiation.run()
        return [differentiation.joined(found.get(var)) for var in inputs]


def _reach(ops: Sequence[Op], sources: set[Var]) -> set[Var]:
    """Every variable that a differentiable path through `ops` connects with some of `sources`, themselves included.

    Integers and bools carry no gradient; `stop_gradient` ends a path, unless the variable is a source itself.
    """
    active = set(sources)
    for op in ops:
        if any(var in active for var in _differentiable_inputs(op)):
            active.update(var for var in op.writes if var.dtype.is_inexact and not var.stop_gradient)
    return active


def _differentiable_inputs(op: Op) -> list[Var]:
    """The inputs through which a gradient might flow."""
    operator = standard.get(op.type)
    return [var for slot, vars in op.inputs.items() if operator.differentiates(slot) for var in vars if var.dtype.is_inexact]


class _Differentiation:
    """The gradient of a straight line of ops, written into a block. It is the `Backward` that block operators see."""

    def __init__(
        self,
        ops: Sequence[Op],
        into: Block,
        arrived: Sequence[tuple[Var, Var]],
        wanted: Sequence[Var],
        read: Callable[[Var], Var],
        tables: Collection[Var] = (),
    ):
        self.ops = ops
        self.into = into
        self.wanted = wanted
        self.read = read
        self.tables = set(tables)  # those whose gradient is wanted by rows
        self.rows: dict[Var, list[RowGradient]] = {}
        self.active = _reach(ops, set(wanted))
        self.arrived: dict[Var, list[Var]] = {}
        for var, gradient in arrived:
            self._arrive(var, gradient)

    def run(self) -> dict[Var, Var | list[RowGradient]]:
        """Append the gradient ops; return the gradient of each wanted variable that has one, that of a table by rows if it can be."""
        for op in reversed(self.ops):
            if not any(map(self._passes, op.writes)) or not any(var in self.active for var in _differentiable_inputs(op)):
                continue
            with self.into.program.write_as(Role.BACKWARD, op.location):
                self._differentiate_op(op)
        with self.into.program.write_as(Role.BACKWARD):
            found = {var: self.rows.get(var) if var not in self.arrived else self._total(var) for var in self.wanted}
        return {var: gradient for var, gradient in found.items() if gradient is not None}

    def joined(self, gradient: Var | list[RowGradient] | None) -> Var | RowGradient | None:
        """One gradient by rows of those of each lookup; any other as it is."""
        if not isinstance(gradient, list):
            return gradient
        with self.into.program.write_as(Role.BACKWARD):
            total = joined(gradient)
        for var, part in ((total.rows, "rows"), (total.values, "values")):
            self._name(var, f"{gradient_name(total.table.name)}.{part}")
        return total

    # What block operators ask

    def wants(self, var: Var) -> bool:
        return var in self.active

    def gradient_of(self, var: Var) -> Var | None:
        """All that has arrived at the output `var`, added up; None where nothing has, or where `var` ends the path."""
        return self._total(var) if self._passes(var) else None

    def _passes(self, var: Var) -> bool:
        """Whether a gradient has arrived at the output `var`, and goes on to what `var` was computed from."""
        return var in self.arrived and not var.stop_gradient

    def _total(self, var: Var) -> Var | None:
        parts = self.arrived.get(var)
        if not parts:
            return None
        if var in self.rows:
            with self.into:
                parts += [as_table(part, self.read(var)) for part in self.rows.pop(var)]
        if len(parts) > 1:
            self._free_name(parts, gradient_name(var.name))
            with self.into:
                total = sum_(parts)
            self._name(total, gradient_name(var.name))
            self.arrived[var] = [total]
        return self.arrived[var][0]

    def depends(self, ops: Sequence[Op], targets: set[Var], sources: set[Var]) -> set[Var]:
        return _reach(ops, sources) & targets

    def differentiate(
        self,
        ops: Sequence[Op],
        into: Block,
        arrived: Sequence[tuple[Var, Var]],
        wanted: Sequence[Var],
        read: Callable[[Var], Var],
    ) -> dict[Var, Var | list[RowGradient]]:
        return _Differentiation(ops, into, arrived, wanted, read, self.tables).run()

    # One op

    def _differentiate_op(self, op: Op) -> None:
        operator = standard.get(op.type)
        if operator.gradient_builder is not None:
            for var, gradient in operator.gradient_builder(op, self):
                if isinstance(gradient, RowGradient):
                    self.rows.setdefault(var, []).append(gradient)
                else:
                    self._arrive(var, self._of_type(op, var, gradient))
            return
        if op.type == "gather" and op.inputs["x"][0] in self.tables:
            self._take_rows(op)
            return
        for slot, vars in op.inputs.items():
            if not operator.differentiates(slot) or not any(var in self.active and var.dtype.is_inexact for var in vars):
                continue
            rule = operator.find_gradient(slot, vars[0].dtype)
            if rule is None:
                raise GradientError(
                    f'"{op.type}" has no gradient with respect to {slot}, which leads to '
                    + ", ".join(f'"{var.name}"' for var in self.wanted if is_among(var, _sources(self.ops, vars, self.wanted))),
                    location=op.location,
                    given=[var.describe() for var in vars],
                    hint=f'declare it with `@{op.type}.gradient("{slot}")`, or mark the value stop_gradient',
                    op=op.type,
                )
            self._apply(op, slot, rule)

    def _take_rows(self, lookup: Op) -> None:
        """Keep the gradient of a table as the numbers that were looked up, and what has arrived at their rows."""
        (table,), (rows,), (taken,) = lookup.inputs["x"], lookup.inputs["rows"], lookup.writes
        values = self._total(taken)
        assert values is not None
        self.rows.setdefault(table, []).append(RowGradient(table, self.read(rows), values))

    def _apply(self, op: Op, slot: str, rule: Rule) -> None:
        signature = standard.get(op.type).signature
        taken = {name[1:] for name in rule.parameters if (parameter_source(signature, name) or ("",))[0] == "gradient"}
        for output, vars in op.outputs.items():
            if output not in taken and any(map(self._passes, vars)):
                raise GradientError(
                    f'"{op.type}" has no gradient from {output} to {slot}, yet one arrives there',
                    location=op.location,
                    given=[var.describe() for var in vars],
                    op=op.type,
                )
        arguments = [self._argument(op, name, optional=name in rule.optional) for name in rule.parameters]
        attributes = {name: op.attributes[name] for name in rule.attributes if name in op.attributes}
        attributes = {name: self.read(value) if isinstance(value, Var) else value for name, value in attributes.items()}
        with self.into:
            gradient = (rule.program or rule.operator)(*arguments, **attributes)  # type: ignore[misc]
        results = gradient if isinstance(gradient, list) else [gradient]
        for var, result in zip(op.inputs[slot], results, strict=True):
            if var in self.active:
                self._arrive(var, self._of_type(op, var, result))

    def _of_type(self, op: Op, var: Var, gradient: Var) -> Var:
        """The gradient of `var` that `op` gives, in the type of `var`.

        Another type may follow for it where a signature took a symbol for a number, or for another size, that it is in the run.
        Raises GradientError where the two cannot be equal.
        """
        if gradient.dtype is var.dtype and (gradient.shape == var.shape or gradient.shape is None or var.shape is None):
            return gradient
        if gradient.dtype is not var.dtype or not _may_be_equal(gradient.shape or (), var.shape or ()):
            raise GradientError(
                f'"{op.type}" gives {gradient.type_text} as the gradient of "{var.name}", which is {var.type_text}',
                location=op.location,
                contract="the gradient of a variable has its type",
                given=[var.describe(), *(read.describe() for read in op.reads if read is not var)],
                op=op.type,
            )
        with self.into:
            return reshape_like(gradient, self._of_shape(op, var))

    def _argument(self, op: Op, name: str, *, optional: bool) -> Var | list[Var] | None:
        """The variable, or the list of a variadic slot, that a gradient's parameter stands for in `op`."""
        source = parameter_source(standard.get(op.type).signature, name)
        assert source is not None
        kind, slot = source
        vars = op.inputs.get(slot.name) if kind in ("input", "shape") and slot.name in op.inputs else op.outputs.get(slot.name)
        if vars is None:
            return None  # an optional input that is not there
        if kind == "gradient" and optional and not any(var in self.arrived for var in vars):
            return None
        if kind == "gradient":
            values = [self._gradient_or_zero(var) for var in vars]
        elif kind == "shape":
            values = [self._of_shape(op, var) for var in vars]
        else:
            values = [self.read(var) for var in vars]
        return values if slot.variadic else values[0]

    def _gradient_or_zero(self, output: Var) -> Var:
        arrived = self.gradient_of(output)
        if arrived is not None:
            return arrived
        with self.into:
            return full_like(self.read(output), value=0.0, dtype=output.dtype)

    def _of_shape(self, op: Op, var: Var) -> Var:
        """Some variable of the type of `var`: a gradient at hand where one has it, so that nothing is kept for its shape."""
        for output in op.writes:
            if output in self.arrived and output.shape == var.shape and output.dtype is var.dtype:
                return self.arrived[output][0]
        return self.read(var)

    def _arrive(self, var: Var, gradient: Var) -> None:
        parts = self.arrived.setdefault(var, [])
        parts.append(gradient)
        self._name(gradient, gradient_name(var.name))

    def _free_name(self, parts: Sequence[Var], name: str) -> None:
        """Let the sum of `parts` be called `name`: the part that was, for want of others, is numbered instead."""
        for part in parts:
            if part.name == name and part.block is self.into and part.op is not None and part.op.role is Role.BACKWARD:
                self.into.rename(part, self.into.program.unique(name))

    def _name(self, gradient: Var, name: str) -> None:
        """Give a gradient its name, if it has none yet; numbered where that would hide a variable that can be seen from here."""
        fresh = gradient.op is not None and gradient.op.role is Role.BACKWARD and "@" not in gradient.name
        if fresh and gradient.block is self.into:
            self.into.rename(gradient, name if self.into.find_var(name) is None else self.into.program.unique(name))


def _may_be_equal(one: Shape, other: Shape) -> bool:
    """Whether two shapes can be the same in a run, with numbers for their symbols."""
    return len(one) == len(other) and all(map(_may_be_same, one, other))


def _may_be_same(one: Size, other: Size) -> bool:
    difference = add(one, multiply(other, -1))
    if isinstance(difference, int):
        return difference == 0
    found = solve(one, other) if isinstance(other, int) else solve(other, one) if isinstance(one, int) else None
    return found is None or found[1] is not None


def _sources(ops: Sequence[Op], vars: Sequence[Var], wanted: Sequence[Var]) -> list[Var]:
    """Those of `wanted` from which a differentiable path leads to some of `vars`."""
    return [var for var in wanted if _reach(ops, {var}) & set(vars)]
