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
        oarlock.UndefinedVarError: "a.safetensors": 1 of 2 variables have no tensor, and 1 tensor of 2 is wanted by no variable
          model.py:7      ol.load_weights(program, "a.safetensors")
              missing    "head.w" for "head.w" float32[3, 2], near "head.weight"
              unexpected "head.weight" float32[2, 3], near "head.w"
          Try: names={"variable": "tensor"} or names=function says what is called otherwise; strict=False loads what there is    (oarlock explain UndefinedVarError)
        """,  # noqa: E501
    )


def test_a_matrix_that_is_the_other_way_round(require):
    require(
        SCRIPT + 'save_file({"head.weight": torch.ones(2, 3), "head.b": torch.ones(2)}, "a.safetensors")\n'
        'ol.load_weights(program, "a.safetensors", names={"head.w": "head.weight"})\n',
        """
        oarlock.ShapeError: 1 tensor of 2 is of another shape than the variable
          model.py:7      ol.load_weights(program, "a.safetensors", names={"head.w": "head.weight"})
              "head.w" is float32[3, 2], and "head.weight" in "a.safetensors" is float32[2, 3]
          Try: transpose=['head.w']: a layer of PyTorch keeps [n, k] where linear reads [k, n]    (oarlock explain ShapeError)
        """,
    )
