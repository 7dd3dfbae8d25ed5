"""Every operator that was renamed, or whose slots or attributes were: a file in the old names is the program of today."""

from collections.abc import Iterator

import numpy
import pytest
import torch
from op.arguments import Arguments, Built, arguments_of, build, cases_of
from op.test_fused_backward import arguments_from, cases_of_parts

import oarlock as ol
from oarlock.ir.program import Program
from oarlock.ir.serialization import read_program, write_program
from oarlock.old_names import OLD_ATTRIBUTES, OLD_OPERATORS, OLD_SLOTS
from oarlock.proto import program_pb2 as wire
from oarlock.registry import Case, GradCheck, Operator, standard
from oarlock.registry.fused_operator import FusedBackward

OF_VERSION_2 = set(OLD_SLOTS) & set(OLD_OPERATORS.values())
"""The operators whose slots had other names in early files of version 2. Every other old name is of version 1."""

OWNS_BLOCKS = {"branch"}
RENAMED = sorted({*OLD_OPERATORS, *OLD_SLOTS, *OLD_ATTRIBUTES} - OWNS_BLOCKS)


def operator_called(old: str) -> Operator:
    return standard.get(OLD_OPERATORS.get(old, old))


def arguments_at_cases(operator: Operator) -> Iterator[Arguments]:
    if isinstance(operator, FusedBackward):
        found = (arguments_from(operator, parts) for _, parts in cases_of_parts(operator))
        yield from (arguments for arguments in found if arguments is not None)
    else:
        yield from (arguments_of(operator, case) for _, case in cases_of(operator, Case, GradCheck))


def in_old_names(program: Program, old: str) -> bytes:
    """The file of `program` as the version that called an operator `old` wrote it."""
    file = wire.ProgramFile.FromString(write_program(program))
    file.program.version = 2 if old in OF_VERSION_2 else 1
    slots, attributes = ({new: name for name, new in table.get(old, {}).items()} for table in (OLD_SLOTS, OLD_ATTRIBUTES))
    for block in file.program.blocks:
        for op in block.ops:
            if op.type == OLD_OPERATORS.get(old, old):
                op.type = old
                for slot in (*op.inputs, *op.outputs):
                    slot.name = slots.get(slot.name, slot.name)
                for attribute in op.attributes:
                    attribute.name = attributes.get(attribute.name, attribute.name)
    return file.SerializeToString(deterministic=True)


def require_same(program: Program, old: str) -> Program:
    """The program that is read from a file in old names: it is written as `program` is, byte for byte."""
    data = in_old_names(program, old)
    assert data != write_program(program)
    read = read_program(data)
    assert read.to_text() == program.to_text()
    assert write_program(read) == write_program(program)
    return read


def fetched(built: Built, program: Program) -> list[torch.Tensor]:
    names = [var.name for var in built.op.writes]
    return ol.Executor().run(program, built.feed, names, scope=ol.Scope(), return_numpy=False)


@pytest.mark.parametrize("old", RENAMED)
def test_a_file_in_old_names_is_the_program_of_today_and_runs_as_it_does(old):
    operator = operator_called(old)
    names: set[str] = set()
    tried = 0
    for arguments in arguments_at_cases(operator):
        built = build(operator, arguments)
        read = require_same(built.program, old)
        for one, other in zip(fetched(built, built.program), fetched(built, read), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
        tried += 1
        names |= {*built.op.inputs, *built.op.outputs, *built.op.attributes}
    assert names >= {*OLD_SLOTS.get(old, {}).values(), *OLD_ATTRIBUTES.get(old, {}).values()}, "a case with each name"
    assert tried


def test_a_file_with_a_branch_is_the_program_of_today_and_runs_as_it_does():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], batch=None)
        y = ol.cond(x > 0.0, lambda: ol.op.exp(x), lambda: x * 2.0)
        program.targets["y"] = y
    assert "conditional_block" in {op.type for op in program.main.ops}
    read = require_same(program, "branch")
    for value in (1.0, -3.0):
        values = [ol.Executor().run(each, {"x": value}, ["y"], scope=ol.Scope())[0] for each in (program, read)]
        assert numpy.array_equal(*values)


def test_an_operator_of_ones_own_keeps_an_old_name_in_a_file_of_version_2():
    """`sgd_linear` was an operator of version 1; in a file of version 2 it is somebody's own."""
    with ol.Program() as program:
        ol.op.abs(ol.layer.data("x", shape=[2]))
    file = wire.ProgramFile.FromString(write_program(program))
    for op in file.program.blocks[0].ops:
        op.type = "sgd_linear"
        op.inputs[0].name = "rate"
    read = read_program(file.SerializeToString())
    (op,) = read.main.ops
    assert (op.type, list(op.inputs)) == ("sgd_linear", ["rate"])
