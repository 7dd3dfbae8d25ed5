"""Programs that several tests share."""

import oarlock as ol

__all__ = ["chain", "nested_loops", "program_of_chain", "running_sum"]


def nested_loops() -> ol.Program:
    """A loop inside a loop, and its gradient: the rows of each page are added up, decayed from page to page."""
    with ol.Program(seed=7) as program:
        pages = ol.layer.data("pages", shape=["rows", 3], batch="t")
        start = ol.layer.data("start", shape=[3], batch=None)
        book = ol.rnn()
        with book.step():
            page = book.step_input(pages)
            mood = book.memory(init=start)
            lines = ol.rnn()
            with lines.step():
                line = lines.step_input(page)
                total = lines.memory(init=book.previous_memory(mood))
                decay = program.main.find_var("decay") or decay_parameter(program)
                lines.update_memory(total, ol.op.tanh(line + lines.previous_memory(total) * decay))
            lines()
            book.update_memory(mood, lines.final_memory(total))
            book.output(lines.final_memory(total))
        moods = book()
        cost = ol.layer.mean(moods)
        program.targets["cost"] = cost
        ol.append_backward(cost)
    return program


def decay_parameter(program: ol.Program) -> ol.Var:
    return program.main.new_var(
        "decay",
        ol.DType.FLOAT32,
        (3,),
        persistable=True,
        parameter=True,
        trainable=True,
        initializer=ol.initializer.constant(0.5)((3,)),
    )


def running_sum() -> ol.Program:
    """One loop, one parameter, one update: the smallest program that has a block, a capture, a tail and a target."""
    with ol.Program(seed=1) as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        start = ol.layer.data("start", shape=[2], batch=None)
        decay_vector = program.main.new_var("w", ol.DType.FLOAT32, (2,), persistable=True, parameter=True, trainable=True)
        loop = ol.rnn()
        with loop.step():
            x = loop.step_input(xs)
            memory = loop.memory(init=start)
            total = ol.op.add(x, loop.previous_memory(memory) * decay_vector, name="total")
            loop.update_memory(memory, total)
            loop.output(total)
        totals = loop()
        cost = ol.op.reduce_sum(totals, name="cost")
        program.targets["cost"] = cost
        program.main.commit(decay_vector, ol.op.subtract(decay_vector, cost, name="w_next"))
    return program


def chain(x):
    """Three element-wise ops, one after another."""
    return ol.op.exp(ol.op.tanh(ol.op.multiply(x, x)))


def program_of_chain(*names):
    """A program that sums a chain of each input; of `x` alone, where none is named."""
    with ol.Program() as program:
        chains = [chain(ol.layer.data(name, shape=[3], dtype="float64")) for name in names or ("x",)]
        program.targets["y"] = chains[0] if len(chains) == 1 else ol.op.subtract(*chains)
    return program
