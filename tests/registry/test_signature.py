import pytest

import oarlock as ol
from oarlock.ir.dtype import DType
from oarlock.registry.signature import TensorType, parse_signature

F32, F64, I64, BOOL = DType.FLOAT32, DType.FLOAT64, DType.INT64, DType.BOOL

SIGNATURES = [
    "x: float[*b k], w: float[k n], bias?: float[n] -> out: float[*b n]",
    "*xs: float[*b k_i] -> y: float[*b sum(k_i)]",
    "x: number[*#s], y: number[*#s] -> z: bool[*#s]",
    "x: T[...s], like: shape[...r] -> y: T[...r]",
    "x: float[8 n] -> y: float[n 2*n+1]",
    "x: any, *free: any -> *stacked: any",
    "ids: int64[*b] -> y: float32[*b {depth}], kept: int64[?]",
    "x: float[*b] -> loss: sum float[]",
    "x: number[...s] -> y: number[...s-{axis}], index: int64[...s-{axis!}]",
    "splits: int64[n+1] -> y: int64[n]",
    "-> y: any",
    "like: shape[...s] -> y: {dtype}[...s]",
    "x: U ->",
]


@pytest.mark.parametrize("text", SIGNATURES)
def test_a_signature_prints_as_it_is_written(text):
    assert str(parse_signature(text)) == text


def test_a_signature_knows_its_slots():
    signature = parse_signature("x: float[*b k], bias?: float[k], *more: shape -> out: sum float[*b], index: int64[*b]")
    assert [(slot.name, slot.optional, slot.variadic, slot.shape_only) for slot in signature.inputs] == [
        ("x", False, False, False),
        ("bias", True, False, False),
        ("more", False, True, True),
    ]
    assert [(slot.name, slot.summed, slot.leading_group) for slot in signature.outputs] == [("out", True, "b"), ("index", False, "b")]
    assert (signature.input("bias").name, signature.input("out"), signature.output("out").name, signature.output("x")) == (
        "bias",
        None,
        "out",
        None,
    )


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("x: float[*b k], w: float[k n] -> y: float[*b n]", "b"),
        ("x: float[*b] -> y: float[*b], z: int64[*b]", "b"),
        ("x: float[*b] -> y: float[*b], z: float[]", None),
        ("x: float[k] -> y: float[*b]", None),
        ("x: float[...b] -> y: float[...b]", None),
        ("x: float[*#b] -> y: float[*#b]", None),
        ("-> y: any", None),
    ],
)
def test_rows_are_computed_alone_where_every_output_and_some_input_lead_with_them(text, group):
    assert parse_signature(text).row_group == group


MISTAKES = [
    ("x: float", "a signature has the form 'inputs -> outputs'; there is no '->' in 'x: float'"),
    ("x float -> y: float", "'x float' is not a slot such as 'x: float[*b k]', in 'x float -> y: float'"),
    ("x: -> y: float", "'x:' is not a slot such as 'x: float[*b k]', in 'x: -> y: float'"),
    ("x: float[n -> y: float", "'x: float[n' is not a slot such as 'x: float[*b k]', in 'x: float[n -> y: float'"),
    ("1x: float -> y: float", "'1x: float' is not a slot such as 'x: float[*b k]', in '1x: float -> y: float'"),
    ("x: floaty -> y: float", "'floaty' is not a dtype of a signature, in 'x: floaty -> y: float'"),
    ("x: {dtype} -> y: float", "x is an input, so its dtype cannot be an attribute, in 'x: {dtype} -> y: float'"),
    ("x: float[n-1] -> y: float", "'n-1' is not an axis, in 'x: float[n-1] -> y: float'"),
    ("x: float[* b] -> y: float", "'*' is not an axis, in 'x: float[* b] -> y: float'"),
    ("x: float[{a b}] -> y: float", "'{a' is not an axis, in 'x: float[{a b}] -> y: float'"),
    ("x: float[*a *b] -> y: float", "'x: float[*a *b]' has two axis groups, in 'x: float[*a *b] -> y: float'"),
    ("x: any[...a k *#b] ->", "'x: any[...a k *#b]' has two axis groups, in 'x: any[...a k *#b] ->'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_a_signature_that_is_none_is_refused(text, message):
    with pytest.raises(ol.DeclarationError) as caught:
        parse_signature(text)
    assert str(caught.value) == message


def infer(text, attributes=None, **given):
    """The types that follow from arguments, each a TensorType or a list of them."""
    signature = parse_signature(text)
    binding = signature.bind({name: types if isinstance(types, list) else [types] for name, types in given.items()})
    names = iter(("fresh_0", "fresh_1"))
    return {name: str(type) for name, type in signature.infer(binding, attributes or {}, lambda: next(names)).items()}


def f32(*shape):
    return TensorType(F32, shape)


def f64(*shape):
    return TensorType(F64, shape)


def i64(*shape):
    return TensorType(I64, shape)


LINEAR = "x: float[*b k], w: float[k n], bias?: float[n] -> out: float[*b n]"


def test_groups_and_sizes_are_carried_to_the_output():
    assert infer(LINEAR, x=f32("n", 5, 3), w=f32(3, 4)) == {"out": "float32[n, 5, 4]"}
    assert infer(LINEAR, x=f64(3), w=f64(3, 4), bias=f64(4)) == {"out": "float64[4]"}


def test_sizes_that_vary_are_added_up():
    text = "*xs: float[*b k_i] -> y: float[*b sum(k_i)]"
    assert infer(text, xs=[f32("n", 2), f32("n", "m"), f32("n", 1)]) == {"y": "float32[n, m+3]"}


def test_sizes_are_computed_with():
    assert infer("x: float[n m] -> y: float[2*n+1 n*m]", x=f32("a", 3)) == {"y": "float32[2*a+1, 3*a]"}


def test_an_attribute_is_a_size():
    assert infer("ids: int64[*b] -> y: float32[*b {depth}]", {"depth": 7}, ids=i64("n")) == {"y": "float32[n, 7]"}
    with pytest.raises(ol.ShapeError) as raised:
        infer("ids: int64[*b] -> y: float32[*b {depth}]", {"depth": -1}, ids=i64("n"))
    assert raised.value.message == "depth is -1, but a size must be at least 0"


def test_an_attribute_is_a_dtype():
    assert infer("like: shape[...s] -> y: {dtype}[...s]", {"dtype": I64}, like=f32("n", 2)) == {"y": "int64[n, 2]"}


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({"axis": 1}, "float32[2, n]"),
        ({"axis": -3, "keepdim": True}, "float32[1, 3, n]"),
        ({"axis": None}, "float32[]"),
        ({"keepdim": True}, "float32[1, 1, 1]"),
        ({"axis": 0, "keepdim": False}, "float32[3, n]"),
    ],
)
def test_an_attribute_says_which_axis_is_left_out(attributes, shape):
    assert infer("x: float[...s] -> y: float[...s-{axis}]", attributes, x=f32(2, 3, "n")) == {"y": shape}


@pytest.mark.parametrize(("axis", "message"), [(3, "axis 3 is not an axis of x, which has 3"), (1, "x has no elements along axis 1")])
def test_an_axis_that_is_left_out_is_there_and_has_elements_where_it_must(axis, message):
    with pytest.raises(ol.ShapeError, match=message):
        infer("x: float[...s] -> y: float[...s-{axis!}]", {"axis": axis}, x=f32(2, 0, "n"))


def test_a_size_may_be_one_more_than_another():
    text = "splits: int64[n+1] -> y: int64[n]"
    assert infer(text, splits=i64(4)) == {"y": "int64[3]"}
    assert infer(text, splits=i64("k")) == {"y": "int64[k-1]"}
    with pytest.raises(ol.ShapeError, match="splits has size 0, but n\\+1 must be at least 1"):
        infer(text, splits=i64(0))


def test_a_size_that_only_values_tell_gets_a_name():
    assert infer("x: float[n] -> y: float[?], z: int64[? 2]", x=f32("n")) == {"y": "float32[fresh_0]", "z": "int64[fresh_1, 2]"}


def test_shapes_broadcast():
    text = "x: number[*#s], y: number[*#s] -> z: number[*#s]"
    assert infer(text, x=f32("n", 1), y=f32(3)) == {"z": "float32[n, 3]"}
    assert infer(text, x=f32(), y=f32("n")) == {"z": "float32[n]"}
    assert infer(text, x=f32("n", 3), y=f32(1, "n", 1)) == {"z": "float32[1, n, 3]"}


def test_a_number_and_a_symbol_may_turn_out_equal():
    """The run checks; the number is what is known."""
    assert infer(LINEAR, x=f32("n", "k"), w=f32(3, 4)) == {"out": "float32[n, 4]"}
    assert infer("x: float[*b], y: float[*b] -> z: float[*b]", x=f32("n"), y=f32(3)) == {"z": "float32[3]"}
    assert infer("x: number[*#s], y: number[*#s] -> z: number[*#s]", x=f32("n"), y=f32(3)) == {"z": "float32[3]"}


def test_a_rank_that_is_not_known_stays_so():
    assert infer("x: float[...s] -> y: float[...s]", x=TensorType(F32, None)) == {"y": "float32[*]"}
    assert infer("x: float -> y: float", x=f32(2)) == {"y": "float32[*]"}


def test_a_dtype_variable_carries_any_dtype():
    assert infer("x: T, y: U -> z: U[]", x=f32(2), y=TensorType(BOOL, (2,))) == {"z": "bool[]"}


def test_only_the_shape_is_read_of_a_shape_slot():
    assert infer("x: float, like: shape[...s] -> y: float[...s]", x=f32(6), like=i64("n", 2)) == {"y": "float32[n, 2]"}


REFUSED = [
    (LINEAR, {"x": f32(2, 3), "w": f32(4, 5)}, ol.ShapeError, "dimension k is 3 in x but 4 in w"),
    (LINEAR, {"x": f32("n", "a"), "w": f32("b", 5)}, ol.ShapeError, "dimension k is a in x but b in w"),
    (LINEAR, {"x": f32(2, 3), "w": f32(3)}, ol.ShapeError, "w has 1 dimension, but [k n] needs 2"),
    (LINEAR, {"x": f32(), "w": f32(3, 4)}, ol.ShapeError, "x has 0 dimensions, but [*b k] needs at least 1"),
    (LINEAR, {"x": f32(3), "w": f32(3, 4), "bias": f32(1, 4)}, ol.ShapeError, "bias has 2 dimensions, but [n] needs 1"),
    ("x: float[8 n] -> y: float", {"x": f32(7, 2)}, ol.ShapeError, "a dimension is 8 in the signature but 7 in x"),
    ("x: any[*b], y: any[*b] -> z: any", {"x": f32(2), "y": f32(2, 1)}, ol.ShapeError, "*b is [2] in x but [2, 1] in y"),
    ("x: any[*b], y: any[*b] -> z: any", {"x": f32("n"), "y": f32("m")}, ol.ShapeError, "*b is n in x but m in y"),
    ("x: any[...s], y: any[...s] -> z: any", {"x": f32(2), "y": f32(3)}, ol.ShapeError, "...s is 2 in x but 3 in y"),
    ("*xs: any[*b k_i] -> z: any", {"xs": [f32(2, 9), f32(3, 9)]}, ol.ShapeError, "*b is 2 in xs but 3 in xs"),
    (
        "x: any[*#s], y: any[*#s] -> z: any",
        {"x": f32("n", 2), "y": f32("m", 1)},
        ol.ShapeError,
        "x [n, 2] and y [m, 1] do not broadcast: n and m are different sizes",
    ),
    ("x: float -> y: float", {"x": i64()}, ol.DTypeError, "x must be a float, not int64"),
    ("x: number -> y: number", {"x": TensorType(BOOL, ())}, ol.DTypeError, "x must be a number, not bool"),
    ("x: int64 -> y: float", {"x": f32()}, ol.DTypeError, "x must be int64, not float32"),
    (
        "x: float, y: float -> z: float",
        {"x": f32(), "y": f64()},
        ol.DTypeError,
        "y is float64, but x is float32; they must have the same dtype",
    ),
    ("x: T, y: T -> z: T", {"x": f32(), "y": i64()}, ol.DTypeError, "y is int64, but x is float32; they must have the same dtype"),
    ("*xs: float -> z: float", {"xs": [f32(), f64()]}, ol.DTypeError, "xs is float64, but xs is float32; they must have the same dtype"),
    ("x?: float -> y: float", {}, ol.DTypeError, "the dtype of y cannot be inferred"),
    ("-> y: any", {}, ol.DTypeError, "the dtype of y cannot be inferred"),
]


@pytest.mark.parametrize(("text", "given", "error", "message"), REFUSED, ids=[message for _, _, _, message in REFUSED])
def test_arguments_that_do_not_fit_are_refused(text, given, error, message):
    with pytest.raises(error) as caught:
        infer(text, **given)
    assert str(caught.value) == message
