# Written by tools/stubs.py, which reads what the package declares.

"""The operators, one family per file. `ol.op.relu(x)` appends one to the program of `x`."""

import builtins
from collections.abc import Sequence
from typing import overload

from collections.abc import Callable
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.op import activation as activation
from oarlock.op import adaptive_pooling as adaptive_pooling
from oarlock.op import along_axis as along_axis
from oarlock.op import attention as attention
from oarlock.op import attention_second_order as attention_second_order
from oarlock.op import batch_normalization as batch_normalization
from oarlock.op import bessel_functions as bessel_functions
from oarlock.op import bitwise as bitwise
from oarlock.op import choice as choice
from oarlock.op import collective as collective
from oarlock.op import comparison as comparison
from oarlock.op import complex_parts as complex_parts
from oarlock.op import convolution as convolution
from oarlock.op import creation as creation
from oarlock.op import crf as crf
from oarlock.op import ctc as ctc
from oarlock.op import cumulative as cumulative
from oarlock.op import decompositions as decompositions
from oarlock.op import dtype_conversion as dtype_conversion
from oarlock.op import elementwise as elementwise
from oarlock.op import extremes as extremes
from oarlock.op import fourier_transforms as fourier_transforms
from oarlock.op import fused as fused
from oarlock.op import group_normalization as group_normalization
from oarlock.op import indexing as indexing
from oarlock.op import linear_systems as linear_systems
from oarlock.op import logical as logical
from oarlock.op import loss as loss
from oarlock.op import magnitude as magnitude
from oarlock.op import manipulation as manipulation
from oarlock.op import matrix as matrix
from oarlock.op import measurement as measurement
from oarlock.op import moves as moves
from oarlock.op import normalization as normalization
from oarlock.op import order_statistics as order_statistics
from oarlock.op import padding as padding
from oarlock.op import paired_functions as paired_functions
from oarlock.op import patches as patches
from oarlock.op import piecewise_activation as piecewise_activation
from oarlock.op import pooling as pooling
from oarlock.op import powers as powers
from oarlock.op import quantization as quantization
from oarlock.op import randomness as randomness
from oarlock.op import rearrangement as rearrangement
from oarlock.op import reduction as reduction
from oarlock.op import resizing as resizing
from oarlock.op import rms_normalization as rms_normalization
from oarlock.op import rounding as rounding
from oarlock.op import selection as selection
from oarlock.op import sequence as sequence
from oarlock.op import sequence_layout as sequence_layout
from oarlock.op import shares as shares
from oarlock.op import singular as singular
from oarlock.op import smooth_activation as smooth_activation
from oarlock.op import sorting as sorting
from oarlock.op import special_functions as special_functions
from oarlock.op import statistics as statistics
from oarlock.op import sync_batch_normalization as sync_batch_normalization
from oarlock.op import table as table
from oarlock.op import told_shape as told_shape
from oarlock.op import trigonometry as trigonometry
from oarlock.op import unary as unary
from oarlock.op.composed import arithmetic as arithmetic
from oarlock.op.composed import equality as equality
from oarlock.op.composed.activations import prelu as prelu
from oarlock.op.composed.activations import relu6 as relu6
from oarlock.op.composed.activations import selu as selu
from oarlock.op.composed.activations import softsign as softsign
from oarlock.op.composed.activations import tanhshrink as tanhshrink
from oarlock.op.composed.axes import moveaxis as moveaxis
from oarlock.op.composed.axes import swapaxes as swapaxes
from oarlock.op.composed.broadcast_product import matrix_product as matrix_product
from oarlock.op.composed.crf import crf_loss as crf_loss
from oarlock.op.composed.diagonals import trace as trace
from oarlock.op.composed.einsum import einsum as einsum
from oarlock.op.composed.elementwise import deg2rad as deg2rad
from oarlock.op.composed.elementwise import float_power as float_power
from oarlock.op.composed.elementwise import frac as frac
from oarlock.op.composed.elementwise import isneginf as isneginf
from oarlock.op.composed.elementwise import isposinf as isposinf
from oarlock.op.composed.elementwise import ldexp as ldexp
from oarlock.op.composed.elementwise import ndtr as ndtr
from oarlock.op.composed.elementwise import rad2deg as rad2deg
from oarlock.op.composed.elementwise import signbit as signbit
from oarlock.op.composed.joining import atleast_1d as atleast_1d
from oarlock.op.composed.joining import atleast_2d as atleast_2d
from oarlock.op.composed.joining import atleast_3d as atleast_3d
from oarlock.op.composed.joining import block_diag as block_diag
from oarlock.op.composed.joining import broadcast_tensors as broadcast_tensors
from oarlock.op.composed.joining import cartesian_prod as cartesian_prod
from oarlock.op.composed.joining import column_stack as column_stack
from oarlock.op.composed.joining import dstack as dstack
from oarlock.op.composed.joining import hstack as hstack
from oarlock.op.composed.joining import meshgrid as meshgrid
from oarlock.op.composed.joining import vstack as vstack
from oarlock.op.composed.linear_algebra import eigvalsh as eigvalsh
from oarlock.op.composed.linear_algebra import matrix_power as matrix_power
from oarlock.op.composed.linear_algebra import svdvals as svdvals
from oarlock.op.composed.order import eye as eye
from oarlock.op.composed.parts import dsplit as dsplit
from oarlock.op.composed.parts import hsplit as hsplit
from oarlock.op.composed.parts import vsplit as vsplit
from oarlock.op.composed.places import isin as isin
from oarlock.op.composed.places import masked_fill as masked_fill
from oarlock.op.composed.places import masked_scatter as masked_scatter
from oarlock.op.composed.places import masked_select as masked_select
from oarlock.op.composed.places import take as take
from oarlock.op.composed.positions import alibi_bias as alibi_bias
from oarlock.op.composed.positions import relative_places as relative_places
from oarlock.op.composed.positions import rotary_positions as rotary_positions
from oarlock.op.composed.products import gemm as gemm
from oarlock.op.composed.products import inner as inner
from oarlock.op.composed.products import kron as kron
from oarlock.op.composed.products import outer as outer
from oarlock.op.composed.sampled_losses import hierarchical_softmax_loss as hierarchical_softmax_loss
from oarlock.op.composed.sampled_losses import log_uniform_samples as log_uniform_samples
from oarlock.op.composed.sampled_losses import uniform_samples as uniform_samples
from oarlock.op.composed.shape import squeeze as squeeze
from oarlock.op.composed.shape import unsqueeze as unsqueeze
from oarlock.op.composed.statistics import corrcoef as corrcoef
from oarlock.op.control import conditional as conditional
from oarlock.op.control import loop_gradient as loop_gradient
from oarlock.op.control import recurrent_loop as recurrent_loop
from oarlock.op.control import while_loop as while_loop

def adaptive_max_pool_with_indices(x: Var, size: tuple[int, ...]) -> tuple[Var, Var]:
    """The largest value in each of ``size`` windows, as even as possible, and its flat position, as in `max_pool_with_indices`."""

def addcdiv(base: Var, x: Var, y: Var, value: float = 1.0) -> Var:
    """``base + value x / y``, with broadcasting. Half precision is computed in float32."""

def allclose(x: Var, y: Var, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Var:
    """Whether all elements are close by the rule of `isclose`: bool[]."""

def aminmax(x: Var, axis: int | tuple[int, ...] | None = None, keepdim: bool = False) -> tuple[Var, Var]:
    """The smallest and the largest element, as in `amin` and `amax`."""

def argsort(x: Var, axis: int = -1, descending: bool = False) -> Var:
    """The indices that sort ``x`` along ``axis``, as returned by `sort`: real[...s] -> int64[...s]."""

def attention_by_head(query: Var, key: Var, value: Var, mask: Var | None = None, causal: bool = False, scale: float | None = None) -> Var:
    """``softmax(query key' scale) value``: float[*b h t k], float[*b g s k], float[*b g s e] -> float[*b h t e].

    Each of the ``g`` heads of keys and values serves ``h / g`` consecutive heads of queries. A mask is broadcast to ``[*b h t s]``: a bool
    mask is true for visible keys, a float mask is added to the scores. With `causal`, query ``i`` sees the keys up to ``i``, for any ``t``
    and ``s``, as in PyTorch and ONNX. The heads are moved among the columns, which is free if they were just moved from there. Raises
    ShapeError.
    """

def binary_cross_entropy(p: Var, target: Var, weight: Var | None = None, reduction: str = "mean") -> Var:
    """Binary cross entropy of probabilities and targets from 0 to 1, as in `log_loss`, times a weight, which is broadcast."""

def binary_cross_entropy_with_logits(x: Var, target: Var, weight: Var | None = None, positive_weight: Var | None = None, reduction: str = "mean") -> Var:
    """Binary cross entropy between ``sigmoid(x)`` and ``target``, computed stably.

    The loss of positive targets is multiplied by ``positive_weight``; it and ``weight`` are broadcast.
    """

def blackman_window(count: int, periodic: bool = True, dtype: DType | str = "float32") -> Var:
    """The Blackman window, ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``, with ``N`` as in `hann_window`."""

def cdist(x: Var, y: Var, order: float = 2.0) -> Var:
    """The `vector_norm` of the difference of each pair of rows: float[*b n k], float[*b m k] -> float[*b n m]. ``*b`` is broadcast."""

def celu(x: Var, alpha: float = 1.0) -> Var:
    """`elu` with slope 1 at 0 for every ``alpha`` (Barron, 2017): ``max(x, 0) + min(0, alpha (exp(x / alpha) - 1))``."""

def channel_shuffle(x: Var, groups: int) -> Var:
    """Interleave the channels of groups in T[n c ...s]: the first of each, then the second (Zhang et al., 2018). Raises ShapeError."""

def cholesky_solve(b: Var, y: Var, upper: bool = False) -> Var:
    """The solution ``x`` of ``y y' x = b`` for a lower triangular ``y`` from `cholesky`, or of ``y' y x = b`` for an `upper` one."""

def chunk(x: Var, chunks: int, axis: int = 0) -> list[Var]:
    """At most ``chunks`` parts along ``axis``, of one size except for the last, which may be smaller."""

def combinations(x: Var, r: int = 2, with_replacement: bool = False) -> Var:
    """All combinations of ``r`` elements of ``x``, T[n], in order, as rows. ``with_replacement`` repeats elements. n must be known."""

def cosine_embedding_loss(x: Var, y: Var, target: Var, margin: float = 0.0, reduction: str = "mean") -> Var:
    """``1 - cosine`` for similar rows, target 1; ``max(0, cosine - margin)`` for others, target -1.

    float[n d], float[n d] and a target [n], or two vectors and a scalar. 1e-12 is added to each squared length.
    """

def cosine_similarity(x: Var, y: Var, axis: int = 1, epsilon: float = 1e-08) -> Var:
    """The cosine of the angle between vectors along ``axis``, which are broadcast. Lengths are at least ``epsilon``."""

def count_nonzero(x: Var, axis: int | tuple[int, ...] | None = None) -> Var:
    """The number of elements that are not 0, or are true: int64."""

def cov(x: Var, correction: float = 1.0, weights: Var | None = None, frequencies: Var | None = None) -> Var:
    """The covariance matrix of the rows of ``x``, float[n k], whose columns are observations: float[n n]; for one row, its variance.

    ``weights``, float[k], weight the observations; ``frequencies``, integer[k], are their counts. The sum of squares is divided by the
    number of observations minus ``correction``, as in NumPy.
    """

def cross(x: Var, y: Var, axis: int = -1) -> Var:
    """The cross product of vectors of three numbers along ``axis``; the other axes are broadcast. Raises ShapeError."""

def cross_entropy(logits: Var, target: Var, weight: Var | None = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0, axis: int | None = None) -> Var:
    """Cross entropy between logits and class ids, or a float target with a probability for each class.

    It is the `nll_loss` of the `log_softmax`; a float target has no ignored rows. ``label_smoothing`` is the part of the target that is
    spread evenly over all classes (Szegedy et al., 2016). Raises the errors of `nll_loss`.
    """

def cumulative_trapezoid(y: Var, x: Var | None = None, dx: float = 1.0, axis: int = -1) -> Var:
    """The integral of `trapezoid` up to each element along ``axis`` except the first."""

def diag(x: Var, offset: int = 0) -> Var:
    """A matrix with the diagonal ``x`` for a row ``x``, or the diagonal of a matrix ``x``. Offset 0 is the main one, 1 the one above it."""

def diag_embed(x: Var, offset: int = 0, axes: tuple[int, int] = (-2, -1)) -> Var:
    """Matrices, along two axes of the result, whose diagonals are the rows of ``x``, T[*b n]; zeros elsewhere. Raises ShapeError."""

def diagflat(x: Var, offset: int = 0) -> Var:
    """A matrix whose diagonal is all elements of ``x``, in order."""

def diagonal_scatter(x: Var, values: Var, offset: int = 0, axes: tuple[int, int] = (0, 1)) -> Var:
    """``x`` with ``values`` written to a diagonal of two axes; they have the shape that `diagonal` returns. Raises ShapeError."""

def dice_loss(p: Var, target: Var, smooth: float = 1.0, axis: int | tuple[int, ...] | None = None, reduction: str = "mean") -> Var:
    """Dice loss of probabilities and a mask: ``1 - (2 sum(p target) + smooth) / (sum(p) + sum(target) + smooth)``.

    Sums are over ``axis``, by default all axes but the first: one number per example (Milletari, Navab and Ahmadi, 2016).
    """

def diff(x: Var, n: int = 1, axis: int = -1, prepend: Var | None = None, append: Var | None = None) -> Var:
    """The difference of each element and the previous one along ``axis``, ``n`` times; for bools, whether they differ.

    ``prepend`` and ``append`` are added at the ends first.
    """

def fft(x: Var, length: int | None = None, axis: int = -1, norm: str = "backward") -> Var:
    """The Fourier transform along an axis: complex[...s n] -> complex[...s n]. Raises ShapeError or ArgumentError."""

def fft2(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward") -> Var:
    """`fftn` along two axes, by default the last two."""

def fftfreq(count: int, spacing: float = 1.0, dtype: DType | str = "float32") -> Var:
    """The frequencies of `fft` for ``count`` samples, from 0 on, then the negative ones: {dtype}[count]."""

def fftn(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """`fft` along several axes, by default all: complex[...s] -> complex[...s]."""

def fftshift(x: Var, axes: Sequence[int] | None = None) -> Var:
    """``x`` with frequency 0 moved to the middle of axes, by default all."""

def focal_loss(logits: Var, label: Var, weight: Var | None = None, gamma: float = 2.0, ignore_index: int = -100, reduction: str = "mean", axis: int | None = None) -> Var:
    """Focal loss of class ids: `cross_entropy` times ``(1 - p)**gamma``, with ``p`` the probability of the label (Lin et al., 2017).

    Weights, ignored labels, axis and reductions are as in `nll_loss`: a mean is divided by the weights that count.
    """

def gather_nd(x: Var, indices: Var, batch: int = 0) -> Var:
    """Elements by rows of indices, int64[*b i k]: ``y[b, i] = x[b, *indices[b, i]]``.

    Both have the same ``batch`` leading axes; the ``k`` numbers of a row are indices along the axes after them. Raises ShapeError.
    """

def gaussian_nll_loss(x: Var, target: Var, variance: Var, full: bool = False, epsilon: float = 1e-06, reduction: str = "mean") -> Var:
    """Gaussian negative log likelihood: ``(log(variance) + (x - target)**2 / variance) / 2`` (Nix and Weigend, 1994).

    ``full`` adds ``log(2 pi) / 2``. The variance has the shape of ``x``, or lacks its last axis, or has size 1 along it. It is raised to at
    least ``epsilon``, but still receives its gradient.
    """

def glu(x: Var, axis: int = -1) -> Var:
    """Gated linear unit: the first half along ``axis`` times the sigmoid of the second (Dauphin et al., 2017). Raises ShapeError for an odd
    size.
    """

def hamming_window(count: int, periodic: bool = True, dtype: DType | str = "float32") -> Var:
    """The Hamming window, ``0.54 - 0.46 cos(2 pi n / N)``, with ``N`` as in `hann_window`."""

def hann_window(count: int, periodic: bool = True, dtype: DType | str = "float32") -> Var:
    """The Hann window, ``(1 - cos(2 pi n / N)) / 2`` for ``count`` numbers n, with ``N = count`` if it is periodic, else ``count - 1``."""

def hardshrink(x: Var, bound: float = 0.5) -> Var:
    """``x`` if ``|x|`` is above ``bound``, else 0."""

def hfft(x: Var, length: int | None = None, axis: int = -1, norm: str = "backward") -> Var:
    """The real Fourier transform of conjugate-symmetric numbers, given by their first half as in `irfft`, in the forward direction."""

def hinge_embedding_loss(x: Var, target: Var, margin: float = 1.0, reduction: str = "mean") -> Var:
    """The distance ``x`` if the target is 1, ``max(0, margin - x)`` if it is -1 (Hadsell, Chopra and LeCun, 2006)."""

def hinge_loss(x: Var, target: Var, margin: float = 1.0, reduction: str = "mean") -> Var:
    """``max(0, margin - target x)`` for targets of 1 and -1 (Vapnik, 1995)."""

def huber_loss(x: Var, y: Var, reduction: str = "mean", delta: float = 1.0) -> Var:
    """Huber loss: ``(x - y)**2 / 2`` up to a difference of ``delta``, then ``delta (|x - y| - delta / 2)`` (Huber, 1964)."""

def ifft(x: Var, length: int | None = None, axis: int = -1, norm: str = "backward") -> Var:
    """The inverse of `fft`."""

def ifft2(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward") -> Var:
    """`ifftn` along two axes, by default the last two."""

def ifftn(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """The inverse of `fftn`."""

def ifftshift(x: Var, axes: Sequence[int] | None = None) -> Var:
    """The inverse of `fftshift`."""

def ihfft(x: Var, length: int | None = None, axis: int = -1, norm: str = "backward") -> Var:
    """The inverse of `hfft`, of real numbers."""

def index_add(x: Var, index: Var, values: Var, axis: int, alpha: float = 1.0) -> Var:
    """``x`` with ``alpha`` times ``values`` added at indices along ``axis``; repeated indices add up."""

def index_copy(x: Var, index: Var, values: Var, axis: int) -> Var:
    """``x`` with ``values`` written at indices along ``axis``. If an index repeats, one of its values is kept."""

def index_fill(x: Var, index: Var, value: Var | float, axis: int) -> Var:
    """``x`` with ``value`` written at indices along ``axis``."""

def index_reduce(x: Var, index: Var, values: Var, axis: int, reduction: str, include_self: bool = True) -> Var:
    """`scatter_reduce` of whole slices at indices along ``axis``."""

def index_select(x: Var, index: Var, axis: int) -> Var:
    """The elements at indices along ``axis``: ``y[i, j] = x[i, index[j]]``."""

def iou_loss(p: Var, target: Var, smooth: float = 1.0, axis: int | tuple[int, ...] | None = None, reduction: str = "mean") -> Var:
    """Jaccard loss of probabilities and a mask: ``1 - (sum(p target) + smooth) / (sum(p) + sum(target) - sum(p target) + smooth)``.

    Sums are as in `dice_loss` (Rahman and Wang, 2016).
    """

def irfft(x: Var, length: int | None = None, axis: int = -1, norm: str = "backward") -> Var:
    """The inverse of `rfft`, `length` real numbers (default: 2 (m - 1), which is even): complex[...s m] -> complex.real[...s n]."""

def irfft2(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward") -> Var:
    """`irfftn` along two axes, by default the last two."""

def irfftn(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """The inverse of `rfftn`; the last length is the number of real numbers."""

def isclose(x: Var, y: Var, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Var:
    """Whether ``|x - y| <= atol + rtol |y|`` or both are the same infinity, elementwise; with ``equal_nan``, also if both are NaN."""

def kl_div(x: Var, target: Var, reduction: str = "mean", log_target: bool = False) -> Var:
    """Kullback-Leibler divergence, ``target (log(target) - x)``, with log probabilities ``x``.

    "batchmean" divides the sum by the rows of ``x``. With `log_target`, the target is log probabilities, too.
    """

def l1_loss(x: Var, y: Var, reduction: str = "mean") -> Var:
    """The absolute error, ``|x - y|``, with broadcasting. The gradient of equal elements is 0."""

def linspace(start: float, stop: float, count: int, dtype: DType | str = "float32") -> Var:
    """``count`` evenly spaced numbers from ``start`` to ``stop``, both included; ``start`` alone for one. Raises ArgumentError."""

def local_response_norm(x: Var, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Var:
    """``x / (k + alpha m)**beta``, with ``m`` the mean square of ``size`` neighbouring channels, zeros beyond: float[n c ...s].

    Krizhevsky, Sutskever and Hinton, 2012. Raises ShapeError or ArgumentError.
    """

def logspace(start: float, stop: float, count: int, base: float = 10.0, dtype: DType | str = "float32") -> Var:
    """``base`` to the powers of `linspace`."""

def lp_pool(x: Var, order: float, size: tuple[int, ...], stride: tuple[int, ...] | None = None, ceil_mode: bool = False) -> Var:
    """``(sum x**order)**(1 / order)`` over each window of each channel: sum pooling for order 1, near max pooling for a large order."""

def lstsq(a: Var, b: Var, relative: float | None = None) -> Var:
    """The least-squares solution of ``a x = b``, the shortest if there are several: ``pinv(a) b``, float[...b m n], float[...b m k]."""

def margin_ranking_loss(x: Var, y: Var, target: Var, margin: float = 0.0, reduction: str = "mean") -> Var:
    """``max(0, margin - target (x - y))``: ``x`` should rank higher if the target is 1, ``y`` if it is -1."""

def matrix_norm(x: Var, order: float | str = "fro", axes: tuple[int, int] = (-2, -1), keepdim: bool = False) -> Var:
    """A norm of each matrix along two axes, rows and columns.

    "fro" is the square root of the sum of squares, "nuc" the sum of singular values, 2 and -2 the largest and smallest of these; 1 and -1
    the largest and smallest sum of magnitudes in a column, infinity and minus infinity in a row. Raises ArgumentError for another order.
    """

def max_pool_with_indices(x: Var, size: tuple[int, ...], stride: tuple[int, ...] | None = None, padding: tuple[int, ...] | None = None, dilation: tuple[int, ...] | None = None, ceil_mode: bool = False) -> tuple[Var, Var]:
    """The largest value in each window of each channel of float[n c ...s], and its flat position in ``s``, int64.

    ``stride`` defaults to the size of a window. Raises ShapeError.
    """

def max_unpool(x: Var, index: Var, size: tuple[int, ...]) -> Var:
    """Images of ``size`` with the values of ``x`` at the flat positions ``index`` and zeros elsewhere (Zeiler and Fergus, 2014).

    If a position repeats, one of its values is kept. A position out of range raises KernelError.
    """

def mse_loss(x: Var, y: Var, reduction: str = "mean") -> Var:
    """The squared error, ``(x - y)**2``, with broadcasting."""

def multi_margin_loss(x: Var, label: Var, weight: Var | None = None, order: int = 1, margin: float = 1.0, reduction: str = "mean") -> Var:
    """The sum over the other classes of ``max(0, margin - x[label] + x[i])**order``, divided by the number of classes.

    float[*b k], int64[*b]. Each row is weighted by the ``weight``, float[k], of its class (Crammer and Singer, 2001).
    """

def multigammaln(x: Var, dimensions: int) -> Var:
    """The logarithm of the multivariate gamma function: ``d (d - 1) / 4 log(pi) + sum lgamma(x - i / 2)`` for ``i`` from 0 to ``d - 1``."""

def multilabel_margin_loss(x: Var, label: Var, reduction: str = "mean") -> Var:
    """The sum of ``max(0, 1 - x[label] + x[i])`` over all labels and all other classes i, divided by the number of classes.

    float[*b k], int64[*b k]. A row of labels ends at its first negative number. A label that is not a class raises KernelError.
    """

def multilabel_soft_margin_loss(x: Var, target: Var, weight: Var | None = None, reduction: str = "mean") -> Var:
    """The mean over the classes of the binary cross entropy of ``sigmoid(x)``, times the ``weight`` of each class: float[*b k] twice."""

def nan_to_num(x: Var, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Var:
    """``x`` with NaN and infinities replaced; infinities by default by the largest and the smallest number of the dtype.

    The real and imaginary parts of a complex number are replaced separately.
    """

def nanmean(x: Var, axis: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Var:
    """The mean of the elements that are not NaN; NaN if all are."""

def nanquantile(x: Var, q: Var | float | Sequence[float], axis: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Var:
    """The `quantile` of the elements that are not NaN; NaN if all are."""

def nansum(x: Var, axis: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Var:
    """The sum of the elements that are not NaN."""

def nce_loss(x: Var, weight: Var, bias: Var, label: Var, samples: Var, sampler: str = "log_uniform") -> Var:
    """Noise-contrastive estimation (Gutmann and Hyvarinen, 2010): classify the label against sampled classes. One number per row.

    float[n d], float[k d], float[k], int64[n], int64[s] -> float[n]: the binary cross entropy of ``x . weight + bias - log(s q)`` over the
    label and all samples, with ``q`` the probability of a class under the ``sampler``, "log_uniform" or "uniform". Raises ArgumentError,
    and the errors of the operators; an index that is not a class raises KernelError when the program runs.
    """

def nll_loss(log_p: Var, label: Var, weight: Var | None = None, ignore_index: int = -100, reduction: str = "mean", axis: int | None = None) -> Var:
    """`negative_log_likelihood` with classes along ``axis`` (default: axis 1, or the only one).

    Each row is weighted by the ``weight``, float[k], of its class; ignored rows do not count, in a mean either. Raises ArgumentError for an
    unknown reduction, and the errors of the operators.
    """

def normalize(x: Var, order: float = 2.0, axis: int | tuple[int, ...] | None = 1, epsilon: float = 1e-12) -> Var:
    """``x`` divided by its `vector_norm` over one axis or several, which is raised to at least ``epsilon``."""

def nuclear_norm(x: Var, axes: tuple[int, int] = (-2, -1), keepdim: bool = False) -> Var:
    """The sum of the singular values of each matrix, along two axes."""

def pairwise_distance(x: Var, y: Var, order: float = 2.0, epsilon: float = 1e-06, keepdim: bool = False) -> Var:
    """The `vector_norm` of ``x - y + epsilon`` along the last axis, with broadcasting."""

def pdist(x: Var, order: float = 2.0) -> Var:
    """The `vector_norm` of the difference of rows i and j, for each i < j: float[n k] -> float[n (n - 1) / 2]. n must be known."""

def pixel_shuffle(x: Var, factor: int) -> Var:
    """Rearrange channels into pixels: T[... c*r*r h w] -> T[... c h*r w*r] (Shi et al., 2016). Raises ShapeError."""

def pixel_unshuffle(x: Var, factor: int) -> Var:
    """Rearrange pixels into channels, the inverse of `pixel_shuffle`: T[... c h*r w*r] -> T[... c*r*r h w]. Raises ShapeError."""

def poisson_nll_loss(x: Var, target: Var, log_input: bool = True, full: bool = False, epsilon: float = 1e-08, reduction: str = "mean") -> Var:
    """Poisson negative log likelihood: ``exp(x) - target x`` for a log rate ``x``, ``x - target log(x + epsilon)`` for a rate.

    ``full`` adds Stirling's approximation of ``log(target!)``, ``target log(target) - target + log(2 pi target) / 2``, for targets above 1.
    """

def put(x: Var, index: Var, values: Var, accumulate: bool = False) -> Var:
    """``x`` with ``values`` written at flat indices, or added to them."""

def quantile(x: Var, q: Var | float | Sequence[float], axis: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Var:
    """The ``q`` quantile along ``axis``, or of all elements if it is None; NaN if any element is NaN.

    ``interpolation`` between two elements is "linear", "lower", "higher", "nearest" or "midpoint". Several ``q`` are along a new first axis
    of the result. Raises ArgumentError for a number outside of 0 to 1; a variable is clipped.
    """

def relative_buckets(places: Var, buckets: int = 32, farthest: int = 128, both_sides: bool = True) -> Var:
    """The index of a bucket for each relative position, int64[...s] -> int64[...s] (Raffel et al., 2020).

    Half of the buckets hold one position each, the others ranges that grow logarithmically up to `farthest`; the last also holds all
    beyond. With `both_sides`, half of all buckets are for keys after the query; otherwise these count as distance 0. Raises ArgumentError.
    """

def rfft(x: Var, length: int | None = None, axis: int = -1, norm: str = "backward") -> Var:
    """The Fourier transform of n real numbers: its first n // 2 + 1 elements, float[...s n] -> float.complex[...s m].

    The others are their conjugates.
    """

def rfft2(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward") -> Var:
    """`rfftn` along two axes, by default the last two."""

def rfftfreq(count: int, spacing: float = 1.0, dtype: DType | str = "float32") -> Var:
    """The frequencies of `rfft` for ``count`` samples: {dtype}[count / 2 + 1]."""

def rfftn(x: Var, lengths: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Var:
    """`rfft` along the last of several axes, `fft` along the others: float[...s] -> float.complex[...t]."""

def rot90(x: Var, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Var:
    """``x`` rotated ``k`` times by 90 degrees in the plane of two axes, from the first towards the second."""

def sampled_softmax_loss(x: Var, weight: Var, bias: Var, label: Var, samples: Var, sampler: str = "log_uniform", remove_accidental_hits: bool = True) -> Var:
    """Cross entropy of a softmax over only the label and the samples (Jean et al., 2015): one number per row.

    Arguments and the correction of logits are as in `nce_loss`. A sample that equals the label of a row is ignored for that row, unless
    `remove_accidental_hits` is false.
    """

def scatter_nd(x: Var, indices: Var, values: Var, accumulate: bool = False) -> Var:
    """``x`` with ``values`` written to the positions given by rows of indices, or added to them; see `gather_nd`."""

def scatter_reduce(x: Var, index: Var, values: Var, axis: int, reduction: str, include_self: bool = True) -> Var:
    """``x`` with ``values`` combined at indices along ``axis``, with separate indices for each row.

    ``reduction`` is "sum", "prod", "mean", "amax" or "amin" of all values with the same index and, with ``include_self``, of the element of
    ``x``.
    """

def select_scatter(x: Var, values: Var, axis: int, index: int) -> Var:
    """``x`` with ``values``, T[...s without the axis], in place of the element ``index`` along ``axis``."""

def sigmoid_focal_loss(x: Var, target: Var, alpha: float | None = 0.25, gamma: float = 2.0, reduction: str = "mean") -> Var:
    """Focal loss of logits: binary cross entropy times ``(1 - p)**gamma``, with ``p`` the probability of the true class.

    Positive targets are weighted by ``alpha``, negative ones by ``1 - alpha``; neither if ``alpha`` is None (Lin et al., 2017).
    """

def slice(x: Var, axis: int = 0, start: int | None = None, stop: int | None = None, step: int | None = None, clip: bool = True, *, name: str | None = None) -> Var:
    """Take a slice of ``x`` along ``axis``, as ``x[start:stop:step]`` does in NumPy and PyTorch.

    Negative bounds count from the end, and bounds beyond the axis are clipped. A negative ``step`` goes backwards from ``start``. With
    ``clip=False``, bounds beyond the axis raise an error: then the size of ``x[1:]`` is ``t-1``, not ``t-min(t,1)``, and a run with t = 0
    raises. Raises ShapeError and ArgumentError.
    """

def slice_scatter(x: Var, values: Var, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1) -> Var:
    """``x`` with ``values`` in place of a slice along ``axis``; bounds are clipped, as in Python."""

def smooth_l1_loss(x: Var, y: Var, reduction: str = "mean", beta: float = 1.0) -> Var:
    """``(x - y)**2 / (2 beta)`` up to a difference of ``beta``, then ``|x - y| - beta / 2`` (Girshick, 2015);
    `l1_loss` if ``beta`` is 0.
    """

def soft_margin_loss(x: Var, target: Var, reduction: str = "mean") -> Var:
    """``log(1 + exp(-target x))`` for targets of 1 and -1, computed stably."""

def softmin(x: Var, axis: int = -1) -> Var:
    """The softmax of ``-x`` along an axis."""

def softshrink(x: Var, bound: float = 0.5) -> Var:
    """``x`` moved towards 0 by ``bound``, or 0 if ``|x|`` is at most ``bound``. Raises ArgumentError for a negative bound."""

def solve(a: Var, b: Var, left: bool = True) -> Var:
    """The solution ``x`` of ``a x = b``, or of ``x a = b`` if not `left`: float[...b m m], with float[...b m k], or a vector, float[m].

    Leading axes are broadcast. If ``a`` is a stack of matrices, ``b`` may be a stack of as many vectors, float[...b m]. A singular matrix
    raises KernelError when the program runs. Raises ShapeError.
    """

def solve_triangular(a: Var, b: Var, upper: bool, left: bool = True, unitriangular: bool = False) -> Var:
    """The solution ``x`` of ``a x = b``, or of ``x a = b`` if not `left`, for a triangular ``a``: float[...b m m], float[...b m k].

    Leading axes are broadcast. For the rest see `solve_triangular_columns`.
    """

def squared_hinge_loss(x: Var, target: Var, margin: float = 1.0, reduction: str = "mean") -> Var:
    """The square of each `hinge_loss`."""

def standard_deviation(x: Var, axis: int | tuple[int, ...] | None = None, keepdim: bool = False, correction: float = 1.0) -> Var:
    """The standard deviation: the square root of the `variance`, with the same arguments."""

def stft(x: Var, size: int, step: int | None = None, window: Var | None = None, centre: bool = True, norm: str = "backward") -> Var:
    """The short-time Fourier transform: the `rfft` of windows of `size` samples, float[*b t] -> float.complex[*b w size/2+1].

    There is a window every `step` samples (default: size / 4); samples are multiplied by `window`, float[size]. With `centre`, the signal
    is mirrored at its ends, so that window i is centred at sample i times the step (Allen, 1977). Frequencies are the last axis;
    `torch.stft` has them before the windows. Raises ShapeError.
    """

def tensor_split(x: Var, sections: int | Sequence[int], axis: int = 0) -> list[Var]:
    """Parts along ``axis``: ``sections`` of them, as even as possible with the longer ones first; or the parts between given indices.

    Indices are clipped, like the bounds of Python's slices.
    """

def tensordot(x: Var, y: Var, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Var:
    """The sum of products over axes of both: the last ``axes`` of ``x`` and the first of ``y``, or the given ones. Raises ShapeError."""

def threshold(x: Var, threshold: float, value: float) -> Var:
    """``x`` if it is above ``threshold``, else ``value``."""

def top_k_along(x: Var, k: int, axis: int = -1, largest: bool = True) -> tuple[Var, Var]:
    """The ``k`` largest or smallest elements along ``axis``, in order, and their indices, by `top_k`. Raises ShapeError."""

def trapezoid(y: Var, x: Var | None = None, dx: float = 1.0, axis: int = -1) -> Var:
    """The integral of ``y`` along ``axis`` by the trapezoidal rule, with steps ``dx`` or between the positions
    ``x``, which are broadcast.
    """

def triplet_margin_loss(anchor: Var, positive: Var, negative: Var, margin: float = 1.0, order: float = 2.0, epsilon: float = 1e-06, swap: bool = False, reduction: str = "mean") -> Var:
    """`triplet_margin_with_distance_loss` with the `pairwise_distance` of the given order and epsilon: float[*b d] three times."""

def triplet_margin_with_distance_loss(anchor: Var, positive: Var, negative: Var, distance: Callable[[Var, Var], Var] = ..., margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Var:
    """``max(0, margin + distance(anchor, positive) - distance(anchor, negative))`` (Schroff, Kalenichenko and Philbin, 2015).

    With ``swap``, the distance of the negative is the smaller of those to the anchor and to the positive (Balntas et al., 2016).
    """

def unbind(x: Var, axis: int = 0) -> list[Var]:
    """The slices of ``x`` along ``axis``, without that axis."""

def unflatten(x: Var, axis: int, sizes: Sequence[int | str]) -> Var:
    """``x`` with an axis split into several of ``sizes``; one size may be -1."""

def vecdot(x: Var, y: Var, axis: int = -1) -> Var:
    """The sum of ``conj(x) * y`` along an axis; the other axes are broadcast."""

def vector_norm(x: Var, order: float = 2.0, axis: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Var:
    """The norm ``(sum |x|**order)**(1 / order)`` over one axis, several, or all. It is a real number, for complex ones, too.

    An infinite order gives the largest ``|x|``, order 0 the number of elements that are not 0. Raises the errors of the operators.
    """

def abs(x: Var, *, name: str | None = None) -> Var:
    """abs(x: number[*b]) -> y: number.real[*b]

    ``|x|``, a real number. Its gradient at 0 is 0.
    """

def accuracy(predict: Var, label: Var, ignore_index: int = -100, *, name: str | None = None) -> Var:
    """accuracy(predict: float[*b k!], label: int64[*b], ignore_index=-100) -> y: float32[]

    The fraction of rows whose largest entry is at ``label``, of the rows whose label is not ignored; NaN if there are none.
    """

def acos(x: Var, *, name: str | None = None) -> Var:
    """acos(x: inexact[*b]) -> y: inexact[*b]

    The inverse cosine, an angle from 0 to ``pi``; NaN outside of -1 to 1.
    """

def acosh(x: Var, *, name: str | None = None) -> Var:
    """acosh(x: inexact[*b]) -> y: inexact[*b]

    The inverse hyperbolic cosine, at least 0; NaN below 1.
    """

def adam(param: Var, grad: Var, moment1: Var, moment2: Var, step: Var | float, learning_rate: Var | float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, weight_decay: float = 0.0, *, name: str | None = None) -> tuple[Var, Var, Var]:
    """adam(param: float[*b], grad: float[*b], moment1: float[*b], moment2: float[*b], step: int64[], learning_rate: float64[], beta1=0.9, beta2=0.999, epsilon=1e-08, weight_decay=0.0) -> next: float[*b], next_moment1: float[*b], next_moment2: float[*b]

    Adam (Kingma and Ba, 2015, algorithm 1); ``step`` counts from 1.

    ``next = (1 - rate weight_decay) param - rate (m / (1 - beta1**step)) / (sqrt(v / (1 - beta2**step)) + epsilon)``. The first factor is
    the decoupled weight decay of AdamW (Loshchilov and Hutter, 2019, algorithm 2).
    """

def adaptive_average_pool1d(x: Var, size: int | Sequence[int], *, name: str | None = None) -> Var:
    """adaptive_average_pool1d(x: float[n c! w!], size) -> y: float[n c ow]

    Average pooling to ``size`` along one axis; see `adaptive_average_pool2d`.
    """

def adaptive_average_pool2d(x: Var, size: int | Sequence[int], *, name: str | None = None) -> Var:
    """adaptive_average_pool2d(x: float[n c! h! w!], size) -> y: float[n c oh ow]

    Average pooling of each channel to ``size`` outputs: with ``s`` windows over ``h`` rows, window ``i`` covers the rows from
    ``floor(i h / s)`` to ``ceil((i + 1) h / s)``, the end excluded.
    """

def adaptive_average_pool3d(x: Var, size: int | Sequence[int], *, name: str | None = None) -> Var:
    """adaptive_average_pool3d(x: float[n c! d! h! w!], size) -> y: float[n c od oh ow]

    Average pooling to ``size`` along three axes; see `adaptive_average_pool2d`.
    """

def adaptive_max_pool1d(x: Var, size: int | Sequence[int], *, name: str | None = None) -> Var:
    """adaptive_max_pool1d(x: float[n c! w!], size) -> y: float[n c ow], index: int64[n c ow]

    Max pooling to ``size`` along one axis; see `adaptive_max_pool2d`.
    """

def adaptive_max_pool2d(x: Var, size: int | Sequence[int], *, name: str | None = None) -> Var:
    """adaptive_max_pool2d(x: float[n c! h! w!], size) -> y: float[n c oh ow], index: int64[n c oh ow]

    The largest value in each window of `adaptive_average_pool2d`; ``index`` is its flat position in the channel.
    """

def adaptive_max_pool3d(x: Var, size: int | Sequence[int], *, name: str | None = None) -> Var:
    """adaptive_max_pool3d(x: float[n c! d! h! w!], size) -> y: float[n c od oh ow], index: int64[n c od oh ow]

    Max pooling to ``size`` along three axes; see `adaptive_max_pool2d`.
    """

def add(x: Var | builtins.complex, y: Var | builtins.complex, *, name: str | None = None) -> Var:
    """add(x: number[*#s], y: number[*#s]) -> z: number[*#s]

    ``z = x + y``.
    """

def addcmul(base: Var | float, x: Var | float, y: Var | float, subtracted: bool = False, *, name: str | None = None) -> Var:
    """addcmul(base: float[*#s], x: float[*#s], y: float[*#s], subtracted=False) -> z: float[*#s]

    ``z = base + x * y``, or ``z = base - x * y`` if ``subtracted``; elementwise.
    """

def addmm(base: Var, x: Var, w: Var, *, name: str | None = None) -> Var:
    """addmm(base: float[*~b n], x: float[*~b k], w: float[k n]) -> out: float[*b n]

    Rows times a shared matrix, added to ``base``: ``out = base + x @ w``.
    """

def addmm_nt(base: Var, w: Var, x: Var, *, name: str | None = None) -> Var:
    """addmm_nt(base: float[*~b k], w: float[k n], x: float[*~b n]) -> out: float[*b k]

    Rows times a transposed shared matrix, added to ``base``: ``out = base + x @ w.T``, as in the gradient of ``linear``.
    """

def addmm_tn(base: Var, x: Var, dout: Var, scale: float = 1.0, *, name: str | None = None) -> Var:
    """addmm_tn(base: float[k n], x: float[...b k], dout: float[...b n], scale=1.0) -> total: float[k n]

    ``total = scale * base + linear_dw(x, dout)``.
    """

def all(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """all(x: bool[...s], axis=None, keepdim=False) -> y: bool[...s-{axis}]

    Whether all elements over one axis, several, or all (None) are true; true if there are none. ``keepdim`` keeps axes with size 1.
    """

def all_gather(x: Var, counts: Var | None = None, whole: Var | None = None, axis: int = 0, workers: int = 0, *, name: str | None = None) -> Var:
    """all_gather(x: T[...s], counts?: int64[w], whole?: shape[...m], axis=0, workers=0) -> y: T[...t]

    The tensors of all workers concatenated along ``axis``, in worker order, on every worker.

    Sizes along ``axis`` may differ between workers and may be 0; the other sizes are equal. ``counts`` holds the sizes along ``axis`` if
    they are known; otherwise they are exchanged first. The first size of ``whole`` is the expected size of the result along ``axis``. With
    ``workers``, the number of workers, all have equal sizes, so the size of the result is known and nothing is exchanged first.
    """

@overload
def all_reduce(xs: Sequence[Var] | Var, op: str = "sum", *, name: str | None = None) -> list[Var]:
    """all_reduce(*xs: number, op="sum") -> *ys: number

    The sum of each tensor over all workers, or its elementwise maximum or minimum, bit-identical on every worker.

    Each tensor has the same shape on all workers; all tensors of one op are sent together. The gradient of a sum is the sum of the workers'
    gradients: it differentiates the total of all workers. Maximum and minimum have no gradient.
    """

@overload
def all_reduce(*xs: Var, op: str = "sum", name: str | None = None) -> list[Var]:
    """all_reduce(*xs: number, op="sum") -> *ys: number

    The sum of each tensor over all workers, or its elementwise maximum or minimum, bit-identical on every worker.

    Each tensor has the same shape on all workers; all tensors of one op are sent together. The gradient of a sum is the sum of the workers'
    gradients: it differentiates the total of all workers. Maximum and minimum have no gradient.
    """

@overload
def all_reduce_done(exchange: Var, likes: Sequence[Var] | Var, *, name: str | None = None) -> list[Var]:
    """all_reduce_done(exchange: number[k], *likes: shape) -> *ys: number

    Wait for `all_reduce_start` and return its tensors, in the shapes of ``likes``.
    """

@overload
def all_reduce_done(exchange: Var, *likes: Var, name: str | None = None) -> list[Var]:
    """all_reduce_done(exchange: number[k], *likes: shape) -> *ys: number

    Wait for `all_reduce_start` and return its tensors, in the shapes of ``likes``.
    """

@overload
def all_reduce_start(xs: Sequence[Var] | Var, op: str = "sum", *, name: str | None = None) -> Var:
    """all_reduce_start(*xs: number, op="sum") -> exchange: number[k]

    Start the exchange of `all_reduce`, so that a worker can compute independent work until `all_reduce_done`.

    ``exchange`` is a buffer for all elements, one tensor after another. It is not complete yet: only `all_reduce_done` may read it. A plan
    uses the pair in place of `all_reduce` (`passes/overlap_exchanges.py`).
    """

@overload
def all_reduce_start(*xs: Var, op: str = "sum", name: str | None = None) -> Var:
    """all_reduce_start(*xs: number, op="sum") -> exchange: number[k]

    Start the exchange of `all_reduce`, so that a worker can compute independent work until `all_reduce_done`.

    ``exchange`` is a buffer for all elements, one tensor after another. It is not complete yet: only `all_reduce_done` may read it. A plan
    uses the pair in place of `all_reduce` (`passes/overlap_exchanges.py`).
    """

def all_to_all(x: Var, *, name: str | None = None) -> Var:
    """all_to_all(x: T[n ...d]) -> y: T[n ...d]

    Exchange equal parts of the rows: worker i receives the i-th part of each worker, in order of the senders.

    ``n`` is the same on all workers, and a multiple of their number.
    """

def amax(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """amax(x: real[...s], axis=None, keepdim=False) -> y: real[...s-{axis!}]

    The largest element over one axis, several, or all if ``axis`` is None. Ties share the gradient evenly.
    """

def amin(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """amin(x: real[...s], axis=None, keepdim=False) -> y: real[...s-{axis!}]

    The smallest element over one axis, several, or all if ``axis`` is None. Ties share the gradient evenly.
    """

def angle(x: Var, *, name: str | None = None) -> Var:
    """angle(x: complex[*b]) -> y: complex.real[*b]

    The angle of a complex number, from ``-pi`` to ``pi``; 0 at 0, with a zero gradient.
    """

def any(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """any(x: bool[...s], axis=None, keepdim=False) -> y: bool[...s-{axis}]

    Whether any element over one axis, several, or all (None) is true; false if there are none. ``keepdim`` keeps axes with size 1.
    """

@overload
def arange(like: Sequence[Var] | Var = (), *, stop: int | Sequence[int | str] | Var, start: int | Sequence[int | str] | Var = (0,), step: int = 1, dtype: DType | str | type = "int64", name: str | None = None) -> Var:
    """arange(*like: shape, stop, start=(0,), step=1, dtype=int64) -> y: {dtype}

    The numbers from ``start`` to before ``stop``, in steps of ``step``; there may be none.

    Either bound may be a symbol, whose value ``like`` provides, or a variable, int64[1]. A range between symbols is assumed not to be
    empty.
    """

@overload
def arange(like: Sequence[Var] | Var, stop: int | Sequence[int | str] | Var, start: int | Sequence[int | str] | Var = (0,), step: int = 1, dtype: DType | str | type = "int64", *, name: str | None = None) -> Var:
    """arange(*like: shape, stop, start=(0,), step=1, dtype=int64) -> y: {dtype}

    The numbers from ``start`` to before ``stop``, in steps of ``step``; there may be none.

    Either bound may be a symbol, whose value ``like`` provides, or a variable, int64[1]. A range between symbols is assumed not to be
    empty.
    """

@overload
def arange(stop: int | Sequence[int | str] | Var, start: int | Sequence[int | str] | Var = (0,), step: int = 1, dtype: DType | str | type = "int64", *, name: str | None = None) -> Var:
    """arange(*like: shape, stop, start=(0,), step=1, dtype=int64) -> y: {dtype}

    The numbers from ``start`` to before ``stop``, in steps of ``step``; there may be none.

    Either bound may be a symbol, whose value ``like`` provides, or a variable, int64[1]. A range between symbols is assumed not to be
    empty.
    """

def arange_like(like: Var, *, name: str | None = None) -> Var:
    """arange_like(like: shape[n ...d]) -> y: int64[n]

    The indices of all rows of ``like``, from 0.
    """

def argmax(x: Var, axis: int = -1, keepdim: bool = False, *, name: str | None = None) -> Var:
    """argmax(x: real[...s], axis=-1, keepdim=False) -> y: int64[...s-{axis!}]

    The index of the largest element along ``axis``, the first on ties. ``keepdim`` keeps the axis with size 1.
    """

def argmin(x: Var, axis: int = -1, keepdim: bool = False, *, name: str | None = None) -> Var:
    """argmin(x: real[...s], axis=-1, keepdim=False) -> y: int64[...s-{axis!}]

    The index of the smallest element along ``axis``, the first on ties. ``keepdim`` keeps the axis with size 1.
    """

def argwhere(condition: Var, *, name: str | None = None) -> Var:
    """argwhere(condition: bool[...s]) -> y: int64[? r]

    The indices of the true elements, in order: a row per element, with one index per axis.
    """

def around(x: Var, decimals: int = 0, *, name: str | None = None) -> Var:
    """around(x: float[*b], decimals=0) -> y: float[*b]

    ``x`` rounded to ``decimals`` decimal places; a negative number rounds to tens, hundreds and so on.
    """

def asin(x: Var, *, name: str | None = None) -> Var:
    """asin(x: inexact[*b]) -> y: inexact[*b]

    The inverse sine, an angle from ``-pi / 2`` to ``pi / 2``; NaN outside of -1 to 1.
    """

def asinh(x: Var, *, name: str | None = None) -> Var:
    """asinh(x: inexact[*b]) -> y: inexact[*b]

    The inverse hyperbolic sine.
    """

def assign(x: Var, *, name: str | None = None) -> Var:
    """assign(x: T[*b]) -> y: T[*b]

    ``x`` itself, under another name. At the end of the main block, it sets the next value of a persistable variable.
    """

def atan(x: Var, *, name: str | None = None) -> Var:
    """atan(x: inexact[*b]) -> y: inexact[*b]

    The inverse tangent, an angle between ``-pi / 2`` and ``pi / 2``.
    """

def atan2(y: Var | float, x: Var | float, *, name: str | None = None) -> Var:
    """atan2(y: float[*#s], x: float[*#s]) -> angle: float[*#s]

    The angle of the point ``(x, y)``, from ``-pi`` to ``pi``.
    """

def atanh(x: Var, *, name: str | None = None) -> Var:
    """atanh(x: inexact[*b]) -> y: inexact[*b]

    The inverse hyperbolic tangent; NaN outside of -1 to 1.
    """

def attention_bias_changes(query: Var, key: Var, value: Var, y: Var, logsumexp: Var, y_gradient: Var, bias: Var, mask: Var | None = None, logsumexp_gradient: Var | None = None, toward_query: Var | None = None, toward_key: Var | None = None, toward_value: Var | None = None, toward_bias: Var | None = None, heads: int = 1, causal: bool = False, scale: float | None = None, *, name: str | None = None) -> Var:
    """attention_bias_changes(query: float[*b t k], key: float[*b s k], value: float[*b s e], y: float[*b t e], logsumexp: float[*b {heads} t], y_gradient: float[*b t e], bias: float[*b g h i], mask?: bool[*b m n o], logsumexp_gradient?: float[*b {heads} t], toward_query?: float[*b t k], toward_key?: float[*b s k], toward_value?: float[*b s e], toward_bias?: float[*b g h i], heads=1, causal=False, scale=None) -> of_bias: float[*b g h i]

    The derivative of `attention_changes` with respect to the bias. It has no gradient.
    """

def attention_changes(query: Var, key: Var, value: Var, y: Var, logsumexp: Var, y_gradient: Var, mask: Var | None = None, bias: Var | None = None, logsumexp_gradient: Var | None = None, toward_query: Var | None = None, toward_key: Var | None = None, toward_value: Var | None = None, toward_bias: Var | None = None, heads: int = 1, causal: bool = False, scale: float | None = None, *, name: str | None = None) -> tuple[Var, Var, Var, Var, Var, Var, Var]:
    """attention_changes(query: float[*b t k], key: float[*b s k], value: float[*b s e], y: float[*b t e], logsumexp: float[*b {heads} t], y_gradient: float[*b t e], mask?: bool[*b m n o], bias?: float[*b g h i], logsumexp_gradient?: float[*b {heads} t], toward_query?: float[*b t k], toward_key?: float[*b s k], toward_value?: float[*b s e], toward_bias?: float[*b g h i], heads=1, causal=False, scale=None) -> of_query: float[*b t k], of_key: float[*b s k], of_value: float[*b s e], of_y: float[*b t e], of_logsumexp: float[*b {heads} t], of_y_gradient: float[*b t e], of_logsumexp_gradient: float[*b {heads} t]

    Second-order gradients of `scaled_dot_product_attention`: the derivatives of its gradients, contracted with ``toward_*``.

    ``of_query`` is the derivative with respect to the query, and so on; `attention_bias_changes` returns the one for the bias. It has no
    gradient.
    """

def average_pool1d(x: Var, size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int] = (0,), ceil_mode: bool = False, count_include_pad: bool = True, *, name: str | None = None) -> Var:
    """average_pool1d(x: float[n c! w], size, stride, padding=(0,), ceil_mode=False, count_include_pad=True) -> y: float[n c ow]

    1D average pooling; see `average_pool2d`.
    """

def average_pool2d(x: Var, size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int] = (0, 0), ceil_mode: bool = False, count_include_pad: bool = True, *, name: str | None = None) -> Var:
    """average_pool2d(x: float[n c! h w], size, stride, padding=(0, 0), ceil_mode=False, count_include_pad=True) -> y: float[n c oh ow]

    Average pooling: the mean of each window of each channel. Without ``count_include_pad``, padding is left out of the mean.

    With ``ceil_mode``, a last window that extends beyond the end counts too, as the mean of its elements.
    """

def average_pool3d(x: Var, size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int] = (0, 0, 0), ceil_mode: bool = False, count_include_pad: bool = True, *, name: str | None = None) -> Var:
    """average_pool3d(x: float[n c! d h w], size, stride, padding=(0, 0, 0), ceil_mode=False, count_include_pad=True) -> y: float[n c od oh ow]

    3D average pooling; see `average_pool2d`.
    """

def batch_norm(x: Var, running_mean: Var, running_variance: Var, scale: Var | None = None, bias: Var | None = None, momentum: float = 0.1, epsilon: float = 1e-05, *, name: str | None = None) -> Var:
    """batch_norm(x: float[n c ...s], running_mean: float[c], running_variance: float[c], scale?: float[c], bias?: float[c], momentum=0.1, epsilon=1e-05) -> y: float[n c ...s], mean: float[c], rstd: float[c], next_mean: float[c], next_variance: float[c], uses_batch_statistics: bool[]

    ``y = (x - mean) * rstd * scale + bias`` for each of ``c`` channels, with ``rstd = 1 / sqrt(variance + epsilon)``.

    In training, it uses the mean and variance of the batch, over all axes but the channels, and updates the running statistics:
    ``next = (1 - momentum) running + momentum batch``, with the unbiased variance of the batch. Otherwise it uses the running statistics,
    which stay unchanged. A batch with a single value per channel leaves the running variance unchanged; an empty batch leaves both
    unchanged (Ioffe and Szegedy, 2015).
    """

def batch_norm_bias_grad(dy: Var, *, name: str | None = None) -> Var:
    """batch_norm_bias_grad(dy: float[n c ...s]) -> dbias: float[c]

    The gradient of `batch_norm` with respect to the bias: the sum of ``dy`` over each channel.
    """

def batch_norm_grad(x: Var, mean: Var, rstd: Var, uses_batch_statistics: Var | bool, dy: Var, scale: Var | None = None, *, name: str | None = None) -> Var:
    """batch_norm_grad(x: float[n c ...s], mean: float[c], rstd: float[c], uses_batch_statistics: bool[], dy: float[n c ...s], scale?: float[c]) -> dx: float[n c ...s]

    The gradient of `batch_norm` with respect to ``x``, from the gradient ``dy`` of its output.

    With ``g = dy * scale``, ``xhat = (x - mean) * rstd`` and means over all axes but the channels:
    ``rstd * (g - mean(g) - xhat * mean(g * xhat))``, or ``rstd * g`` if running statistics were used.
    """

def batch_norm_scale_grad(x: Var, mean: Var, rstd: Var, uses_batch_statistics: Var | bool, dy: Var, *, name: str | None = None) -> Var:
    """batch_norm_scale_grad(x: float[n c ...s], mean: float[c], rstd: float[c], uses_batch_statistics: bool[], dy: float[n c ...s]) -> dscale: float[c]

    The gradient of `batch_norm` with respect to the scale: the sum of ``dy * (x - mean) * rstd`` over each channel.
    """

def bernoulli(probability: Var, *, name: str | None = None) -> Var:
    """bernoulli(probability: float[...s]) -> y: float[...s]

    1 with the given probability, else 0: always 0 for a probability of at most 0, always 1 for at least 1.

    ``first_row`` is as in `dropout`.
    """

def bessel_j0(x: Var, *, name: str | None = None) -> Var:
    """bessel_j0(x: float[*b]) -> y: float[*b]

    The Bessel function of the first kind of order 0.
    """

def bessel_j1(x: Var, *, name: str | None = None) -> Var:
    """bessel_j1(x: float[*b]) -> y: float[*b]

    The Bessel function of the first kind of order 1.
    """

def bessel_y0(x: Var, *, name: str | None = None) -> Var:
    """bessel_y0(x: float[*b]) -> y: float[*b]

    The Bessel function of the second kind of order 0; NaN below 0.
    """

def bessel_y1(x: Var, *, name: str | None = None) -> Var:
    """bessel_y1(x: float[*b]) -> y: float[*b]

    The Bessel function of the second kind of order 1; NaN below 0.
    """

def bincount(x: Var, least: int = 0, *, name: str | None = None) -> Var:
    """bincount(x: int64[...s], least=0) -> y: int64[?]

    The count of each number from 0 to the largest, or to ``least - 1`` if that is larger.
    """

def bitwise_and(x: Var | int, y: Var | int, *, name: str | None = None) -> Var:
    """bitwise_and(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

    Bitwise AND: the bits set in both.
    """

def bitwise_left_shift(x: Var | int, y: Var | int, *, name: str | None = None) -> Var:
    """bitwise_left_shift(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

    ``x`` shifted left by ``y`` bits; 0 if ``y`` is negative or at least the number of bits.
    """

def bitwise_not(x: Var, *, name: str | None = None) -> Var:
    """bitwise_not(x: integer[*b]) -> y: integer[*b]

    Bitwise NOT: all bits inverted, ``-x - 1`` for signed integers.
    """

def bitwise_or(x: Var | int, y: Var | int, *, name: str | None = None) -> Var:
    """bitwise_or(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

    Bitwise OR: the bits set in at least one.
    """

def bitwise_right_shift(x: Var | int, y: Var | int, *, name: str | None = None) -> Var:
    """bitwise_right_shift(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

    ``x`` shifted right by ``y`` bits, rounding down; only the sign remains if ``y`` is negative or exceeds the number of bits.
    """

def bitwise_xor(x: Var | int, y: Var | int, *, name: str | None = None) -> Var:
    """bitwise_xor(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

    Bitwise XOR: the bits set in exactly one.
    """

def broadcast(x: Var, root: int = 0, *, name: str | None = None) -> Var:
    """broadcast(x: T[...s], root=0) -> y: T[...s]

    The tensor of worker ``root``, on every worker. All workers pass a tensor of the same shape.
    """

@overload
def broadcast_to(x: Var, like: Sequence[Var] | Var = (), *, shape: int | Sequence[int | str] | Var, name: str | None = None) -> Var:
    """broadcast_to(x: T[...s], *like: shape, shape) -> y: T[...t]

    ``x`` broadcast to ``shape``, by NumPy's rules. -1 keeps a size of ``x``; ``like`` provides symbols that ``x`` lacks.
    """

@overload
def broadcast_to(x: Var, like: Sequence[Var] | Var, shape: int | Sequence[int | str] | Var, *, name: str | None = None) -> Var:
    """broadcast_to(x: T[...s], *like: shape, shape) -> y: T[...t]

    ``x`` broadcast to ``shape``, by NumPy's rules. -1 keeps a size of ``x``; ``like`` provides symbols that ``x`` lacks.
    """

@overload
def broadcast_to(x: Var, shape: int | Sequence[int | str] | Var, *, name: str | None = None) -> Var:
    """broadcast_to(x: T[...s], *like: shape, shape) -> y: T[...t]

    ``x`` broadcast to ``shape``, by NumPy's rules. -1 keeps a size of ``x``; ``like`` provides symbols that ``x`` lacks.
    """

def broadcast_to_like(x: Var, like: Var, *, name: str | None = None) -> Var:
    """broadcast_to_like(x: inexact[...r], like: shape[...s]) -> y: inexact[...s]

    Broadcast ``x`` to the shape of ``like``.
    """

def cast(x: Var, dtype: DType | str | type, *, name: str | None = None) -> Var:
    """cast(x: any[...s], dtype) -> y: {dtype}[...s]

    ``x`` converted to another dtype. A float is truncated to an integer. `real` and `abs` convert complex numbers to real ones.
    """

def causal_softmax(x: Var, *, name: str | None = None) -> Var:
    """causal_softmax(x: float[*b t s]) -> y: float[*b t s]

    Softmax over the last axis with a causal mask: row ``i`` of ``t`` sees columns up to ``i + s - t`` of ``s``; the others are 0.
    """

def ceil(x: Var, *, name: str | None = None) -> Var:
    """ceil(x: float[*b]) -> y: float[*b]

    The smallest whole number that is at least ``x``.
    """

def cholesky(x: Var, *, name: str | None = None) -> Var:
    """cholesky(x: inexact[*b m m]) -> y: inexact[*b m m]

    The Cholesky factor of the symmetric part of each matrix: lower triangular, with ``y y' = (x + x') / 2`` and a positive diagonal.

    For complex numbers, ``'`` is the conjugate transpose. A matrix that is not positive definite raises KernelError.
    """

def chunk_counts(hypothesis: Var, reference: Var, splits: Var, types: int, scheme: str = "IOB", *, name: str | None = None) -> Var:
    """chunk_counts(hypothesis: int64[t], reference: int64[t], splits: int64[n+1], types, scheme="IOB") -> counts: int64[3]

    The numbers of chunks in ``hypothesis``, in ``reference``, and in both, with equal first tag, last tag and type.

    Tags of type i: IOB has ``2 i`` to begin a chunk and ``2 i + 1`` inside; IOE ``2 i`` inside and ``2 i + 1`` at the end; IOBES ``4 i`` to
    ``4 i + 3`` for begin, inside, end and a chunk of one; plain only ``i``. The number after all of these is outside of chunks. A chunk
    also ends at a change of type and at the end of its sequence, as in the evaluation of CoNLL-2000.
    """

def clip(x: Var | float, lower: Var | float | None = None, upper: Var | float | None = None, *, name: str | None = None) -> Var:
    """clip(x: real[*#s], lower?: real[*#s], upper?: real[*#s]) -> y: real[*#s]

    ``x`` limited to the range from ``lower`` to ``upper``; either may be absent. A bound that applies receives the gradient.
    """

def coalesce(rows: Var, values: Var, *, name: str | None = None) -> tuple[Var, Var]:
    """coalesce(rows: int64[n], values: T[n ...d]) -> distinct: int64[?], sums: T

    The ``distinct`` indices in ``rows``, ascending, and the sum of the ``values`` of each.
    """

def cofactors(x: Var, *, name: str | None = None) -> Var:
    """cofactors(x: inexact[*b m m]) -> y: inexact[*b m m]

    The cofactors of each matrix: the gradient of its determinant.

    They are computed from the singular values, so that they exist for singular matrices; their gradient uses the inverse.
    """

def complex(real: Var | float, imag: Var | float, *, name: str | None = None) -> Var:
    """complex(real: float[*#s], imag: float[*#s]) -> z: float.complex[*#s]

    ``real + imag * 1j``: complex64 from float32, complex128 from float64. Raises for other dtypes, for which
    there is no complex dtype.
    """

@overload
def concat(xs: Sequence[Var] | Var, axis: int = 0, *, name: str | None = None) -> Var:
    """concat(*xs: T, axis=0) -> y: T

    The concatenation of tensors along ``axis``. Their other sizes must be equal.
    """

@overload
def concat(*xs: Var, axis: int = 0, name: str | None = None) -> Var:
    """concat(*xs: T, axis=0) -> y: T

    The concatenation of tensors along ``axis``. Their other sizes must be equal.
    """

def conj(z: Var, *, name: str | None = None) -> Var:
    """conj(z: complex[*b]) -> y: complex[*b]

    The complex conjugate.
    """

def contingency_table(x: Var, y: Var, rows: int, columns: int, ignore_index: int = -100, *, name: str | None = None) -> Var:
    """contingency_table(x: int64[...s], y: int64[...s], rows, columns, ignore_index=-100) -> counts: int64[{rows} {columns}]

    The contingency table of two tensors: ``counts[i, j]`` is the number of positions with i in ``x`` and j in ``y``.

    Positions where ``x`` is ``ignore_index`` are not counted.
    """

def conv1d(x: Var, filter: Var, bias: Var | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), groups: int = 1, *, name: str | None = None) -> Var:
    """conv1d(x: float[n c! w], filter: float[f! k kw], bias?: float[f], stride=(1,), padding=(0,), dilation=(1,), groups=1) -> y: float[n f ow]

    1D convolution, of signals; see `conv2d`.
    """

def conv2d(x: Var, filter: Var, bias: Var | None = None, stride: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0), dilation: int | Sequence[int] = (1, 1), groups: int = 1, *, name: str | None = None) -> Var:
    """conv2d(x: float[n c! h w], filter: float[f! k kh kw], bias?: float[f], stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1) -> y: float[n f oh ow]

    2D convolution (cross-correlation, as usual in deep learning) of ``n`` images of ``c`` channels with ``f`` filters.

    With several ``groups``, each filter sees only the ``k = c / groups`` channels of its group.
    """

def conv3d(x: Var, filter: Var, bias: Var | None = None, stride: int | Sequence[int] = (1, 1, 1), padding: int | Sequence[int] = (0, 0, 0), dilation: int | Sequence[int] = (1, 1, 1), groups: int = 1, *, name: str | None = None) -> Var:
    """conv3d(x: float[n c! d h w], filter: float[f! k kd kh kw], bias?: float[f], stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1) -> y: float[n f od oh ow]

    3D convolution, of volumes or sequences of images; see `conv2d`.
    """

def conv_transpose1d(x: Var, filter: Var, bias: Var | None = None, stride: int | Sequence[int] = (1,), padding: int | Sequence[int] = (0,), output_padding: int | Sequence[int] = (0,), groups: int = 1, dilation: int | Sequence[int] = (1,), *, name: str | None = None) -> Var:
    """conv_transpose1d(x: float[n c! w], filter: float[c k! kw], bias?: float[f], stride=(1,), padding=(0,), output_padding=(0,), groups=1, dilation=(1,)) -> y: float[n f ow]

    1D transposed convolution; see `conv_transpose2d`.
    """

def conv_transpose2d(x: Var, filter: Var, bias: Var | None = None, stride: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0), output_padding: int | Sequence[int] = (0, 0), groups: int = 1, dilation: int | Sequence[int] = (1, 1), *, name: str | None = None) -> Var:
    """conv_transpose2d(x: float[n c! h w], filter: float[c k! kh kw], bias?: float[f], stride=(1, 1), padding=(0, 0), output_padding=(0, 0), groups=1, dilation=(1, 1)) -> y: float[n f oh ow]

    Transposed 2D convolution: each input element adds its multiple of the filter window to the output.

    With several ``groups``, the ``c / groups`` channels of each group produce ``k`` of the ``f = k groups`` output channels.
    ``output_padding`` adds positions at the end: with a stride, inputs of several sizes have convolutions of one size.
    """

def conv_transpose3d(x: Var, filter: Var, bias: Var | None = None, stride: int | Sequence[int] = (1, 1, 1), padding: int | Sequence[int] = (0, 0, 0), output_padding: int | Sequence[int] = (0, 0, 0), groups: int = 1, dilation: int | Sequence[int] = (1, 1, 1), *, name: str | None = None) -> Var:
    """conv_transpose3d(x: float[n c! d h w], filter: float[c k! kd kh kw], bias?: float[f], stride=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), groups=1, dilation=(1, 1, 1)) -> y: float[n f od oh ow]

    3D transposed convolution; see `conv_transpose2d`.
    """

def copysign(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """copysign(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    ``|x|`` with the sign of ``y``, including the sign of -0.
    """

def cos(x: Var, *, name: str | None = None) -> Var:
    """cos(x: inexact[*b]) -> y: inexact[*b]

    The cosine of ``x`` radians.
    """

def cosh(x: Var, *, name: str | None = None) -> Var:
    """cosh(x: inexact[*b]) -> y: inexact[*b]

    The hyperbolic cosine, ``(exp(x) + exp(-x)) / 2``.
    """

def crf_log_partition(emissions: Var, splits: Var, transitions: Var, start: Var, end: Var, *, name: str | None = None) -> Var:
    """crf_log_partition(emissions: float[t k!], splits: int64[n+1], transitions: float[k k], start: float[k], end: float[k]) -> y: float[n], shares: float[t k], pairs: float[n k k]

    ``log(sum(exp(score)))`` over all label sequences; 0 for an empty sequence (Lafferty, McCallum and Pereira, 2001).

    The score is the sum of each element's emission for its label, ``transitions[i, j]`` for each label j after i, and the start and end
    scores of the first and last label. ``shares`` is the probability of each label for each element, ``pairs`` the expected number of each
    transition.
    """

def crf_share_changes(emissions: Var, splits: Var, transitions: Var, start: Var, end: Var, shares: Var | None = None, pairs: Var | None = None, *, name: str | None = None) -> tuple[Var, Var]:
    """crf_share_changes(emissions: float[t k!], splits: int64[n+1], transitions: float[k k], start: float[k], end: float[k], shares?: float[t k], pairs?: float[n k k]) -> of_shares: float[t k], of_pairs: float[n k k]

    The derivative of `crf_log_partition`'s shares and pairs along a direction of the emissions and of each sequence's transitions.

    It is the Hessian, which is symmetric, times that direction: ``shares`` for the emissions, ``pairs`` for the transitions.
    """

def cross_entropy_loss(logits: Var, label: Var, ignore_index: int = -100, mean: bool = False, count_ignored: bool = True, *, name: str | None = None) -> Var:
    """cross_entropy_loss(logits: float[*b k!], label: int64[*b], ignore_index=-100, mean=False, count_ignored=True) -> loss: float[], softmax: float[*b k], valid_count: float[]

    The sum of the losses of `softmax_with_cross_entropy`, or their ``mean``, and the number of rows that are not ignored.

    The mean counts ignored rows as 0. Without ``count_ignored``, it is over the other rows only, and NaN if there are none.
    """

def cross_entropy_loss_grad(softmax: Var, label: Var, dtotal: Var | float, valid_count: Var | float | None = None, ignore_index: int = -100, mean: bool = False, count_ignored: bool = True, *, name: str | None = None) -> Var:
    """cross_entropy_loss_grad(softmax: float[...b k!], label: int64[...b], dtotal: float[], valid_count?: float[], ignore_index=-100, mean=False, count_ignored=True) -> dlogits: float[...b k]

    ``(softmax - onehot(label)) * dtotal``, divided by the number of rows for a ``mean``; 0 for ignored rows.

    Without ``count_ignored``, it is divided by the number of rows that are not ignored. If ``valid_count`` shows that none is ignored, the
    labels are not searched for ignored ones.
    """

def ctc_loss(log_p: Var, splits: Var, label: Var, label_splits: Var, blank: int = 0, *, name: str | None = None) -> Var:
    """ctc_loss(log_p: float[t k!], splits: int64[n+1], label: int64[l], label_splits: int64[m], blank=0) -> loss: float[n], occupancy: float[t k]

    ``-log`` of the probability of each label sequence, over all alignments with repetitions and blanks (Graves et al., 2006).

    ``log_p`` are log probabilities of classes, for example from `log_softmax`. If no alignment fits the labels, the loss is infinite and
    has no gradient. ``occupancy`` is the probability of each class at each step, given the labels.
    """

def ctc_occupancy_change(log_p: Var, splits: Var, label: Var, label_splits: Var, direction: Var, blank: int = 0, *, name: str | None = None) -> Var:
    """ctc_occupancy_change(log_p: float[t k!], splits: int64[n+1], label: int64[l], label_splits: int64[m], direction: float[t k], blank=0) -> change: float[t k]

    The derivative of `ctc_loss`'s occupancy with respect to ``log_p``, a symmetric matrix, times a direction.
    """

def cummax(x: Var, axis: int, *, name: str | None = None) -> tuple[Var, Var]:
    """cummax(x: real[...s], axis) -> values: real[...s], indices: int64[...s]

    The cumulative maximum along ``axis`` and its index, the last one on ties.
    """

def cummin(x: Var, axis: int, *, name: str | None = None) -> tuple[Var, Var]:
    """cummin(x: real[...s], axis) -> values: real[...s], indices: int64[...s]

    The cumulative minimum along ``axis`` and its index, the last one on ties.
    """

def cumprod(x: Var, axis: int, exclusive: bool = False, reverse: bool = False, *, name: str | None = None) -> Var:
    """cumprod(x: number[...s], axis, exclusive=False, reverse=False) -> y: number[...s]

    The cumulative product along ``axis``; ``exclusive`` and ``reverse`` are as in `cumsum`.
    """

def cumsum(x: Var, axis: int, exclusive: bool = False, reverse: bool = False, *, name: str | None = None) -> Var:
    """cumsum(x: number[...s], axis, exclusive=False, reverse=False) -> y: number[...s]

    The cumulative sum along ``axis``. ``exclusive`` leaves out the element itself; ``reverse`` starts at the end.
    """

def dequantize(q: Var, scale: Var, axis: int = -1, *, name: str | None = None) -> Var:
    """dequantize(q: int8[...s], scale: float[c], axis=-1) -> x: float[...s]

    The floats that quantized integers represent: ``x = q * scale``, with a scale for each index along ``axis``.

    It has no gradient; it is for inference.
    """

def det(x: Var, *, name: str | None = None) -> Var:
    """det(x: inexact[*b m m]) -> y: inexact[*b]

    The determinant of each matrix. It has a gradient for singular matrices, too.
    """

def diagonal(x: Var, offset: int = 0, axes: int | Sequence[int] = (-2, -1), *, name: str | None = None) -> Var:
    """diagonal(x: T[...s], offset=0, axes=(-2, -1)) -> y: T[...t]

    The elements ``x[i, i + offset]`` of two axes, along a new last axis. The two sizes must be known, or equal.
    """

def digamma(x: Var, *, name: str | None = None) -> Var:
    """digamma(x: float[*b]) -> y: float[*b]

    The derivative of `lgamma` (DLMF 5.2.2).
    """

def divide(x: Var | builtins.complex, y: Var | builtins.complex, *, name: str | None = None) -> Var:
    """divide(x: inexact[*#s], y: inexact[*#s]) -> z: inexact[*#s]

    ``z = x / y``.
    """

def dot(x: Var, y: Var, mean: bool = False, *, name: str | None = None) -> Var:
    """dot(x: inexact[...s], y: inexact[...s], mean=False) -> z: inexact[]

    The sum of ``x * y`` over all elements, or the ``mean``. Nothing is conjugated: see `vecdot`.
    """

def dropout(x: Var, rate: float | Var = 0.5, *, name: str | None = None) -> Var:
    """dropout(x: float[...s], rate=0.5) -> y: float[...s], mask: float[...s]

    In training, zero each element with probability ``rate`` and divide the others by ``1 - rate``; otherwise ``y = x``.

    The dropped elements depend only on the program's seed, the op and the step (Srivastava et al., 2014). If ``x`` has the rows of a batch
    from ``first_row`` on, the same elements are dropped as in the whole batch.
    """

def edit_distance(hypothesis: Var, hypothesis_splits: Var, reference: Var, reference_splits: Var, *, name: str | None = None) -> Var:
    """edit_distance(hypothesis: int64[t], hypothesis_splits: int64[n+1], reference: int64[u], reference_splits: int64[n+1]) -> distance: int64[n]

    The edit distance of each pair: the least number of insertions, deletions and substitutions (Levenshtein, 1966).
    """

def eigh(x: Var, *, name: str | None = None) -> tuple[Var, Var]:
    """eigh(x: float[*b m m]) -> values: float[*b m], vectors: float[*b m m]

    The eigenvalues, ascending, and the eigenvectors, as columns, of the symmetric part ``(x + x') / 2`` of each matrix.

    Eigenvectors are orthonormal; in each the element of largest magnitude is positive. NaN and infinite values raise an error when the
    program runs.
    """

def elu(x: Var, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, *, name: str | None = None) -> Var:
    """elu(x: float[*b], alpha=1.0, scale=1.0, input_scale=1.0) -> y: float[*b]

    ``scale * x`` if ``x`` is above 0, else ``scale * alpha * (exp(input_scale * x) - 1)`` (Clevert, Unterthiner
    and Hochreiter, 2015).
    """

def embedding_linear(x: Var, rows: Var, w: Var, bias: Var | None = None, *, name: str | None = None) -> Var:
    """embedding_linear(x: float[v k], rows: int64[*b], w: float[k n], bias?: float[n]) -> out: float[*b n]

    Rows of ``x`` by index, times a shared matrix, plus a shared row: ``out[i] = x[rows[i]] @ w + bias``.

    An index out of range raises KernelError, as in `gather`.
    """

def entr(x: Var, *, name: str | None = None) -> Var:
    """entr(x: float[*b]) -> y: float[*b]

    ``-x log(x)``, a term of the entropy; 0 at 0, minus infinity below 0.
    """

def equal(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """equal(x: T[*#s], y: T[*#s]) -> z: bool[*#s]

    ``x == y``, elementwise.
    """

def erf(x: Var, *, name: str | None = None) -> Var:
    """erf(x: float[*b]) -> y: float[*b]

    The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.
    """

def erfc(x: Var, *, name: str | None = None) -> Var:
    """erfc(x: float[*b]) -> y: float[*b]

    ``1 - erf(x)``, accurate even if the result is near 0 (DLMF 7.2.2).
    """

def erfcx(x: Var, *, name: str | None = None) -> Var:
    """erfcx(x: float[*b]) -> y: float[*b]

    ``exp(x**2) erfc(x)``, which does not overflow for positive ``x`` (DLMF 7.2.3).
    """

def erfinv(x: Var, *, name: str | None = None) -> Var:
    """erfinv(x: float[*b]) -> y: float[*b]

    The inverse of `erf`; infinite at -1 and 1, NaN outside.
    """

def exp(x: Var, *, name: str | None = None) -> Var:
    """exp(x: inexact[*b]) -> y: inexact[*b]

    The exponential, ``e`` to the power ``x``.
    """

def exp2(x: Var, *, name: str | None = None) -> Var:
    """exp2(x: inexact[*b]) -> y: inexact[*b]

    2 to the power ``x``.
    """

def expand_by_channel(values: Var, like: Var, *, name: str | None = None) -> Var:
    """expand_by_channel(values: float[c], like: shape[n c ...s]) -> y: float[n c ...s]

    Broadcast the value of each channel to the shape of ``like``. ``like`` is not kept alive.
    """

def expm1(x: Var, *, name: str | None = None) -> Var:
    """expm1(x: inexact[*b]) -> y: inexact[*b]

    ``exp(x) - 1``, accurate near 0, too.
    """

def flatten(x: Var, start: int = 1, *, name: str | None = None) -> Var:
    """flatten(x: T[...s], start=1) -> y: T[...t]

    Flatten the dimensions from ``start`` on into one, such as an image into a row.
    """

def flip(x: Var, axes: int | Sequence[int], *, name: str | None = None) -> Var:
    """flip(x: T[...s], axes) -> y: T[...t]

    ``x`` reversed along each of ``axes``.
    """

def floor(x: Var, *, name: str | None = None) -> Var:
    """floor(x: float[*b]) -> y: float[*b]

    The largest whole number that is at most ``x``.
    """

def floor_divide(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """floor_divide(x: real[*#s], y: real[*#s]) -> z: real[*#s]

    ``x / y``, rounded down. Division of an integer by 0 raises KernelError. The gradient is zero wherever it is defined.
    """

def fmax(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """fmax(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    The larger of two numbers; if one is NaN, the other. If they are equal, ``x`` receives the whole gradient.
    """

def fmin(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """fmin(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    The smaller of two numbers; if one is NaN, the other. If they are equal, ``x`` receives the whole gradient.
    """

def fmod(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """fmod(x: real[*#s], y: real[*#s]) -> z: real[*#s]

    The remainder of ``x`` divided by ``y``, with the sign of ``x``. Division of an integer by 0 raises KernelError.
    """

def fold(x: Var, shape: int | Sequence[int], size: int | Sequence[int], dilation: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0), stride: int | Sequence[int] = (1, 1), *, name: str | None = None) -> Var:
    """fold(x: float[n k! l], shape, size, dilation=(1, 1), padding=(0, 0), stride=(1, 1)) -> y: float[n c h w]

    Images of ``shape`` as sums of patches, one per column: the transpose of `unfold` (col2im).
    """

def fourier(x: Var, axis: int = -1, inverse: bool = False, norm: str = "backward", *, name: str | None = None) -> Var:
    """fourier(x: complex[...s n], axis=-1, inverse=False, norm="backward") -> y: complex[...s n]

    The discrete Fourier transform ``y[k] = sum x[j] exp(-2 pi i j k / n)`` along ``axis``, or its inverse (Cooley and Tukey, 1965).

    The norm "backward" divides the inverse by n, "forward" the transform by n, "ortho" both by the square root of n.
    """

def full(shape: int | Sequence[int | str] | Var, value: float | Var, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """full(shape, value, dtype=float32) -> y: {dtype}

    A tensor of ``shape`` filled with ``value``.
    """

@overload
def full_batch_size_like(like: Var, axis: int = 0, *, shape: int | Sequence[int | str], value: float, dtype: DType | str | type = "float32", name: str | None = None) -> Var:
    """full_batch_size_like(like: shape[...s], axis=0, shape, value, dtype=float32) -> y: {dtype}

    A tensor with a row of ``shape`` for each index along ``axis`` of ``like``, filled with ``value``. ``like`` is not kept alive.
    """

@overload
def full_batch_size_like(like: Var, axis: int, shape: int | Sequence[int | str], value: float, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """full_batch_size_like(like: shape[...s], axis=0, shape, value, dtype=float32) -> y: {dtype}

    A tensor with a row of ``shape`` for each index along ``axis`` of ``like``, filled with ``value``. ``like`` is not kept alive.
    """

def full_like(like: Var, value: float, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """full_like(like: shape[...s], value, dtype=float32) -> y: {dtype}[...s]

    A tensor of the shape of ``like`` filled with ``value``. ``like`` is not kept alive.
    """

def gather(x: Var, rows: Var, axis: int | None = None, sparse: bool = False, *, name: str | None = None) -> Var:
    """gather(x: T[k ...d], rows: int64[*b], axis=None, sparse=False) -> y: T

    The rows of ``x`` at the indices ``rows``, such as an embedding lookup: ``y[i] = x[rows[i]]``. Indices may repeat.

    With ``axis``, it gathers along that axis: ``y[:, i] = x[:, rows[i]]``. An index out of range raises KernelError; negative indices are
    out of range. With ``sparse``, the optimizer receives the gradient of a parameter ``x`` as rows, provided that ``x`` is only looked up.
    """

@overload
def gather_shares(shares: Sequence[Var] | Var, wholes: Sequence[Var] | Var, workers: int = 1, *, name: str | None = None) -> list[Var]:
    """gather_shares(*shares: T[k_i], *wholes: shape, workers=1) -> *ys: T

    The whole tensors, on every worker, from the shares of all workers. All tensors of one op are sent together.
    """

@overload
def gather_shares(shares: Sequence[Var] | Var, *wholes: Var, workers: int = 1, name: str | None = None) -> list[Var]:
    """gather_shares(*shares: T[k_i], *wholes: shape, workers=1) -> *ys: T

    The whole tensors, on every worker, from the shares of all workers. All tensors of one op are sent together.
    """

def gcd(x: Var | int, y: Var | int, *, name: str | None = None) -> Var:
    """gcd(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

    The greatest common divisor, never negative.
    """

def gelu(x: Var, approximate: bool = False, *, name: str | None = None) -> Var:
    """gelu(x: float[*b], approximate=False) -> y: float[*b]

    Gaussian error linear unit: ``x`` times the normal distribution function of ``x`` (Hendrycks and Gimpel, 2016).

    With ``approximate``, its tanh approximation ``y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2``.
    """

def global_average_pool2d(x: Var, *, name: str | None = None) -> Var:
    """global_average_pool2d(x: float[*b h w]) -> y: float[*b]

    The mean of each channel of each image; NaN if an image is empty.
    """

def greater(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """greater(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

    ``x > y``, elementwise.
    """

def greater_equal(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """greater_equal(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

    ``x >= y``, elementwise.
    """

def grid_sample(x: Var, grid: Var, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False, *, name: str | None = None) -> Var:
    """grid_sample(x: float[n c! ...s], grid: float[n ...t], mode="bilinear", padding_mode="zeros", align_corners=False) -> y: float[n c ...u]

    The pixels of images or volumes at the positions ``grid``, ``(x, y)`` or ``(x, y, z)``: -1 and 1 are the ends of an axis.

    Positions outside give zero, the nearest pixel (``"border"``) or mirrored pixels (``"reflection"``). Jaderberg et al., 2015.
    """

def grid_sample_changes(x: Var, grid: Var, y_gradient: Var, direction: Var, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False, *, name: str | None = None) -> tuple[Var, Var, Var]:
    """grid_sample_changes(x: float[n c! ...s], grid: float[n ...t], y_gradient: float[n c ...u], direction: float[n ...t], mode="bilinear", padding_mode="zeros", align_corners=False) -> of_x: float[n c ...s], of_grid: float[n ...t], of_y_gradient: float[n c ...u]

    The derivatives of `grid_sample_dgrid`, times a direction, with respect to all of its inputs.

    It has no gradient. Along an axis with linear weights, the gradient does not depend on the position.
    """

@overload
def group_norm(x: Var, scale: Var | None = None, bias: Var | None = None, *, groups: int, epsilon: float = 1e-05, name: str | None = None) -> Var:
    """group_norm(x: float[n c ...s], scale?: float[c], bias?: float[c], groups, epsilon=1e-05) -> y: float[n c ...s], mean: float[n {groups} 1], rstd: float[n {groups} 1]

    ``y = (x - mean) * rstd * scale + bias`` with ``rstd = 1 / sqrt(variance + epsilon)``, per image and group of channels.

    ``scale`` and ``bias`` have a number for each channel. With one channel per group it is instance normalization (Wu and He, 2018).
    """

@overload
def group_norm(x: Var, scale: Var | None, bias: Var | None, groups: int, epsilon: float = 1e-05, *, name: str | None = None) -> Var:
    """group_norm(x: float[n c ...s], scale?: float[c], bias?: float[c], groups, epsilon=1e-05) -> y: float[n c ...s], mean: float[n {groups} 1], rstd: float[n {groups} 1]

    ``y = (x - mean) * rstd * scale + bias`` with ``rstd = 1 / sqrt(variance + epsilon)``, per image and group of channels.

    ``scale`` and ``bias`` have a number for each channel. With one channel per group it is instance normalization (Wu and He, 2018).
    """

def hardsigmoid(x: Var, *, name: str | None = None) -> Var:
    """hardsigmoid(x: float[*b]) -> y: float[*b]

    ``x / 6 + 1 / 2``, clipped to 0 and 1 (Howard et al., 2019).
    """

def hardswish(x: Var, *, name: str | None = None) -> Var:
    """hardswish(x: float[*b]) -> y: float[*b]

    ``x * hardsigmoid(x)`` (Howard et al., 2019).
    """

def hardtanh(x: Var, lower: float = -1.0, upper: float = 1.0, *, name: str | None = None) -> Var:
    """hardtanh(x: float[*b], lower=-1.0, upper=1.0) -> y: float[*b]

    ``x`` clipped to ``lower`` and ``upper``. Unlike in `clip`, the gradient at the bounds themselves is 0.
    """

def heaviside(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """heaviside(x: real[*#s], y: real[*#s]) -> z: real[*#s]

    The step function: 0 below 0, ``y`` at 0, 1 above. It has no gradient.
    """

def hypot(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """hypot(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    ``sqrt(x**2 + y**2)``, which overflows only if the result does.
    """

def i0(x: Var, *, name: str | None = None) -> Var:
    """i0(x: float[*b]) -> y: float[*b]

    The modified Bessel function of the first kind of order 0 (DLMF 10.25).
    """

def i0e(x: Var, *, name: str | None = None) -> Var:
    """i0e(x: float[*b]) -> y: float[*b]

    Exponentially scaled `i0`: ``exp(-|x|) i0(x)``, which does not overflow.
    """

def i1(x: Var, *, name: str | None = None) -> Var:
    """i1(x: float[*b]) -> y: float[*b]

    The modified Bessel function of the first kind of order 1 (DLMF 10.25).
    """

def i1e(x: Var, *, name: str | None = None) -> Var:
    """i1e(x: float[*b]) -> y: float[*b]

    Exponentially scaled `i1`: ``exp(-|x|) i1(x)``, which does not overflow.
    """

def imag(z: Var, *, name: str | None = None) -> Var:
    """imag(z: complex[*b]) -> x: complex.real[*b]

    The imaginary part of a complex tensor, a real number.
    """

@overload
def index(x: Var, indices: Sequence[Var] | Var, axes: int | Sequence[int], *, name: str | None = None) -> Var:
    """index(x: T[...s], *indices: int64, axes) -> y: T[...t]

    Index ``axes`` (ascending) by integer tensors, which are broadcast: ``y[i] = x[indices[0][i], indices[1][i]]``.

    As in PyTorch, the index axes replace ``axes`` if these are adjacent, and come first otherwise.
    """

@overload
def index(x: Var, *indices: Var, axes: int | Sequence[int], name: str | None = None) -> Var:
    """index(x: T[...s], *indices: int64, axes) -> y: T[...t]

    Index ``axes`` (ascending) by integer tensors, which are broadcast: ``y[i] = x[indices[0][i], indices[1][i]]``.

    As in PyTorch, the index axes replace ``axes`` if these are adjacent, and come first otherwise.
    """

@overload
def index_put(x: Var, values: Var, indices: Sequence[Var] | Var, axes: int | Sequence[int], accumulate: bool = False, *, name: str | None = None) -> Var:
    """index_put(x: T[...s], values: T[...v], *indices: int64, axes, accumulate=False) -> y: T[...s]

    ``x`` with ``values``, broadcast, written to the positions that `index` reads, or added to them if ``accumulate``.

    If a position is given twice without ``accumulate``, one of its values is kept, unspecified which. Each of them receives the gradient of
    the position.
    """

@overload
def index_put(x: Var, values: Var, *indices: Var, axes: int | Sequence[int], accumulate: bool = False, name: str | None = None) -> Var:
    """index_put(x: T[...s], values: T[...v], *indices: int64, axes, accumulate=False) -> y: T[...s]

    ``x`` with ``values``, broadcast, written to the positions that `index` reads, or added to them if ``accumulate``.

    If a position is given twice without ``accumulate``, one of its values is kept, unspecified which. Each of them receives the gradient of
    the position.
    """

def inverse(x: Var, *, name: str | None = None) -> Var:
    """inverse(x: inexact[*b m m]) -> y: inexact[*b m m]

    The inverse of each matrix. A singular matrix raises KernelError.
    """

def isfinite(x: Var, *, name: str | None = None) -> Var:
    """isfinite(x: inexact[*b]) -> y: bool[*b]

    Whether ``x`` is neither infinite nor NaN, elementwise.
    """

def isinf(x: Var, *, name: str | None = None) -> Var:
    """isinf(x: inexact[*b]) -> y: bool[*b]

    Whether ``x`` is infinite, of either sign, elementwise.
    """

def isnan(x: Var, *, name: str | None = None) -> Var:
    """isnan(x: inexact[*b]) -> y: bool[*b]

    Whether ``x`` is NaN, elementwise.
    """

def k0(x: Var, *, name: str | None = None) -> Var:
    """k0(x: float[*b]) -> y: float[*b]

    The modified Bessel function of the second kind of order 0; NaN below 0.
    """

def k0e(x: Var, *, name: str | None = None) -> Var:
    """k0e(x: float[*b]) -> y: float[*b]

    Exponentially scaled `k0`: ``exp(x) k0(x)``, which does not underflow.
    """

def k1(x: Var, *, name: str | None = None) -> Var:
    """k1(x: float[*b]) -> y: float[*b]

    The modified Bessel function of the second kind of order 1; NaN below 0.
    """

def k1e(x: Var, *, name: str | None = None) -> Var:
    """k1e(x: float[*b]) -> y: float[*b]

    Exponentially scaled `k1`: ``exp(x) k1(x)``, which does not underflow.
    """

def kthvalue(x: Var, k: int, axis: int = -1, keepdim: bool = False, *, name: str | None = None) -> tuple[Var, Var]:
    """kthvalue(x: real[...s], k, axis=-1, keepdim=False) -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]

    The ``k``-th smallest element along ``axis``, counted from 1, and its index.
    """

def layer_norm(x: Var, scale: Var | None = None, bias: Var | None = None, epsilon: float = 1e-05, *, name: str | None = None) -> Var:
    """layer_norm(x: float[*b k], scale?: float[k], bias?: float[k], epsilon=1e-05) -> y: float[*b k], mean: float[*b 1], rstd: float[*b 1]

    ``y = (x - mean) * rstd * scale + bias`` with ``rstd = 1 / sqrt(variance + epsilon)``, along the last axis.

    Ba, Kiros and Hinton, 2016.
    """

def layer_norm_grad(x: Var, mean: Var, rstd: Var, dy: Var, scale: Var | None = None, *, name: str | None = None) -> Var:
    """layer_norm_grad(x: float[*b k], mean: float[*b 1], rstd: float[*b 1], dy: float[*b k], scale?: float[k]) -> dx: float[*b k]

    The gradient of `layer_norm` with respect to ``x``, whose statistics are ``mean`` and ``rstd``.

    With ``g = dy * scale`` and ``xhat = (x - mean) * rstd``: ``rstd * (g - mean(g) - xhat * mean(g * xhat))``.
    """

def layer_norm_scale_grad(x: Var, mean: Var, rstd: Var, dy: Var, *, name: str | None = None) -> Var:
    """layer_norm_scale_grad(x: float[*b k], mean: float[*b 1], rstd: float[*b 1], dy: float[*b k]) -> dscale: sum float[k]

    The gradient of `layer_norm` with respect to the scale: the sum of ``dy * (x - mean) * rstd`` over the rows.
    """

def lcm(x: Var | int, y: Var | int, *, name: str | None = None) -> Var:
    """lcm(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

    The least common multiple, never negative.
    """

def leaky_relu(x: Var, slope: float = 0.01, *, name: str | None = None) -> Var:
    """leaky_relu(x: float[*b], slope=0.01) -> y: float[*b]

    ``x`` if it is above 0, else ``slope * x`` (Maas, Hannun and Ng, 2013).
    """

def lerp(start: Var | float, end: Var | float, weight: Var | float, *, name: str | None = None) -> Var:
    """lerp(start: float[*~b], end: float[*~b], weight: float[*~b]) -> y: float[*b]

    Linear interpolation from ``start`` to ``end``: ``y = (1 - weight) * start + weight * end``.
    """

def less(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """less(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

    ``x < y``, elementwise.
    """

def less_equal(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """less_equal(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

    ``x <= y``, elementwise.
    """

def lgamma(x: Var, *, name: str | None = None) -> Var:
    """lgamma(x: float[*b]) -> y: float[*b]

    The logarithm of ``|gamma(x)|``, with ``gamma(n) = (n - 1)!`` (DLMF 5.2).
    """

def linear(x: Var, w: Var, bias: Var | None = None, *, name: str | None = None) -> Var:
    """linear(x: inexact[*b k], w: inexact[k n], bias?: inexact[n]) -> out: inexact[*b n]

    A linear layer, ``out = x @ w + bias``: rows times a shared matrix, plus a shared row.
    """

def linear_int8(q: Var, scale: Var, w: Var, w_scale: Var, bias: Var | None = None, *, name: str | None = None) -> Var:
    """linear_int8(q: int8[*b k], scale: float[*b], w: int8[k n], w_scale: float[n], bias?: float[n]) -> out: float[*b n]

    A quantized linear layer, ``out = (q @ w) * scale * w_scale + bias``, whose product is exact in int32.

    ``scale`` is per row, ``w_scale`` per column (Jacob et al., 2018; Dettmers et al., 2022). The product is exact for up to 133,000 columns
    of ``q``. It has no gradient; it is for inference.
    """

def log(x: Var, *, name: str | None = None) -> Var:
    """log(x: inexact[*b]) -> y: inexact[*b]

    The natural logarithm; NaN below 0.
    """

def log10(x: Var, *, name: str | None = None) -> Var:
    """log10(x: inexact[*b]) -> y: inexact[*b]

    The logarithm to base 10; NaN below 0.
    """

def log1p(x: Var, *, name: str | None = None) -> Var:
    """log1p(x: inexact[*b]) -> y: inexact[*b]

    ``log(1 + x)``, accurate near 0, too; NaN below -1.
    """

def log2(x: Var, *, name: str | None = None) -> Var:
    """log2(x: inexact[*b]) -> y: inexact[*b]

    The logarithm to base 2; NaN below 0.
    """

def log_loss(p: Var, target: Var, *, name: str | None = None) -> Var:
    """log_loss(p: float[*b], target: float[*b]) -> loss: float[*b]

    Binary cross entropy of probabilities: ``-(target log(p) + (1 - target) log(1 - p))``, with logarithms of at least -100.
    """

def log_ndtr(x: Var, *, name: str | None = None) -> Var:
    """log_ndtr(x: float[*b]) -> y: float[*b]

    The logarithm of the standard normal distribution function, accurate far below 0, too.
    """

def log_sigmoid(x: Var, *, name: str | None = None) -> Var:
    """log_sigmoid(x: float[*b]) -> y: float[*b]

    ``log(sigmoid(x))``, computed stably.
    """

def log_softmax(x: Var, axis: int | None = None, *, name: str | None = None) -> Var:
    """log_softmax(x: float[...s], axis=None) -> y: float[...s]

    ``log(softmax(x))`` along ``axis`` (default: the last), finite even if the softmax rounds to 0.
    """

def logaddexp(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """logaddexp(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    ``log(exp(x) + exp(y))``, computed stably.
    """

def logaddexp2(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """logaddexp2(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    ``log2(2**x + 2**y)``, computed stably.
    """

def logcumsumexp(x: Var, axis: int, *, name: str | None = None) -> Var:
    """logcumsumexp(x: float[...s], axis) -> y: float[...s]

    ``log(cumsum(exp(x)))`` along ``axis``, computed stably.
    """

def logical_and(x: Var | bool, y: Var | bool, *, name: str | None = None) -> Var:
    """logical_and(x: bool[*#s], y: bool[*#s]) -> z: bool[*#s]

    Elementwise AND: true if both are true.
    """

def logical_not(x: Var, *, name: str | None = None) -> Var:
    """logical_not(x: bool[*b]) -> y: bool[*b]

    Elementwise NOT.
    """

def logical_or(x: Var | bool, y: Var | bool, *, name: str | None = None) -> Var:
    """logical_or(x: bool[*#s], y: bool[*#s]) -> z: bool[*#s]

    Elementwise OR: true if at least one is true.
    """

def logical_xor(x: Var | bool, y: Var | bool, *, name: str | None = None) -> Var:
    """logical_xor(x: bool[*#s], y: bool[*#s]) -> z: bool[*#s]

    Elementwise XOR: true if exactly one is true.
    """

def logit(x: Var, epsilon: float | None = None, *, name: str | None = None) -> Var:
    """logit(x: float[*b], epsilon=None) -> y: float[*b]

    ``log(x / (1 - x))``, the inverse of `sigmoid`; NaN outside of 0 to 1. ``epsilon`` clips ``x`` to ``epsilon`` and ``1 - epsilon``.
    """

def logsumexp(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """logsumexp(x: float[...s], axis=None, keepdim=False) -> y: float[...s-{axis}]

    ``log(sum(exp(x)))`` over axes as in `reduce_sum`, computed stably.
    """

def lu(x: Var, *, name: str | None = None) -> tuple[Var, Var, Var]:
    """lu(x: inexact[*b m m]) -> p: inexact[*b m m], l: inexact[*b m m], u: inexact[*b m m]

    The LU decomposition of each square matrix, ``x = p l u``: a permutation, a unit lower and an upper triangular matrix.

    The gradient raises an error for a singular matrix, when the program runs.
    """

def match_last_axis(x: Var, like: Var, *, name: str | None = None) -> Var:
    """match_last_axis(x: T[k], like: shape[...s k]) -> y: T[k]

    ``x``, with one element for each index of the last axis of ``like``. Unknown sizes are compared when the program runs.
    """

def match_shape(x: Var, like: Var, *, name: str | None = None) -> Var:
    """match_shape(x: T[*b], like: shape[*b]) -> y: T[*b]

    ``x``, which must have the shape of ``like``. Unknown sizes are compared when the program runs.
    """

def matmul(x: Var, y: Var, *, name: str | None = None) -> Var:
    """matmul(x: inexact[*~b m k], y: inexact[*~b k n]) -> z: inexact[*b m n]

    The matrix product for each leading index: ``z[b] = x[b] @ y[b]``.
    """

def matrix_exp(x: Var, *, name: str | None = None) -> Var:
    """matrix_exp(x: inexact[*b m m]) -> y: inexact[*b m m]

    The matrix exponential of each matrix, ``1 + x + x x / 2 + x x x / 6 + ...``.
    """

def matrix_transpose(x: Var, *, name: str | None = None) -> Var:
    """matrix_transpose(x: T[*b m n]) -> y: T[*b n m]

    The transpose of each matrix: swaps the last two dimensions. It is a view of ``x``; ``transpose`` copies.
    """

def max_pool1d(x: Var, size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int] = (0,), dilation: int | Sequence[int] = (1,), ceil_mode: bool = False, *, name: str | None = None) -> Var:
    """max_pool1d(x: float[n c! w], size, stride, padding=(0,), dilation=(1,), ceil_mode=False) -> y: float[n c ow], index: int64[n c ow]

    1D max pooling; see `max_pool2d`.
    """

def max_pool2d(x: Var, size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int] = (0, 0), dilation: int | Sequence[int] = (1, 1), ceil_mode: bool = False, *, name: str | None = None) -> Var:
    """max_pool2d(x: float[n c! h w], size, stride, padding=(0, 0), dilation=(1, 1), ceil_mode=False) -> y: float[n c oh ow], index: int64[n c oh ow]

    Max pooling: the largest value in each window of each channel; ``index`` is its flat position, for the gradient.

    With ``ceil_mode``, a last window that extends beyond the end counts too.
    """

def max_pool3d(x: Var, size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int] = (0, 0, 0), dilation: int | Sequence[int] = (1, 1, 1), ceil_mode: bool = False, *, name: str | None = None) -> Var:
    """max_pool3d(x: float[n c! d h w], size, stride, padding=(0, 0, 0), dilation=(1, 1, 1), ceil_mode=False) -> y: float[n c od oh ow], index: int64[n c od oh ow]

    3D max pooling; see `max_pool2d`. ``index`` is a flat position in the volume.
    """

def maximum(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """maximum(x: real[*#s], y: real[*#s]) -> z: real[*#s]

    The larger of two values; NaN if either is NaN. Equal values share the gradient evenly.
    """

def mean(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """mean(x: inexact[...s], axis=None, keepdim=False) -> y: inexact[...s-{axis}]

    The mean over one axis, several, or all if ``axis`` is None; NaN if there are no elements.
    """

def median(x: Var, axis: int | None = None, keepdim: bool = False, *, name: str | None = None) -> tuple[Var, Var]:
    """median(x: real[...s], axis=None, keepdim=False) -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]

    The median along ``axis``, or of all if it is None, and its index: the lower of two middle elements. NaN if any element is NaN.
    """

def merge(condition: Var, yes: Var, no: Var, *, name: str | None = None) -> Var:
    """merge(condition: bool[k], yes: T[p ...d], no: T[q ...d]) -> y: T[k ...d]

    Merge two tensors of rows by a condition: each true element takes the next row of ``yes``, each false one the next row of ``no``.

    ``merge(c, gather(x, nonzero(c)), gather(x, nonzero(c, value=False)))`` is ``x``. Raises KernelError if the numbers of rows do not match
    the condition.
    """

def minimum(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """minimum(x: real[*#s], y: real[*#s]) -> z: real[*#s]

    The smaller of two values; NaN if either is NaN. Equal values share the gradient evenly.
    """

def mish(x: Var, *, name: str | None = None) -> Var:
    """mish(x: float[*b]) -> y: float[*b]

    ``y = x * tanh(softplus(x))`` (Misra, 2019).
    """

def mode(x: Var, axis: int = -1, keepdim: bool = False, *, name: str | None = None) -> tuple[Var, Var]:
    """mode(x: real[...s], axis=-1, keepdim=False) -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]

    The most frequent element along ``axis``, the smallest on ties, and its last index.
    """

def momentum(param: Var, grad: Var, velocity: Var, learning_rate: Var | float, mu: float = 0.9, nesterov: bool = False, *, name: str | None = None) -> tuple[Var, Var]:
    """momentum(param: float[*b], grad: float[*b], velocity: float[*b], learning_rate: float64[], mu=0.9, nesterov=False) -> next: float[*b], next_velocity: float[*b]

    Gradient descent with momentum: ``v' = mu v + grad``; ``next = param - rate v'``, or with ``nesterov``
    ``param - rate (grad + mu v')``.
    """

def move(x: Var, place: int, *, name: str | None = None) -> Var:
    """move(x: T[*b], place) -> y: T[*b]

    ``x`` on the device with the index ``place``, of the devices of the run; ``x`` itself if it is there already.

    Ops that depend on it alone run there too. An executor inserts moves if an op reads a value on another device than the op's parameters.
    A run with one device computes everything on it and moves nothing.
    """

def multi_tensor_adam(params: Sequence[Var] | Var, grads: Sequence[Var] | Var, moments1: Sequence[Var] | Var, moments2: Sequence[Var] | Var, step: Var | float, learning_rate: Var | float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, weight_decay: float = 0.0, *, name: str | None = None) -> tuple[list[Var], list[Var], list[Var]]:
    """multi_tensor_adam(*params: float, *grads: float, *moments1: float, *moments2: float, step: int64[], learning_rate: float64[], beta1=0.9, beta2=0.999, epsilon=1e-08, weight_decay=0.0) -> *next: float, *next_moments1: float, *next_moments2: float

    `adam` for each of ``params``.
    """

def multi_tensor_momentum(params: Sequence[Var] | Var, grads: Sequence[Var] | Var, velocities: Sequence[Var] | Var, learning_rate: Var | float, mu: float = 0.9, nesterov: bool = False, *, name: str | None = None) -> tuple[list[Var], list[Var]]:
    """multi_tensor_momentum(*params: float, *grads: float, *velocities: float, learning_rate: float64[], mu=0.9, nesterov=False) -> *next: float, *next_velocities: float

    `momentum` for each of ``params``.
    """

def multi_tensor_sgd(params: Sequence[Var] | Var, grads: Sequence[Var] | Var, learning_rate: Var | float, *, name: str | None = None) -> list[Var]:
    """multi_tensor_sgd(*params: float, *grads: float, learning_rate: float64[]) -> *next: float

    `sgd` for each of ``params``.
    """

def multiply(x: Var | builtins.complex, y: Var | builtins.complex, *, name: str | None = None) -> Var:
    """multiply(x: number[*#s], y: number[*#s]) -> z: number[*#s]

    ``z = x * y``, elementwise.
    """

def nanmedian(x: Var, axis: int | None = None, keepdim: bool = False, *, name: str | None = None) -> tuple[Var, Var]:
    """nanmedian(x: real[...s], axis=None, keepdim=False) -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]

    The `median` of the elements that are not NaN; NaN if all are.
    """

@overload
def narrow(x: Var, like: Sequence[Var] | Var = (), axis: int = 0, start: int | Sequence[int | str] = (0,), *, length: int | Sequence[int | str], name: str | None = None) -> Var:
    """narrow(x: T[...s], *like: shape, axis=0, start=(0,), length) -> y: T[...t]

    ``length`` elements along ``axis`` from ``start`` on: a `slice` whose bounds may be symbols of ``x`` or ``like``.
    """

@overload
def narrow(x: Var, like: Sequence[Var] | Var, axis: int, start: int | Sequence[int | str], length: int | Sequence[int | str], *, name: str | None = None) -> Var:
    """narrow(x: T[...s], *like: shape, axis=0, start=(0,), length) -> y: T[...t]

    ``length`` elements along ``axis`` from ``start`` on: a `slice` whose bounds may be symbols of ``x`` or ``like``.
    """

@overload
def narrow(x: Var, axis: int = 0, start: int | Sequence[int | str] = (0,), *, length: int | Sequence[int | str], name: str | None = None) -> Var:
    """narrow(x: T[...s], *like: shape, axis=0, start=(0,), length) -> y: T[...t]

    ``length`` elements along ``axis`` from ``start`` on: a `slice` whose bounds may be symbols of ``x`` or ``like``.
    """

@overload
def narrow(x: Var, axis: int, start: int | Sequence[int | str], length: int | Sequence[int | str], *, name: str | None = None) -> Var:
    """narrow(x: T[...s], *like: shape, axis=0, start=(0,), length) -> y: T[...t]

    ``length`` elements along ``axis`` from ``start`` on: a `slice` whose bounds may be symbols of ``x`` or ``like``.
    """

def ndtri(x: Var, *, name: str | None = None) -> Var:
    """ndtri(x: float[*b]) -> y: float[*b]

    The quantile of the standard normal distribution at probability ``x``; NaN outside of 0 to 1.
    """

def neg(x: Var, *, name: str | None = None) -> Var:
    """neg(x: number[*b]) -> y: number[*b]

    ``y = -x``.
    """

def negative_log_likelihood(log_p: Var, label: Var, ignore_index: int = -100, *, name: str | None = None) -> Var:
    """negative_log_likelihood(log_p: float[*b k!], label: int64[*b], ignore_index=-100) -> loss: float[*b]

    ``-log_p[label]``, for log probabilities and class ids; 0 for ignored rows.
    """

def nextafter(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """nextafter(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    The next representable number from ``x`` towards ``y``. Its derivative with respect to ``x`` is 1.
    """

def nonzero(condition: Var, value: bool = True, *, name: str | None = None) -> Var:
    """nonzero(condition: bool[...s], value=True) -> y: int64[...t]

    The indices of the rows where ``condition`` is ``value``, ascending; there may be none.

    If the condition does not have exactly one axis, a row of indices per position, one index per axis.
    """

def not_equal(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """not_equal(x: T[*#s], y: T[*#s]) -> z: bool[*#s]

    ``x != y``, elementwise. NaN differs from itself.
    """

def numel(like: Var, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """numel(like: shape[...s], dtype=float32) -> y: {dtype}[]

    The number of elements of ``like``. ``like`` is not kept alive.
    """

def one_hot(ids: Var, depth: int, *, name: str | None = None) -> Var:
    """one_hot(ids: int64[*b], depth) -> y: float32[*b {depth}]

    A row of ``depth`` numbers for each id: 1 at the id, else 0. An id outside of 0 to ``depth - 1`` raises KernelError.
    """

def optimization_barrier(x: Var, *, name: str | None = None) -> Var:
    """optimization_barrier(x: T[...s]) -> y: T[...s]

    Identity that passes do not look through: an expression of the result is never merged with the same expression of ``x``.

    Recomputation inserts it before recomputed values. It costs no memory and no time.
    """

def pad(x: Var, before: int | Sequence[int], after: int | Sequence[int], mode: str = "constant", value: float = 0.0, *, name: str | None = None) -> Var:
    """pad(x: T[...s], before, after, mode="constant", value=0.0) -> y: T[...t]

    Pad the last axes with ``before`` and ``after`` elements, one number per axis; negative numbers crop.

    The new elements are ``value``, or elements of the axis: mirrored at its ends (``"reflect"``), the nearest (``"replicate"``), or
    repeated periodically (``"circular"``).
    """

def pad_shard(part: Var, whole: Var, counts: Var | None = None, axis: int = 0, *, name: str | None = None) -> Var:
    """pad_shard(part: T[...s], whole: shape[...t], counts?: int64[w], axis=0) -> y: T[...t]

    The part of this worker, with zeros in place of the other parts: summed over the workers, it is the whole tensor.
    """

def pinv(x: Var, relative: float | None = None, *, name: str | None = None) -> Var:
    """pinv(x: inexact[*b m n], relative=None) -> y: inexact[*b n m]

    The Moore-Penrose pseudo-inverse of each matrix, of singular values above ``relative`` times the largest (Moore, 1920; Penrose,
    1955).

    ``relative`` defaults to max(m, n) times the machine epsilon of the dtype. NaN and infinite values raise an error when the program runs.
    """

def polar(size: Var | float, angle: Var | float, *, name: str | None = None) -> Var:
    """polar(size: float[*#s], angle: float[*#s]) -> z: float.complex[*#s]

    The complex number ``size * exp(1j * angle)``. A negative ``size`` gives the opposite direction.
    """

def polygamma(x: Var, order: int, *, name: str | None = None) -> Var:
    """polygamma(x: float[*b], order) -> y: float[*b]

    The derivative of `digamma` of the given order; `digamma` itself for order 0 (DLMF 5.15).
    """

def power(x: Var | builtins.complex, y: Var | builtins.complex, *, name: str | None = None) -> Var:
    """power(x: number[*#s], y: number[*#s]) -> z: number[*#s]

    ``x`` to the power ``y``. For integers and a negative power, the result is truncated, and 0 for a base of 0.
    """

def power_iteration(x: Var, u: Var, iterations: int = 1, epsilon: float = 1e-12, *, name: str | None = None) -> tuple[Var, Var]:
    """power_iteration(x: float[m n], u: float[m], iterations=1, epsilon=1e-12) -> next_u: float[m], v: float[n]

    Approximate left and right singular vectors of the largest singular value, by power iteration (Miyato et al., 2018).

    In training, ``v = x' u`` and ``u = x v``, each normalized, are repeated ``iterations`` times; otherwise ``u`` is unchanged and ``v`` is
    computed from it. The approximation improves with every call. Lengths are at least ``epsilon``. Neither vector has a gradient.
    """

def put_rows(param: Var, rows: Var, values: Var, *, name: str | None = None) -> Var:
    """put_rows(param: T[k ...d], rows: int64[n], values: T[n ...d]) -> next: T[k ...d]

    ``param`` with ``values`` written to the distinct rows ``rows``: ``next[rows[i]] = values[i]``. Other rows are unchanged.
    """

def put_share(share: Var, whole: Var, workers: int = 1, *, name: str | None = None) -> Var:
    """put_share(share: T[k], whole: shape[...s], workers=1) -> y: T[...s]

    The share of this worker, with zeros in place of the others: summed over the workers, it is the whole tensor.
    """

def qr(x: Var, *, name: str | None = None) -> tuple[Var, Var]:
    """qr(x: float[*b m n]) -> q: float[*b m k], r: float[*b k n]

    The reduced QR decomposition of each matrix, ``x = q r``: k = min(m, n) orthonormal columns ``q``, and ``r`` upper triangular.

    The gradient requires the first k columns of ``x`` to be linearly independent.
    """

def quantize_rows(x: Var, *, name: str | None = None) -> tuple[Var, Var]:
    """quantize_rows(x: float[*b k!]) -> q: int8[*b k], scale: float[*b]

    Quantize each row to int8, with a scale of its own: ``scale = max(abs(x)) / 127``, ``q = round(x / scale)``.

    A scale is at least the smallest normal number, in float16 the smallest positive number. It has no gradient; it is for inference.
    """

def random_normal(shape: int | Sequence[int | str] | Var, mean: float = 0.0, deviation: float = 1.0, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """random_normal(shape, mean=0.0, deviation=1.0, dtype=float32) -> y: {dtype}

    Normal random numbers of ``shape``, of a mean and a standard deviation (Box and Muller, 1958).
    """

def random_normal_like(like: Var, mean: float = 0.0, deviation: float = 1.0, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """random_normal_like(like: shape[...s], mean=0.0, deviation=1.0, dtype=float32) -> y: {dtype}[...s]

    `random_normal` of the shape of ``like``, which is not kept alive.

    Its rows may be part of a batch of ``all_rows``, from ``first_row`` on.
    """

def random_uniform(shape: int | Sequence[int | str] | Var, low: float = 0.0, high: float = 1.0, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """random_uniform(shape, low=0.0, high=1.0, dtype=float32) -> y: {dtype}

    Uniform random numbers of ``shape``, from ``low`` to below ``high``; rounding may return ``high`` itself.
    """

def random_uniform_like(like: Var, low: float = 0.0, high: float = 1.0, dtype: DType | str | type = "float32", *, name: str | None = None) -> Var:
    """random_uniform_like(like: shape[...s], low=0.0, high=1.0, dtype=float32) -> y: {dtype}[...s]

    `random_uniform` of the shape of ``like``, which is not kept alive. ``first_row`` is as in `dropout`.
    """

def real(z: Var, *, name: str | None = None) -> Var:
    """real(z: complex[*b]) -> x: complex.real[*b]

    The real part of a complex tensor.
    """

def real_fourier(x: Var, axis: int = -1, norm: str = "backward", *, name: str | None = None) -> Var:
    """real_fourier(x: float[...s n], axis=-1, norm="backward") -> y: float.complex[...t]

    The Fourier transform of real numbers along ``axis``: the first n // 2 + 1 elements of `fourier`. The others are their conjugates.
    """

def real_fourier_inverse(x: Var, length: int, axis: int = -1, norm: str = "backward", *, name: str | None = None) -> Var:
    """real_fourier_inverse(x: complex[...s n], length, axis=-1, norm="backward") -> y: complex.real[...t]

    The inverse of `real_fourier`, ``length`` real numbers.

    The imaginary parts of the first element and, for an even length, of the last one are ignored.
    """

def reciprocal(x: Var, *, name: str | None = None) -> Var:
    """reciprocal(x: inexact[*b]) -> y: inexact[*b]

    The reciprocal, ``1 / x``.
    """

def reduce_max(x: Var, axis: int | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """reduce_max(x: real[...s], axis=None, keepdim=False) -> y: real[...s-{axis!}], index: int64[...s-{axis!}]

    The largest element along ``axis``, or of all if it is None. On ties the gradient goes to the first.

    ``index`` is its index, for the gradient. ``keepdim`` keeps the axis with size 1.
    """

def reduce_min(x: Var, axis: int | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """reduce_min(x: real[...s], axis=None, keepdim=False) -> y: real[...s-{axis!}], index: int64[...s-{axis!}]

    The smallest element along ``axis``, or of all if it is None. On ties the gradient goes to the first. See `reduce_max`.
    """

def reduce_prod(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """reduce_prod(x: number[...s], axis=None, keepdim=False) -> y: number[...s-{axis}]

    The product over one axis, several, or all if ``axis`` is None; 1 if there are no elements. ``keepdim`` keeps axes with size 1.
    """

def reduce_scatter(x: Var, counts: Var | None = None, like: Var | None = None, axis: int = 0, workers: int = 0, *, name: str | None = None) -> Var:
    """reduce_scatter(x: number[...s], counts?: int64[w], like?: shape[...m], axis=0, workers=0) -> y: number[...t]

    Sum a tensor over all workers and split the sum along ``axis``: each worker gets its part.

    ``counts`` holds the size of each worker's part, in worker order; without it the parts are equal, and the size must be a multiple of the
    number of workers. The first size of ``like`` is the expected size of this worker's part. With ``workers``, the number of workers, the
    parts are equal and their size is known.
    """

def reduce_sum(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, *, name: str | None = None) -> Var:
    """reduce_sum(x: number[...s], axis=None, keepdim=False) -> y: number[...s-{axis}]

    The sum over one axis, several, or all if ``axis`` is None. ``keepdim`` keeps axes with size 1. Integers wrap around.
    """

@overload
def reduce_to_shares(xs: Sequence[Var] | Var, workers: int = 1, *, name: str | None = None) -> list[Var]:
    """reduce_to_shares(*xs: number, workers=1) -> *ys: number

    The share of this worker in the sum of each tensor over all workers. All tensors of one op are sent together.
    """

@overload
def reduce_to_shares(*xs: Var, workers: int = 1, name: str | None = None) -> list[Var]:
    """reduce_to_shares(*xs: number, workers=1) -> *ys: number

    The share of this worker in the sum of each tensor over all workers. All tensors of one op are sent together.
    """

def relu(x: Var, *, name: str | None = None) -> Var:
    """relu(x: float[*b]) -> y: float[*b]

    Clamp negatives to zero: ``y = max(x, 0)``.
    """

def remainder(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """remainder(x: real[*#s], y: real[*#s]) -> z: real[*#s]

    ``x - floor_divide(x, y) * y``, which has the sign of ``y``. Division of an integer by 0 raises KernelError.
    """

def repeat_interleave(x: Var, repeats: int, axis: int, *, name: str | None = None) -> Var:
    """repeat_interleave(x: T[...s], repeats, axis) -> y: T[...t]

    Each element repeated ``repeats`` times in a row along ``axis``.
    """

def reshape(x: Var, shape: int | Sequence[int | str] | Var, *, name: str | None = None) -> Var:
    """reshape(x: T[...s], shape) -> y: T[...t]

    The elements of ``x``, in order, in ``shape``. One size may be -1; symbols are kept.

    At most one of several symbols may be unknown in the shape of ``x``; `view` takes others.
    """

def reshape_like(x: Var, like: Var, *, name: str | None = None) -> Var:
    """reshape_like(x: T[...r], like: shape[...s]) -> y: T[...s]

    The elements of ``x``, in order, in the shape of ``like``.
    """

def resize(x: Var, size: int | Sequence[int] | None = None, scale: float | Sequence[float] | None = None, mode: str = "nearest", align_corners: bool = False, *, name: str | None = None) -> Var:
    """resize(x: float[n c! ...s], size=None, scale=None, mode="nearest", align_corners=False) -> y: float[n c ...t]

    Resize signals, images or volumes to ``size``, or to ``floor(scale s)`` for each size ``s``.

    A pixel is the nearest one of ``x`` (``"nearest"``, or by pixel centres ``"nearest-exact"``), interpolated between two along each axis
    (``"linear"``) or four (``"cubic"``), or the mean of all pixels that it covers (``"area"``). ``align_corners`` aligns the centres of the
    corner pixels instead of their outer edges.
    """

def rms_norm(x: Var, scale: Var | None = None, epsilon: float = 1e-05, *, name: str | None = None) -> Var:
    """rms_norm(x: float[*b k], scale?: float[k], epsilon=1e-05) -> y: float[*b k], rstd: float[*b 1]

    ``y = x * rstd * scale`` with ``rstd = 1 / sqrt(mean(x**2) + epsilon)``, along the last axis.

    Zhang and Sennrich, 2019.
    """

def rms_norm_grad(x: Var, rstd: Var, dy: Var, scale: Var | None = None, *, name: str | None = None) -> Var:
    """rms_norm_grad(x: float[*b k], rstd: float[*b 1], dy: float[*b k], scale?: float[k]) -> dx: float[*b k]

    The gradient of `rms_norm` with respect to ``x``, whose statistic is ``rstd``.

    With ``g = dy * scale``: ``rstd * (g - x * rstd**2 * mean(g * x))``.
    """

def rms_norm_scale_grad(x: Var, rstd: Var, dy: Var, *, name: str | None = None) -> Var:
    """rms_norm_scale_grad(x: float[*b k], rstd: float[*b 1], dy: float[*b k]) -> dscale: sum float[k]

    The gradient of `rms_norm` with respect to the scale: the sum of ``dy * x * rstd`` over the rows.
    """

def roll(x: Var, shifts: int | Sequence[int], axes: int | Sequence[int], *, name: str | None = None) -> Var:
    """roll(x: T[...s], shifts, axes) -> y: T[...t]

    ``x`` shifted by ``shifts`` along ``axes``, cyclically: elements shifted out at the end return at the front.
    """

def round(x: Var, *, name: str | None = None) -> Var:
    """round(x: float[*b]) -> y: float[*b]

    The nearest whole number; ties are rounded to the even one.
    """

def rows_by_group(x: Var, groups: int, *, name: str | None = None) -> Var:
    """rows_by_group(x: T[n c ...s], groups) -> y: T[n {groups} k]

    The elements of each of ``groups`` groups of channels as a row.
    """

def rows_of_share(rows: Var, share: Var, workers: int, *, name: str | None = None) -> tuple[Var, Var]:
    """rows_of_share(rows: int64[*b], share: shape[k ...d], workers) -> local: int64[*b], here: bool[*b]

    The index of each row in this worker's share, and whether it is there; 0 and false if another worker has it.

    The table consists of the shares of all ``workers``, of ``k`` rows each, in their order. A row out of range raises KernelError.
    """

def rsqrt(x: Var, *, name: str | None = None) -> Var:
    """rsqrt(x: inexact[*b]) -> y: inexact[*b]

    The reciprocal square root, ``1 / sqrt(x)``; NaN below 0.
    """

def scaled_dot_product_attention(query: Var, key: Var, value: Var, mask: Var | None = None, bias: Var | None = None, heads: int = 1, causal: bool = False, scale: float | None = None, *, name: str | None = None) -> Var:
    """scaled_dot_product_attention(query: float[*~b t k], key: float[*~b s k], value: float[*~b s e], mask?: bool[*~b m n o], bias?: float[*~b g h i], heads=1, causal=False, scale=None) -> y: float[*b t e], logsumexp: float[*b {heads} t]

    ``softmax(query key' scale) value``, with ``heads`` heads that each use their own columns (Vaswani et al., 2017).

    ``scale`` defaults to ``1 / sqrt(k / heads)``. With ``causal``, query ``i`` of ``t`` sees the keys up to ``i + s - t``. ``mask``,
    ``[*b heads t s]``, is true for visible keys; ``bias``, of the same shape, is added before the softmax. Each of their last three sizes
    may be 1. A query that sees no key yields zeros. ``logsumexp`` is the logarithm of the softmax denominators: from it, the gradient
    recomputes the weights block by block (Dao et al., 2022). Second-order gradients store the full matrix of weights.
    """

def scatter_add(values: Var, rows: Var, like: Var, axis: int | None = None, *, name: str | None = None) -> Var:
    """scatter_add(values: T[...v], rows: int64[...b], like: shape[n ...d], axis=None) -> y: T[n ...d]

    Zeros in the shape of ``like``, with ``values[i]`` added to row ``rows[i]``: the transpose of ``gather``.

    If a row index repeats, its values are added up.
    """

def scatter_along_axis(x: Var, index: Var, values: Var, axis: int, reduction: str = "none", *, name: str | None = None) -> Var:
    """scatter_along_axis(x: T[...s], index: int64[...i], values: T[...i], axis, reduction="none") -> y: T[...s]

    ``x`` with ``values`` written along ``axis``: ``y[i, index[i, j]] = values[i, j]``. ``torch.scatter``.

    With ``reduction`` ("add", "multiply", "maximum" or "minimum"), the element of ``x`` is combined with all values written to it. Without
    one, if an index repeats, it is unspecified which value is kept. Tied maxima or minima share the gradient evenly.
    """

def searchsorted(sorted: Var, x: Var, right: bool = False, *, name: str | None = None) -> Var:
    """searchsorted(sorted: real[*b n], x: real[*b m], right=False) -> y: int64[*b m]

    The index at which each element would be inserted into an ascending row of ``sorted``: before equal ones, or
    after them if ``right``.
    """

@overload
def select_branch(stacks: Sequence[Var] | Var, *, name: str | None = None) -> Var:
    """select_branch(*stacks: T[k_i ...d]) -> y: T[...d]

    The row of the only stack that is not empty. Every other stack has no rows.
    """

@overload
def select_branch(*stacks: Var, name: str | None = None) -> Var:
    """select_branch(*stacks: T[k_i ...d]) -> y: T[...d]

    The row of the only stack that is not empty. Every other stack has no rows.
    """

@overload
def sequence_concat(xs: Sequence[Var] | Var, splits: Sequence[Var] | Var, *, name: str | None = None) -> tuple[Var, Var]:
    """sequence_concat(*xs: T[k_i ...d], *splits: int64[s]) -> y: T[q ...d], y_splits: int64[s]

    Sequence i of the result is the concatenation of sequence i of all ``xs``; ``y_splits`` are its row splits.
    """

@overload
def sequence_concat(xs: Sequence[Var] | Var, *splits: Var, name: str | None = None) -> tuple[Var, Var]:
    """sequence_concat(*xs: T[k_i ...d], *splits: int64[s]) -> y: T[q ...d], y_splits: int64[s]

    Sequence i of the result is the concatenation of sequence i of all ``xs``; ``y_splits`` are its row splits.
    """

def sequence_elements(splits: Var, rows: Var, like: Var, *, name: str | None = None) -> tuple[Var, Var]:
    """sequence_elements(splits: int64[s], rows: int64[k], like: shape[n ...d]) -> elements: int64[?], own_splits: int64[k+1]

    The indices of all elements of the selected sequences, in order, for ``gather``, and the row splits of the selection.

    ``rows`` are row indices of ``like``, which has one row per sequence.
    """

def sequence_expand(x: Var, splits: Var, like: Var, *, name: str | None = None) -> Var:
    """sequence_expand(x: T[m ...d], splits: int64[k], like: shape[t ...e]) -> y: T[t ...d]

    Row i of ``x`` for every element of sequence i; ``like`` has a row per element. The transpose of ``sequence_sum``.
    """

def sequence_first(x: Var, splits: Var, *, name: str | None = None) -> Var:
    """sequence_first(x: T[t ...d], splits: int64[n+1]) -> y: T[n ...d]

    The first element of each sequence; zeros for an empty one.
    """

def sequence_last(x: Var, splits: Var, *, name: str | None = None) -> Var:
    """sequence_last(x: T[t ...d], splits: int64[n+1]) -> y: T[n ...d]

    The last element of each sequence; zeros for an empty one.
    """

def sequence_lengths(splits: Var, *, name: str | None = None) -> Var:
    """sequence_lengths(splits: int64[n+1]) -> y: int64[n]

    The number of elements of each sequence.
    """

def sequence_max(x: Var, splits: Var, *, name: str | None = None) -> Var:
    """sequence_max(x: real[t ...d], splits: int64[n+1]) -> y: real[n ...d], at: int64[n ...d]

    The largest value of each sequence; 0 for an empty one. The gradient goes to ``at``, the first on ties, -1 for none.
    """

def sequence_mean(x: Var, splits: Var, *, name: str | None = None) -> Var:
    """sequence_mean(x: float[t ...d], splits: int64[n+1]) -> y: float[n ...d]

    The mean of each sequence; 0 for an empty one.
    """

def sequence_pad(x: Var, splits: Var, fill: float = 0.0, *, name: str | None = None) -> Var:
    """sequence_pad(x: T[t ...d], splits: int64[k], fill=0.0) -> y: T[m w ...d]

    Each sequence as a row, padded to the longest one with ``fill``.
    """

def sequence_softmax(x: Var, splits: Var, *, name: str | None = None) -> Var:
    """sequence_softmax(x: float[t ...d], splits: int64[n+1]) -> y: float[t ...d]

    The softmax of each sequence: ``exp(x)`` divided by its sum over the sequence, computed stably.
    """

@overload
def sequence_split(y: Var, splits: Sequence[Var] | Var, like: Sequence[Var] | Var, *, name: str | None = None) -> list[Var]:
    """sequence_split(y: T[q ...d], *splits: int64[s], *like: shape[k_i ...e]) -> *xs: T[k_i ...d]

    Split the result of ``sequence_concat`` by the row splits of its parts; ``like`` has a row per element of each part.
    """

@overload
def sequence_split(y: Var, splits: Sequence[Var] | Var, *like: Var, name: str | None = None) -> list[Var]:
    """sequence_split(y: T[q ...d], *splits: int64[s], *like: shape[k_i ...e]) -> *xs: T[k_i ...d]

    Split the result of ``sequence_concat`` by the row splits of its parts; ``like`` has a row per element of each part.
    """

def sequence_splits(splits: Var, elements: Var, *, name: str | None = None) -> Var:
    """sequence_splits(splits: int64[s], elements: int64[k]) -> own_splits: int64[s]

    The row splits of sequences that keep only some ``elements``, given as ascending indices.
    """

def sequence_sum(x: Var, splits: Var, *, name: str | None = None) -> Var:
    """sequence_sum(x: number[t ...d], splits: int64[n+1]) -> y: number[n ...d]

    The sum of each sequence; 0 for an empty one.
    """

def sequence_unpad(padded: Var, splits: Var, like: Var, *, name: str | None = None) -> Var:
    """sequence_unpad(padded: T[m w ...d], splits: int64[k], like: shape[t ...e]) -> y: T[t ...d]

    The elements of padded rows, without the padding; ``like`` has a row per element. The inverse of ``sequence_pad``.
    """

def sgd(param: Var, grad: Var, learning_rate: Var | float, *, name: str | None = None) -> Var:
    """sgd(param: float[*b], grad: float[*b], learning_rate: float64[]) -> next: float[*b]

    Gradient descent: ``next = param - learning_rate * grad``.
    """

def sgd_addmm(param: Var, x: Var, dout: Var, learning_rate: Var | float, *, name: str | None = None) -> Var:
    """sgd_addmm(param: float[k n], x: float[...b k], dout: float[...b n], learning_rate: float64[]) -> next: float[k n]

    `sgd` with the gradient ``linear_dw(x, dout)``: ``next = param - learning_rate * x.mT @ dout``.
    """

def sgn(x: Var, *, name: str | None = None) -> Var:
    """sgn(x: complex[*b]) -> y: complex[*b]

    ``x / |x|``, the direction of a complex number; 0 at 0, with a zero gradient. `sign` is for real numbers.
    """

def shard(x: Var, counts: Var | None = None, like: Var | None = None, axis: int = 0, workers: int = 0, *, name: str | None = None) -> Var:
    """shard(x: T[...s], counts?: int64[w], like?: shape[...m], axis=0, workers=0) -> y: T[...t]

    The part of this worker, along ``axis``, of a tensor that every worker has.

    ``counts``, ``like`` and ``workers`` are as in `reduce_scatter`.
    """

def sigmoid(x: Var, *, name: str | None = None) -> Var:
    """sigmoid(x: inexact[*b]) -> y: inexact[*b]

    The logistic function, ``y = 1 / (1 + exp(-x))``.
    """

def sign(x: Var, *, name: str | None = None) -> Var:
    """sign(x: real[*b]) -> y: real[*b]

    -1, 0 or 1 for ``x`` below, at or above 0; 0 for NaN.
    """

def silu(x: Var, *, name: str | None = None) -> Var:
    """silu(x: float[*b]) -> y: float[*b]

    ``y = x * sigmoid(x)``, also called swish (Elfwing, Uchibe and Doya, 2017).
    """

def sin(x: Var, *, name: str | None = None) -> Var:
    """sin(x: inexact[*b]) -> y: inexact[*b]

    The sine of ``x`` radians.
    """

def sinc(x: Var, *, name: str | None = None) -> Var:
    """sinc(x: float[*b]) -> y: float[*b]

    ``sin(pi x) / (pi x)``; 1 at 0.
    """

def sinh(x: Var, *, name: str | None = None) -> Var:
    """sinh(x: inexact[*b]) -> y: inexact[*b]

    The hyperbolic sine, ``(exp(x) - exp(-x)) / 2``.
    """

def size(like: Var, axis: int = 0, *, name: str | None = None) -> Var:
    """size(like: shape[...s], axis=0) -> y: int64[]

    The size of ``like`` along ``axis``, as a number that is known when the program runs. ``like`` is not kept alive.
    """

def slogdet(x: Var, *, name: str | None = None) -> tuple[Var, Var]:
    """slogdet(x: float[*b m m]) -> sign: float[*b], log: float[*b]

    The sign of the determinant of each matrix and the logarithm of its magnitude; 0 and minus infinity for a singular matrix.

    The gradient raises KernelError for a singular matrix.
    """

def softmax(x: Var, axis: int | None = None, *, name: str | None = None) -> Var:
    """softmax(x: float[...s], axis=None) -> y: float[...s]

    ``y = exp(x) / sum(exp(x))`` along ``axis`` (default: the last), computed stably.
    """

def softmax_with_cross_entropy(logits: Var, label: Var, ignore_index: int = -100, *, name: str | None = None) -> Var:
    """softmax_with_cross_entropy(logits: float[*b k!], label: int64[*b], ignore_index=-100) -> loss: float[*b], softmax: float[*b k]

    Cross entropy between ``softmax(logits)`` and class ids, computed stably; 0 for rows whose label is ``ignore_index``.
    """

def softplus(x: Var, beta: float = 1.0, threshold: float = 20.0, *, name: str | None = None) -> Var:
    """softplus(x: float[*b], beta=1.0, threshold=20.0) -> y: float[*b]

    ``log(1 + exp(beta * x)) / beta``; ``x`` itself if ``beta * x`` is above the threshold.
    """

def solve_columns(a: Var, b: Var, *, name: str | None = None) -> Var:
    """solve_columns(a: inexact[*b m m], b: inexact[*b m k]) -> x: inexact[*b m k]

    The solution ``x`` of ``a x = b``, for each column of ``b``. A singular matrix raises KernelError.
    """

def solve_triangular_columns(a: Var, b: Var, upper: bool = False, unitriangular: bool = False, *, name: str | None = None) -> Var:
    """solve_triangular_columns(a: inexact[*b m m], b: inexact[*b m k], upper=False, unitriangular=False) -> x: inexact[*b m k]

    The solution ``x`` of ``a x = b`` for a triangular ``a``: only its lower triangle is read, or its upper one if ``upper``.

    If ``unitriangular``, the diagonal is taken to be ones; otherwise a 0 on the diagonal raises KernelError.
    """

def sort(x: Var, axis: int = -1, descending: bool = False, *, name: str | None = None) -> tuple[Var, Var]:
    """sort(x: T[...s], axis=-1, descending=False) -> values: T[...s], indices: int64[...s]

    The elements along ``axis`` in ascending order, or ``descending``, and their indices. The sort is stable. NaN is the largest.
    """

def sparse_sgd(param: Var, rows: Var, values: Var, learning_rate: Var | float, *, name: str | None = None) -> Var:
    """sparse_sgd(param: float[k ...d], rows: int64[n], values: float[n ...d], learning_rate: float64[]) -> next: float[k ...d]

    `sgd` with the gradient ``scatter_add(values, rows, param)``: ``next[rows[i]] = param[rows[i]] - learning_rate * values[i]``.
    """

def split(x: Var, sections: int, axis: int = 0, *, name: str | None = None) -> list[Var]:
    """split(x: T[...s], sections, axis=0) -> *ys: T

    Split ``x`` along ``axis`` into ``sections`` equal parts.
    """

@overload
def split_like(x: Var, like: Sequence[Var] | Var, axis: int = 0, *, name: str | None = None) -> list[Var]:
    """split_like(x: T, *like: shape, axis=0) -> *ys: T

    Split ``x`` along ``axis`` into parts of the sizes of the tensors ``like``: the inverse of ``concat``.
    """

@overload
def split_like(x: Var, *like: Var, axis: int = 0, name: str | None = None) -> list[Var]:
    """split_like(x: T, *like: shape, axis=0) -> *ys: T

    Split ``x`` along ``axis`` into parts of the sizes of the tensors ``like``: the inverse of ``concat``.
    """

def sqrt(x: Var, *, name: str | None = None) -> Var:
    """sqrt(x: inexact[*b]) -> y: inexact[*b]

    The square root; NaN below 0.
    """

def square(x: Var, *, name: str | None = None) -> Var:
    """square(x: inexact[*b]) -> y: inexact[*b]

    The square, ``y = x * x``.
    """

@overload
def stack(xs: Sequence[Var] | Var, axis: int = 0, *, name: str | None = None) -> Var:
    """stack(*xs: T[...s], axis=0) -> y: T[...t]

    Tensors of one shape stacked along a new dimension, ``axis`` of the result.
    """

@overload
def stack(*xs: Var, axis: int = 0, name: str | None = None) -> Var:
    """stack(*xs: T[...s], axis=0) -> y: T[...t]

    Tensors of one shape stacked along a new dimension, ``axis`` of the result.
    """

def stop_gradient(x: Var, *, name: str | None = None) -> Var:
    """stop_gradient(x: T[*b]) -> y: T[*b]

    Identity that blocks the gradient.
    """

def subtract(x: Var | builtins.complex, y: Var | builtins.complex, *, name: str | None = None) -> Var:
    """subtract(x: number[*#s], y: number[*#s]) -> z: number[*#s]

    ``z = x - y``.
    """

@overload
def sum(xs: Sequence[Var] | Var, *, name: str | None = None) -> Var:
    """sum(*xs: inexact[...~s]) -> y: inexact[...s]

    The sum of one or more tensors of one shape, added in order. Uneven stacks of loops are added step by step.
    """

@overload
def sum(*xs: Var, name: str | None = None) -> Var:
    """sum(*xs: inexact[...~s]) -> y: inexact[...s]

    The sum of one or more tensors of one shape, added in order. Uneven stacks of loops are added step by step.
    """

def sum_to_shape(x: Var, like: Var, *, name: str | None = None) -> Var:
    """sum_to_shape(x: inexact[...r], like: shape[...s]) -> y: sum inexact[...s]

    Sum ``x`` to the shape of ``like``, which broadcasts to that of ``x``: the gradient of broadcasting.
    """

def svd(x: Var, *, name: str | None = None) -> tuple[Var, Var, Var]:
    """svd(x: float[*b m n]) -> u: float[*b m k], s: float[*b k], v: float[*b k n]

    The singular value decomposition of each matrix, ``x = u diag(s) v``, with min(m, n) singular values ``s``, descending.

    Columns of ``u`` and rows of ``v`` are orthonormal; in each column of ``u`` the element of largest magnitude is positive. NaN and
    infinite values raise an error when the program runs.
    """

def sync_batch_norm(x: Var, running_mean: Var, running_variance: Var, scale: Var | None = None, bias: Var | None = None, momentum: float = 0.1, epsilon: float = 1e-05, *, name: str | None = None) -> Var:
    """sync_batch_norm(x: float[n c ...s], running_mean: float[c], running_variance: float[c], scale?: float[c], bias?: float[c], momentum=0.1, epsilon=1e-05) -> y: float[n c ...s], mean: float[c], rstd: float[c], next_mean: float[c], next_variance: float[c], uses_batch_statistics: bool[]

    `batch_norm` with the mean and variance over the rows of all workers. A worker may have no rows.
    """

def sync_batch_norm_grad(x: Var, mean: Var, rstd: Var, uses_batch_statistics: Var | bool, dy: Var, scale: Var | None = None, *, name: str | None = None) -> Var:
    """sync_batch_norm_grad(x: float[n c ...s], mean: float[c], rstd: float[c], uses_batch_statistics: bool[], dy: float[n c ...s], scale?: float[c]) -> dx: float[n c ...s]

    `batch_norm_grad` with means over the rows of all workers.
    """

def take_along_axis(x: Var, index: Var, axis: int, *, name: str | None = None) -> Var:
    """take_along_axis(x: T[...s], index: int64[...i], axis) -> y: T[...i]

    Gather elements along ``axis``, with separate indices for each row: ``y[i, j] = x[i, index[i, j]]``. ``torch.gather``.
    """

def take_places(x: Var, index: Var, *, name: str | None = None) -> Var:
    """take_places(x: float[n c ...s], index: int64[n c ...t]) -> y: float[n c ...t]

    The values of each channel at the flat positions ``index``, counted from 0 over its axes ``s``.
    """

def take_share(x: Var, workers: int = 1, *, name: str | None = None) -> Var:
    """take_share(x: T[...s], workers=1) -> y: T[k]

    The share of this worker in the elements of ``x``, which all ``workers`` have.
    """

def tan(x: Var, *, name: str | None = None) -> Var:
    """tan(x: inexact[*b]) -> y: inexact[*b]

    The tangent of ``x`` radians.
    """

def tanh(x: Var, *, name: str | None = None) -> Var:
    """tanh(x: inexact[*b]) -> y: inexact[*b]

    The hyperbolic tangent.
    """

def tile(x: Var, repeats: int | Sequence[int], *, name: str | None = None) -> Var:
    """tile(x: T[...s], repeats) -> y: T[...t]

    ``x`` repeated ``repeats`` times along each axis. If there are more repeats than axes, axes of size 1 are added in front.
    """

def top_k(x: Var, k: int, axis: int | None = None, largest: bool | None = None, *, name: str | None = None) -> tuple[Var, Var]:
    """top_k(x: real[...s], k, axis=None, largest=None) -> values: real[...t], indices: int64[...t]

    The ``k`` largest elements along ``axis`` (default: the last), descending, and their indices.

    With ``largest=False``, the smallest, ascending. The order of ties is unspecified.
    """

def transpose(x: Var, axes: int | Sequence[int], *, name: str | None = None) -> Var:
    """transpose(x: T[...s], axes) -> y: T[...t]

    A permutation of dimensions: dimension ``i`` of the result is dimension ``axes[i]`` of ``x``.
    """

def tril(x: Var, diagonal: int = 0, *, name: str | None = None) -> Var:
    """tril(x: T[*b m n], diagonal=0) -> y: T[*b m n]

    The lower triangle of each matrix, up to ``diagonal``: 0 is the main one, 1 the one above it. Zeros elsewhere.
    """

def triu(x: Var, diagonal: int = 0, *, name: str | None = None) -> Var:
    """triu(x: T[*b m n], diagonal=0) -> y: T[*b m n]

    The upper triangle of each matrix, from ``diagonal`` on: 0 is the main one, 1 the one above it. Zeros elsewhere.
    """

def trunc(x: Var, *, name: str | None = None) -> Var:
    """trunc(x: float[*b]) -> y: float[*b]

    ``x`` without its fraction, rounded towards 0.
    """

def unfold(x: Var, size: int | Sequence[int], dilation: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0), stride: int | Sequence[int] = (1, 1), *, name: str | None = None) -> Var:
    """unfold(x: float[n c! h w], size, dilation=(1, 1), padding=(0, 0), stride=(1, 1)) -> y: float[n k l]

    The patches of an image under sliding windows, as columns of ``k`` numbers: channel by channel, row by row (im2col).
    """

def unique(x: Var, *, name: str | None = None) -> tuple[Var, Var, Var]:
    """unique(x: real[...s]) -> values: real[?], inverse: int64[...s], counts: int64[?]

    The distinct elements, ascending; the index among them of each element; their counts. It has no gradient.

    To propagate a gradient, gather or scatter by ``inverse``.
    """

def valid_mean(x: Var, label: Var, ignore_index: int = -100, *, name: str | None = None) -> Var:
    """valid_mean(x: float[...b], label: int64[...b], ignore_index=-100) -> y: float[]

    The mean of ``x``, such as a loss per row, over positions whose label is not ``ignore_index``; NaN if there are none.
    """

def variance(x: Var, axis: int | Sequence[int] | None = None, keepdim: bool = False, correction: float = 1.0, *, name: str | None = None) -> Var:
    """variance(x: float[...s], axis=None, keepdim=False, correction=1.0) -> y: float[...s-{axis}]

    The variance over axes as in `mean`: squared deviations from the mean, divided by the number of elements minus ``correction``.
    """

@overload
def view(x: Var, like: Sequence[Var] | Var = (), *, shape: int | Sequence[int | str], name: str | None = None) -> Var:
    """view(x: T[...s], *like: shape, shape) -> y: T[...t]

    The elements of ``x``, in order, in ``shape``; one size may be -1. Unlike in `reshape`, symbols may also come from ``like``.
    """

@overload
def view(x: Var, like: Sequence[Var] | Var, shape: int | Sequence[int | str], *, name: str | None = None) -> Var:
    """view(x: T[...s], *like: shape, shape) -> y: T[...t]

    The elements of ``x``, in order, in ``shape``; one size may be -1. Unlike in `reshape`, symbols may also come from ``like``.
    """

@overload
def view(x: Var, shape: int | Sequence[int | str], *, name: str | None = None) -> Var:
    """view(x: T[...s], *like: shape, shape) -> y: T[...t]

    The elements of ``x``, in order, in ``shape``; one size may be -1. Unlike in `reshape`, symbols may also come from ``like``.
    """

def view_as_complex(x: Var, *, name: str | None = None) -> Var:
    """view_as_complex(x: float[...s 2]) -> z: float.complex[...s]

    Complex numbers from real and imaginary parts along the last axis, of size 2. Copies ``x``, which may not be aligned for complex.
    """

def view_as_real(z: Var, *, name: str | None = None) -> Var:
    """view_as_real(z: complex[...s]) -> x: complex.real[...s 2]

    The real and imaginary parts of complex numbers, along a new last axis of size 2.
    """

def viterbi_decode(emissions: Var, splits: Var, transitions: Var, start: Var, end: Var, *, name: str | None = None) -> tuple[Var, Var]:
    """viterbi_decode(emissions: float[t k!], splits: int64[n+1], transitions: float[k k], start: float[k], end: float[k]) -> y: int64[t], score: float[n]

    The label sequence of the highest score for each sequence, scored as in `crf_log_partition`, and its score (Viterbi, 1967).

    Ties are resolved to the smaller label, starting from the last element.
    """

def where(condition: Var | bool, x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """where(condition: bool[*#s], x: T[*#s], y: T[*#s]) -> z: T[*#s]

    ``x`` where ``condition`` is true, else ``y``. The value not chosen gets no gradient, even if it is NaN.
    """

def windows(x: Var, axis: int, size: int, step: int = 1, *, name: str | None = None) -> Var:
    """windows(x: T[...s], axis, size, step=1) -> y: T[...t]

    Sliding windows of ``size`` elements along ``axis``, every ``step``. The elements of a window are along a new last axis.

    Elements at the end that do not fill a window are left out. ``Tensor.unfold`` of PyTorch, ``sliding_window_view`` of NumPy.
    """

def worker_index(*, name: str | None = None) -> Var:
    """worker_index() -> y: int64[]

    The index of this worker, counted from 0.
    """

def xlog1py(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """xlog1py(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    ``x log(1 + y)``; 0 if ``x`` is 0, unless ``y`` is NaN.
    """

def xlogy(x: Var | float, y: Var | float, *, name: str | None = None) -> Var:
    """xlogy(x: float[*#s], y: float[*#s]) -> z: float[*#s]

    ``x log(y)``; 0 if ``x`` is 0, unless ``y`` is NaN.
    """
