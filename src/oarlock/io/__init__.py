"""Model files."""

from oarlock.io.model import Model, infer, load_model, save_model

__all__ = ["Model", "infer", "load_model", "save_model"]
