"""Attributes by their places: where PyTorch takes them by place, so do we, and in the same one; held to PyTorch's own signatures."""

import inspect
from functools import cache
from types import FunctionType, ModuleType

import pytest
import torch
import torch.nn.functional

import oarlock as ol
from oarlock.registry.call_signature import call_signatures, given_attributes
from oarlock.registry.declaration import Operator
from oarlock.suggestions import NAMES_OF_OTHERS, OPERATORS_OF_OTHERS

WORDS = {
    **NAMES_OF_OTHERS,
    "diagonal": ("diagonal", "offset"),
    "downscale_factor": ("factor",),
    "end": ("stop",),
    "fill_value": ("value",),
    "minlength": ("least",),
    "n": ("rows", "n"),
    "m": ("columns",),
    "output_size": ("size", "shape"),
    "p": ("rate", "order"),
    "reduce": ("reduction",),
    "start_dim": ("start",),
    "steps": ("count",),
    "upscale_factor": ("factor",),
    "window_length": ("count",),
}
"""Arguments of PyTorch, and what the same are called here."""

DEPRECATED = {"size_average", "reduce", "inplace", "_stacklevel", "out"}
"""Arguments that PyTorch deprecates, or that say nothing of what is computed, where they stand before others."""

OTHERWISE = {
    "our inputs stand before all attributes": [
        "gather",
        "group_norm",
        "index_add",
        "index_copy",
        "index_fill",
        "index_put",
        "index_reduce",
        "index_select",
        "multi_margin_loss",
        "scatter_add",
        "scatter_reduce",
    ],
    "PyTorch has its last input behind an attribute": ["binary_cross_entropy_with_logits"],
    "PyTorch takes something in between that we do not have, or have as two": [
        "batch_norm",
        "bincount",
        "layer_norm",
        "pad",
        "rms_norm",
        "stft",
    ],
    "variables that tell sizes stand in a row before the attributes": ["eye"],
}


@cache
def places_in_pytorch(name: str) -> list[list[str]]:
    """The arguments that PyTorch takes by place, of each of its signatures of a function: as it is written, or else by its schemas."""
    ours = {each: theirs for theirs, each in OPERATORS_OF_OTHERS.items()}
    for called in filter(None, (name, ours.get(name))):
        for module in (torch.nn.functional, torch):
            function = getattr(module, called, None)
            if isinstance(function, FunctionType):
                parameters = inspect.signature(function).parameters.values()
                if not any(each.kind is each.VAR_POSITIONAL for each in parameters):
                    return [[each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]]
        if hasattr(torch, called) or hasattr(torch.nn.functional, called):
            schemas = [each for each in torch._C._jit_get_schemas_for_operator(f"aten::{called}") if "Dimname" not in str(each)]
            found = [[each.name for each in schema.arguments if not each.kwarg_only] for schema in schemas]
            if found:
                return found
    return []


def forms(value: object) -> list[list[str]]:
    """The arguments that we take by place, in each form of a call."""
    signatures = call_signatures(value) if isinstance(value, Operator) else [inspect.signature(value)]
    return [[each.name for each in form.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD] for form in signatures]


def attributes_of(value: object) -> set[str]:
    if isinstance(value, Operator):
        return set(given_attributes(value))
    written = inspect.signature(inspect.unwrap(value)).parameters.values()
    return {each.name for each in written if each.kind is each.KEYWORD_ONLY or each.default is not each.empty}


def misplaced(name: str) -> list[str]:
    """The attributes of an operator that PyTorch takes by place, and that none of our forms of a call takes in the same."""
    value = getattr(ol.op, name)
    ours, attributes, best = forms(value), attributes_of(value), None
    for theirs in places_in_pytorch(name):
        kept = [each for each in theirs if each not in DEPRECATED or (each == "reduce" and "size_average" not in theirs)]
        wanted = {}
        for place, each in enumerate(kept):
            ours_of_it = next((word for word in (each, *WORDS.get(each, ())) if word in attributes), None)
            if ours_of_it is not None:
                wanted[ours_of_it] = place
        wrong = min(([word for word, place in wanted.items() if form[place : place + 1] != [word]] for form in ours), key=len)
        best = wrong if best is None or len(wrong) < len(best) else best
    return best or []


SHARED = [name for name in dir(ol.op) if not isinstance(getattr(ol.op, name), ModuleType) and places_in_pytorch(name)]


@pytest.mark.parametrize("name", SHARED)
def test_an_attribute_stands_where_pytorch_has_it(name):
    reasons = [reason for reason, names in OTHERWISE.items() if name in names]
    assert bool(misplaced(name)) == bool(reasons), misplaced(name)
