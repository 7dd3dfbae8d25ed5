"""How long the variants of a kernel take to derive, which the first plan of a process does for each operator that it uses.

PYTHONPATH=src python benchmarks/variants.py
"""

import time

import oarlock.op.update  # noqa: F401  the operators of optimizers, beside all others
from oarlock.backend.torch.variants import variants_of
from oarlock.registry import standard

if __name__ == "__main__":
    operators = [*standard.operators.values(), *standard.gradient_operators.values()]
    began = time.perf_counter()
    for operator in operators:
        variants = variants_of(operator)
        _ = variants.out, variants.in_place, variants.host, variants.expressions
    seconds = time.perf_counter() - began
    print(f"{len(operators)} operators, {1000 * seconds / len(operators):.2f} ms each")
