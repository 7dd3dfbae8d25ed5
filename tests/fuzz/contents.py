"""Mutators of names, attributes, slots, blocks and the program. Each changes the program in place."""

from fuzz.choosing import TRICKY_NAMES, VALUES, any_name, attribute_of, block_of, mutator, op_of, replace, slot_of, var_of

# Names


@mutator
def a_tricky_name(random, program):
    """Everywhere, so that only the name itself is wrong."""
    old, new = var_of(random, program).name, random.choice(TRICKY_NAMES)
    for block in program.blocks:
        for field in (block.inputs, block.outputs, *(slot.vars for op in block.ops for slot in (*op.inputs, *op.outputs))):
            field[:] = [new if name == old else name for name in field]
        for var in block.vars:
            var.name = new if var.name == old else var.name
    for target in program.targets:
        target.var = new if target.var == old else target.var


@mutator
def a_tricky_name_somewhere(random, program):
    name = random.choice(TRICKY_NAMES)
    place = random.choice(["block", "slot", "attribute", "label", "argument", "input", "output", "op"])
    if place == "block":
        block_of(random, program).name = name
    elif place == "slot":
        slot_of(random, program).name = name
    elif place == "attribute":
        attribute_of(random, program).name = name
    elif place == "label":
        program.targets.add(label=name, var=any_name(random, program))
    elif place == "argument":
        slot_of(random, program).vars.append(name)
    elif place == "op":
        op_of(random, program).name = name
    else:
        getattr(block_of(random, program), f"{place}s").append(name)


# Attributes


@mutator
def an_attribute_of_another_type(random, program):
    random.choice(VALUES)(attribute_of(random, program))


@mutator
def an_attribute_too_many(random, program):
    op = op_of(random, program)
    item = op.attributes.add(name=random.choice(["axis", "__class__", "shape", "body", "random_id", "context", "x", "self"]))
    random.choice(VALUES)(item)


@mutator
def an_attribute_too_few(random, program):
    op = op_of(random, program)
    if op.attributes:
        del op.attributes[random.randrange(len(op.attributes))]


@mutator
def an_attribute_twice(random, program):
    op = op_of(random, program)
    for _ in range(random.choice([1, 70])):
        if op.attributes:
            op.attributes.add().CopyFrom(op.attributes[0])


@mutator
def an_attribute_by_a_variable(random, program):
    attribute_of(random, program).var = any_name(random, program)


# Slots


@mutator
def a_slot_too_few(random, program):
    op = op_of(random, program)
    field = random.choice([op.inputs, op.outputs])
    if field:
        del field[random.randrange(len(field))]


@mutator
def a_slot_twice(random, program):
    op = op_of(random, program)
    field = random.choice([op.inputs, op.outputs])
    if field:
        field.add().CopyFrom(field[0])


@mutator
def slots_in_another_order(random, program):
    op = op_of(random, program)
    field = random.choice([op.inputs, op.outputs])
    replace(field, list(field)[::-1])


@mutator
def an_empty_slot(random, program):
    del slot_of(random, program).vars[:]


@mutator
def many_arguments(random, program):
    slot = slot_of(random, program)
    if slot.vars:
        slot.vars.extend([slot.vars[0]] * random.choice([1, 7, 500]))


# Blocks


@mutator
def a_block_cycle(random, program):
    for index, block in enumerate(program.blocks):
        if index and random.random() < 0.7:
            block.parent = random.choice([index, 0, len(program.blocks) - 1, len(program.blocks), 2**32 - 1])


@mutator
def a_block_that_two_ops_own(random, program):
    owners = [op for block in program.blocks for op in block.ops if any(item.HasField("block") for item in op.attributes)]
    if owners:
        block_of(random, program).ops.add().CopyFrom(random.choice(owners))


@mutator
def a_block_inside_itself(random, program):
    """The op inside a block is made its owner."""
    if len(program.blocks) > 1:
        index = random.randrange(1, len(program.blocks))
        op = program.blocks[index].ops.add(type="recurrent")
        op.attributes.add(name="body", block=index)


@mutator
def another_block(random, program):
    for item in [item for block in program.blocks for op in block.ops for item in op.attributes if item.HasField("block")]:
        item.block = random.choice([0, 1, 2, len(program.blocks), 2**32 - 1])


@mutator
def drop_a_block(random, program):
    if program.blocks:
        del program.blocks[random.randrange(len(program.blocks))]


@mutator
def reorder_blocks(random, program):
    blocks = list(program.blocks)
    random.shuffle(blocks)
    replace(program.blocks, blocks)


@mutator
def no_parent(random, program):
    block_of(random, program).ClearField("parent")


@mutator
def deep_blocks(random, program):
    for _ in range(random.choice([31, 32, 33, 101, 500])):
        program.blocks.add(name=f"deep_{len(program.blocks)}", parent=max(len(program.blocks) - 2, 0))


@mutator
def spoil_what_a_block_takes_and_gives(random, program):
    block = block_of(random, program)
    field = random.choice([block.inputs, block.outputs])
    if field and random.random() < 0.5:
        field[random.randrange(len(field))] = any_name(random, program)
    elif field and random.random() < 0.5:
        del field[-1]
    else:
        field.append(any_name(random, program))


# The program


@mutator
def another_version(random, program):
    program.version = random.choice([0, 2, 3, 2**32 - 1])


@mutator
def another_seed(random, program):
    program.seed = random.choice([0, 2**64 - 1])


@mutator
def spoil_the_training(random, program):
    program.training.batch_size = random.choice([0, 1, 2**32 - 1])
    program.training.epochs = random.choice([0, 2**32 - 1])
    program.training.backend = random.choice(["", "inductor", "../inductor", "x" * 300, "\x00"])


@mutator
def spoil_a_target(random, program):
    if program.targets and random.random() < 0.3:
        program.targets.add().CopyFrom(program.targets[0])
    program.targets.add(label=random.choice(["cost", "x", *TRICKY_NAMES]), var=any_name(random, program))


@mutator
def a_loop_that_goes_on(random, program):
    """Sums, memories and directions of a loop that do not fit what its body returns."""
    for item in [item for block in program.blocks for op in block.ops for item in op.attributes if item.name == "summed"]:
        item.int = random.choice([-1, 0, 1, 2, 1000, 2**63 - 1])
