"""Every operator, and every gradient operator, at every case that it states: exported, and run by ONNX Runtime."""

import pytest

pytest.importorskip("onnxruntime")

import torch
from interop.onnx.onnx_sessions import session_of
from op.arguments import DERIVED, FORWARD, AnyCase, Built, arguments_of, build, cases_of
from op.at_each_case import at_each_case
from tolerances import ONNX_OPERATORS

import oarlock as ol
from oarlock.interop.onnx.export_rule import find_block_rule, has_rule, rules
from oarlock.registry import Case, GradCheck, Operator, standard

OPERATORS = [*FORWARD, *DERIVED]
USES = [(operator, name, case) for operator in OPERATORS for name, case in cases_of(operator, Case, GradCheck)]

NEED_OPSET_18 = {
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "sequence_max",
    "sequence_softmax",
    *(operator.type for operator in FORWARD if operator.effects == "random" and operator.type != "dropout"),
}
"""Operators that opset 17 has no words for."""


REFUSED = {
    **dict.fromkeys(
        (
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "digamma",
            "erfcx",
            "erfinv",
            "i0",
            "i0e",
            "i1",
            "i1e",
            "k0",
            "k0e",
            "k1",
            "k1e",
            "lgamma",
            "log_ndtr",
            "ndtri",
            "polygamma",
        ),
        "ONNX has no operator for this function",
    ),
    **dict.fromkeys(("chunk_counts", "contingency_table", "edit_distance"), "ONNX has no operator that counts labels"),
    **dict.fromkeys(("unfold", "unfold_dx", "fold", "fold_dx"), "ONNX has no operator that extracts patches of images"),
    **dict.fromkeys(("kthvalue", "median", "nanmedian", "mode"), "ONNX does not define which of several equal elements"),
    **dict.fromkeys(("cummax", "cummin", "logcumsumexp"), "ONNX has no operator for cumulative maxima"),
    **dict.fromkeys(("gcd", "lcm", "nextafter"), "ONNX has no operators for common divisors"),
    **dict.fromkeys(
        (
            *("all_gather", "all_reduce", "all_reduce_done", "all_reduce_start", "all_to_all", "broadcast"),
            *("pad_shard", "reduce_scatter", "shard", "worker_index"),
            *("gather_shares", "put_share", "reduce_to_shares", "rows_of_share", "take_share"),
            *("sync_batch_norm", "sync_batch_norm_grad"),
        ),
        "ONNX has no operators for exchanges between workers",
    ),
    **dict.fromkeys(("attention_changes", "attention_bias_changes"), "ONNX has no operator for gradients of the gradients of attention"),
    "grid_sample": "GridSample of volumes requires opset 20",
    "grid_sample_dx": "ONNX has no operator for the gradients of GridSample",
    "grid_sample_dgrid": "ONNX has no operator for the gradients of GridSample",
    "grid_sample_changes": "ONNX has no operator for the gradients of GridSample",
    **dict.fromkeys(
        ("inverse", "solve_columns", "solve_triangular_columns", "cholesky", "slogdet", "cofactors"),
        "ONNX has no operator for systems of linear equations",
    ),
    **dict.fromkeys(("qr", "svd", "eigh", "lu", "pinv", "matrix_exp"), "ONNX has no operator for decompositions of matrices"),
    **dict.fromkeys(
        ("ctc_loss", "ctc_occupancy_change", "crf_log_partition", "crf_share_changes", "viterbi_decode"),
        "ONNX has no operator for sums over sequences of labels",
    ),
    **dict.fromkeys(
        ("real_fourier_dx", "real_fourier_inverse", "real_fourier_inverse_dx"),
        "ONNX has no inverse of a one-sided Fourier transform",
    ),
    **dict.fromkeys(("angle", "sgn"), "ONNX has no operator for the angle of complex numbers"),
}
"""Operators of which ONNX, or ONNX Runtime, cannot say everything, and what is said then."""

OF_REALS = "ONNX has no operator for complex numbers"
WITHOUT_COMPLEX = ("inverse", "solve_columns", "cholesky")
"""Operators whose cases have complex numbers too, for which they have no rule."""

SIZES_MUST_BE_KNOWN = dict.fromkeys(("resize", "resize_dx"), "resizing images of unknown size") | dict.fromkeys(
    ("fourier", "fourier_dx", "real_fourier"), "transforms along an axis of unknown size are not supported"
)


def require_same_or_refused(built: Built, opset: int, refused: dict[str, str]) -> None:
    """`require_same`, or where an operator is listed, the refusal that stands there."""
    try:
        require_same(built, opset)
    except ol.ProgramError as refusal:
        reason = OF_REALS if built.op.type in WITHOUT_COMPLEX and "complex" in str(built.program) else refused.get(built.op.type)
        if reason is None or reason not in str(refusal):
            raise


def of_parts(value: torch.Tensor) -> torch.Tensor:
    """A tensor as the graph has it: complex numbers are their parts."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def require_same(built: Built, opset: int = 18) -> None:
    """ONNX Runtime computes the values of a program that we compute, with the declared dtypes and shapes."""
    outputs = list(built.op.writes)
    expected = built.run(outputs, training=False)
    session = session_of(outputs, opset=opset)
    results = session.run({**{name: of_parts(value) for name, value in built.feed.items()}, **session.exported.keys(0)})
    for var, value in zip(outputs, expected, strict=True):
        actual = torch.from_numpy(results[var.name].copy())
        relative, absolute = ONNX_OPERATORS if of_parts(value).is_floating_point() else (0.0, 0.0)
        torch.testing.assert_close(actual, of_parts(value), rtol=relative, atol=absolute, equal_nan=True)


def test_every_operator_has_a_rule():
    assert sorted(operator.type for operator in OPERATORS if not has_rule(operator.type)) == []


def test_every_rule_is_of_an_operator():
    assert [name for name in rules() if standard.find(name) is None] == []


def test_every_operator_that_owns_a_block_has_a_rule():
    assert [operator.type for operator in standard if operator.block_attributes and find_block_rule(operator.type) is None] == []


@at_each_case(USES)
def test_the_runtime_computes_what_the_operator_computes(operator: Operator, case: AnyCase):
    require_same_or_refused(build(operator, arguments_of(operator, case, torch.float32)), 18, REFUSED)


@at_each_case(USES)
def test_sizes_that_only_the_run_tells_are_computed_in_the_graph(operator: Operator, case: AnyCase):
    arguments = arguments_of(operator, case, torch.float32)
    try:
        built = build(operator, arguments, symbols=True)
    except ol.ShapeError:
        pytest.skip("the operator needs to know these sizes")
    require_same_or_refused(built, 18, REFUSED | SIZES_MUST_BE_KNOWN)


@at_each_case((operator, f"opset {opset}", opset) for operator in OPERATORS for opset in (17, 20, 23))
def test_other_opsets_say_the_same(operator: Operator, opset: int):
    cases = cases_of(operator, Case, GradCheck)
    if not cases:
        pytest.skip("nothing states arguments of it")
    built = build(operator, arguments_of(operator, cases[-1][1], torch.float32))
    if opset == 17 and operator.type in NEED_OPSET_18:
        with pytest.raises(ol.ProgramError, match="requires opset 18, not 17"):
            session_of(list(built.op.writes), opset=opset)
        return
    require_same_or_refused(built, opset, REFUSED)
