"""Names of layers in PyTorch, Keras and the literature that differ too much from ours for spelling suggestions."""

__all__ = ["find_our_name"]

_OURS = {
    "activation": 'act="relu" of a layer, or ol.op.relu',
    "avgpool1d": "ol.layer.average_pool1d",
    "avgpool2d": "ol.layer.average_pool2d",
    "avgpool3d": "ol.layer.average_pool3d",
    "bidirectional": "ol.layer.lstm(..., bidirectional=True)",
    "conv1dtranspose": "ol.layer.conv_transpose1d",
    "conv2dtranspose": "ol.layer.conv_transpose2d",
    "conv3dtranspose": "ol.layer.conv_transpose3d",
    "dense": "ol.layer.fc",
    "globalaveragepooling1d": "ol.layer.global_pool1d",
    "globalaveragepooling2d": "ol.layer.global_pool2d",
    "globalaveragepooling3d": "ol.layer.global_pool3d",
    "input": "ol.layer.data",
    "lambda": "any function of variables",
    "masking": "lengths=... of a recurrence, or a ragged input",
    "moduledict": "a dict",
    "modulelist": "a list",
    "permute": "ol.layer.transpose",
    "positionalencoding": "ol.layer.sinusoidal_positions",
    "constantpad1d": "ol.op.pad",
    "constantpad2d": "ol.op.pad",
    "constantpad3d": "ol.op.pad",
    "zeropad1d": "ol.op.pad",
    "zeropad2d": "ol.op.pad",
    "zeropad3d": "ol.op.pad",
    "zeropadding1d": "ol.op.pad",
    "zeropadding2d": "ol.op.pad",
    "zeropadding3d": "ol.op.pad",
}


def find_our_name(name: str) -> str | None:
    """Return a hint for a layer name from another framework, or None for any other name."""
    ours = _OURS.get(name.replace("_", "").lower())
    return None if ours is None else f"in Oarlock: {ours}"
