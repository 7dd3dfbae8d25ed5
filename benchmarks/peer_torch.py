"""X1 to X6 in plain PyTorch, eager, as a peer of `benchmarks/run.py`.

    python benchmarks/peer_torch.py --workload X1 [--variant eager] [--min-time 1.5]
    python benchmarks/run.py --workloads X1,X2,X3,X4,X5,X6 --peer torch="python benchmarks/peer_torch.py"

Loops are Python's; rows of rows are padded, and a mask keeps the state of what has ended.
"""

import argparse
import json
from collections.abc import Callable

import torch
from further import TRAINING, draw
from measure import THREADS, measure_steps
from torch.nn import functional

VARIANTS = ["eager"]

Tensors = dict[str, torch.Tensor]


def minimal_gated_unit(w: Tensors, x: Tensors) -> torch.Tensor:
    h, outputs = x["x"].new_zeros(x["x"].shape[1], 96), []
    for step in x["x"]:
        f = torch.sigmoid(step @ w["Wf"] + w["bf"] + h @ w["Uf"])
        c = torch.tanh(step @ w["Wh"] + w["bh"] + (f * h) @ w["Uh"])
        h = (1 - f) * h + f * c
        outputs.append(h)
    return torch.stack(outputs).square().mean()


def _padded(values: torch.Tensor, splits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows, the steps first, and how long each is."""
    lengths = splits.diff()
    return torch.nn.utils.rnn.pad_sequence(list(values.split(lengths.tolist()))), lengths


def documents(w: Tensors, x: Tensors) -> torch.Tensor:
    words, lengths = _padded(x["x"], x["x.splits.1"])
    h = words.new_zeros(words.shape[1], 64)
    for number, step in enumerate(words):
        x_r, x_z, x_n = (step @ w["W"] + w["b"]).chunk(3, 1)
        h_r, h_z, h_n = (h @ w["U"]).chunk(3, 1)
        z = torch.sigmoid(x_z + h_z)
        n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
        h = torch.where((lengths > number)[:, None], (1 - z) * n + z * h, h)
    sentences, lengths = _padded(h, x["x.splits.0"])
    h = sentences.new_zeros(sentences.shape[1], 48)
    for number, step in enumerate(sentences):
        h = torch.where((lengths > number)[:, None], torch.tanh(step @ w["V"] + w["c"] + h @ w["R"]), h)
    return functional.cross_entropy(_dense(w, "logits", h), x["y"])


def one_of_two_networks(w: Tensors, x: Tensors) -> torch.Tensor:
    if x["which"].item() == 0:
        y = _dense(w, "mean_1", torch.relu(_dense(w, "mean_0", x["x"].mean(0))))
    else:
        h = x["x"].new_zeros(x["x"].shape[1], 128)
        for step in x["x"]:
            h = torch.relu(step @ w["W"] + w["b"] + h @ w["U"])
        y = _dense(w, "loop", h)
    return functional.mse_loss(y, x["y"])


def two_directions_with_attention(w: Tensors, x: Tensors) -> torch.Tensor:
    read = {}
    for name, steps in (("forward", x["x"]), ("backward", x["x"].flip(0))):
        h, outputs = steps.new_zeros(steps.shape[1], 96), []
        for step in steps:
            h = torch.tanh(step @ w[f"{name}.W"] + w[f"{name}.b"] + h @ w[f"{name}.U"])
            outputs.append(h)
        read[name] = torch.stack(outputs)
    both = torch.cat([read["forward"], read["backward"].flip(0)], 2)
    weights = torch.softmax(_dense(w, "score", torch.tanh(_dense(w, "key", both))), 0)
    return functional.cross_entropy(_dense(w, "logits", (weights * both).sum(0)), x["y"])


def residual_perceptron(w: Tensors, x: Tensors) -> torch.Tensor:
    def norm(name: str, h: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(h, (192,), w[f"{name}.scale"], w[f"{name}.bias"])

    h = _dense(w, "first", x["x"])
    for block in range(4):
        h = h + _dense(w, f"down_{block}", torch.relu(_dense(w, f"up_{block}", norm(f"norm_{block}", h))))
    return functional.cross_entropy(_dense(w, "logits", norm("norm_last", h)), x["y"])


def chain_of_gates(w: Tensors, x: Tensors) -> torch.Tensor:
    h = _dense(w, "first", x["x"])
    for _ in range(4):
        h = h + torch.tanh(h) * torch.sigmoid(h)
    return h.square().mean()


def _dense(w: Tensors, name: str, x: torch.Tensor) -> torch.Tensor:
    return x @ w[f"{name}.w"] + w[f"{name}.b"]


MODELS: dict[str, tuple[Callable[[Tensors, Tensors], torch.Tensor], Callable[[list[torch.Tensor]], torch.optim.Optimizer]]] = {
    "X1": (minimal_gated_unit, lambda parameters: torch.optim.SGD(parameters, 0.5, momentum=0.9)),
    "X2": (documents, lambda parameters: torch.optim.SGD(parameters, 0.1)),
    "X3": (one_of_two_networks, lambda parameters: torch.optim.SGD(parameters, 0.05)),
    "X4": (two_directions_with_attention, lambda parameters: torch.optim.Adam(parameters, 1e-3)),
    "X5": (residual_perceptron, lambda parameters: torch.optim.Adam(parameters, 1e-3)),
    "X6": (chain_of_gates, lambda parameters: torch.optim.SGD(parameters, 0.1)),
}


def stepper(name: str) -> Callable[[], torch.Tensor]:
    """A training step of a workload, which returns the cost before it."""
    weights, feed = ({key: torch.tensor(value) for key, value in arrays.items()} for arrays in draw(name))
    model, optimize = MODELS[name]
    optimizer = optimize([weight.requires_grad_() for weight in weights.values()])

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        cost = model(weights, feed)
        cost.backward()
        optimizer.step()
        return cost.detach()

    return step


def measure(name: str, min_time: float) -> dict[str, object]:
    """Run a workload; what a RESULT line says."""
    return {"peer": "torch", "variant": "eager", "workload": name, **measure_steps(lambda: (stepper(name), lambda: None), min_time)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", choices=list(TRAINING))
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANTS[0])
    parser.add_argument("--min-time", type=float, default=1.5, help="seconds of steps that are timed")
    parser.add_argument("--list", action="store_true", help="print the variants of each workload as JSON")
    arguments = parser.parse_args()
    if arguments.list:
        print(json.dumps(dict.fromkeys(TRAINING, VARIANTS)))
        return
    torch.set_num_threads(THREADS)
    print("RESULT " + json.dumps(measure(arguments.workload, arguments.min_time)), flush=True)


if __name__ == "__main__":
    main()
