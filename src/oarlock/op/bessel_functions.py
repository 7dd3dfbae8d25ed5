"""Bessel functions of orders 0 and 1, elementwise (DLMF 10); `special_functions` has the modified ones of the first kind."""

import math

import torch

from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.special_functions import divided_by_itself, widely
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck

__all__ = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "k0", "k0e", "k1", "k1e"]


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, 0.7651976865579666]), GradCheck(low=0.5, high=3.0)])
def bessel_j0(x):
    """The Bessel function of the first kind of order 0."""
    return widely(torch.special.bessel_j0, x)


bessel_j0.gradient_programs(x=lambda x, dy: neg(multiply(dy, bessel_j1(x))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[0.0, 0.4400505857449335]), GradCheck(low=0.5, high=3.0)])
def bessel_j1(x):
    """The Bessel function of the first kind of order 1."""
    return widely(torch.special.bessel_j1, x)


bessel_j1.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(bessel_j0(x), divided_by_itself(y, x))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[-math.inf, 0.08825696421567697]), GradCheck(low=0.5, high=3.0)])
def bessel_y0(x):
    """The Bessel function of the second kind of order 0; NaN below 0."""
    return widely(torch.special.bessel_y0, x)


bessel_y0.gradient_programs(x=lambda x, dy: neg(multiply(dy, bessel_y1(x))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[-math.inf, -0.7812128213002887]), GradCheck(low=0.5, high=3.0)])
def bessel_y1(x):
    """The Bessel function of the second kind of order 1; NaN below 0."""
    return widely(torch.special.bessel_y1, x)


bessel_y1.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(bessel_y0(x), divide(y, x))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[math.inf, 0.42102443824070834]), GradCheck(low=0.5, high=3.0)])
def k0(x):
    """The modified Bessel function of the second kind of order 0; NaN below 0."""
    return widely(torch.special.modified_bessel_k0, x)


k0.gradient_programs(x=lambda x, dy: neg(multiply(dy, k1(x))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[math.inf, 0.6019072301972346]), GradCheck(low=0.5, high=3.0)])
def k1(x):
    """The modified Bessel function of the second kind of order 1; NaN below 0."""
    return widely(torch.special.modified_bessel_k1, x)


k1.gradient_programs(x=lambda x, y, dy: neg(multiply(dy, add(k0(x), divide(y, x)))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0], y=[0.42102443824070834 * math.e]), GradCheck(low=0.5, high=3.0)])
def k0e(x):
    """Exponentially scaled `k0`: ``exp(x) k0(x)``, which does not underflow."""
    return widely(torch.special.scaled_modified_bessel_k0, x)


k0e.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(y, k1e(x))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0], y=[0.6019072301972346 * math.e]), GradCheck(low=0.5, high=3.0)])
def k1e(x):
    """Exponentially scaled `k1`: ``exp(x) k1(x)``, which does not underflow."""
    return widely(torch.special.scaled_modified_bessel_k1, x)


k1e.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(subtract(y, k0e(x)), divide(y, x))))
