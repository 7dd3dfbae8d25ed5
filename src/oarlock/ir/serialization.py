"""Conversion between programs and the bytes of a file."""

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from oarlock.errors import ArgumentError, FormatError, LimitError, VerifyError
from oarlock.ir.attribute import read_attribute, read_shape, write_attribute, write_shape
from oarlock.ir.block import Block
from oarlock.ir.bounds import check_bounds, check_source_bounds
from oarlock.ir.copy import blocks_in_order
from oarlock.ir.dtype import DType
from oarlock.ir.earlier_versions import replace_old_names, replace_old_slots
from oarlock.ir.location import Location
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program, Training
from oarlock.ir.sharding import Sharding
from oarlock.ir.update_settings import AS_OTHERS, UpdateSettings
from oarlock.ir.var import HeldValue, Initializer, Var
from oarlock.ir.verification import verify_program
from oarlock.proto import program_pb2 as wire
from oarlock.proto.limits import Limits
from oarlock.proto.prescan import prescan

__all__ = ["FORMAT_VERSION", "block_desc", "build_program", "program_desc", "read_description", "read_program", "write_program"]

FORMAT_VERSION = 2

_READ = (1, FORMAT_VERSION)


def write_program(program: Program, *, source: bool = True) -> bytes:
    """Return the program in the file format. The same program always gives the same bytes."""
    file = wire.ProgramFile(program=program_desc(program))
    places = (item.location for block in program.blocks for item in (*block.vars.values(), *block.ops))
    if source and any(place is not None for place in places):
        _write_source(program, file.source)
    return file.SerializeToString(deterministic=True)


def program_desc(program: Program) -> wire.ProgramDesc:
    """Return the program as a message, without source locations."""
    desc = wire.ProgramDesc(version=FORMAT_VERSION, seed=program.seed)
    index = {block: number for number, block in enumerate(blocks_in_order(program))}
    for block in index:
        _write_block(block, index, desc.blocks.add())
    for label, var in program.targets.items():
        desc.targets.add(label=label, var=var.name)
    if program.training:
        desc.training.batch_size = program.training.batch_size
        desc.training.epochs = program.training.epochs
        desc.training.backend = program.training.backend or ""
    return desc


def block_desc(block: Block) -> wire.BlockDesc:
    """Return a block as a message; it refers to other blocks by their index in the program's file."""
    desc = wire.BlockDesc()
    _write_block(block, {other: number for number, other in enumerate(blocks_in_order(block.program))}, desc)
    return desc


def _write_block(block: Block, index: dict[Block, int], desc: wire.BlockDesc) -> None:
    desc.name = block.name
    if block.parent is not None:
        desc.parent = index[block.parent]
    desc.inputs.extend(var.name for var in block.inputs)
    desc.outputs.extend(var.name for var in block.outputs)
    for var in block.ordered_vars():
        item = desc.vars.add(
            name=var.name,
            dtype=var.dtype.number,  # type: ignore[arg-type]
            persistable=var.persistable,
            parameter=var.parameter,
            trainable=var.trainable,
            stop_gradient=var.stop_gradient,
            row_splits_of=var.row_splits_of or "",
            place=var.place,
        )
        if var.shape is not None:
            write_shape(var.shape, item.shape)
        if var.initializer and not isinstance(var.initializer, HeldValue):
            item.initializer.type = var.initializer.type
            _write_attributes(var.initializer.attributes, item.initializer.attributes, index)
        if var.sharding is not None:
            item.sharding.SetInParent()
            item.sharding.axis, item.sharding.workers = var.sharding
        for name, value in var.update_settings.stated.items():
            setattr(item.update, name, value)
    for op in block.ops:
        item = desc.ops.add(type=op.type, role=int(op.role), name=op.name)  # type: ignore[arg-type]
        for slots, messages in ((op.inputs, item.inputs), (op.outputs, item.outputs)):
            for slot, vars in slots.items():
                messages.add(name=slot, vars=[var.name for var in vars])
        _write_attributes(op.attributes, item.attributes, index)


def _write_attributes(attributes: dict[str, object], messages, index: dict[Block, int]) -> None:
    for name in sorted(attributes):
        value = attributes[name]
        if isinstance(value, Block):
            messages.add(name=name, block=index[value])
        elif isinstance(value, Var):
            messages.add(name=name, var=value.name)
        else:
            write_attribute(name, value, messages.add())


def _write_source(program: Program, desc: wire.SourceDesc) -> None:
    strings: dict[str, int] = {}

    def write(location: Location | None, item: wire.LocationDesc) -> None:
        if location is not None:
            item.file = strings.setdefault(location.file, len(strings))
            item.line = location.line
            item.function = strings.setdefault(location.function, len(strings))
            item.text = strings.setdefault(location.text, len(strings))

    for block in blocks_in_order(program):
        messages = desc.blocks.add()
        for var in block.ordered_vars():
            write(var.location, messages.vars.add())
        for op in block.ops:
            write(op.location, messages.ops.add())
    desc.strings.extend(strings)


def read_program(data: bytes, *, limits: Limits | None = None) -> Program:
    """Read a program from `data` and verify its structure.

    Raises LimitError if it is too large, FormatError if it is not a program, VerifyError if it is illegal. Takes time linear in `data`;
    runs and imports nothing.
    """
    limits = limits or Limits()
    if len(data) > limits.program_bytes:
        raise LimitError(
            f"the program has {len(data):,} bytes, but the limit is {limits.program_bytes:,}", hint="limits=Limits(program_bytes=...)"
        )
    prescan(data, limits, versions=_READ)
    file = wire.ProgramFile()
    try:
        file.ParseFromString(data)
    except DecodeError as error:
        raise FormatError("these bytes are not an Oarlock program", given=[str(error)]) from error
    if file.program.version not in _READ:
        raise FormatError("these bytes are not an Oarlock program: the format version is missing")
    if file.program.version == 1:
        replace_old_names(file.program)
    else:
        replace_old_slots(file.program)
    return build_program(file, limits=limits)


def read_description(desc: wire.BlockDesc | wire.ProgramDesc, *, main: Block | None = None) -> Program:
    """Build the program in a message and verify its structure; `main`, an empty Block, becomes its main block.

    A BlockDesc is the main block of a program without other blocks. A ProgramDesc without a version has the current format. Raises
    LimitError, FormatError for another format, and VerifyError, also for a BlockDesc that refers to missing blocks.
    """
    if isinstance(desc, wire.BlockDesc):
        _require_alone(desc)
        desc = wire.ProgramDesc(version=FORMAT_VERSION, blocks=[desc])
    elif desc.version not in (0, *_READ):
        raise FormatError(f"this ProgramDesc has format version {desc.version}; versions {_READ[0]} to {_READ[-1]} are supported")
    elif desc.version:
        desc = wire.ProgramDesc.FromString(desc.SerializeToString())
        (replace_old_names if desc.version == 1 else replace_old_slots)(desc)
    return build_program(wire.ProgramFile(program=desc), main=main)


def _require_alone(desc: wire.BlockDesc) -> None:
    """Check that a block description refers to no other blocks. Raises VerifyError."""
    numbers = sorted({item.block for op in desc.ops for item in op.attributes if item.WhichOneof("value") == "block"})
    missing = [f"block {number}, which an op owns" for number in numbers]
    if desc.HasField("parent"):
        missing.insert(0, f"block {desc.parent}, its parent")
    if missing:
        raise VerifyError(
            "this BlockDesc refers to blocks that it does not contain",
            given=missing,
            hint="pass the ProgramDesc, which contains all blocks: oarlock.ir.serialization.program_desc(program)",
        )


def build_program(file: wire.ProgramFile, *, limits: Limits | None = None, main: Block | None = None) -> Program:
    """Build the program in a message and verify its structure. Raises LimitError or VerifyError."""
    limits = limits or Limits()
    check_bounds(file.program, limits)
    check_source_bounds(file.source, limits)
    program = _build(file, main)
    verify_program(program)
    return program


def _build(file: wire.ProgramFile, main: Block | None) -> Program:
    """Build the program in a message. Raises VerifyError for an unresolved name, number or block."""
    desc = file.program
    program = Program(seed=desc.seed)
    if not desc.blocks:
        raise VerifyError("a program needs a main block; this one has no blocks")
    program.blocks = []
    for index, item in enumerate(desc.blocks):
        if item.HasField("parent") != (index > 0) or item.parent > max(index - 1, 0):
            raise VerifyError(f"block {index}: its parent must be a block before it, and only block 0 has none")
        block = main if index == 0 and main is not None else Block.__new__(Block)
        block.__init__(program, index, item.name, program.blocks[item.parent] if index else None)  # type: ignore[misc]
        program.blocks.append(block)
    for block, item in zip(program.blocks, desc.blocks, strict=True):
        for var in item.vars:
            _build_var(block, var)
        block.inputs = [_local(block, name, "an input") for name in item.inputs]
    for block, item in zip(program.blocks, desc.blocks, strict=True):
        for number, op in enumerate(item.ops):
            _build_op(block, op, number)
        block.outputs = [_resolve(block, name, f"{block.path}: output") for name in item.outputs]
    for target in desc.targets:
        if target.label in program.targets:
            raise VerifyError(f'target "{target.label}" is given twice')
        program.targets[target.label] = _local(program.main, target.var, f'target "{target.label}"')
    if desc.HasField("training"):
        program.training = Training(desc.training.batch_size, desc.training.epochs, desc.training.backend or None)
    _build_source(program, file.source)
    program.claim_names()
    program.changed()
    return program


def _build_var(block: Block, desc: wire.VarDesc) -> None:
    if desc.name in block.vars:
        raise VerifyError(f'{block.path}: "{desc.name}" is declared twice')
    try:
        initializer = _read_initializer(desc.initializer) if desc.HasField("initializer") else None
        block.vars[desc.name] = Var(
            block,
            desc.name,
            DType.from_number(desc.dtype),
            read_shape(desc.shape) if desc.HasField("shape") else None,
            persistable=desc.persistable,
            parameter=desc.parameter,
            trainable=desc.trainable,
            stop_gradient=desc.stop_gradient,
            initializer=initializer,
            row_splits_of=desc.row_splits_of or None,
            update_settings=_read_update_settings(desc.update) if desc.HasField("update") else AS_OTHERS,
            sharding=Sharding(desc.sharding.axis, desc.sharding.workers) if desc.HasField("sharding") else None,
            place=desc.place,
        )
    except (KeyError, ValueError) as error:
        raise VerifyError(f'{block.path}: variable "{desc.name}" is not readable: {error}') from error


def _read_initializer(desc: wire.InitializerDesc) -> Initializer:
    """Read an initializer. Raises ValueError or KeyError."""
    attributes = {item.name: read_attribute(item) for item in desc.attributes}
    if len(attributes) != len(desc.attributes):
        raise ValueError("an attribute is given twice")
    return Initializer(desc.type, attributes)


def _read_update_settings(desc: wire.UpdateSettingsDesc) -> UpdateSettings:
    """Read update settings. Raises ValueError."""
    try:
        return UpdateSettings(**{field.name: value for field, value in desc.ListFields()})
    except ArgumentError as error:
        raise ValueError(error.message) from None


def _build_op(block: Block, desc: wire.OpDesc, number: int) -> None:
    where = f"{block.path}, op {number} ({desc.type})"
    slots: list[dict[str, tuple[Var, ...]]] = []
    for messages in (desc.inputs, desc.outputs):
        slots.append({item.name: tuple(_resolve(block, name, where) for name in item.vars) for item in messages})
        if len(slots[-1]) != len(messages):
            raise VerifyError(f"{where}: a slot is given twice")
    attributes: dict[str, object] = {}
    owned: list[Block] = []
    for item in desc.attributes:
        if item.name in attributes:
            raise VerifyError(f'{where}: attribute "{item.name}" is given twice')
        if item.WhichOneof("value") == "block":
            if item.block >= len(block.program.blocks):
                raise VerifyError(f'{where}: attribute "{item.name}" names block {item.block}, which does not exist')
            owned.append(block.program.blocks[item.block])
            attributes[item.name] = owned[-1]
            continue
        if item.WhichOneof("value") == "var":
            attributes[item.name] = _resolve(block, item.var, where)
            continue
        try:
            attributes[item.name] = read_attribute(item)
        except (KeyError, ValueError) as error:
            raise VerifyError(f'{where}: attribute "{item.name}" is not readable: {error}') from error
    if desc.role not in tuple(Role):
        raise VerifyError(f"{where}: role {desc.role} does not exist")
    op = Op(block, desc.type, slots[0], slots[1], attributes, blocks=tuple(owned), role=Role(desc.role), name=desc.name)
    block.ops.append(op)
    for var in op.writes:
        if not var.persistable and var.op is None:
            var.op = op


def _local(block: Block, name: str, what: str) -> Var:
    if name not in block.vars:
        raise VerifyError(f'{block.path}: {what} is "{name}", but the block does not declare it')
    return block.vars[name]


def _resolve(block: Block, name: str, where: str) -> Var:
    var = block.find_var(name)
    if var is None:
        raise VerifyError(f'{where}: "{name}" is not declared in this block or its parents')
    return var


def _build_source(program: Program, desc: wire.SourceDesc) -> None:
    """Set the locations of variables and ops. Invalid ones are ignored, because they do not affect the meaning."""
    known: dict[tuple[int, int, int, int], Location] = {}  # a large program comes from few source lines

    def read(item: wire.LocationDesc) -> Location | None:
        key = (item.file, item.function, item.text, item.line)
        if key not in known:
            if not item.line or max(key[:3]) >= len(desc.strings):
                return None
            file, function, text = (desc.strings[number] for number in key[:3])
            known[key] = Location(file, item.line, function, text)
        return known[key]

    def assign(holders: Iterable[Var | Op], items: Iterable[wire.LocationDesc]) -> None:
        for holder, item in zip(holders, items, strict=False):
            holder.location = read(item)

    for block, item in zip(program.blocks, desc.blocks, strict=False):
        assign(block.vars.values(), item.vars)
        assign(block.ops, item.ops)
