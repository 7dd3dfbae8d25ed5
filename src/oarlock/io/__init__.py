"""Model files."""

from oarlock.io.model import Model, infer, load_model, save_model
from oarlock.suggestions import suggest_names

__all__ = ["Model", "infer", "load_model", "save_model"]

suggest_names(__name__)
