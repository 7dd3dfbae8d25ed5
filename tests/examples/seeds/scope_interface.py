"""Scope document, interface design: variables are created by scopes, only a scope makes a child of itself.

static std::shared_ptr<Scope> Create(parent);  Variable* FindVar(name) const;  Variable* Var(name);
class Variable { private: Variable() = default; friend class Scope; }
"""

import gc

import pytest

import oarlock as paddle
from oarlock.runtime import Variable

root = paddle.Scope()  # Create()
local = root.new_scope()  # Create(root)
x = local.new_var("x")
with pytest.raises(paddle.ScopeError, match="already"):
    local.new_var("x")
assert local.var("x") is x
with pytest.raises(paddle.ScopeError, match="variables are created by scopes"):
    Variable(None, local, "x")
root.set("kept", 1.0)
del root
gc.collect()
assert float(local["kept"]) == 1.0  # a child keeps its parent alive
