"""Python in the place of data: text that says so in the environment where anything runs it."""

__all__ = ["PAYLOADS", "SPRUNG"]

SPRUNG = "OARLOCK_SPRUNG"
_RUN = f"__import__('os').environ.__setitem__('{SPRUNG}','1')"
PAYLOADS = [
    _RUN,
    f"x={_RUN}",
    f"x: {_RUN}",
    f"x, y={_RUN}",
    f'x"), {_RUN.replace(chr(39), chr(34))}, ("',
    f"x'), {_RUN}, ('",
    f"x': {_RUN.replace(chr(39), chr(34))}, 'y",
    f"x):\n    pass\n{_RUN}\ndef f(x",
    f"x\n{_RUN}\n",
    f"x # {_RUN}",
    f"x; {_RUN};",
    f'"""\n{_RUN}\n"""',
    f"({_RUN} or 1)",
]
