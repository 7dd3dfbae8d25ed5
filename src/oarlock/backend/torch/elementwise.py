"""A sum in the memory of its first term: a handwritten variant."""

from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.elementwise import add_up, sum_


@in_place_variant(sum_, "xs")
def sum_in_place(xs):
    return xs[0] if len(xs) == 1 else add_up(xs, out=xs[0])
