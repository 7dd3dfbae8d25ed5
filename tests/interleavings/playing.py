"""One interleaving: actions by chance on one scope, and a model of what each variable, and whoever holds one, must have."""

import random
from functools import cache

import numpy
import torch
from tolerances import PLANS_DIFFER

import oarlock as ol
from interleavings.holding import HOLDS, READS, Held, tensors_of

__all__ = ["play"]

_OPTIMIZERS = {
    "sgd": lambda: ol.optimizer.SGD(0.05),
    "momentum": lambda: ol.optimizer.Momentum(0.05),
    "adam": lambda: ol.optimizer.Adam(0.01),
}


@cache
def _program(kind: str, optimizer: str) -> ol.Program:
    with ol.Program(seed=5) as program:
        if kind == "images":
            x = ol.layer.data("x", shape=[2, 4, 4])
            hidden = ol.layer.flatten(ol.layer.conv2d(x, 3, 3, padding=1, act="relu", name="c"))
        else:
            x = ol.layer.data("x", shape=[3], dtype="float64")
            hidden = ol.layer.fc(x, 4, act="tanh", name="f")
        predict = ol.layer.fc(hidden, 2, name="g")
        rows = ol.layer.data("rows", shape=[], dtype="int64", batch="k")
        program.targets["y"] = predict
        program.targets["row"] = ol.op.gather(predict, rows)  # fails where there is no such row
        cost = program.targets["cost"] = ol.layer.mean(ol.op.square(predict))
        _OPTIMIZERS[optimizer]().minimize(cost)
        program.targets["view"] = ol.op.reshape(program.main.var("g.w"), shape=(program.main.var("g.w").shape[0] * 2,))
    return program


@cache
def _executor(kind: str) -> ol.Executor:
    return {"plan": ol.Executor, "passes": lambda: ol.Executor(passes=()), "interpreter": lambda: ol.Executor(interpret=True)}[kind]()


class _Play:
    def __init__(self, chance: random.Random):
        self.chance = chance
        kind = chance.choice(["rows", "rows", "rows", "images"])
        self.program = _program(kind, chance.choice(["sgd", "momentum"] if kind == "images" else list(_OPTIMIZERS)))
        self.scope = ol.init(self.program, ol.Scope())
        self.names = [var.name for var in self.program.persistables()]
        self.weights = [name for name in self.names if not name.endswith((".learning_rate", "STEP"))]
        self.mirror = {name: self.scope.var(name).held.numpy().copy() for name in self.names}
        self.memory: dict[str, object] = {name: object() for name in self.names}
        self.held: list[Held] = []
        self.errors: list[object] = []  # exceptions, and scopes of runs, that somebody keeps
        shape, dtype = ((2, 2, 4, 4), "float32") if kind == "images" else ((3, 3), "float64")
        self.feed = {"x": numpy.linspace(-1, 1, int(numpy.prod(shape))).reshape(shape).astype(dtype), "rows": numpy.array([1, 0])}
        self.steps: dict[tuple[str, tuple[str, ...], bool], object] = {}
        self.done: list[str] = []

    # What is done

    def act(self) -> None:
        chosen = self.chance.choices(
            ["step", "read", "hold", "drop", "write", "set", "fail", "refuse", "evaluate", "infer", "fetch", "keep"],
            [8, 2, 6, 2, 2, 1, 1, 1, 2, 2, 2, 1],
        )[0]
        self.done.append(chosen)
        getattr(self, chosen)()

    def step(self, fetch: tuple[str, ...] = ("cost",), *, as_arrays: bool = True) -> list:
        values = self._run(fetch, as_arrays, self.feed)
        self._advance()
        return values

    def _run(self, fetch: tuple[str, ...], as_arrays: bool, feed: dict) -> list:
        how, prepared = self.chance.choice(["plan", "plan", "passes", "interpreter"]), self.chance.random() < 0.7
        self._note(f"{how}{' prepared' if prepared else ''} {','.join(fetch)}")
        if not prepared:
            return _executor(how).run(self.program, feed, list(fetch), scope=self.scope, training=True, return_numpy=as_arrays)
        key = how, fetch, as_arrays
        if key not in self.steps:
            self.steps[key] = _executor(how).prepare(self.program, list(fetch), scope=self.scope, training=True, return_numpy=as_arrays)
        return self.steps[key](feed)  # type: ignore[operator]

    def _advance(self) -> None:
        """Advance the model by a step, computed in a scope of its own."""
        scope = ol.Scope()
        for name in self.names:
            scope.set(name, self.mirror[name])
        _executor("interpreter").run(self.program, self.feed, [], scope=scope, training=True)
        for name in self.names:
            after = scope.var(name).held.numpy()
            if not name.endswith(".learning_rate"):
                self.mirror[name], self.memory[name] = after.copy(), object()

    def read(self) -> None:
        name, way = self.chance.choice(self.names), self.chance.choice(list(READS))
        self._note(f"{way} {name}")
        READS[way](self.scope, name)

    def hold(self) -> None:
        name, way, hold = self.chance.choice(self.weights), self.chance.choice(list(READS)), self.chance.choice(list(HOLDS))
        self._note(f"{hold} {way} {name}")
        value = READS[way](self.scope, name)
        look, write = HOLDS[hold](value), value if hold in ("list", "closure") else None
        self.held.append(Held(name, look, self.memory[name], write, is_saved=hold == "graph"))

    def drop(self) -> None:
        if self.held:
            self._note(self.held.pop(self.chance.randrange(len(self.held))).name)

    def write(self) -> None:
        """Write over something that is held: all see it who hold that memory, the variable too if it is its value still."""
        writable = [held for held in self.held if held.writable is not None]
        if not writable:
            return
        chosen = self.chance.choice(writable)
        self._note(chosen.name)
        assert chosen.writable is not None
        self.held = [held for held in self.held if not (held.is_saved and held.memory is chosen.memory)]  # autograd refuses it from now on
        chosen.writable.mul_(0.5)
        for held in self.held:
            if held.memory is chosen.memory:
                held.expected = held.look().copy()
        for name, memory in self.memory.items():
            if memory is chosen.memory:
                self.mirror[name] = self.scope.var(name).held.numpy().copy()

    def set(self) -> None:
        name = self.chance.choice(self.weights)
        value = numpy.full(self.mirror[name].shape, self.chance.uniform(0.1, 0.5), self.mirror[name].dtype)
        self.memory[name] = object()
        if self.chance.random() < 0.5:
            self._note(f"{name} an array")
            self.scope[name] = value
            self.mirror[name] = value.copy()
            value.fill(7)  # it was copied
        else:
            self._note(f"{name} a tensor")
            given = torch.from_numpy(value.copy())
            self.scope[name] = given
            self.mirror[name] = value
            self.held.append(Held(name, lambda: given.numpy(), self.memory[name], given))

    def fail(self) -> None:
        """A kernel fails while values are there; the exception holds them."""
        memories = self._memories()
        try:
            self._run(("row",), True, {**self.feed, "rows": numpy.array([0, 99])})
        except ol.KernelError as error:
            self._hold_error(error, memories)
        else:
            raise AssertionError("no kernel has failed")

    def refuse(self) -> None:
        """An update fails before anything is written over."""
        (rate,) = (name for name in self.names if name.endswith(".learning_rate"))
        self.scope[rate] = numpy.array(numpy.inf)
        memories = self._memories()
        try:
            self._run(("cost",), True, self.feed)
        except ol.KernelError as error:
            self._hold_error(error, memories)
        else:
            raise AssertionError("no update has failed")
        finally:
            self.scope[rate] = self.mirror[rate]
            self.memory[rate] = object()

    def _hold_error(self, error: BaseException, memories: dict[int, object]) -> None:
        self.errors.append(error)
        for value in {id(value): value for value in tensors_of(error)}.values():
            self._hold_found("exception", value, memories)

    def _hold_found(self, name: str, value: torch.Tensor, memories: dict[int, object]) -> None:
        self.held.append(Held(name, lambda: value.detach().numpy(), memories.get(_address(value), self)))

    def _memories(self) -> dict[int, object]:
        """The tokens of the variables, by where their values lie now."""
        return {_address(self.scope.var(name).held): memory for name, memory in self.memory.items()}

    def evaluate(self) -> None:
        """Weights, and a view of one, returned as they are."""
        how = self.chance.choice(["plan", "passes", "interpreter"])
        self._note(how)
        weight, view = _executor(how).eval(self.program, ["g.w", "view"], self.feed, scope=self.scope, return_numpy=False)
        assert numpy.array_equal(view.reshape(weight.shape).numpy(), weight.numpy(), equal_nan=True)  # some trainings diverge
        self.held += [Held("g.w", lambda value=value: value.numpy(), self.memory["g.w"], value) for value in (weight, view)]

    def infer(self) -> None:
        key = "infer", ("y",), True
        if key not in self.steps:
            inference = self.program.clone()
            inference.main.keep([op for op in inference.main.ops if not op.is_commit])
            self.steps[key] = _executor("plan").prepare(inference, ["y"], scope=self.scope)
        (found,) = self.steps[key](self.feed)  # type: ignore[operator]
        scope = ol.Scope()
        for name in self.names:
            scope.set(name, self.mirror[name])
        (wanted,) = _executor("interpreter").eval(self.program, ["y"], self.feed, scope=scope)
        _require_close(found, wanted, "y")

    def fetch(self) -> None:
        """Weights and their next values, as a step returns them."""
        before = self.memory["g.w"]
        weight, following = self.step(("g.w", "g.w@NEXT"), as_arrays=False)
        self.held.append(Held("g.w", lambda: weight.numpy(), before, weight))
        self.held.append(Held("g.w", lambda: following.numpy(), self.memory["g.w"], following))

    def keep(self) -> None:
        """A step whose scopes are kept: values in it may lie in the memory of a variable."""
        memories = self._memories()
        _, scopes = _executor("plan").run(self.program, self.feed, ["cost"], scope=self.scope, training=True, keep_scopes=True)
        self._advance()
        memories |= self._memories()  # a next value lies in the run's scope too
        frame = scopes["main"]
        for name in frame:
            value = frame.var(name).held
            if isinstance(value, torch.Tensor):
                self._hold_found(name, value, memories)
        self.errors.append(scopes)

    def _note(self, text: str) -> None:
        self.done[-1] += f" {text}"

    # What must hold

    def require(self) -> None:
        for held in self.held:
            assert not held.has_changed(), f"what is held of {held.name} has changed"
        for name in self.names:
            found = self.scope.var(name).held.numpy()  # read, and not lent
            _require_close(found, self.mirror[name], name)
            self.mirror[name] = found.copy()  # from where the next step goes on


def _require_close(found: numpy.ndarray, wanted: numpy.ndarray, name: str) -> None:
    relative, absolute = PLANS_DIFFER[torch.from_numpy(found).dtype] if found.dtype.kind == "f" else (0.0, 0.0)
    numpy.testing.assert_allclose(found, wanted, rtol=relative, atol=absolute, err_msg=name)


def _address(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr()


def play(seed: int, number: int, length: int = 24) -> tuple[list[str], str | None]:
    """Interleaving `number` of `seed`: what was done, and what went wrong."""
    played = _Play(random.Random(f"{seed} {number}"))
    try:
        for _ in range(length):
            played.act()
            played.require()
    except Exception as error:  # whatever it is, it is reported with what led to it
        return played.done, f"after {len(played.done)}, {played.done[-1]}: {type(error).__name__}: {str(error).strip()[:300]}"
    return played.done, None
