"""The documentation page of an operator, generated from its declaration."""

from oarlock.registry.call_signature import format_call
from oarlock.registry.case import Case, Rejects
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Slot

__all__ = ["AT", "format_page"]

AT = {
    "denormal": "at denormal numbers",
    "equal": "at equal elements",
    "infinite": "at infinities",
    "nan": "at NaN",
    "negative": "below 0",
    "one": "at 1",
    "refused": "at rejected values",
    "zero": "at 0",
}


def format_page(operator: Operator) -> str:
    """Return the page as plain text: syntax, documentation, inputs, attributes, outputs, promises, gradients, examples."""
    signature = operator.signature
    lines = [format_call(operator), "", operator.doc, ""]
    lines += _section("Inputs", [_describe(slot) for slot in signature.inputs])
    lines += _section(
        "Attributes",
        [str(spec) for spec in operator.attributes.values()],
    )
    lines += _section(
        "Outputs",
        [_describe(slot) + (", kept for the gradient" if slot.name in operator.intermediate else "") for slot in signature.outputs],
    )
    lines += _section("Promises", _promises(operator))
    lines += _section("Gradients", _gradients(operator))
    lines += _section("Gradients that differ from PyTorch's", [f"{AT[kind]}: {reason}" for kind, reason in sorted(operator.edges.items())])
    lines += _section("Examples", [_example(operator, case) for case in operator.cases if isinstance(case, Case)])
    lines += _section(
        "Refused", [f"{_arguments(operator, case.values)}: {case.message}" for case in operator.cases if isinstance(case, Rejects)]
    )
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, items: list[str]) -> list[str]:
    return [title, *(f"    {item}" for item in items), ""] if items else []


def _describe(slot: Slot) -> str:
    words = [str(slot)]
    if slot.optional:
        words.append("optional")
    if slot.variadic:
        words.append("any number of tensors")
    if slot.shape_only:
        words.append("only its shape is read")
    return ", ".join(words)


def _promises(operator: Operator) -> list[str]:
    promises = []
    if operator.row_group:
        promises.append(f"each leading index *{operator.row_group} is computed independently")
    promises += [f"{name} is a sum over the rows" for name in operator.summed_outputs]
    if operator.linear_in:
        promises.append(f"linear in {' and '.join(operator.linear_in)}{', separately' if len(operator.linear_in) > 1 else ''}")
    if operator.is_contraction:
        promises.append(
            "sums products over the dimensions that an output does not have, and computes the indexes of the others independently"
        )
    if operator.axis_attribute:
        promises.append(f"each index of the axes before {operator.axis_attribute} is computed independently")
    if operator.aliases:
        promises.append(f"may return {', '.join(operator.aliases)}, or {'disjoint views' if operator.disjoint else 'a view'} of it")
    if operator.sensitive_to == "layout":
        promises.append("may round differently if inputs have gaps in memory")
    if operator.sensitive_to == "place":
        promises.append("rounding may depend on strides and addresses")
    if operator.effects:
        meaning = {"random": "two runs differ", "collective": "all workers run it, in the same order"}
        promises.append(f"effect: {operator.effects}; {meaning[operator.effects]}")
    if operator.on_workers:
        promises.append({"same": "equal results on all workers", "own": "different results on each worker"}[operator.on_workers])
    if operator.checks_values:
        promises.append("values, not only shapes, can make it raise")
    return promises


def _gradients(operator: Operator) -> list[str]:
    if operator.gradient_builder is not None:
        return ["every float input: a program of operators"]
    lines = []
    for slot, rule in operator.gradients.items():
        if rule.operator is not None:
            lines.append(format_call(rule.operator))
        else:
            lines.append(f"{operator.type}_d{slot}: a program of operators" if rule.program else f"{slot}: zero")
        if slot in operator.complex_gradients:
            lines.append(f"{operator.type}_d{slot}, for complex numbers: a program of operators")
    return lines


def _example(operator: Operator, case: Case) -> str:
    outputs = [f"{slot.name} = {case.values[slot.name]}" for slot in operator.signature.outputs if slot.name in case.values]
    inputs = {name: value for name, value in case.values.items() if operator.signature.output(name) is None}
    return f"{_arguments(operator, inputs)}  returns  {', '.join(outputs)}"


def _arguments(operator: Operator, values: dict[str, object]) -> str:
    return f"{operator.type}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
