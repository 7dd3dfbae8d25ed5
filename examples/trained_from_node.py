"""Train a program written in JavaScript by examples/node/write_program.mjs: 64 pixels, one hidden layer, ten digits.

python examples/trained_from_node.py
"""

from pathlib import Path

import oarlock as ol

PROGRAM = Path(__file__).parent / "node" / "digits.program"


def main(path: Path = PROGRAM, epochs: int = 20) -> float:
    """Train the program, and return the accuracy on unseen digits."""
    program = ol.Program.from_bytes(path.read_bytes())
    parts = ol.datasets.digits.split(seed=0)
    train, test = ({"pixels": part["image"].reshape(-1, 64), "label": part["label"]} for part in parts)
    cost = program.targets["cost"]
    result = ol.train(cost, train, optimizer=ol.optimizer.Adam(1e-2), epochs=epochs, progress=False, scope=ol.Scope())
    (logits,) = ol.Executor().eval(program, ["predict"], {"pixels": test["pixels"]}, scope=result.parameters)
    return float((logits.argmax(1) == test["label"]).mean())


if __name__ == "__main__":
    print(f"{main():.1%} of the unseen digits")
