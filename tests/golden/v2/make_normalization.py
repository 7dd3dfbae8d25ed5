"""The program that made `normalization.*`, once, when version 2 of the format still called the slots of gradients `given` and `slope`.

It was run at commit 6129dc7 and is never run again: `PYTHONPATH=src:tests python tests/golden/v2/make_normalization.py`.
"""

import numpy
from make import first_version  # beside this one

import oarlock as ol


def normalization() -> tuple[ol.Program, dict[str, numpy.ndarray], int]:
    """Both normalizations, their gradients and SGD, and a product with a transpose that is added: two steps."""
    with ol.Program(seed=4) as program:
        x = ol.layer.data("x", shape=[6])
        hidden = ol.layer.layer_norm(ol.layer.batch_norm(ol.layer.fc(x, 5)))
        w = ol.layer.create_parameter([6, 5], name="w")
        total = ol.op.addmm_nt(x, w, hidden)
        cost = ol.layer.mean(ol.op.square(total))
        program.targets |= {"cost": cost, "total": total}
        ol.optimizer.SGD(0.5).minimize(cost)
    return program, {"x": numpy.linspace(-2, 2, 24, dtype="float32").reshape(4, 6)}, 2


if __name__ == "__main__":
    first_version().main([normalization])
