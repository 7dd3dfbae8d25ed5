"""Framework document, execution and context, and what an operator does with them.

struct Context { Scope* scope_;  std::vector<Place> places_;  bool training_; };
class Gemm { void Run(const Context& ctx) { if (IsGPUPlace(ctx.places_[0])) { cuDNNGemm(Output(0).mutable_data<float>(...)) }
                                            else { mkl::sgemm(...) } } };
struct GPUPlace { int device_; };   struct CPUPlace { enum Type {...}; Type type_; };
"""

import numpy
import pytest

import oarlock as paddle
from oarlock.registry import Catalogue

catalogue = Catalogue()
places = []


@paddle.operator("x: float[n k], w: float[k m] -> y: float[n m]", catalogue=catalogue)
def gemm(x, w):
    """The product, by the library of the place where its inputs are: PyTorch chooses."""
    places.append(x.device.type)
    return x @ w


with paddle.Program() as program:
    y = gemm(paddle.layer.data("x", shape=[2]), paddle.layer.data("w", shape=[2, 3], batch=None))

scope = paddle.Scope()
scope.set("x", numpy.ones((1, 2), "float32"))
scope.set("w", numpy.ones((2, 3), "float32"))
context = paddle.Context(scope, paddle.CPUPlace(), training=False)
paddle.run_block(program.main, context.scope, context, catalogue=catalogue)
assert scope[y.name].tolist() == [[2, 2, 2]]
assert not isinstance(context.places[0], paddle.GPUPlace)
assert places == [context.place.device.type] == ["cpu"]
assert paddle.CPUPlace() == paddle.CPUPlace()
assert len({paddle.CPUPlace(), paddle.CPUPlace()}) == 1
with pytest.raises(paddle.ArgumentError, match="there is no GPU 10000"):
    paddle.Context(scope, paddle.GPUPlace(10_000))  # a place is a value; what is to run there asks
