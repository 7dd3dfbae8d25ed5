"""Recurrent networks in the 2017 API: aliases of `layer/control/rnn.py` that create the same ops.

rnn = ol.create_rnn()
with rnn.stepnet():
    x = a.as_step_input()
    rnn.output(ol.layer.relu(x))
out = rnn()

accum = ol.framework.tensor()
out = ol.layer.rnn(input=words, step_net=lambda: ol.layer.fc(ol.layer.add_to(accum, None), 100))
"""

import inspect
from collections.abc import Callable

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.layer.control.rnn import Recurrence, innermost_recurrence
from oarlock.op.indexing import select_branch
from oarlock.op.manipulation import slice_
from oarlock.op.sequence import sequence_first, sequence_last
from oarlock.registry.creator import describe_value, require_type

__all__ = ["add_to", "as_step_input", "create_rnn", "rnn"]


def create_rnn(*, reverse: bool = False) -> Recurrence:
    """Create a recurrent network: alias of `ol.rnn()`, from the Block document of 2017."""
    return Recurrence(reverse=reverse)


def as_step_input(sequence: Var) -> Var:
    """Return one step of a sequence, also as `x.as_step_input()`: `step_input` of the recurrence whose step is open.

    Raises ProgramError outside a step.
    """
    require_type(sequence, "as_step_input: sequence")
    return innermost_recurrence(sequence, "as_step_input").step_input(sequence)


def add_to(accum: Var, value: Var | None = None) -> Var:
    """Add `value`, by default the step input, to a state that starts as zeros; return the sum so far.

    `accum` is `ol.framework.tensor()`. After the loop it is an ordinary variable: the sum after the last step. Raises ProgramError outside
    a step, and the errors of `Recurrence.add_to`.
    """
    require_type(accum, "add_to: accum")
    return innermost_recurrence(accum, "add_to").add_to(accum, value)


def rnn(input: Var, step_net: Callable[..., Var], *, concat_output: bool = True, reverse: bool = False) -> Var:
    """Return the results of `step_net` for each step of a sequence, stacked; with `concat_output=False`, only the result of the last step.

    `step_net` is a function of the step input or of no arguments; it is called once, to write the step. The last step is the one that runs
    last. If there are no steps, `concat_output=False` fails in the run; an empty sequence of a ragged input yields zeros. Raises
    ArgumentError, and the errors of `step_input` and `output`.
    """
    require_type(input, "layer.rnn: input")
    takes_step = _takes_step(step_net)
    loop = Recurrence(reverse=reverse)
    with loop.step():
        step = loop.step_input(input)
        given = step_net(step) if takes_step else step_net()
        loop.output(require_type(given, "layer.rnn: the result of step_net"))
    stacked = loop()
    assert isinstance(stacked, Var)
    if concat_output:
        return stacked
    splits = stacked.block.splits_of(stacked.shape[0])  # type: ignore[index]
    if splits is not None:
        return (sequence_first if reverse else sequence_last)(stacked, splits)
    return select_branch([slice_(stacked, start=0, stop=1) if reverse else slice_(stacked, start=-1)])


def _takes_step(step_net: object) -> bool:
    """Return whether a function takes the step input. Raises ArgumentError unless it can be called with one argument or none."""
    hint = "step_net=lambda: ol.layer.fc(ol.layer.add_to(accum, None), 100), or a function of the step input"
    if isinstance(step_net, Var) or not callable(step_net):
        raise ArgumentError(
            "layer.rnn: step_net must be a function that writes the step, not "
            + ("a variable" if isinstance(step_net, Var) else describe_value(step_net)),
            location=here(),
            given=[step_net.describe()] if isinstance(step_net, Var) else [],
            contract="values computed before the call are computed once, outside the loop; the step is written inside it",
            hint=hint,
        )
    signature = inspect.signature(step_net)
    for arguments in ((None,), ()):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return bool(arguments)
    raise ArgumentError(f"layer.rnn: step_net must take the step input or nothing, not {signature}", location=here(), hint=hint)


Var.as_step_input = as_step_input  # type: ignore[attr-defined]
