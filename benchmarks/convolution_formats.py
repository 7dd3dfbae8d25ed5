"""How far from float64, and how long, are convolutions of images in both memory formats, by the length of their sums?

    OMP_NUM_THREADS=1 python benchmarks/convolution_formats.py [--seconds 1]

Prints for each: the products in a sum, the distance from float64 (the norm of the difference over that of the values) of PyTorch's kernel
on images in the usual order and in channels-last order, the median milliseconds of a call by turns, and the order that an op takes.
"""

import argparse
import statistics
import time

import torch

from oarlock.tensor.convolution import has_long_sums

IMAGES = 2
SHAPES = [(16, 56, 3), (64, 56, 3), (128, 28, 3), (256, 14, 3), (512, 7, 3), (1024, 14, 1), (2048, 7, 1)]  # channels, pixels a side, window


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each shape")
    seconds = parser.parse_args().seconds
    print("channels  side  window  products     usual      last  ratio     usual      last  taken")
    generator = torch.Generator().manual_seed(0)
    for channels, side, window in SHAPES:
        x = torch.randn(IMAGES, channels, side, side, generator=generator).relu()
        products = channels * window**2
        filter = torch.randn(channels, channels, window, window, generator=generator) / products**0.5
        exact = torch.conv2d(x.double(), filter.double(), padding=window // 2)
        formats = [
            (x.contiguous(memory_format=order), filter.contiguous(memory_format=order))
            for order in (torch.contiguous_format, torch.channels_last)
        ]
        apart = [((_convolve(*each).double() - exact).norm() / exact.norm()).item() for each in formats]
        times: list[list[float]] = [[], []]
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for held, each in zip(times, formats, strict=True):
                begin = time.perf_counter()
                _convolve(*each)
                held.append((time.perf_counter() - begin) * 1e3)
        usual, last = map(statistics.median, times)
        taken = "usual" if has_long_sums(x, filter.shape) else "last"
        print(
            f"{channels:>8}  {side:>4}  {window:>6}  {products:>8}  {apart[0]:8.1e}  {apart[1]:8.1e}  {apart[1] / apart[0]:5.1f}  "
            f"{usual:5.2f} ms  {last:5.2f} ms  {taken}"
        )


def _convolve(x: torch.Tensor, filter: torch.Tensor) -> torch.Tensor:
    return torch.conv2d(x, filter, padding=filter.shape[-1] // 2)


if __name__ == "__main__":
    main()
