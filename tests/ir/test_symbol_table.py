"""A block is its own symbol table: names of variables and of ops, and the description they compile to."""

import functools

import numpy
import pytest

import oarlock as ol
from oarlock.ir.serialization import program_desc
from oarlock.proto import program_pb2 as wire
from oarlock.registry import append_op, parse_program, typecheck


@pytest.fixture
def program():
    with ol.Program() as program:
        ol.layer.data("x", shape=[3])
    return program


@pytest.mark.mission("B34", "B37")
def test_a_table_per_block_keeps_variables_by_name_and_ops_in_order(program):
    main = program.main
    inner = program.new_block("body", main)
    main.new_var("y", ol.DType.FLOAT32, ("n", 3))
    inner.new_var("y", ol.DType.FLOAT32, ("n",))
    assert main.vars["y"] is not inner.vars["y"]
    assert (inner.parent, main.parent) == (main, None)
    for number in range(3):
        main.new_op("relu", {"x": "x"}, {"y": main.new_var(f"y{number}", ol.DType.FLOAT32, ("n", 3))}, name=f"z{2 - number}")
    assert [op.name for op in main.ops] == ["z2", "z1", "z0"]
    assert list(main.vars) == ["x", "y", "y0", "y1", "y2"]


@pytest.mark.mission("B35")
def test_an_op_without_a_name_gets_one_that_nothing_in_the_program_has(program):
    main = program.main
    inner = program.new_block("body", main)
    vars = [block.new_var(f"y{number}", ol.DType.FLOAT32, ("n", 3)) for number, block in enumerate((main, main, inner))]
    ops = [var.block.new_op("relu", {"x": "x"}, {"y": var}) for var in vars]
    assert len({op.name for op in ops}) == 3
    assert all(op.name for op in ops)
    with program:
        assert ol.op.relu(main.var("x")).name not in {op.name for op in ops}
    with pytest.raises(ol.ProgramError, match=f'^the name "{ops[0].name}" is already used in this program'):
        inner.new_op("relu", {"x": "x"}, {"y": inner.new_var("z", ol.DType.FLOAT32, ("n", 3))}, name=ops[0].name)
    with pytest.raises(ol.ProgramError, match="^'a/b' cannot be a variable's name"):
        inner.new_op("relu", {"x": "x"}, {"y": "z"}, name="a/b")
    assert len(inner.ops) == 1


@pytest.mark.mission("B35")
def test_a_variable_without_a_name_gets_one_by_the_program_alone():
    """Not by the process: the second program of a process names its variables as the first did."""

    def build():
        with ol.Program() as program:
            x = ol.layer.data("relu_0", shape=[3])
            return [ol.op.relu(x).name, ol.op.relu(x).name, ol.op.tanh(x).name], program.to_bytes(source=False)

    assert build() == build()
    assert build()[0] == ["relu_1", "relu_2", "tanh_0"]


@pytest.mark.mission("B35", "C6")
def test_a_variable_without_a_name_gets_one_that_no_block_of_the_program_has():
    with ol.Program() as program:
        x = ol.layer.data("x", [2], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = ol.op.relu(rnn.step_input(x))
            inner = ol.rnn()
            with inner.step():
                inner.output(ol.op.relu(ol.op.relu(inner.step_input(step))))
            rnn.output(ol.op.relu(inner()))
        ol.op.relu(rnn())
    read = ol.Program.from_bytes(program.to_bytes())
    for written in (program, read):
        with written:
            ol.op.relu(written.main.var("x"))
        names = [var.name for block in written.blocks for op in block.ops if op.type == "relu" for var in op.writes]
        assert len(names) == len(set(names)) == 6


@pytest.mark.mission("B35")
def test_a_declared_variable_without_a_name_gets_one_and_the_type_of_the_op_that_writes_it(program):
    main = program.main
    body = program.new_block("body", main)
    main.new_var("var_1", ol.DType.INT64, ())
    made = [main.new_var(), body.new_var(dtype="int64", shape=(2,)), main.new_var("", ol.DType.FLOAT32, ("n", 3))]
    assert [var.name for var in made] == ["var_0", "var_2", "var_3"]
    assert [var.type_text for var in made] == ["float32[*]", "int64[2]", "float32[n, 3]"]
    main.new_op("greater", {"x": "x", "y": "x"}, {"z": made[0]})
    main.new_op("relu", {"x": "x"}, {"y": made[2]})
    assert made[0].type_text == "bool[n, 3]"


@pytest.mark.mission("B39")
@pytest.mark.parametrize("shape", [("n", 3), None], ids=["known", "unknown"])
def test_an_op_whose_declared_output_has_another_dtype_is_refused_when_it_is_appended(program, shape):
    main = program.main
    wrong = main.new_var("wrong", ol.DType.INT64, shape)
    before = program.to_bytes()
    desc = wire.OpDesc(type="relu")
    desc.inputs.add(name="x", vars=["x"])
    desc.outputs.add(name="y", vars=["wrong"])
    for append in (
        lambda: main.new_op("relu", {"x": "x"}, {"y": wrong}),
        lambda: append_op(main, "relu", {"x": "x"}, {"y": "wrong"}),
        lambda: ol.Net(program).add_op("relu", {"x": "x"}, {"y": "wrong"}),
        lambda: ol.framework.create_operation(desc, main),
        lambda: ol.cpp.operator("relu", read={"x": main.var("x")}, write={"y": wrong}),
    ):
        with program, pytest.raises(ol.DTypeError) as raised:
            append()
        assert raised.value.message == f'relu: "wrong" is declared as {wrong.type_text}, but float32[n, 3] is inferred from the inputs'
        assert raised.value.location.file.endswith("test_symbol_table.py")
        assert program.to_bytes() == before


def test_an_op_is_asked_of_its_operator_when_it_is_appended(program):
    """An unknown operator, attribute or slot is refused at once; attributes that are left out have their defaults."""
    main = program.main
    y = main.new_var("y", ol.DType.FLOAT32, ("n", 3))
    with pytest.raises(ol.UnknownOperatorError, match='^no operator "relo"; did you mean "relu"'):
        main.new_op("relo", {"x": "x"}, {"y": y})
    with pytest.raises(ol.ArgumentError, match="^relu: no attribute or input step_net; its attributes: none\n"):
        main.new_op("relu", {"x": "x"}, {"y": y}, {"step_net": 1})
    with pytest.raises(ol.ArgumentError, match='^relu: it has no input slot "a"\n'):
        main.new_op("relu", {"a": "x"}, {"y": y})
    assert main.ops == []
    op = main.new_op("reduce_sum", {"x": "x"}, {"y": main.new_var("total", ol.DType.FLOAT32, ())})
    assert op.attributes == {"keepdim": False}
    typecheck(program, ol.registry.standard)


def test_a_commit_of_another_type_is_refused_when_it_is_appended(program):
    main = program.main
    w = main.new_var("w", ol.DType.FLOAT32, (3,), persistable=True)
    with program:
        whole, short = ol.op.cast(w, dtype="int64", name="whole"), ol.op.square(ol.op.slice(w, axis=0, stop=2), name="short")
    for commit in (lambda value: main.commit(w, value), lambda value: main.new_op("assign", {"x": value}, {"y": w})):
        with pytest.raises(ol.DTypeError, match=r'^"w" is declared as float32\[3\] and cannot be assigned "whole", int64\[3\]\n'):
            commit(whole)
        with pytest.raises(ol.ShapeError, match=r'^"w" is declared as float32\[3\] and cannot be assigned "short", float32\[2\]\n'):
            commit(short)
    assert main.tail == []


@pytest.mark.mission("B36", "B28")
def test_a_name_is_found_here_then_around_and_never_inside(program):
    main = program.main
    body = program.new_block("body", main)
    inmost = program.new_block("inmost", body)
    local = body.new_var("local", ol.DType.FLOAT32, (3,))
    assert inmost.find_var("x") is main.vars["x"]
    assert inmost.find_var("local") is local
    assert inmost.find_var("local", recursive=False) is None
    assert main.find_var("local") is None
    hiding = inmost.new_var("x", ol.DType.FLOAT32, (3,))
    assert inmost.find_var("x") is hiding
    assert body.find_var("x") is main.vars["x"]
    op = body.new_op("relu", {"x": "local"}, {"y": body.new_var("y", ol.DType.FLOAT32, (3,))}, name="gate")
    assert body.find_op("gate") is op
    assert (main.find_op("gate"), body.find_op("gates"), body.find_op("")) == (None, None, None)


@pytest.mark.mission("B38")
def test_compiling_gives_a_description_that_later_edits_do_not_reach(program):
    main = program.main
    ol.op.relu(main.var("x"), name="y")
    first = main.compile()
    assert isinstance(first, wire.BlockDesc)
    assert ([var.name for var in first.vars], [op.type for op in first.ops]) == (["x", "y"], ["relu"])
    assert main.compile() == first
    before = first.SerializeToString(deterministic=True)
    ol.op.tanh(main.var("y"), name="z")
    main.rename(main.var("y"), "why")
    assert first.SerializeToString(deterministic=True) == before
    assert main.compile() != first
    first.ops[0].type = "sigmoid"
    assert main.ops[0].type == "relu"


@pytest.mark.mission("B25", "B26", "B27")
def test_a_block_is_variables_and_ops_whose_slots_hold_names_and_whose_attributes_may_be_blocks():
    with ol.Program() as program:
        words = ol.layer.data("words", shape=[2], batch="t")
        start = ol.layer.data("start", shape=[2], batch=None)
        loop = ol.rnn()
        with loop.step():
            memory = loop.memory(init=start)
            total = ol.op.add(loop.step_input(words), loop.previous_memory(memory), name="total")
            loop.update_memory(memory, total)
            loop.output(total)
        loop()
    desc = program.main.compile()
    owner = desc.ops[0]
    assert [(slot.name, list(slot.vars)) for slot in owner.inputs] == [("sequences", ["words"]), ("initial", ["start"]), ("free", [])]
    bodies = [item.block for item in owner.attributes if item.WhichOneof("value") == "block"]
    assert bodies == [1]
    body = program.blocks[1].compile()
    assert (body.parent, desc.HasField("parent")) == (0, False)
    assert list(body.outputs) == ["total", "total"]  # what is stacked, then the memory: the pair is in the file
    feed = {"words": numpy.ones((3, 2), "float32"), "start": numpy.zeros(2, "float32")}
    read = ol.Program.from_bytes(program.to_bytes())
    (stacked,) = ol.Executor().run(read, feed, [read.main.ops[0].writes[0].name], scope=ol.Scope())
    assert stacked.tolist() == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.mission("B27")
def test_a_step_net_in_a_step_net_and_the_pairs_of_its_memories_are_in_the_file():
    """The loop is the same in each form of a program: with two memories of one type, backwards, and its gradient."""
    with ol.Program() as program:
        pages = ol.layer.data("pages", shape=["m"], batch="t")
        starts = [ol.layer.data(name, shape=[], batch=None) for name in ("one", "two")]
        outer = ol.rnn()
        with outer.step():
            page = outer.step_input(pages)
            carried = [outer.memory(init=start) for start in starts]
            inner = ol.rnn(reverse=True)
            with inner.step():
                line = inner.step_input(page)
                memories = [inner.memory(init=outer.previous_memory(memory)) for memory in carried]
                first, second = map(inner.previous_memory, memories)
                inner.update_memory(memories[0], second - line)
                inner.update_memory(memories[1], first * 2.0)
                inner.output(first)
            rows = inner()
            for memory, own in zip(carried, memories, strict=True):
                outer.update_memory(memory, inner.final_memory(own))
            outer.output(rows)
        stacked = outer()
        final = ol.op.add(outer.final_memory(carried[0]) * 3.0, outer.final_memory(carried[1]), name="final")
        gradients = ol.gradients([final], [pages, *starts])
    names = [stacked.name, "final", *(var.name for var in gradients)]
    feed = {"pages": numpy.array([[1, 2, 3], [4, 5, 6]], "float32"), "one": 10.0, "two": 20.0}
    first, second, expected = 10.0, 20.0, []
    for page in feed["pages"]:
        rows = []
        for line in page[::-1]:
            rows.insert(0, first)
            first, second = second - line, first * 2.0
        expected.append(rows)
    text = program.to_text(source=False)
    forms = (
        ol.Program.from_bytes(program.to_bytes()),
        parse_program(text),
        program.clone(),
        ol.Block(wire.ProgramDesc.FromString(program_desc(program).SerializeToString())).program,
    )
    hoped = ol.Executor().run(program, feed, names, scope=ol.Scope())
    assert (hoped[0].tolist(), float(hoped[1])) == (expected, 3.0 * first + second)
    for read in forms:
        assert read.to_text(source=False) == text
        for interpret in (False, True):
            found = ol.Executor(interpret=interpret).run(read, feed, names, scope=ol.Scope())
            assert [value.tolist() for value in found] == [value.tolist() for value in hoped]


@pytest.mark.mission("B39")
def test_what_is_not_declared_is_refused_and_what_is_declared_is_checked(program):
    main = program.main
    with pytest.raises(ol.UndefinedVarError, match=r'^"xs" is not visible in main(?s:.*)did you mean "x"'):
        main.new_op("relu", {"x": "xs"}, {"y": "x"})
    with pytest.raises(ol.UndefinedVarError, match='^"y" is not visible in main'):
        main.new_op("relu", {"x": "x"}, {"y": "y"})
    assert main.ops == []
    wrong = main.new_var("wrong", ol.DType.FLOAT32, ("n", 4))
    for append in (main.new_op, functools.partial(append_op, main)):
        with pytest.raises(
            ol.ShapeError, match=r'^relu: "wrong" is declared as float32\[n, 4\], but float32\[n, 3\] is inferred from the inputs'
        ):
            append("relu", {"x": "x"}, {"y": wrong})
    main.append("relu", {"x": [main.var("x")]}, {"y": [wrong]}, {})
    with pytest.raises(ol.VerifyError, match=r'^main, op 0 \(relu\): "wrong" is declared as float32\[n, 4\]'):
        typecheck(program, ol.registry.standard)
    undeclared = program.to_bytes(source=False).replace(b"wrong", b"wring", 1)
    with pytest.raises(ol.VerifyError, match='^main, op 0 .relu.: "wrong" is not declared in this block or its parents$'):
        ol.Program.from_bytes(undeclared)


@pytest.mark.mission("B39", "B44")
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda relu: setattr(relu.vars[1], "dtype", wire.INT64), r'"y" is declared as int64\[n, 3\], but float32\[n, 3\] is inferred'),
        (lambda relu: relu.vars[1].shape.sizes.pop(), r'"y" is declared as float32\[n\], but float32\[n, 3\] is inferred'),
        (lambda relu: setattr(relu.ops[0], "type", "greater"), 'it has no output slot "y"|input slot "y" is missing'),
        (lambda relu: setattr(relu.ops[0].inputs[0], "name", "a"), 'it has no input slot "a"'),
        (lambda relu: relu.ops[0].outputs[0].ClearField("vars"), 'output slot "y" takes one variable, not 0'),
        (lambda relu: relu.ops[0].ClearField("inputs"), 'input slot "x" is missing'),
        (lambda relu: relu.ops[0].attributes.add(name="slope", float=1.0), "no attribute or input slope"),
    ],
    ids=["dtype", "shape", "operator", "slot", "no output", "no input", "attribute"],
)
def test_an_op_that_its_operator_would_not_have_made_is_refused_before_anything_runs(damage, message):
    with ol.Program() as program:
        ol.op.relu(ol.layer.data("x", shape=[3]), name="y")
    desc = program.main.compile()
    ol.Net(desc)
    damage(desc)
    for take in (ol.Net, lambda desc: ol.prune(desc, ["y"]), lambda desc: ol.Block(desc).run(ol.Scope())):
        with pytest.raises(ol.VerifyError, match=rf"^main, op 0 .(relu|greater).: ({message})"):
            take(desc)


@pytest.mark.mission("B40")
def test_the_objects_that_python_edits_are_the_only_ones(program):
    """There is no builder beside the description: what is edited is what is compiled, printed and run."""
    main = program.main
    y = ol.op.relu(main.var("x"), name="y")
    y.trainable = False
    assert (main.compile().ops[0].type, "= relu(" in str(program)) == ("relu", True)
    main.ops[0].type = "tanh"
    assert main.compile().ops[0].type == "tanh"
    assert "y: float32[n, 3] = tanh(x=x)" in str(program)
    (value,) = ol.Executor().run(program, {"x": numpy.full((1, 3), 0.5, "float32")}, [y], scope=ol.Scope())
    assert value[0].tolist() == pytest.approx([numpy.tanh(0.5)] * 3)


@pytest.mark.mission("B41")
def test_pruning_takes_a_program_and_leaves_its_table_alone(program):
    with program:
        y = ol.op.relu(program.main.var("x"), name="y")
        ol.op.tanh(y, name="z")
    before = program.to_bytes()
    kept = ol.prune(program, {"y": y})
    assert isinstance(kept, ol.Program)
    assert list(kept.main.vars) == ["x", "y"]
    assert program.to_bytes() == before


def test_names_of_ops_are_printed_parsed_written_read_and_copied(program):
    with program:
        y = append_op(program.main, "relu", {"x": "x"}, {"y": "as"}, name="gate").writes[0]
        ol.op.tanh(y, name="z")
    assert 'as: float32[n, 3] = relu(x=x) as "gate"\n' in program.to_text(source=False)
    text = program.to_text(source=False)
    for copy in (parse_program(text), ol.Program.from_bytes(program.to_bytes()), program.clone()):
        assert copy.main.find_op("gate") is copy.main.ops[0]
        assert copy.to_text(source=False) == text
        assert not copy.is_free("gate")
    kept = ol.prune(program, {"y": y})
    assert kept.main.find_op("gate").type == "relu"


def test_an_op_that_commits_may_have_a_name_too(program):
    main = program.main
    w = main.new_var("w", ol.DType.FLOAT32, (3,), persistable=True)
    with program:
        value = ol.op.square(w, name="squared")
    main.new_op("assign", {"x": value}, {"y": w}, name="commit_w")
    text = program.to_text(source=False)
    assert '  w <- squared as "commit_w"\n' in text
    assert parse_program(text).to_text(source=False) == text
    assert parse_program(text).main.find_op("commit_w").is_commit


def test_a_variable_may_be_called_as(program):
    with program:
        ol.op.relu(program.main.var("x"), name="y")
        ol.op.relu(program.main.var("x"), name="as")
        program.main.commit(program.main.new_var("w", ol.DType.FLOAT32, (), persistable=True), ol.op.mean(program.main.var("as")))
        program.main.commit(program.main.new_var("as.w", ol.DType.FLOAT32, (), persistable=True), ol.op.mean(program.main.var("y")))
    text = program.to_text(source=False)
    assert parse_program(text).to_text(source=False) == text


def test_a_file_in_which_two_ops_have_one_name_is_refused(program):
    with program:
        for name in ("one", "two"):
            append_op(program.main, "relu", {"x": "x"}, {"y": f"y.{name}"}, name=name)
    data = program.to_bytes(source=False)
    with pytest.raises(ol.VerifyError, match="^main, op 1 .relu.: 'one' is not a legal name, or is used by another op$"):
        ol.Program.from_bytes(data[::-1].replace(b"owt", b"eno", 1)[::-1])
    with pytest.raises(ol.VerifyError, match="^main, op 1 .relu.: 't o' is not a legal name, or is used by another op$"):
        ol.Program.from_bytes(data[::-1].replace(b"owt", b"o t", 1)[::-1])


@pytest.mark.mission("B32")
def test_a_variable_is_got_by_its_name_from_the_current_block_outwards():
    with ol.Program() as program:
        a = ol.Variable(shape=[20, 20])
        ol.layer.fc(a, 20, params=["fc.w", "fc.b"])
        with program.new_block("body", program.main) as body:
            weight = ol.get_variable("fc.w")
            local = body.new_var("local", ol.DType.FLOAT32, (1,))
            assert ol.get_variable("local") is local
        with pytest.raises(ol.UndefinedVarError, match=r'^"fc.v" is not visible in main(?s:.*)did you mean "fc.(w|b)"'):
            ol.get_variable("fc.v")
        with pytest.raises(ol.UndefinedVarError, match=r'^"local" is not visible in main(?s:.*)in main/body, which main cannot see'):
            ol.get_variable("local")
    assert weight is program.main.vars["fc.w"]
    assert (weight.shape, weight.parameter) == ((20, 20), True)


@pytest.mark.mission("A40")
def test_readers_and_writers_are_computed_from_the_block():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.fc(x, 2, name="shared", bias=False)
        weight = ol.get_variable("shared.w")
        assert ([op.type for op in x.readers], x.writers) == (["linear"], [])
        assert ([op.type for op in y.writers], y.readers) == (["linear"], [])
        cost = ol.layer.mean(y * y)
        ol.optimizer.SGD().minimize(cost)
    assert [op.type for op in y.readers] == ["multiply", "multiply", "multiply"]  # the gradients with respect to each side multiply too
    assert weight.writers == [op for op in program.main.tail if op.writes[0] is weight]
    program.main.keep(program.main.ops[:1])
    assert [op.type for op in y.readers] == []


@pytest.mark.mission("A40")
def test_an_op_reads_the_variable_that_gives_an_attribute():
    with ol.Program():
        x, rate = ol.layer.data("x", shape=[3]), ol.var(0.5)
        y = ol.op.dropout(x, rate=rate)
    assert y.op.attributes["rate"] is rate
    assert rate.readers == [y.op]
    assert set(y.op.reads) >= {x, rate}


@pytest.mark.mission("B26", "C6")
def test_the_names_in_a_slot_of_many_variables_are_in_the_order_of_the_arguments():
    """For each slot of any op, the message has the names of its variables, one by one; which index they have in `vars` plays no part."""
    with ol.Program() as program:
        parts = [ol.layer.data(name, shape=[1]) for name in ("one", "two", "three")]
        joined = ol.op.concat([parts[2], parts[0], parts[1], parts[0]], axis=1, name="joined")
        ol.op.split(joined, axis=1, sections=2, name="cut")
        ol.op.subtract(parts[1], parts[0], name="less")
    desc = program.main.compile()
    slots = [{slot.name: list(slot.vars) for slot in (*op.inputs, *op.outputs)} for op in desc.ops]
    assert slots == [
        {"xs": ["three", "one", "two", "one"], "y": ["joined"]},
        {"x": ["joined"], "ys": ["cut.0", "cut.1"]},
        {"x": ["two"], "y": ["one"], "z": ["less"]},
    ]
    feed = {name: numpy.full((1, 1), value, "float32") for name, value in (("one", 1.0), ("two", 2.0), ("three", 3.0))}
    for vars in (desc.vars, list(desc.vars)[::-1]):
        sent = wire.BlockDesc.FromString(desc.SerializeToString())
        sent.vars.clear()
        sent.vars.extend(vars)
        found = ol.Executor().run(ol.Block(sent).program, feed, ["joined", "cut.0", "cut.1", "less"], scope=ol.Scope())
        assert [value.tolist() for value in found] == [[[3, 1, 2, 1]], [[3, 1]], [[2, 1]], [[1]]]


@pytest.mark.mission("A40")
def test_readers_and_writers_are_found_in_the_blocks_inside_too():
    """`outer` is read in a step inside a step, and in the gradient of that; by the loops themselves too, and by no op of a block beside."""
    with ol.Program() as program:
        outer = ol.layer.data("outer", shape=[2], batch=None)
        pages = ol.layer.data("pages", shape=["m", 2], batch="t")
        loop = ol.rnn()
        with loop.step():
            page = loop.step_input(pages)
            inner = ol.rnn()
            with inner.step():
                product = ol.op.multiply(inner.step_input(page), outer, name="product")
                inner.output(ol.op.add(product, outer))
            loop.output(inner())
        beside = ol.rnn()
        with beside.step():
            beside.output(ol.op.square(beside.step_input(pages)))
        loop_op, beside_op = loop().op, beside().op
    body = program.blocks[2]
    assert body.path == "main/rnn_0.body/rnn_1.body"
    assert [(op.type, op.block.path) for op in outer.readers if not op.blocks] == [("multiply", body.path), ("add", body.path)]
    assert loop_op in outer.readers
    assert beside_op not in outer.readers
    assert product.readers == [body.ops[1]]
    assert product.writers == [body.ops[0]]
    with program:
        ol.gradients([ol.op.reduce_sum(loop_op.writes[0])], [outer, pages])
    there = {op.block.path for op in outer.readers if not op.blocks}
    assert there == {body.path, "main/rnn_0@GRAD.body/rnn_1@GRAD.body"}
    everywhere = [op for block in program.blocks for op in block.ops if {outer} & set(op.reads)]
    assert len(outer.readers) == len(everywhere) > 4
    assert set(outer.readers) == set(everywhere)


@pytest.mark.mission("C30")
def test_a_description_holds_data_and_never_an_operator_a_scope_or_a_step_net_to_trace(program):
    main = program.main
    x, y = main.var("x"), main.new_var("y", ol.DType.FLOAT32, ("n", 3))
    for value in (ol.op.relu, ol.Scope(), lambda: None):
        op = main.append("relu", {"x": [x]}, {"y": [y]}, {"step_net": value})
        with pytest.raises(ol.ArgumentError, match=" is not a valid attribute"):
            main.compile()
        main.ops.remove(op)
    body = program.new_block("body", main)
    for block, inner in ((main, main), (body, main), (main, program.new_block("inmost", body))):
        with pytest.raises(ol.ProgramError, match=f"^relu: an op cannot own a block outside {block.path}"):
            block.append("relu", {"x": [x]}, {"y": [y]}, {"step_net": inner})
    main.append("relu", {"x": [x]}, {"y": [y]}, {"step_net": body})
    assert main.compile().ops[0].attributes[0].block == 1  # a block is held by its number


@pytest.mark.mission("C29")
def test_a_step_is_in_the_program_once_however_many_steps_run():
    with ol.Program() as program:
        loop = ol.rnn()
        xs = ol.layer.data("xs", shape=[], batch="t")
        with loop.step():
            loop.output(ol.op.square(loop.step_input(xs)))
        squares = loop()
    before = program.to_bytes()
    executor = ol.Executor()
    for steps in (1, 7, 0):
        (value,) = executor.run(program, {"xs": numpy.arange(steps, dtype="float32")}, [squares], scope=ol.Scope())
        assert value.tolist() == [step**2 for step in range(steps)]
    assert (program.to_bytes(), len(program.blocks), len(executor._prepared)) == (before, 2, 1)
