import numpy
from sample_programs import nested_loops, running_sum

import oarlock as ol


def test_a_loop_in_a_loop_and_its_gradient(golden):
    golden("nested_loops.txt", str(nested_loops()))


def test_a_program_without_the_authors_lines(golden):
    golden("nested_loops_without_source.txt", nested_loops().to_text(source=False))


def test_a_loop_and_an_update(golden):
    golden("running_sum.txt", str(running_sum()))


def test_everything_that_a_declaration_says(golden):
    """Frozen parameters, state, values of inputs, optional and variadic slots, a training program's numbers."""
    with ol.Program(seed=2**64 - 1) as program:
        image = ol.layer.data("image", value=numpy.zeros((2, 4), dtype="float32"))
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.fc(image, 3, bias=False, act="tanh")
        both = ol.layer.concat([hidden, image], axis=1)
        logits = ol.layer.fc(both, 2, name="logits", initializer=ol.initializer.normal())
        program.main.var("logits.b").trainable = False
        cost = ol.layer.cross_entropy(logits, label)
        program.targets["predict"] = ol.layer.softmax(logits)
        program.targets["cost"] = cost
        ol.optimizer.Momentum().minimize(cost)
    program.training = ol.ir.program.Training(batch_size=32, epochs=4)
    golden("declarations.txt", program.to_text(source=False))


def test_a_copy_prints_the_same():
    program = nested_loops()
    assert str(program.clone()) == str(program)
    assert str(ol.Program.from_bytes(program.to_bytes())) == str(program)
    assert str(ol.Program.from_bytes(program.to_bytes(source=False))) == program.to_text(source=False)


def test_an_empty_program_prints():
    assert str(ol.Program()) == "program seed=0\n\nblock main() {\n}\n"
