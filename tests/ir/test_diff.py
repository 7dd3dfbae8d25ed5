"""The differences between two programs, and things that are none."""

import pytest

import oarlock as ol


def network(*, size=8, act="relu", extra=False, rate=None, name=None, seed=0):
    with ol.Program(seed=seed) as program:
        x = ol.layer.data("x", shape=[4])
        if extra:
            x = ol.layer.relu(x, name="extra")
        h = ol.layer.fc(x, size, act=act, name=name)
        if rate is not None:
            h = ol.layer.dropout(h, rate=rate)
        program.targets["y"] = ol.layer.fc(h, 2, name="last")
    return program


def loop(*, reverse=False, act=ol.layer.tanh, twice=False):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], batch="t")
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step = rnn.step_input(x)
            after = act(step + step if twice else step * step)
            rnn.output(after)
        program.targets["y"] = rnn()
    return program


def differences(before, after):
    return [str(difference) for difference in ol.diff_programs(before, after)]


def test_equal_programs_have_one_hash_and_no_difference():
    assert differences(network(), network()) == []
    assert ol.content_hash(network()) == ol.content_hash(network())
    assert ol.content_hash(network()) == ol.content_hash(ol.Program.from_bytes(network().to_bytes(source=False)))


def test_the_authors_lines_are_no_part_of_the_hash():
    program = network()
    for op in program.main.ops:
        op.location = None
    assert ol.content_hash(program) == ol.content_hash(network())


def test_local_names_are_no_difference_but_the_names_of_parameters_are():
    before, after = network(), network()
    after.main.rename(after.main.vars["relu_0"], "activated")
    assert differences(before, after) == []
    assert ol.content_hash(before) != ol.content_hash(after)
    assert differences(network(name="a"), network(name="b"))[0].startswith("- main: parameter a.w: float32[4, 8]")


def test_an_added_op_is_one_addition_and_the_op_that_reads_it():
    assert differences(network(), network(extra=True)) == [
        "~ main: fc_0.out: float32[n, 8] = linear(x=extra, w=fc_0.w, bias=fc_0.b)\n      x: x became extra",
        "+ main: extra: float32[n, 4] = relu(x=x)",
    ]
    assert differences(network(extra=True), network()) == [
        "- main: extra: float32[n, 4] = relu(x=x)",
        "~ main: fc_0.out: float32[n, 8] = linear(x=x, w=fc_0.w, bias=fc_0.b)\n      x: extra became x",
    ]


def test_a_changed_attribute_names_both_values():
    assert differences(network(rate=0.25), network(rate=0.5)) == [
        "~ main: dropout_0.y: float32[n, 8], dropout_0.mask: float32[n, 8] = dropout(x=relu_0, random_id=0, rate=0.5)\n"
        "      rate: 0.25 became 0.5"
    ]


def test_a_changed_size_is_said_of_the_parameter_and_of_what_it_reaches():
    found = differences(network(), network(size=9))
    assert "      float32[4, 8] became float32[4, 9]" in found[0]
    assert any("relu_0" in line and "type: float32[n, 8] became float32[n, 9]" in line for line in found)


def test_a_moved_op_is_said_to_have_moved():
    def two(first, second):
        with ol.Program() as program:
            x = ol.layer.data("x", shape=[4])
            for act, name in (first, second):
                program.targets[name] = act(x, name=name)
        program.targets = dict(sorted(program.targets.items()))
        return program

    a, b = (ol.layer.relu, "a"), (ol.layer.tanh, "b")
    assert differences(two(a, b), two(b, a)) == ["> main: a: float32[n, 4] = relu(x=x)"]


def test_the_comparison_descends_into_blocks():
    assert differences(loop(), loop(act=ol.layer.sigmoid)) == [
        "- main/rnn_0.body: tanh_0: float32[3] = tanh(x=multiply_0)",
        "+ main/rnn_0.body: sigmoid_0: float32[3] = sigmoid(x=multiply_0)",
        "~ main/rnn_0.body: outputs\n      tanh_0 became sigmoid_0",
    ]
    assert differences(loop(), loop(reverse=True))[0].endswith("      reverse: false became true")
    assert differences(loop(), loop()) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda program: setattr(program, "seed", 5), "~ program: header\n      seed 0 became 5"),
        (lambda program: program.targets.clear(), "- program: target y = last.out"),
        (lambda program: program.targets.update(z=program.main.vars["relu_0"]), "+ program: target z = relu_0"),
        (lambda program: program.targets.update(y=program.main.vars["relu_0"]), "~ program: target y\n      last.out became relu_0"),
    ],
)
def test_the_header_and_the_targets_are_compared(change, expected):
    after = network()
    change(after)
    assert differences(network(), after) == [expected]


def test_an_input_and_a_flag_are_compared():
    before, after = network(), network()
    after.main.vars["last.b"].trainable = False
    after.main.vars["x"].stop_gradient = False
    assert differences(before, after) == [
        "~ main: input x: float32[n, 4]\n      stop_gradient: true became false",
        "~ main: frozen parameter last.b: float32[2] = constant(value=0.0)\n      trainable: true became false",
    ]
