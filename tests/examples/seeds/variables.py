"""Framework document, variables: Python API proposals, and the methods of a variable.

x = paddle.variable.new("x") # create a variable of not yet known type
x = paddle.variable.tensor("x") # create a tensor typed varible without value
x = paddle.variable.int("x", 10) # create an unnamed int varaible and set to 10
x = paddle.variable.operation("x", paddle.operator.gemm(...)) # an operation
x = paddle.variable.tensor("x", numpy.random.randn(200, 100), estimated = true)
x.estimated = false                 # prevents from update.
Estimated();  SetEstimated(bool);  Get<T>();  GetMutable<T>();  IsType<T>()
"""

import numpy
import pytest
import torch

import oarlock as paddle
from oarlock.runtime import State

with paddle.scope.guard(paddle.Scope()) as scope:
    x = paddle.variable.new("x")
    assert x.state is State.DECLARED
    x = paddle.variable.tensor("x")
    assert x.get_mutable(torch.Tensor).numel() == 0  # lazy: memory appears here
    x = paddle.variable.int("x", 10)
    assert (x.get(int), x.is_type(int), x.is_type(float)) == (10, True, False)
    with pytest.raises(paddle.ScopeError, match="is a int"):
        x.get_mutable(torch.Tensor)
    with paddle.Program():
        product = paddle.op.linear(paddle.Variable(shape=[1, 2]), paddle.Variable(shape=[2, 3]))
    x = paddle.variable.operation("x", product.op)
    assert x.get(paddle.ir.Op).type == "linear"
    x = paddle.variable.tensor("x", numpy.random.default_rng(0).normal(size=(200, 100)), estimated=True)
    assert (x.estimated, x.get(torch.Tensor).shape, x.get(torch.Tensor).dtype) == (True, (200, 100), torch.float64)
    x.estimated = False
    assert not x.estimated
    assert scope.find_var("x") is x
