"""NetBuilder: a net written layer by layer, whose backward and optimizer are said once, in any order, and built when it runs."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import oarlock.layer
from oarlock.compat_2017.net.network import Net, require_vars_of
from oarlock.errors import ProgramError
from oarlock.ir.location import here
from oarlock.ir.operation import Role
from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, takes_old_keywords
from oarlock.op.composed.named_activation import activate
from oarlock.registry import standard
from oarlock.runtime import Context, Scope, init
from oarlock.runtime.current_scope import current_scope

__all__ = ["NetBuilder"]


class NetBuilder:
    """Sugar over a `Net`.

    builder = ol.NetBuilder(net)
    hidden = builder.add_op("fc", input=image, size=100, activation="sigmoid")
    ...
    builder.backward_from(cost)
    builder.add_optimization(1e-4, "adam")
    builder.run(scope)
    """

    def __init__(self, net: Net | None = None):
        self.net = Net() if net is None else net
        self.need_rebuild = False
        """Whether the next run has backward or optimizer ops to build, for the first time or anew."""
        self._loss: Var | None = None
        self._optimization: dict[str, object] | None = None

    def add_op(
        self,
        type: str,
        *,
        input: Var | Sequence[Var] | None = None,
        activation: str | None = None,
        **attributes: Any,
    ) -> Var:
        """Append a layer (`ol.layer`) or, where none has the name, an operator; return what it computes.

        `input` is its variable, or several in order; `attributes` its other arguments, `size` among them. Backward and
        update ops that were built are taken away, and built anew by the next run. Raises ProgramError for a variable of another
        program, else what the layer raises.
        """
        require_vars_of(self.net.program, [input, *attributes.values()])
        self._forward_only()
        self.need_rebuild = self.need_rebuild or self._loss is not None
        known = type in oarlock.layer.__all__ and not isinstance(getattr(oarlock.layer, type), ModuleType)
        layer: Callable[..., Var] = getattr(oarlock.layer, type) if known else standard.get(type)
        inputs = [] if input is None else [input] if isinstance(input, Var) else list(input)
        with self.net.block:
            return activate(layer(*inputs, **attributes), activation)

    def backward_from(self, loss: Var) -> None:
        """Differentiate `loss`, float[], when next run with `need_backward`. Raises ProgramError where it is of another program."""
        require_vars_of(self.net.program, [loss])
        self._loss = loss
        self.need_rebuild = True

    @takes_old_keywords(OLD_ARGUMENTS)
    def add_optimization(self, learning_rate: float | Var, optimizer: str = "sgd") -> None:
        """Update every parameter by the optimizer of that name when next run with `need_backward`."""
        self._optimization = {"type": optimizer, "learning_rate": learning_rate}
        self.need_rebuild = True

    def run(
        self, scope: Scope | None = None, context: Context | None = None, need_backward: bool = True, *, keep_scopes: bool = False
    ) -> None:
        """Run the whole net, or its forward ops alone, in `scope`; parameters that have no value there are initialised.

        What was asked for since the last run is built first, once. Without a `context`, a run with `need_backward` is
        training. `keep_scopes` is that of `Net.run`. Raises ProgramError where there is nothing to differentiate, else what
        `Net.run` raises.
        """
        chosen = scope if scope is not None else context.scope if context is not None else current_scope()
        if need_backward:
            self._build()
        init(self.net.program, chosen)
        end = None if need_backward else self.last_forward_op
        self.net.run(chosen, context or Context(chosen, training=need_backward), 0, end, keep_scopes=keep_scopes)

    @property
    def last_forward_op(self) -> int:
        """How many forward ops there are: they come first, so a run of them ends here."""
        return sum(op.role is Role.FORWARD for op in self.net)

    def _build(self) -> None:
        if self._loss is None:
            raise ProgramError(
                "there is nothing to differentiate", location=here(), hint="builder.backward_from(loss), or run(need_backward=False)"
            )
        if not self.need_rebuild:
            return
        self._forward_only()
        self.net.add_backward_ops(self._loss)
        if self._optimization is not None:
            self.net.add_optimizer_ops(self._optimization)
        self.need_rebuild = False

    def _forward_only(self) -> None:
        if self.last_forward_op < len(self.net):
            self.net.remove_backward_ops()
