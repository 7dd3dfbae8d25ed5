"""Every operator and gradient operator at a GPU gives what it gives at the processor, for the same arguments.

Where random numbers are drawn, and where a matrix has several equal decompositions, the shapes and the dtypes are compared.
"""

import pytest
import torch
from op.arguments import DERIVED, FORWARD, AnyCase, Built, arguments_of, build, cases_of, has_floats, root
from tolerances import CLAIMS

import oarlock as ol
from oarlock.registry import Case, GradCheck, Operator

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

SEVERAL_ANSWERS = {"eigh", "svd", "qr"}
"""Of which the signs of vectors, and the vectors of equal values, are the library's choice."""

RELATIVE = {torch.float32: (1e-3, 1e-4), torch.float64: CLAIMS}
"""TF32 is off; kernels of a GPU add in another order, and have exponentials of their own."""


def run_at(place: ol.Place, built: Built) -> list[torch.Tensor]:
    results = built.run(built.op.writes, place=place)
    assert {result.device.type for result in results if result.ndim} <= {place.device.type}
    return [result.cpu() for result in results]


@pytest.mark.parametrize(
    ("operator", "case", "dtype"),
    [
        pytest.param(operator, case, dtype, id=f"{name}-{dtype}")
        for operator in [*FORWARD, *DERIVED]
        for name, case in cases_of(operator, Case, GradCheck)
        for dtype in ((torch.float32, torch.float64) if has_floats(operator, case) else (torch.float64,))
    ],
)
def test_an_operator_gives_at_a_gpu_what_it_gives_at_the_processor(operator: Operator, case: AnyCase, dtype: torch.dtype):
    built = build(operator, arguments_of(operator, case, dtype))
    expected, actual = (run_at(place, built) for place in (ol.CPUPlace(), ol.GPUPlace(0)))
    for one, other in zip(actual, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if operator.effects != "random" and root(operator).type not in SEVERAL_ANSWERS:
            relative, absolute = RELATIVE.get(one.dtype.to_real() if one.is_complex() else one.dtype, (0.0, 0.0))
            torch.testing.assert_close(one, other, rtol=relative, atol=absolute, equal_nan=True)
