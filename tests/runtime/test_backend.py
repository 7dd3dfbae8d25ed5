"""PyTorch's compiler as the backend of an executor: it computes what the interpreter does, but for rounding, and fails as plans fail."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch
from failing_kernels import fail_at_tanh
from sample_programs import chain, program_of_chain
from tolerances import PASSES_DIFFER

import oarlock as ol
from oarlock.runtime.plan import by_signature, compiled_region

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="PyTorch's compiler needs a C++ compiler, and there is none here"
)
pytestmark = pytest.mark.filterwarnings("ignore")  # what PyTorch's compiler warns of is its own

RELATIVE, ABSOLUTE = PASSES_DIFFER


@pytest.fixture
def compilations(monkeypatch):
    """A list that grows by what each compilation is given."""
    seen = []
    compile_region = compiled_region._compile

    def counted(*arguments):
        seen.append([tuple(each.shape) for each in arguments[3]])
        return compile_region(*arguments)

    monkeypatch.setattr(compiled_region, "_compile", counted)
    return seen


@pytest.fixture
def by_kernels(monkeypatch):
    """Nothing is compiled: every signature is one too many."""
    monkeypatch.setattr(by_signature, "_MOST", 0)


def executor(**options):
    return ol.Executor(backend="inductor", poison=True, **options)


def close(actual, expected):
    return all(numpy.allclose(one, other, rtol=RELATIVE, atol=ABSOLUTE) for one, other in zip(actual, expected, strict=True))


def run(executor, program, **feed):
    return executor.run(program, feed, list(program.targets), scope=ol.Scope())


def network():
    """Rows of a table, a dropout, a batch norm, a loop over steps, and updates; float64."""
    with ol.Program(seed=2) as program:
        ids = ol.layer.data("ids", shape=[6], dtype="int64", batch="t")
        rows = ol.op.tanh(ol.layer.embedding(ids, (5, 4), dtype="float64"))
        start, loop = ol.op.full(shape=(6, 4), value=0.0, dtype="float64"), ol.rnn()
        with loop.step():
            row = loop.step_input(rows)
            memory = loop.memory(init=start)
            loop.update_memory(memory, ol.op.tanh(row + loop.previous_memory(memory)))
        loop()
        hidden = chain(ol.op.dropout(ol.layer.fc(loop.final_memory(memory), 3, act="tanh"), rate=0.3))
        cost = ol.layer.mean(ol.op.tanh(ol.layer.batch_norm(hidden)))
        ol.optimizer.Momentum(0.05).minimize(cost)
        program.targets["cost"] = cost
    return program


# What is computed


@needs_compiler
def test_a_step_of_all_kinds_of_ops_agrees_with_the_interpreter_and_may_go_on_with_either():
    program = network()
    draw = numpy.random.default_rng(0)
    feeds = [{"ids": draw.integers(0, 5, size=(4, 6))} for _ in range(6)]
    scopes, costs = [], []
    half = [ol.Executor(interpret=True)] * 3 + [executor()] * 3
    for executors in ([ol.Executor(interpret=True)] * 6, half):
        scope = ol.init(program, ol.Scope())
        costs.append([one.run(program, feed, ["cost"], scope=scope, training=True)[0] for one, feed in zip(executors, feeds, strict=True)])
        scopes.append({name: scope[name] for name in scope})
    assert close(costs[1], costs[0])
    assert close([scopes[1][name] for name in scopes[0]], scopes[0].values())
    assert executor().plan(program, ["cost"]).text.count("region_") >= 2
    evaluated = [one.eval(program, ["cost"], feeds[0], scope=scope) for one in (executor(), ol.Executor(interpret=True))]
    assert close(*evaluated)  # without training


@needs_compiler
def test_each_size_is_compiled_once_and_then_run_by_whoever(compilations):
    program, one = program_of_chain(), executor()
    xs = [numpy.random.default_rng(rows).normal(size=(rows, 3)) for rows in (2, 5, 2, 5, 2)]
    expected = [run(ol.Executor(interpret=True), program, x=x)[0] for x in xs]
    with ThreadPoolExecutor(4) as pool:
        actual = list(pool.map(lambda x: run(one, program, x=x)[0], xs * 8))
    assert close(actual, expected * 8)
    assert sorted(compilations) == [[(2, 3)], [(5, 3)]]


@needs_compiler
def test_how_a_value_lies_in_memory_is_part_of_what_is_compiled(compilations):
    program, one = program_of_chain(), executor()
    x = torch.randn(3, 3, dtype=torch.float64)
    for given in (x, x.T, x):
        assert close(run(one, program, x=given), run(ol.Executor(interpret=True), program, x=given))
    assert len(compilations) == 2


@needs_compiler
@pytest.mark.parametrize("first", [True, False], ids=["first one tensor", "first two"])
def test_two_inputs_that_are_one_tensor_may_be_two_the_next_time(first, compilations):
    program, one = program_of_chain("a", "b"), executor()
    a, b = torch.randn(2, 2, 3, dtype=torch.float64)
    for same in (first, not first, first):
        given = {"a": a, "b": a if same else b}
        assert close(run(one, program, **given), run(ol.Executor(interpret=True), program, **given))
    assert len(compilations) == 1


@needs_compiler
def test_two_results_that_are_computed_as_one_are_two():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        program.targets |= {"y": chain(x), "z": chain(x)}
    y, z = executor(passes=()).run(program, {"x": numpy.ones((2, 3))}, ["y", "z"], scope=ol.Scope(), return_numpy=False)
    before = z.clone()
    y.fill_(7)
    assert torch.equal(z, before)


@needs_compiler
def test_the_batch_norm_of_a_run_that_trains_and_of_one_that_does_not():
    with ol.Program() as program:
        program.targets["y"] = ol.op.tanh(chain(ol.layer.batch_norm(ol.layer.data("x", shape=[2, 3, 3], dtype="float64"))))
    one, scope = executor(), ol.init(program, ol.Scope())
    x = numpy.random.default_rng(0).normal(size=(2, 2, 3, 3))
    for training in (True, False, True):
        actual, expected = (
            each.run(program, {"x": x}, ["y"], scope=scope.new_scope(), training=training) for each in (one, ol.Executor(interpret=True))
        )
        assert close(actual, expected)


def test_what_comes_after_the_last_signature_is_run_by_kernels(by_kernels, compilations):
    program, x = program_of_chain(), numpy.ones((2, 3))
    assert run(executor(), program, x=x)[0].tobytes() == run(ol.Executor(interpret=True), program, x=x)[0].tobytes()
    assert compilations == []


def test_a_region_by_its_kernels_agrees_with_a_plan_bit_for_bit(by_kernels):
    program, results = network(), []
    for one in (ol.Executor(passes=()), executor(passes=())):
        scope = ol.init(program, ol.Scope())
        feed = {"ids": numpy.arange(24).reshape(4, 6) % 5}
        costs = [one.run(program, feed, ["cost"], scope=scope, training=True)[0] for _ in range(3)]
        results.append([*costs, *(scope[name].numpy() for name in scope)])
    assert all(numpy.array_equal(actual, expected) for actual, expected in zip(*results, strict=True))


def test_a_run_of_train_may_have_a_backend_and_go_on_without(by_kernels):
    draw = numpy.random.default_rng(1)
    data = {"x": draw.normal(size=(12, 3)), "y": draw.normal(size=(12, 1))}
    losses = []
    for backends in ((None, None), ("inductor", None)):
        with ol.Program(seed=4):
            x, y = (ol.layer.data(name, shape=[size], dtype="float64") for name, size in (("x", 3), ("y", 1)))
            cost = ol.layer.mse(ol.layer.fc(chain(ol.layer.fc(x, 4, act="tanh")), 1), y)
        result = ol.train(cost, data, epochs=2, batch_size=4, steps=3, progress=False, tune=False, backend=backends[0])
        result = ol.train(result, data, progress=False, tune=False, backend=backends[1])
        losses.append([*(result.parameters[name].numpy() for name in sorted(result.parameters))])
    assert close(losses[1], losses[0])
    with pytest.raises(ol.ArgumentError, match='^backend must be "inductor", "cuda_graphs", "numpy" or None, not 3'):
        ol.train(cost, data, tune=False, backend=3)


# What fails


def test_an_op_that_fails_in_a_region_is_reported_as_by_a_plan(monkeypatch, by_kernels):
    fail_at_tanh(monkeypatch, lambda: True)
    program, x = program_of_chain(), numpy.ones((2, 3))
    messages = []
    for one in (ol.Executor(), executor()):
        with pytest.raises(ol.KernelError) as caught:
            run(one, program, x=x)
        messages.append(str(caught.value))
    assert "no such value" in messages[0]
    assert messages[1] == messages[0]


@needs_compiler
def test_an_id_that_is_refused_is_reported_as_by_a_plan():
    program, messages = network(), []
    for one in (ol.Executor(), executor()):
        scope = ol.init(program, ol.Scope())
        with pytest.raises(ol.KernelError) as caught:
            one.run(program, {"ids": numpy.full((4, 6), 9)}, ["cost"], scope=scope, training=True)
        messages.append(str(caught.value))
    assert messages[1] == messages[0]


def test_without_a_compiler_the_error_says_what_to_do(monkeypatch):
    from torch._inductor import cpp_builder, exc

    def missing():
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)
    with pytest.raises(ol.ProgramError) as caught:
        run(executor(), program_of_chain(), x=numpy.ones((2, 3)))
    assert caught.value.message == "there is no C++ compiler here, by which PyTorch's compiler makes what runs"
    assert caught.value.hint == 'install g++ or clang++, or name one in the environment variable CXX; or leave out backend="inductor"'


def test_where_the_compiler_itself_fails_the_error_says_so(monkeypatch):
    import torch._inductor

    def failing(*_):
        raise RuntimeError("out of ideas\nand more")

    monkeypatch.setattr(torch._inductor, "compile", failing)
    with pytest.raises(ol.ProgramError) as caught:
        run(executor(), program_of_chain(), x=numpy.ones((2, 3)))
    assert caught.value.message == "PyTorch's compiler failed: RuntimeError: out of ideas"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "xla"}, 'backend must be "inductor", "cuda_graphs", "numpy" or None, not \'xla\''),
        ({"backend": "inductor", "interpret": True}, "backends need a plan, but interpret uses the interpreter"),
        ({"backend": "inductor", "check": True}, "backends need a plan, but check uses the interpreter"),
        ({"backend": "inductor", "limits": ol.RunLimits()}, "backends need a plan, but limits uses the interpreter"),
    ],
)
def test_a_backend_that_could_not_be_used_is_refused(options, message):
    with pytest.raises(ol.ArgumentError) as caught:
        ol.Executor(**options)
    assert caught.value.message == message


def test_what_is_compiled_runs_at_the_processor(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ol.ArgumentError) as caught:
        ol.Executor(ol.GPUPlace(0), backend="inductor")
    assert caught.value.message == 'backend="inductor" needs ol.CPUPlace(), not GPUPlace(index=0)'
    assert caught.value.hint == 'use backend="cuda_graphs", or omit backend'


# What is written


def test_the_text_of_a_plan_names_its_regions_and_its_other_lines():
    assert executor().backend == "inductor"
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        program.targets["y"] = chain(ol.op.dropout(chain(x), rate=0.5))
    assert ol.Executor(backend="inductor").plan(program, ["y"]).text == (
        "def plan(context_of, device, before_updates, x_1, v_2):\n"
        "    [exp_0_3] = region_4(None, x_1)\n"
        "    dropout_0_y_5, dropout_0_mask_6 = dropout_10(context_of(op_8, (name_7,)), exp_0_3, random_id=0, rate=rate_9)\n"
        "    del exp_0_3, dropout_0_mask_6\n"
        "    [exp_1_12] = region_13(None, dropout_0_y_5)\n"
        "    del dropout_0_y_5\n"
        "    before_updates()\n"
        "    v_14 = add_in_place_15(v_2, v_11)\n"
        "    return [exp_1_12, v_14]\n"
    )
