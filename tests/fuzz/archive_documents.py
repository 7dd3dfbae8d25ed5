"""Changes of an archive in the document of its graph."""

import copy
import json
from collections.abc import Callable, Iterator
from random import Random

from fuzz.archive_seeds import ArchiveDraft
from fuzz.archive_values import EXPRESSIONS, JUNK, NUMBERS, TARGETS, TEXTS
from fuzz.payloads import PAYLOADS

__all__ = ["CHANGES", "change"]

Change = Callable[[Random, ArchiveDraft], None]
CHANGES: dict[str, Change] = {}

_EMPTY: dict = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}}


def change(function: Change) -> Change:
    CHANGES[function.__name__] = function
    return function


def _walk(value: object) -> Iterator[tuple[object, object]]:
    """Every place in nested dicts and lists: its holder, and its key there."""
    pending = [value]
    while pending:
        item = pending.pop()
        for key in list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ():
            yield item, key
            pending.append(item[key])


def _places(draft: ArchiveDraft, *keys: str) -> list[tuple[dict, str]]:
    return [(holder, key) for holder, key in _walk(draft.model) if isinstance(holder, dict) and key in keys]  # type: ignore[misc]


def _graphs(draft: ArchiveDraft) -> list[dict]:
    return [draft.graph, *(holder["graph"] for holder, key in _places(draft, "graph") if holder["graph"] is not draft.graph)]


def _node(random: Random, draft: ArchiveDraft) -> dict:
    return random.choice([node for graph in _graphs(draft) for node in graph["nodes"]])


def _set(random: Random, places: list, values: list) -> None:
    holder, key = random.choice(places)
    holder[key] = copy.deepcopy(random.choice(values))


# The document


@change
def any_value(random, draft):
    for _ in range(random.choice([1, 1, 3])):
        _set(random, list(_walk(draft.model)), JUNK)


@change
def any_value_is_gone(random, draft):
    holder, key = random.choice(list(_walk(draft.model)))
    del holder[key]


@change
def any_value_elsewhere(random, draft):
    holder, key = random.choice(list(_walk(draft.model)))
    other, place = random.choice(list(_walk(draft.model)))
    holder[key] = json.loads(json.dumps(other[place]))


@change
def any_key(random, draft):
    holder, key = random.choice([place for place in _walk(draft.model) if isinstance(place[0], dict)])
    holder[random.choice([*TEXTS, "as_int", "as_name", "as_graph", "as_operator", "expr_str", "name"])] = holder.pop(key)


@change
def a_name_in_one_place(random, draft):
    _set(random, _places(draft, "name", "as_name", "parameter_name", "buffer_name", "tensor_constant_name", "user_input_name"), TEXTS)


@change
def a_name_in_all_places(random, draft):
    holder, key = random.choice(_places(draft, "name", "as_name", "parameter_name", "buffer_name", "tensor_constant_name"))
    name, other = holder[key], random.choice(TEXTS)
    for part, document in draft.documents.items():
        draft.documents[part] = json.loads(json.dumps(document).replace(json.dumps(name), json.dumps(other)))


@change
def two_things_of_one_name(random, draft):
    names = [holder[key] for holder, key in _places(draft, "name", "as_name")]
    name, other = random.choice(names), random.choice(names)
    draft.documents["model"] = json.loads(json.dumps(draft.model).replace(json.dumps(name), json.dumps(other)))


@change
def an_operator(random, draft):
    _node(random, draft)["target"] = random.choice(TARGETS)


@change
def an_operator_among_arguments(random, draft):
    node = _node(random, draft)
    node["inputs"].append({"name": "", "arg": {"as_operator": random.choice(TARGETS)}, "kind": 1})


@change
def a_number(random, draft):
    for _ in range(random.choice([1, 1, 4])):
        places = [place for place in _walk(draft.model) if type(place[0][place[1]]) is int]
        _set(random, places, NUMBERS)


@change
def a_list_of_numbers(random, draft):
    numbers = [random.choice(NUMBERS) for _ in range(random.choice([0, 1, 2, 5, 70]))]
    _set(random, _places(draft, "as_ints") or _places(draft, "as_int"), [numbers, [2, 2], [-1, 2], [1] * 5000])


@change
def a_size(random, draft):
    sizes = [size for holder, key in _places(draft, "sizes", "strides") for size in holder[key]]
    size = random.choice(sizes)
    size.clear()
    size.update(random.choice([{"as_int": random.choice(NUMBERS)}, {"as_expr": {"expr_str": random.choice(EXPRESSIONS)}}]))


@change
def an_expression(random, draft):
    hint = random.choice([None, {"as_int": 2}, {"as_int": 2**62}, {"as_float": 0.5}, {"as_int": "x"}])
    size = random.choice([size for holder, key in _places(draft, "sizes") for size in holder[key]])
    size.clear()
    size["as_expr"] = {"expr_str": random.choice(EXPRESSIONS), "hint": hint}


@change
def ranges(random, draft):
    names = ["s0", "s77", "u0", "u999999", "u999999999999", "zuf3", "", "u", "u-1", *PAYLOADS[:3]]
    least, most = random.choice(NUMBERS), random.choice(NUMBERS)
    draft.model["range_constraints"][random.choice(names)] = {
        "min_val": random.choice([None, least]),
        "max_val": random.choice([None, most]),
    }


@change
def a_dtype(random, draft):
    _set(random, _places(draft, "dtype", "layout"), [*range(-1, 40), 255, "float", 10**30])


@change
def where_gradients_pass(random, draft):
    _set(random, _places(draft, "requires_grad"), [True, False, "yes"])


@change
def arguments_more_or_fewer(random, draft):
    inputs = _node(random, draft)["inputs"]
    if random.random() < 0.5:
        del inputs[random.randrange(len(inputs)) :]
    else:
        inputs.extend(json.loads(json.dumps([random.choice(inputs)] * random.choice([1, 3, 60]))))


@change
def an_argument(random, draft):
    names = [holder[key] for holder, key in _places(draft, "name") if isinstance(holder[key], str)]
    number, text = random.choice(NUMBERS), random.choice(TEXTS)
    argument = random.choice(_node(random, draft)["inputs"])
    argument["arg"] = random.choice(
        [
            {"as_int": number},
            {"as_float": random.choice([0.0, -1.0, 1e308, float("nan")])},
            {"as_string": text},
            {"as_strings": [text] * 3},
            {"as_none": True},
            {"as_bool": True},
            {"as_tensor": {"name": random.choice(names)}},
            {"as_tensors": [{"name": random.choice(names)}] * 9},
            {"as_sym_int": {"as_name": random.choice(names)}},
            {"as_sym_ints": [{"as_int": number}, {"as_name": random.choice(names)}]},
            {"as_device": {"type": "cuda", "index": 9}},
            {"as_device": {"type": text, "index": None}},
            {"as_scalar_type": number},
            {"as_complex": {"real": 1.0, "imag": 1.0}},
            {"as_string_to_argument": {text: {"as_int": 1}}},
            {"as_operator": text},
            {"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": random.choice(names)}}]},
            {"as_memory_format": 2},
            {"as_layout": 2},
            {"as_custom_obj": {"name": text, "class_fqn": text}},
            {"as_graph": {"name": text, "graph": copy.deepcopy(draft.graph)}},
        ]
    )


@change
def an_argument_by_name(random, draft):
    argument = random.choice(_node(random, draft)["inputs"])
    argument["name"], argument["kind"] = random.choice([*TEXTS, "self", "other", "dim", "out", "generator"]), random.choice([1, 2, 3])


@change
def nodes_in_another_order(random, draft):
    nodes = random.choice(_graphs(draft))["nodes"]
    kind = random.choice(["shuffled", "twice", "gone"])
    random.shuffle(nodes) if kind == "shuffled" else nodes.append(random.choice(nodes)) if kind == "twice" else nodes.pop()


@change
def many_nodes(random, draft):
    node = _node(random, draft)
    count = random.choice([100, 100, 100_001])
    draft.graph["nodes"].extend(
        [{**node, "metadata": {}}] * count if count < 1000 else [{"target": "torch.ops.aten.relu.default", "inputs": []}] * count
    )


@change
def numbers_multiplied(random, draft):
    names = [holder["as_name"] for holder, _ in _places(draft, "as_name")] or ["x"]
    name, target = random.choice(names), random.choice(["_operator.mul", "_operator.mul", "_operator.pow", "_operator.add"])
    for number in range(random.choice([2, 8, 80])):
        given = [{"name": "", "arg": {"as_sym_int": {"as_name": name}}, "kind": 1}] * 2
        if target == "_operator.pow":
            given = [given[0], {"name": "", "arg": {"as_int": random.choice([2, 3, 2**62])}, "kind": 1}]
        name = f"more_{number}"
        draft.graph["nodes"].append({"target": target, "inputs": given, "outputs": [{"as_sym_int": {"as_name": name}}], "metadata": {}})
        draft.graph["sym_int_values"][name] = {"as_expr": {"expr_str": "s0", "hint": {"as_int": 2}}}


@change
def a_tensor_in_very_many_parts(random, draft):
    places = [node for node in draft.graph["nodes"] if node["target"].startswith("torch.ops.aten")]
    node = random.choice(places)
    given = next(item for item in node["inputs"] if "as_tensor" in item["arg"])
    size = random.choice([2, 2**16, 2**31 - 1])
    draft.graph["nodes"].insert(0, {
        "target": random.choice(["torch.ops.aten.full.default", "torch.ops.aten.zeros.default", "torch.ops.aten.rand.default"]),
        "inputs": [{"name": "size", "arg": {"as_ints": [size, 1]}, "kind": 1}, {"name": "fill_value", "arg": {"as_float": 1.0}, "kind": 1}],
        "outputs": [{"as_tensor": {"name": "large"}}], "metadata": {},
    })  # fmt: skip
    draft.graph["tensor_values"]["large"] = {
        **next(iter(draft.graph["tensor_values"].values())),
        "sizes": [{"as_int": size}, {"as_int": 1}],
    }
    given["arg"] = {"as_tensor": {"name": "large"}}


@change
def graphs_in_graphs(random, draft):
    graph = json.loads(json.dumps(draft.graph))
    for number in range(random.choice([2, 20, 40, 90])):
        node = _higher(f"deep_{number}", graph)
        graph = {**_EMPTY, "nodes": [node]}
    draft.graph["nodes"].extend(graph["nodes"])


def _higher(name: str, graph: dict) -> dict:
    argument = {"name": "", "arg": {"as_graph": {"name": name, "graph": graph}}, "kind": 1}
    first = {"name": "", "arg": {"as_bool": True}, "kind": 1}
    rest = {"name": "", "arg": {"as_tensors": []}, "kind": 1}
    other = {"name": "", "arg": {"as_graph": {"name": f"{name}_else", "graph": _EMPTY}}, "kind": 1}
    return {"target": "torch.ops.higher_order.cond", "inputs": [first, argument, other, rest], "outputs": [], "metadata": {}}


@change
def lists_in_lists(random, draft):
    depth = random.choice([100, 199, 250, 900, 100_000])
    holder, key = random.choice(list(_walk(draft.model)))
    holder[key] = "DEEP"
    kind = random.choice([("[", "]"), ('{"x":', "}")])
    text = json.dumps(draft.model).replace('"DEEP"', kind[0] * depth + "1" + kind[1] * depth)
    draft.entries[draft.paths["model"]] = text.encode()


@change
def what_goes_in_and_comes_out(random, draft):
    specs = draft.model["graph_module"]["signature"][random.choice(["input_specs", "output_specs"])]
    kind = random.choice(["shuffled", "twice", "gone", "another", "kind"])
    if kind == "shuffled":
        random.shuffle(specs)
    elif kind == "twice":
        specs.append(random.choice(specs))
    elif kind == "gone":
        specs.pop(random.randrange(len(specs)))
    elif kind == "another":
        random.choice(_graphs(draft))[random.choice(["inputs", "outputs"])].append(
            {"as_tensor": {"name": random.choice(list(draft.graph["tensor_values"]))}}
        )
    else:
        spec = random.choice(specs)
        (held,) = spec.values()
        spec.clear()
        spec[random.choice(["buffer_mutation", "parameter_mutation", "user_input_mutation", "gradient_to_parameter", "loss_output", "token",
                            "parameter", "buffer", "tensor_constant", "user_input", "constant_input", "custom_obj"])] = {
            **held, "parameter_name": "first.weight", "buffer_name": "norm.running_mean", "user_input_name": "x", "persistent": False,
        }  # fmt: skip


@change
def how_it_is_called(random, draft):
    signature = draft.model["graph_module"]["module_call_graph"][0]["signature"]
    leaf = {"type": None, "context": None, "children_spec": []}
    deep = leaf
    for _ in range(random.choice([1, 5, 98, 300])):
        deep = {"type": "builtins.tuple", "context": "null", "children_spec": [deep]}
    names = random.choice([["a"], [random.choice(TEXTS)], [1], None, ["x", "x"]])
    containers = ["builtins.dict", "collections.OrderedDict", "collections.defaultdict", "os.system", "collections.deque"]
    keyed = {"type": random.choice(containers), "context": json.dumps(names), "children_spec": [leaf]}
    arguments = {"type": "builtins.tuple", "context": "null", "children_spec": []}
    spec = random.choice(
        [
            deep,
            keyed,
            arguments,
            {**arguments, "children_spec": [{**arguments, "children_spec": [leaf]}, keyed]},
            {**arguments, "children_spec": [leaf] * 20_000},
            "x",
            None,
            {},
        ]
    )
    text = random.choice([json.dumps([random.choice([1, 1, 1, 2, None]), spec]), "", "[" * 5000, "null"])
    signature[random.choice(["in_spec", "out_spec"])] = text


@change
def names_of_arguments(random, draft):
    signature = draft.model["graph_module"]["module_call_graph"][0]["signature"]
    signature["forward_arg_names"] = random.choice(
        [[random.choice(TEXTS)], [random.choice(PAYLOADS)], [], None, "x", ["x"] * 300, [None], [1]]
    )


@change
def python_that_guards(random, draft):
    draft.model["guards_code"] = [random.choice(PAYLOADS)]


@change
def where_it_came_from(random, draft):
    node = _node(random, draft)
    text = random.choice(
        [
            *TEXTS,
            'File "\x1b[2J", line 1, in f\n',
            'File "a.py", line 99999999999999999999, in f\n  x',
            "a,b;c",
            "L__self__,x",
            "x" * 10**6,
        ]
    )
    node["metadata"] = {random.choice(["stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node"]): text}


@change
def versions(random, draft):
    _set(
        random,
        [(draft.model, "schema_version"), (draft.model, "opset_version"), (draft.model, "verifiers"), (draft.model, "torch_version")],
        [{"major": 99, "minor": 0}, {"aten": 99}, ["os.system"], ["TRAINING"] * 50, None, random.choice(TEXTS)],
    )


@change
def text_in_place_of_the_document(random, draft):
    given = draft.entries[draft.paths["model"]]
    draft.entries[draft.paths["model"]] = random.choice(
        [
            b"",
            b"{}",
            b"[]",
            b"null",
            b"\xff\xfe{}",
            given[: len(given) // 2],
            given + b"x",
            b"[" + b"[]," * 10**6 + b"1]",
            b"9" * 10**5,
            b'{"graph_module": 1}',
            given.replace(b'"nodes":', b'"nodes": [], "nodes":'),
        ]
    )
