"""NetBuilder: builds a net layer by layer; backward and optimizer are declared once, in any order, and built by the next run."""

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
    """A convenience wrapper of a `Net`.

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
        """Whether the next run must build or rebuild backward or optimizer ops."""
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
        """Append a layer (`ol.layer`) or, if no layer has the name, an operator; return its result.

        `input` is its variable, or several in order; `attributes` are its other arguments, such as `size`. Existing backward and update ops
        are removed, and rebuilt by the next run. Raises ProgramError for a variable of another program, and the errors of the layer.
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
        """Differentiate `loss`, float[], in the next run with `need_backward`. Raises ProgramError if it belongs to another program."""
        require_vars_of(self.net.program, [loss])
        self._loss = loss
        self.need_rebuild = True

    @takes_old_keywords(OLD_ARGUMENTS)
    def add_optimization(self, learning_rate: float | Var, optimizer: str = "sgd") -> None:
        """Update every parameter by the named optimizer from the next run with `need_backward`."""
        self._optimization = {"type": optimizer, "learning_rate": learning_rate}
        self.need_rebuild = True

    def run(
        self, scope: Scope | None = None, context: Context | None = None, need_backward: bool = True, *, keep_scopes: bool = False
    ) -> None:
        """Run the whole net, or only its forward ops, in `scope`; parameters without a value there are initialized.

        Backward and optimizer ops declared since the last run are built first. Without a `context`, a run with `need_backward` is training.
        `keep_scopes` is passed to `Net.run`. Raises ProgramError if there is nothing to differentiate, and the errors of `Net.run`.
        """
        chosen = scope if scope is not None else context.scope if context is not None else current_scope()
        if need_backward:
            self._build()
        init(self.net.program, chosen)
        end = None if need_backward else self.last_forward_op
        self.net.run(chosen, context or Context(chosen, training=need_backward), 0, end, keep_scopes=keep_scopes)

    @property
    def last_forward_op(self) -> int:
        """The number of forward ops: they come first, so this is the end of a forward run."""
        return sum(op.role is Role.FORWARD for op in self.net)

    def _build(self) -> None:
        if self._loss is None:
            raise ProgramError(
                "there is nothing to differentiate", location=here(), hint="call builder.backward_from(loss), or run(need_backward=False)"
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
