import threading

import numpy
import pytest
import torch

import oarlock as ol


@pytest.fixture
def executor():
    return ol.Executor()


@pytest.fixture
def scope():
    return ol.Scope()


def classifier():
    """A layer, a cost, an accuracy; SGD. A label of 9 makes the cost's kernel raise."""
    with ol.Program(seed=5) as program:
        x = ol.layer.data("x", shape=[4])
        label = ol.layer.data("label", shape=[], dtype="int64")
        logits = ol.layer.fc(x, 3, name="logits")
        cost = ol.layer.cross_entropy(logits, label)
        program.targets["cost"] = cost
        program.targets["predict"] = ol.layer.softmax(logits, name="predict")
        ol.optimizer.SGD(0.5).minimize(cost)
    return program


def batch(seed=0, rows=6):
    random = numpy.random.default_rng(seed)
    return {"x": random.normal(size=(rows, 4)).astype("float32"), "label": random.integers(0, 3, rows)}


def state(program, scope):
    return {var.name: scope[var.name].numpy().tobytes() for var in program.persistables()}


# Fetching


def test_a_fetch_is_a_variable_a_name_or_a_label(executor, scope):
    program = classifier()
    ol.init(program, scope)
    predict = program.main.var("predict")
    cost = program.targets["cost"]
    before = state(program, scope)
    by_var, by_name, by_label, label = executor.run(
        ol.prune(program, {"cost": cost, "predict": predict}), batch(), ["predict", "logits.out", "cost", "label"], scope=scope
    )
    assert (by_var.shape, by_name.shape, by_label.shape, label.dtype) == ((6, 3), (6, 3), (), numpy.int64)
    assert state(program, scope) == before
    assert executor.run(program, batch(), [cost, predict], scope=scope)[0] == by_label


def test_a_label_stands_before_a_name(executor, scope):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        y = ol.op.square(x, name="y")
        program.targets["x"] = y
    assert executor.run(program, {"x": [3.0]}, ["x"], scope=scope)[0].tolist() == [9.0]


def test_a_label_that_is_given_to_another_variable_is_followed(executor, scope):
    """Labels are a plain dict: what was prepared for the old one is not reused."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        program.targets["out"] = ol.op.square(x)
        other = ol.op.neg(x)
    assert executor.run(program, {"x": [3.0]}, ["out"], scope=scope)[0].tolist() == [9.0]
    program.targets["out"] = other
    assert executor.run(program, {"x": [3.0]}, ["out"], scope=scope)[0].tolist() == [-3.0]


def test_a_program_that_grows_after_a_run_is_prepared_again(executor, scope):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        y = ol.op.square(x)
    assert executor.run(program, {"x": [3.0]}, [y], scope=scope)[0].tolist() == [9.0]
    w = program.main.new_var("w", ol.DType.FLOAT32, (), persistable=True)
    scope.set("w", 0.0)
    program.main.commit(w, ol.op.reduce_sum(y))
    executor.run(program, {"x": [3.0]}, [y], scope=scope)
    assert scope["w"] == 9.0


def test_two_programs_that_look_alike_are_prepared_apart(executor):
    scopes = []
    for start in (1.0, 2.0):
        with ol.Program() as program:
            w = program.main.new_var("w", ol.DType.FLOAT32, (), persistable=True)
            program.main.commit(w, w + start)
        scopes.append(ol.Scope())
        scopes[-1].set("w", 0.0)
        executor.run(program, scope=scopes[-1])
    assert [scope["w"] for scope in scopes] == [1.0, 2.0]


def test_more_ways_of_running_than_are_kept_are_prepared_anew(executor, scope):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        results = [x + float(number) for number in range(70)]
    for _ in range(2):
        assert [executor.run(program, {"x": [0.5]}, [y], scope=scope)[0][0] for y in results] == [0.5 + number for number in range(70)]
    assert len(executor._prepared) <= 64


def test_a_name_that_is_not_there_is_refused_with_the_nearest(executor, scope):
    program = classifier()
    with pytest.raises(ol.UndefinedVarError) as caught:
        executor.run(program, batch(), ["logits.oud"], scope=scope)
    assert caught.value.message == '"logits.oud" is not visible in main'
    assert caught.value.hint == 'did you mean "logits.out"?'


def test_a_variable_of_a_copy_is_refused(executor, scope):
    program = classifier()
    copy = program.clone()
    cost = copy.targets["cost"]
    with pytest.raises(ol.UndefinedVarError) as caught:
        executor.run(program, batch(), [cost], scope=scope)
    assert caught.value.message == '"main/valid_mean_0" is not a variable of this program'
    assert caught.value.given == (cost.describe(),)
    assert caught.value.hint == "fetch by name if the program is a copy or was loaded from a file"


def test_what_is_no_variable_is_not_fetched(executor, scope):
    with pytest.raises(ol.ArgumentError) as caught:
        executor.run(classifier(), batch(), [3], scope=scope)
    assert caught.value.message == "a fetch must be a variable or its name, not int 3"


@pytest.mark.parametrize("fetch", ["cost", "var"])
def test_a_fetch_is_a_list(executor, scope, fetch):
    program = classifier()
    with pytest.raises(ol.ArgumentError) as caught:
        executor.run(program, batch(), program.targets["cost"] if fetch == "var" else fetch, scope=scope)
    assert caught.value.message == "fetch must be a list of variables or names"


def test_what_is_no_place_is_refused():
    with pytest.raises(ol.ArgumentError, match=r"^a place must be ol\.CPUPlace\(\) or ol\.GPUPlace\(index\), not 'cpu'\n"):
        ol.Executor("cpu")


def test_fetched_arrays_are_copies(executor, scope):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        w = program.main.new_var("w", ol.DType.FLOAT32, (2,), persistable=True)
        same = ol.op.assign(w)
        also = ol.op.assign(x)
    scope.set("w", [1.0, 2.0])
    fed = numpy.ones((1, 2), "float32")
    fetched = executor.run(program, {"x": fed}, [w, w, same, x, also], scope=scope)
    for array in fetched:
        array += 100.0
    assert scope["w"].tolist() == [1.0, 2.0]
    assert fed.tolist() == [[1.0, 1.0]]
    assert fetched[0].tolist() == [101.0, 102.0]
    tensor = torch.ones(1, 2)
    executor.run(program, {"x": tensor}, [x], scope=scope)[0].fill(7.0)
    assert tensor.tolist() == [[1.0, 1.0]]


def test_tensors_may_be_fetched_instead(executor, scope):
    with ol.Program() as program:
        y = ol.op.square(ol.layer.data("x", shape=[]))
    value = executor.run(program, {"x": [3.0]}, [y], scope=scope, return_numpy=False)[0]
    assert isinstance(value, torch.Tensor)
    assert not value.requires_grad


def test_autograd_of_what_is_fed_plays_no_part(executor, scope):
    with ol.Program() as program:
        y = ol.op.square(ol.layer.data("x", shape=[]))
    value = executor.run(program, {"x": torch.ones(2, requires_grad=True)}, [y], scope=scope, return_numpy=False)[0]
    assert not value.requires_grad


def test_nothing_to_fetch_gives_nothing(executor, scope):
    program = classifier()
    ol.init(program, scope)
    assert executor.run(program, batch(), scope=scope) == []
    assert scope["@STEP"] == 1


# What runs


def test_only_what_the_fetches_need_runs(executor, scope):
    """The cost of a label of 9 raises; who does not ask for it never notices."""
    program = classifier()
    predict = ol.prune(program, {"predict": program.main.var("predict"), "cost": program.targets["cost"]})
    ol.init(program, scope)
    feed = {**batch(), "label": numpy.full(6, 9)}
    executor.run(predict, feed, ["predict"], scope=scope)
    executor.run(predict, {"x": feed["x"]}, ["predict"], scope=scope)
    with pytest.raises(ol.KernelError):
        executor.run(predict, feed, ["predict", "cost"], scope=scope)


def test_what_an_update_needs_runs_too(executor, scope):
    program = classifier()
    ol.init(program, scope)
    with pytest.raises(ol.KernelError):
        executor.run(program, {**batch(), "label": numpy.full(6, 9)}, ["predict"], scope=scope)


def test_what_only_the_updates_need_is_fed_too(executor, scope):
    program = classifier()
    ol.init(program, scope)
    with pytest.raises(ol.FeedError, match='^"label" is not fed'):
        executor.run(program, {"x": batch()["x"]}, ["predict"], scope=scope)


def test_an_op_that_nothing_needs_does_not_run_inside_the_program_either(executor, scope):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64")
        loop = ol.rnn()
        with loop.step():
            step = loop.step_input(x)
            loop.output(ol.op.square(step))
        loop()
        w = program.main.new_var("w", ol.DType.FLOAT64, (2,), persistable=True)
        ol.op.add(w, x)
        y = ol.op.neg(x)
    assert executor.run(program, {"x": numpy.ones(3)}, [y], scope=scope)[0].tolist() == [-1.0] * 3


# Steps


def test_a_fetched_parameter_is_the_value_before_the_step(executor, scope):
    program = classifier()
    ol.init(program, scope)
    before = scope["logits.w"].numpy().copy()
    counted, fetched, following = executor.run(program, batch(), ["@STEP", "logits.w", "logits.w@NEXT"], scope=scope)
    assert counted == 0
    assert numpy.array_equal(fetched, before)
    assert numpy.array_equal(following, scope["logits.w"].numpy())
    assert not numpy.array_equal(fetched, following)


def test_every_update_reads_the_values_from_before_the_step(executor, scope):
    """Two parameters that change places do so at once."""
    with ol.Program() as program:
        a, b = (program.main.new_var(name, ol.DType.FLOAT32, (), persistable=True) for name in "ab")
        program.main.commit(a, ol.op.assign(b))
        program.main.commit(b, ol.op.assign(a))
        late = ol.op.assign(a)
    scope.set("a", 1.0)
    scope.set("b", 2.0)
    assert executor.run(program, {}, [late], scope=scope)[0] == 1.0
    assert (scope["a"], scope["b"]) == (2.0, 1.0)


def test_a_parameter_is_updated_where_it_lives(executor):
    program = classifier()
    shared = ol.init(program, ol.Scope())
    before = shared["logits.w"]
    own = shared.new_scope()
    executor.run(program, batch(), scope=own)
    assert list(own) == []
    assert not torch.equal(shared["logits.w"], before)


def test_a_step_that_raises_leaves_every_parameter_as_it_was(executor, scope):
    program = classifier()
    ol.init(program, scope)
    executor.run(program, batch(), scope=scope)
    before = state(program, scope)
    with pytest.raises(ol.KernelError):
        executor.run(program, {**batch(), "label": numpy.full(6, 9)}, scope=scope)
    assert state(program, scope) == before


def test_a_step_that_raises_after_new_values_were_computed_writes_none(executor, scope):
    """The last op before the tail raises, when `logits.w@NEXT` has its value already."""
    program = classifier()
    with program:
        worst = program.main.new_var("worst", ol.DType.FLOAT32, (), persistable=True)
        bad = ol.op.softmax_with_cross_entropy(program.main.var("logits.w@NEXT"), ol.op.full(shape=(4,), value=9, dtype="int64"))
        program.main.commit(worst, ol.op.reduce_sum(bad))
    ol.init(ol.prune(program, {"cost": program.targets["cost"]}), scope)
    for name in ("worst", "sgd_0.learning_rate"):
        scope.set(name, torch.tensor(0.5, dtype=torch.float64 if name != "worst" else torch.float32))
    scope.set("@STEP", torch.tensor(0))
    before = state(program, scope)
    with pytest.raises(ol.KernelError):
        executor.run(program, batch(), scope=scope)
    assert state(program, scope) == before


def test_a_variable_without_a_value_is_named(executor, scope):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        y = ol.layer.fc(x, 3, name="hidden")
    w = program.main.var("hidden.w")
    with pytest.raises(ol.UnsetVarError) as caught:
        executor.run(program, {"x": numpy.zeros((1, 4), "float32")}, [y], scope=scope)
    place = y.location
    assert str(caught.value) == (
        'linear reads "hidden.w", which has no value\n'
        f'  {place.file}:{place.line} in test_a_variable_without_a_value_is_named      y = ol.layer.fc(x, 3, name="hidden")\n'
        f'      "hidden.w"   float32[4, 3]   parameter; created at {w.location.file}:{w.location.line}\n'
        "  Try: call ol.init(program, scope) to initialize parameters, and feed inputs by name    (oarlock explain UnsetVarError)"
    )
    assert caught.value.op == "linear"
    scope.var("hidden.w")
    with pytest.raises(ol.UnsetVarError, match='^linear reads "hidden.w", which has no value'):
        executor.run(program, {"x": numpy.zeros((1, 4), "float32")}, [y], scope=scope)


def test_a_kernel_that_refuses_is_explained(executor, scope):
    program = classifier()
    ol.init(program, scope)
    feed = {"x": numpy.zeros((2, 4), "float32"), "label": numpy.array([1, 9])}
    with pytest.raises(ol.KernelError) as caught:
        executor.run(program, feed, scope=scope)
    place = program.targets["cost"].location
    assert str(caught.value) == (
        "softmax_with_cross_entropy: label 9 is not one of the classes 0 to 2\n"
        f"  {place.file}:{place.line} in classifier      cost = ol.layer.cross_entropy(logits, label)\n"
        f"  running   main, op 1 of {len(program.main.ops)}, scope main\n"
        '      logits = "logits.out" float32[2, 3], values 0 to 0\n'
        '      label  = "label" int64[2], values 1 to 9\n'
        "  Try: no state was changed; fix the inputs and run the step again    (oarlock explain KernelError)"
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_kernel_that_refuses_inside_a_loop_says_at_which_step(executor, scope):
    with ol.Program() as program:
        scores = ol.layer.data("scores", shape=["n", 3], batch="t")
        labels = ol.layer.data("labels", shape=["n"], dtype="int64", batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.layer.cross_entropy(loop.step_input(scores), loop.step_input(labels)))
        costs = loop()
    feed = {"scores": numpy.zeros((3, 1, 3), "float32"), "labels": numpy.array([[0], [0], [5]])}
    with pytest.raises(ol.KernelError) as caught:
        executor.run(program, feed, [costs], scope=scope)
    assert caught.value.message == "softmax_with_cross_entropy: label 5 is not one of the classes 0 to 2"
    assert caught.value.running == "main/rnn_0.body, op 0 of 2, scope main/rnn_0/2"
    assert caught.value.given[1] == 'label  = "labels.step_0" int64[1], values 5 to 5'
    assert scope.children == []


# Frames


def test_the_frame_of_a_run_is_dropped_whatever_happens(executor, scope):
    program = classifier()
    with pytest.raises(ol.UnsetVarError):
        executor.run(program, batch(), scope=scope)
    assert scope.children == []
    ol.init(program, scope)
    executor.run(program, batch(), ["cost"], scope=scope)
    assert scope.children == []
    with pytest.raises(ol.KernelError):
        executor.run(program, {**batch(), "label": numpy.full(6, 9)}, scope=scope)
    assert scope.children == []
    with pytest.raises(ol.FeedError):
        executor.run(program, {}, scope=scope)
    assert scope.children == []
    assert list(scope) == [var.name for var in program.persistables()]


def test_the_frame_is_dropped_when_a_run_is_interrupted(scope):
    catalogue = ol.registry.Catalogue()

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def interrupted(context, x):
        frames.append(context._scope)
        raise KeyboardInterrupt

    frames = []
    with ol.Program() as program:
        y = interrupted(ol.layer.data("x", shape=[]))
    with pytest.raises(KeyboardInterrupt):
        ol.Executor(catalogue=catalogue, interpret=True).run(program, {"x": [1.0]}, [y], scope=scope)
    assert scope.children == []
    assert [frame.dropped for frame in frames] == [True]


def test_each_step_of_a_loop_has_a_scope_until_the_run_ends(scope):
    catalogue = ol.registry.Catalogue()
    catalogue.operators.update(ol.registry.standard.operators)
    seen = []

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def look(context, x):
        loop = next(child for child in context._scope.children if child.name == "rnn_0")
        seen.extend((trip.name, trip["square_0"].item()) for trip in loop.children)
        return x

    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.op.square(loop.step_input(x)))
        y = look(loop())
    ol.Executor(catalogue=catalogue, interpret=True).run(program, {"x": [1.0, 2.0, 3.0]}, [y], scope=scope)
    assert seen == [("0", 1.0), ("1", 4.0), ("2", 9.0)]
    assert scope.children == []


# Threads


def test_threads_that_share_an_executor_do_not_disturb_each_other(executor):
    """Eight threads train models of their own on one executor; each gets what it gets alone."""
    program = classifier()

    def train(number, runner):
        scope = ol.init(program, ol.Scope())
        costs = [runner.run(program, batch(seed=10 * number + step), ["cost"], scope=scope)[0].tobytes() for step in range(5)]
        return costs, state(program, scope)

    alone = [train(number, ol.Executor()) for number in range(8)]
    together = [None] * 8
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        together[number] = train(number, executor)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    assert len({costs[0] for costs, _ in together}) == 8


def test_threads_that_share_a_scope_may_all_read_it(executor):
    program = classifier()
    scope = ol.init(program, ol.Scope())
    predict = ol.prune(program, {"predict": program.main.var("predict")})
    expected = [executor.run(predict, {"x": batch(number)["x"]}, ["predict"], scope=scope)[0] for number in range(8)]
    wrong = []

    def work(number):
        for _ in range(10):
            found = executor.run(predict, {"x": batch(number)["x"]}, ["predict"], scope=scope)[0]
            if not numpy.array_equal(found, expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert scope.children == []


# The run, not the program, says whether this is training


def test_dropout_drops_only_while_training(executor, scope):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[1000])
        y = ol.layer.dropout(x, rate=0.25)
    feed = {"x": numpy.ones((1, 1000), "float32")}
    calm = executor.run(program, feed, [y], scope=scope)[0]
    dropped = executor.run(program, feed, [y], scope=scope, training=True)[0]
    assert (calm == 1.0).all()
    assert set(dropped.ravel()) == {0.0, numpy.float32(1 / 0.75)}
    assert 200 < (dropped == 0).sum() < 300


@pytest.mark.parametrize("value", [0.1, [0.1], [[0.1, 0.2]]])
def test_a_python_float_is_fed_to_the_last_bit(value):
    """Not by way of float32, which would leave 0.10000000149."""
    array = numpy.asarray(value)
    with ol.Program() as program:
        x = ol.layer.data("x", shape=array.shape, dtype="float64", batch=None)
        y = x + 0.0
    assert ol.Executor().run(program, {"x": value}, [y], scope=ol.Scope())[0].tolist() == value


@pytest.mark.parametrize("options", [{}, {"interpret": True}, {"limits": ol.RunLimits()}], ids=["plan", "interpreter", "limits"])
def test_what_is_prepared_is_a_step(options):
    with ol.Program() as program:
        y = ol.op.square(ol.layer.data("x", shape=[]))
    step = ol.Executor(**options).prepare(program, [y], scope=ol.Scope())
    assert isinstance(step, ol.Step)
    assert [step({"x": [number]})[0].tolist() for number in (2.0, 3.0)] == [[4.0], [9.0]]
