"""How close is close: every tolerance of the test suite, in one table. Loosening one is a visible change."""

import math

import torch

# dtype -> (relative, absolute): a kernel against the values stated in its cases
VALUES = {torch.float64: (1e-12, 1e-12), torch.float32: (1e-5, 1e-6)}

# dtype -> (relative, absolute): one product computed twice, of the same numbers, by an operator that rounds by place
BY_PLACE = {torch.float64: (1e-13, 1e-13), torch.float32: (1e-5, 1e-5)}

# dtype -> (relative, absolute): what depends on an operator that rounds by place, by a plan without passes against the
# interpreter; of what depends on none, bits are compared
PLANS_DIFFER = {torch.float64: (1e-10, 1e-10), torch.float32: (1e-4, 1e-5)}

# (relative, absolute): rows of a request that ran with those of others, against the request alone, in float32
BATCHED = (1e-5, 1e-5)

# central differences in float64: step, relative, absolute
FINITE_DIFFERENCE_STEP = 1e-6
FINITE_DIFFERENCES = (1e-5, 1e-7)

# an op on all rows against the same op row by row, in float64; a sum of parts against the whole
CLAIMS = (1e-12, 1e-12)

# the digits program against the same network in PyTorch, 100 steps in float64
PYTORCH = (1e-10, 1e-12)

# gradients of whole programs, of any order, against PyTorch's autograd, in float64
AUTOGRAD = (1e-10, 1e-12)

# generated programs against an evaluator of their own, in float64: values, gradients; and against central differences
GENERATED_VALUES = (1e-10, 1e-12)
GENERATED_GRADIENTS = (1e-8, 1e-10)
GENERATED_DIFFERENCES = (1e-4, 1e-5)

# generated programs after passes that round in another order, against the interpreter, in float64
PASSES_DIFFER = (1e-10, 1e-10)

# a layer against PyTorch's, in float64
LAYERS = (1e-12, 1e-12)

# an operator of float32 in ONNX Runtime against ours; the losses of a training there, relative to those here
ONNX_OPERATORS = (2e-5, 2e-6)
ONNX_LOSSES = (1e-4, 1e-4)

# products in bfloat16 or float16 against PyTorch's autocast, and costs of a few steps against those of float32; relative
MIXED_PRECISION = 2e-2

# updates in float32 against PyTorch's
FLOAT32_UPDATES = (1e-5, 1e-6)

# how many standard errors a statistic of random numbers may be away, at a fixed seed
MOMENTS = 4.0

# means over rows, gathered from means over batches of float32
MEANS = (1e-6, 1e-7)

# the values of mission row B23 and section 3.9, which hold to 1e-6
ORACLES = (0.0, 1e-6)

# losses and parameters of a model beside its twin in PyTorch after steps of training in float64; 100 steps stay within 1e-12
FOLLOWED = 1e-6

# losses and accuracies of a trial of ten epochs, typed again on another machine
TRIAL = (0.05, 0.05)


def close(actual: float, expected: float, tolerance: tuple[float, float]) -> bool:
    """Whether two numbers agree within (relative, absolute)."""
    return math.isclose(actual, expected, rel_tol=tolerance[0], abs_tol=tolerance[1])


# one op on the rows of one worker, or with another row changed, against the op on all rows, in float64; of the largest element
ROWS_ALONE = (1e-9, 1e-11)
