"""The messages of `ol.load_weights`, whole, as a user reads them."""

SCRIPT = """
import torch
from safetensors.torch import save_file
import oarlock as ol
with ol.Program() as program:
    ol.layer.fc(ol.layer.data("x", shape=[3]), 2, name="head")
"""


def test_names_that_differ(require):
    require(
        SCRIPT + 'save_file({"head.weight": torch.ones(2, 3), "head.b": torch.ones(2)}, "a.safetensors")\n'
        'ol.load_weights(program, "a.safetensors")\n',
        """
        oarlock.UndefinedVarError: "a.safetensors": 1 of 2 variables have no tensor, and 1 tensor of 2 is not used by any variable
          model.py:7      ol.load_weights(program, "a.safetensors")
              missing    "head.w" for "head.w" float32[3, 2], similar to "head.weight"
              unexpected "head.weight" float32[2, 3], similar to "head.w"
          Try: map different names with names={"variable": "tensor"} or names=function; load the rest with strict=False    (oarlock explain UndefinedVarError)
        """,  # noqa: E501
    )


def test_a_matrix_that_is_the_other_way_round(require):
    require(
        SCRIPT + 'save_file({"head.weight": torch.ones(2, 3), "head.b": torch.ones(2)}, "a.safetensors")\n'
        'ol.load_weights(program, "a.safetensors", names={"head.w": "head.weight"})\n',
        """
        oarlock.ShapeError: the shape of 1 tensor of 2 differs from the variable's
          model.py:7      ol.load_weights(program, "a.safetensors", names={"head.w": "head.weight"})
              "head.w" is float32[3, 2], but "head.weight" in "a.safetensors" is float32[2, 3]
          Try: use transpose=['head.w']: PyTorch layers store [n, k], and linear reads [k, n]    (oarlock explain ShapeError)
        """,
    )
