"""The program that made `normalization.*`, once, when version 2 of the format still called the slots of gradients `given` and `slope`.

It was run at commit 6129dc7 and is never run again: `PYTHONPATH=src:tests python tests/golden/v2/make_normalization.py`.
"""

import importlib.util
from pathlib import Path

import numpy

import oarlock as ol

HERE = Path(__file__).parent


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


def main() -> None:
    spec = importlib.util.spec_from_file_location("first_version", HERE.parent / "v1" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    first = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(first)
    first.HERE = HERE
    first.main([normalization])


if __name__ == "__main__":
    main()
