"""Block document: SymbolTable, which a block is.

SymbolTable(SymbolTable* parent);  OpDesc* NewOp(name="");  VarDesc* Var(name="");
VarDesc* FindVar(name, recursive=true);  OpDesc* FindOp(name);  BlockDesc Compile() const;
"""

import oarlock as pd

program = pd.Program()
table = program.main
inner = program.new_block("inner", table)  # SymbolTable(table)
assert inner.parent is table

x = table.new_var("x", pd.DType.FLOAT32, ("n", 3))
table.inputs.append(x)
y = table.new_var("", pd.DType.FLOAT32, ("n", 3))  # Var(""): a name of its own
named = table.new_op("relu", {"x": x}, {"y": y}, name="gate")
unnamed = table.new_op("relu", {"x": y}, {"y": table.new_var("z", pd.DType.FLOAT32, ("n", 3))})
assert unnamed.name
assert unnamed.name != "gate"

assert table.find_op("gate") is named
assert table.find_op("door") is None
assert inner.find_var("x") is x
assert inner.find_var("x", recursive=False) is None

desc = table.compile()
table.new_op("relu", {"x": "z"}, {"y": table.new_var("later", pd.DType.FLOAT32, ("n", 3))})
assert [op.name for op in desc.ops] == ["gate", unnamed.name]
assert len(table.compile().ops) == 3
