"""Mutators of ops and variables. Each changes the program in place; the digest stays right."""

import math

from fuzz.choosing import SIZES, SYMBOLS, TRICKY_NAMES, VALUES, any_name, block_of, mutator, op_of, replace, slot_of, var_of

# Ops


@mutator
def drop_an_op(random, program):
    block = block_of(random, program)
    if block.ops:
        del block.ops[random.randrange(len(block.ops))]


@mutator
def duplicate_an_op(random, program):
    block = block_of(random, program)
    if block.ops:
        block.ops.add().CopyFrom(random.choice(block.ops))


@mutator
def reorder_ops(random, program):
    block = block_of(random, program)
    ops = list(block.ops)
    random.shuffle(ops)
    replace(block.ops, ops)


@mutator
def swap_two_ops(random, program):
    block = block_of(random, program)
    ops = list(block.ops)
    if len(ops) > 1:
        at = random.randrange(len(ops) - 1)
        ops[at], ops[at + 1] = ops[at + 1], ops[at]
        replace(block.ops, ops)


@mutator
def move_an_op_to_another_block(random, program):
    op_from, into = block_of(random, program), block_of(random, program)
    if op_from.ops:
        into.ops.add().CopyFrom(random.choice(op_from.ops))


@mutator
def change_the_operator(random, program):
    types = ["relu", "relu_dx", "os.system", "recurrent", "assign", "full", "sgd", "dropout_dx", "reshape", "concat", "conv2d_dfilter", ""]
    op_of(random, program).type = random.choice(types + TRICKY_NAMES[:12])


@mutator
def a_gradient_op_without_its_forward(random, program):
    block = block_of(random, program)
    gradients = [op for op in block.ops if "_d" in op.type]
    if gradients:
        replace(block.ops, [op for op in block.ops if "_d" in op.type or random.random() < 0.5])
    else:
        op = block.ops.add(type="relu_dx")
        for slot in ("y", "dy"):
            op.inputs.add(name=slot, vars=[any_name(random, program)])
        op.outputs.add(name="dx", vars=[any_name(random, program)])


@mutator
def change_the_role(random, program):
    op_of(random, program).role = random.choice([0, 1, 2, 3, 99, -1, 2**31 - 1])


@mutator
def drop_the_tail(random, program):
    block = program.blocks[0] if program.blocks else block_of(random, program)
    replace(block.ops, [op for op in block.ops if op.type != "assign"])


# Variables


@mutator
def an_argument_that_dangles(random, program):
    slot = slot_of(random, program)
    if slot.vars:
        slot.vars[random.randrange(len(slot.vars))] = "nowhere"


@mutator
def an_argument_of_another_block(random, program):
    slot, block = slot_of(random, program), block_of(random, program)
    if slot.vars and block.vars:
        slot.vars[random.randrange(len(slot.vars))] = random.choice(block.vars).name


@mutator
def an_argument_from_later(random, program):
    block = block_of(random, program)
    if len(block.ops) > 1:
        first, second = sorted(random.sample(range(len(block.ops)), 2))
        later = [name for slot in block.ops[second].outputs for name in slot.vars]
        slots = [slot for slot in block.ops[first].inputs if slot.vars]
        if later and slots:
            random.choice(slots).vars[0] = random.choice(later)


@mutator
def the_output_is_the_input(random, program):
    op = op_of(random, program)
    if op.inputs and op.outputs and op.inputs[0].vars:
        op.outputs[0].vars[:] = [op.inputs[0].vars[0]]


@mutator
def drop_a_variable(random, program):
    block = block_of(random, program)
    if block.vars:
        del block.vars[random.randrange(len(block.vars))]


@mutator
def duplicate_a_variable(random, program):
    block = block_of(random, program)
    if block.vars:
        block.vars.add().CopyFrom(random.choice(block.vars))


@mutator
def shadow_a_variable(random, program):
    block_of(random, program).vars.add().CopyFrom(var_of(random, program))


@mutator
def swap_a_dtype(random, program):
    var_of(random, program).dtype = random.choice([0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 99, -1])


@mutator
def change_a_size(random, program):
    var = var_of(random, program)
    sizes = var.shape.sizes
    size = random.choice(sizes) if sizes and random.random() < 0.8 else sizes.add()
    if random.random() < 0.6:
        size.number = random.choice(SIZES)
    else:
        size.symbol = random.choice(SYMBOLS)


@mutator
def change_every_size(random, program):
    """One value in place of another, everywhere: what still agrees with itself gets further."""
    old, new = random.choice(["n", "t", 1, 2, 3, 4]), random.choice(SIZES + SYMBOLS[1:6])
    for size in [size for block in program.blocks for var in block.vars for size in var.shape.sizes]:
        if old in (size.number if size.WhichOneof("value") == "number" else size.symbol,):
            if isinstance(new, int):
                size.number = new
            else:
                size.symbol = new


@mutator
def change_the_rank(random, program):
    sizes = var_of(random, program).shape.sizes
    if sizes and random.random() < 0.5:
        del sizes[-1]
    else:
        for _ in range(random.choice([1, 2, 15, 16, 17, 200])):
            sizes.add(number=random.choice([0, 1, 2, 2**31 - 1]))


@mutator
def forget_a_shape(random, program):
    var_of(random, program).ClearField("shape")


@mutator
def flip_a_flag(random, program):
    var, flag = var_of(random, program), random.choice(["persistable", "parameter", "trainable", "stop_gradient"])
    setattr(var, flag, not getattr(var, flag))


@mutator
def partition_a_size(random, program):
    """By variables that are no row splits, by two at once, in circles; of sizes that are there and of what is none."""
    names = [size.symbol for block in program.blocks for var in block.vars for size in var.shape.sizes if size.symbol]
    for _ in range(random.choice([1, 1, 2, 8])):
        var_of(random, program).row_splits_of = random.choice(names + SYMBOLS + TRICKY_NAMES[:12])


@mutator
def row_splits_of_another_type(random, program):
    cut = [var for block in program.blocks for var in block.vars if var.row_splits_of]
    splits = random.choice(cut) if cut else var_of(random, program)
    splits.row_splits_of = splits.row_splits_of or "n"
    if random.random() < 0.5:
        splits.dtype = random.choice([0, 1, 3, 7, 8, 10, 11])
    else:
        splits.shape.sizes.add(number=random.choice(SIZES))


@mutator
def tell_how_to_update(random, program):
    """Of parameters, and of what is none, by numbers that mean nothing among others."""
    for _ in range(random.choice([1, 1, 3])):
        update = var_of(random, program).update
        for field in random.sample(list(update.DESCRIPTOR.fields), random.choice([0, 1, 2, 6])):
            setattr(update, field.name, random.choice([0.0, -0.0, 0.5, 1.0, -1.0, 1e308, 5e-324, math.inf, -math.inf, math.nan]))


@mutator
def spoil_an_initializer(random, program):
    var = var_of(random, program)
    known = ["constant", "uniform", "normal", "truncated_normal", "orthogonal", "identity", "sparse", "array"]
    var.initializer.type = random.choice([*known, "", "exec", "__class__", *TRICKY_NAMES[:4]])
    if random.random() < 0.7:
        item = var.initializer.attributes.add(name=random.choice(["value", "low", "data", "shape", "deviation", ""]))
        random.choice(VALUES)(item)
