"""Fine-tune a PyTorch residual network on handwritten digits: import it as a layer, and return the weights as a state dict.

python examples/fine_tuned_resnet.py
python examples/fine_tuned_resnet.py --torchvision     torchvision's ResNet-18, with eleven million parameters
"""

import argparse
import sys

import torch
from torch import nn
from torch.nn import functional

import oarlock as ol


class Block(nn.Module):
    """Two convolutions and a shortcut, with torchvision's parameter names (He et al., 2016)."""

    def __init__(self, before: int, after: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return functional.relu(self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet(nn.Module):
    """A residual network for images of 8 by 8 pixels: float32[n 1 8 8] to float32[n 64]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1, self.layer2, self.layer3 = Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.layer3(self.layer2(self.layer1(x))).mean(dim=(2, 3))


def make_trunk(from_torchvision: bool) -> nn.Module:
    """Return the network without its last layer; torchvision's gets a first convolution for small gray images."""
    if not from_torchvision:
        return ResNet()
    try:
        from torchvision.models import resnet18
    except ImportError:
        sys.exit("torchvision is not installed: pip install torchvision, or leave out --torchvision")
    net = resnet18()
    net.conv1, net.maxpool, net.fc = nn.Conv2d(1, 64, 3, padding=1, bias=False), nn.Identity(), nn.Identity()
    return net


def pretrain(net: nn.Module, image: torch.Tensor, epochs: int) -> float:
    """Pretrain in PyTorch without labels, by predicting the rotation of an image (Gidaris et al., 2018); return the accuracy.

    It replaces the pretrained weights of a file, which this example does not have.
    """
    head = nn.Linear(net(image[:2]).shape[1], 4)
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], 1e-3)
    right = torch.tensor(0.0)
    for _ in range(epochs):
        right = torch.tensor(0.0)
        for rows in torch.randperm(len(image)).split(64):
            turns = torch.arange(len(rows)) % 4
            turned = torch.stack([image[row].rot90(int(turn), (1, 2)) for row, turn in zip(rows, turns, strict=True)])
            logits = head(net(turned))
            optimizer.zero_grad()
            functional.cross_entropy(logits, turns).backward()
            optimizer.step()
            right += (logits.argmax(1) == turns).sum()
    return float(right) / len(image)


def main(seed: int = 0, epochs: int = 8, torchvision: bool = False, path: str = "resnet_digits.safetensors") -> float:
    """Pretrain in PyTorch, import, train the last layer and then all layers; return the accuracy."""
    train, test = ol.datasets.digits.split(seed=seed)
    torch.manual_seed(seed)
    net = make_trunk(torchvision)
    told = pretrain(net, torch.from_numpy(train["image"]), epochs)
    print(f"in PyTorch: {told:.1%} of the rotations of training images are predicted correctly")

    trunk = ol.from_torch(net, torch.zeros(2, 1, 8, 8), dynamic="n")
    with ol.Program(seed=seed) as program:
        image = ol.layer.data("image", shape=[1, 8, 8])
        label = ol.layer.data("label", shape=[], dtype="int64")
        logits = ol.layer.fc(trunk(image, name="trunk"), 10)
        cost = ol.layer.cross_entropy(logits, label)
        accuracy = ol.layer.accuracy(logits, label)

    parameters = ol.init(program, ol.Scope())
    of_trunk = [parameters.var(var.name) for var in program.persistables() if var.name.startswith("trunk.")]
    for variable in of_trunk:
        variable.trainable = False
    adam = ol.optimizer.Adam(3e-3)
    result = ol.train(cost, train, optimizer=adam, epochs=epochs, validate=test, show={"accuracy": accuracy}, scope=parameters)
    print(f"only the last layer: {result.history[-1].validation['accuracy']:.1%} of the unseen digits")
    for variable in of_trunk:
        variable.trainable = True
    result = ol.train(result, train, epochs=2 * epochs, validate=test)
    reached = result.history[-1].validation["accuracy"]
    print(f"all layers: {reached:.1%}")

    net.load_state_dict(ol.to_torch_state(result, net, name="trunk"))
    net.eval()
    with torch.no_grad():
        features = net(torch.from_numpy(test["image"]))
        theirs = functional.linear(features, result.parameters["fc_0.w"].T, result.parameters["fc_0.b"])
    apart = abs(ol.infer(logits, {"image": test["image"]}, result.parameters) - theirs.numpy()).max()
    print(f"back in PyTorch: the same logits, within {apart:.0e}")
    ol.save_model(ol.layer.softmax(logits), result.parameters, path)
    print(f"saved {path}")
    return reached


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0, help="seed of the initial values, the order of the data and the split")
    arguments.add_argument(
        "--epochs", type=int, default=8, help="number of epochs in PyTorch and for the last layer; all layers train for twice as many"
    )
    arguments.add_argument("--torchvision", action="store_true", help="use torchvision's ResNet-18")
    arguments.add_argument("--path", default="resnet_digits.safetensors", help="output file")
    main(**vars(arguments.parse_args()))
