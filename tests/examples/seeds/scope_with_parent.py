"""Scope document: a local scope sees its parent's variables, and its own are destroyed with it.

Scope(const std::shared_ptr<Scope>& scope): parent_(scope) {}
Variable* FindVar(name) const  -- here, else in the parent, else nullptr
"""

import pytest

import oarlock as paddle

parent = paddle.Scope()
weight = parent.var("weight")
local = parent.new_scope()
assert local.find_var("weight") is weight
assert local.find_local_var("weight") is None
hiding = local.var("weight")
assert (local.find_var("weight"), parent.find_var("weight")) == (hiding, weight)
assert local.find_var("bias") is None
local.drop()
with pytest.raises(paddle.ScopeError, match="dropped"):
    hiding.is_set
assert not weight.is_set
