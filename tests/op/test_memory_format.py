"""Images stay channels last from one kernel to the next, where the kernels are faster so; values do not depend on it."""

import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import variants_of
from oarlock.op import update
from oarlock.tensor.memory_format import channels_last, contiguous, is_channels_last

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch was built without the convolutions that want it")


def random(*shape: int, last: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=dtype) - 0.5
    return torch.empty(shape, dtype=dtype, memory_format=torch.channels_last).copy_(drawn) if last else drawn


def kernel(name: str):
    return ol.op.__getattr__(name).kernel


STEP = {"stride": (1, 1), "padding": (1, 1)}
POOL = {"size": (2, 2), "stride": (2, 2), "padding": (0, 0)}


@pytest.mark.parametrize("channels", [1, 3])
def test_convolutions_give_images_channels_last(channels):
    x, filter, dy = random(2, channels, 6, 6), random(4, channels, 3, 3), random(2, 4, 6, 6)
    assert is_channels_last(kernel("conv2d")(x, filter, **STEP))
    if channels > 1:  # one channel lies in either format
        assert is_channels_last(kernel("conv2d_dx")(filter, dy, x.shape, **STEP))


@pytest.mark.parametrize("shape", [(2, 1, 6, 6), (1, 1, 3, 3), (0, 1, 6, 6)])
def test_an_image_of_one_channel_is_convolved_whichever_format_it_tells(shape):
    x, filter, dy = random(*shape), random(4, 1, 3, 3), random(shape[0], 4, *shape[2:])
    for other in (channels_last(x), x.mT.contiguous().mT):
        assert torch.equal(kernel("conv2d")(x, filter, **STEP), kernel("conv2d")(other, filter, **STEP))
        of_x, of_other = (kernel("conv2d_dfilter")(image, dy, filter.shape, **STEP) for image in (x, other))
        assert torch.equal(of_x, of_other)
        assert of_x.stride() == of_other.stride()


def test_the_gradient_of_a_filter_lies_as_it_is_computed():
    for channels in (1, 3):
        x, dy = random(2, channels, 6, 6), random(2, 4, 6, 6)
        gradient = kernel("conv2d_dfilter")(x, dy, (4, channels, 3, 3), **STEP)
        assert gradient.stride() == random(4, channels, 3, 3, last=channels > 1).stride()  # one channel lies in either format


UPDATES = {
    "sgd": (1, {}),
    "multi_tensor_sgd": (1, {}),
    "momentum": (2, {"mu": 0.9, "nesterov": False}),
    "multi_tensor_momentum": (2, {"mu": 0.9, "nesterov": False}),
    "adam": (3, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "multi_tensor_adam": (3, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
}


def updated(name: str, grad: torch.Tensor, held: list[torch.Tensor], *, in_place: bool, **told: bool) -> list[torch.Tensor]:
    """The new values of a parameter and of its state after an update."""
    operator = getattr(update, name)
    function = next(iter(variants_of(operator).in_place.values())) if in_place else operator.kernel
    rate = torch.tensor(0.1, dtype=torch.float64)
    rest = [torch.tensor(3), rate] if "adam" in name else [rate]
    several = name.startswith("multi_tensor")
    param, *state = [[tensor] for tensor in held] if several else held
    results = function(param, [grad] if several else grad, *state, *rest, **UPDATES[name][1], **told)
    results = results if len(held) > 1 else (results,)
    return [item[0] for item in results] if several else list(results)


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("last", [True, False])
def test_an_update_lays_a_filter_as_its_gradient_lies_in_its_own_memory(name, last):
    grad = random(4, 3, 5, 5, last=last)
    held = [random(4, 3, 5, 5, last=not last) + number for number in range(UPDATES[name][0])]
    assert all(is_channels_last(tensor) is not last for tensor in held)
    expected = updated(name, grad.contiguous(), [tensor.contiguous() for tensor in held], in_place=False)
    memory = [tensor.data_ptr() for tensor in held]
    computed = updated(name, grad, held, in_place=False)
    results = updated(name, grad, held, in_place=True, alone=True)
    assert [result.data_ptr() for result in results] == memory
    for result, same, wanted in zip(results, computed, expected, strict=True):
        assert is_channels_last(result) is last
        assert torch.equal(result, same)
        torch.testing.assert_close(result, wanted)  # which a kernel may round differently where an element lies elsewhere


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_moves_no_element_of_memory_in_which_another_tensor_may_lie(name):
    """Steps of a sequence are such."""
    stacks = [random(1, 4, 3, 5, 5) + number for number in range(UPDATES[name][0])]
    grad = random(4, 3, 5, 5, last=True)
    expected = updated(name, grad, [stack[0].clone() for stack in stacks], in_place=True)
    updated(name, grad, [stack[0] for stack in stacks], in_place=True)
    for stack, wanted in zip(stacks, expected, strict=True):
        assert torch.equal(stack[0], wanted)


def test_a_filter_that_is_trained_is_copied_no_more():
    with ol.Program() as program:
        y = ol.layer.conv2d(ol.layer.data("x", shape=[3, 6, 6]), 4, 3, bias=False)
        cost = ol.op.mean(ol.op.square(y))
        ol.optimizer.Momentum(0.1, 0.9).minimize(cost)
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    (filter,) = [var.name for var in program.main.vars.values() if var.trainable]
    before = scope.get(filter)
    executor.run(program, {"x": random(2, 3, 6, 6)}, [cost], scope=scope)
    interpreted = ol.Scope()
    ol.init(program, interpreted)
    interpreted.set(filter, before)
    ol.Executor(check=True).run(program, {"x": random(2, 3, 6, 6)}, [cost], scope=interpreted)
    held = scope.find_var(filter).value
    assert channels_last(held) is held
    assert scope.get(filter).tolist() == interpreted.get(filter).tolist()


def test_the_gradient_of_relu_lies_as_its_output_does():
    y, dy = random(2, 4, 3, 3, last=True), random(2, 4, 3, 3)
    expected = torch.where(y > 0, dy, 0.0)
    given = kernel("relu_dx")(y, dy)
    assert is_channels_last(given)
    assert torch.equal(given, expected)
    in_place = variants_of(ol.op.relu_dx).in_place[("dy",)]
    stack = dy[None].clone()
    assert torch.equal(in_place(y, stack[0]), expected)
    assert torch.equal(stack[0], expected)
    over = in_place(y, dy, alone=True)
    assert torch.equal(over, expected)
    assert is_channels_last(over)
    assert over.data_ptr() == dy.data_ptr()


@pytest.mark.parametrize("returned", [False, True])
def test_a_plan_tells_a_kernel_what_is_alone_in_its_memory(returned):
    """A value that a kernel has made is alone in its memory; one that iterations compute in their slice of a stack is not."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2, 3, 4, 4], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            dx = ol.op.relu_dx(ol.op.exp(rnn.step_input(x)), ol.op.tanh(rnn.step_input(x)))
            rnn.output(dx if returned else ol.op.reduce_sum(dx))
        program.targets["y"] = rnn()
    text = ol.Executor(passes=()).plan(program, ["y"]).text
    assert ("alone=True" in text) is not returned


def test_what_follows_a_convolution_keeps_its_format():
    x, running = random(2, 4, 6, 6, last=True), torch.ones(4)
    pooled, index = kernel("max_pool2d")(x, **POOL)
    assert is_channels_last(pooled)
    for dy in (random(2, 4, 3, 3), random(2, 4, 3, 3, last=True)):
        assert is_channels_last(kernel("max_pool2d_dx")(index, dy, x.shape, **POOL))
    assert is_channels_last(kernel("average_pool2d")(x, **POOL))
    assert is_channels_last(kernel("average_pool2d_dx")(pooled, x.shape, **POOL))
    assert is_channels_last(kernel("global_average_pool2d_dx")(random(2, 4), x.shape))
    for dy in (random(2, 4, 6, 6), random(2, 4, 6, 6, last=True)):
        assert is_channels_last(kernel("batch_norm_grad")(x, running, running, torch.tensor(True), dy))
    assert is_channels_last(kernel("add")(kernel("relu")(x), x))


def test_an_image_of_one_channel_is_told_by_its_strides_which_nothing_else_sees():
    x = random(2, 1, 3, 4)
    last = channels_last(x)
    assert last.stride() == (12, 1, 4, 1)
    assert last.data_ptr() == x.data_ptr()
    assert contiguous(last).stride() == (12, 12, 4, 1)
    assert torch.equal(channels_last(random(2, 1, 4, 3).mT), random(2, 1, 4, 3).mT)


def test_what_kernels_cannot_use_is_left_as_it_is():
    for x in (random(2, 3, 4, 4, dtype=torch.float64), random(2, 3, 4)):
        assert channels_last(x) is x


@pytest.mark.parametrize("name", ["conv2d", "max_pool2d", "average_pool2d", "global_average_pool2d", "batch_norm"])
def test_a_network_computes_the_same_of_either_format(name):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4, 6, 6])
        if name == "conv2d":
            y = ol.layer.conv2d(x, 5, 3, padding=1)
        elif name == "batch_norm":
            y = ol.layer.batch_norm(x)
        else:
            y = ol.op.__getattr__(name)(x, **({} if name.startswith("global") else POOL))
            y = y[0] if isinstance(y, tuple) else y
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, *(var for var in program.main.vars.values() if var.trainable)])
    scope = ol.init(program, ol.Scope())
    runs = [
        ol.Executor().run(program, {"x": random(2, 4, 6, 6, last=last)}, [y, *gradients], scope=scope, training=True)
        for last in (False, True)
    ]
    for one, other in zip(*runs, strict=True):
        torch.testing.assert_close(torch.from_numpy(one), torch.from_numpy(other), rtol=1e-5, atol=1e-5)
