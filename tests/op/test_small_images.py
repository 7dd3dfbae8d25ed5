"""Convolutions of images with one channel, as narrow as the window: oneDNN reads beyond some of them."""

import itertools

import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import variants_of

((PACK, PACKED),) = variants_of(ol.op.conv2d).prepacked.values()
FORMATS = [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize("formats", list(itertools.product(FORMATS, FORMATS)), ids=["plain", "filter last", "image last", "both last"])
@pytest.mark.parametrize("window", [2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_what_is_convolved_is_that_of_double_precision(window, stride, formats):
    generator = torch.Generator().manual_seed(window)
    options = {"stride": (1, stride), "padding": (1, 0)}
    for width, count in itertools.product(range(window, window + 4), (1, 3)):
        image, filter = torch.randn(count, 1, 6, width, generator=generator), torch.randn(8, 1, 2, window, generator=generator)
        expected = torch.conv2d(image.double(), filter.double(), None, **options)
        given = [value.contiguous(memory_format=format) for value, format in zip((image, filter), formats, strict=True)]
        torch.testing.assert_close(ol.op.conv2d.kernel(*given, **options).double(), expected, rtol=1e-4, atol=1e-4)
        packed = PACK(given[1], **options)
        torch.testing.assert_close(PACKED(*given, packed=packed, **options).double(), expected, rtol=1e-4, atol=1e-4)
