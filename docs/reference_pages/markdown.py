"""Docstrings and lines of code as Markdown."""

import ast
import re
import textwrap


def prose(text: str | None) -> str:
    """A docstring as Markdown: what is indented, or Python from the second line on, is code; nothing outside code is markup."""
    first, _, rest = (text or "").partition("\n\n")
    if rest and is_python(rest):
        return f"{escaped(first)}\n\n```python\n{rest}\n```"
    parts = []
    for part in re.split(r"\n\n+", text or ""):
        lines = part.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            block = textwrap.dedent(part)
            parts.append(f"```{'python' if is_python(block) else 'text'}\n{block}\n```")
        else:
            parts.append(escaped(part))
    return "\n\n".join(parts)


def is_python(text: str) -> bool:
    """Whether `text` is Python that does something; a reference such as "Knuth, 1973." is Python too, as far as grammar goes."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Assign) for node in ast.walk(tree))


def escaped(text: str) -> str:
    """`text` with nothing but code that Markdown would take for markup: emphasis, tags, links."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", text, flags=re.DOTALL)
    markup = r"\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!])|\](?=[(\[])"
    return "".join(piece if at % 2 else re.sub(markup, r"\\\g<0>", piece) for at, piece in enumerate(pieces))


def code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def verbatim(text: str | None) -> list[str]:
    return ["```text", text or "", "```"]


def python(text: str) -> list[str]:
    return ["```python", text, "```", ""]


def slug(heading: str) -> str:
    """The anchor of a heading, as a forge and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
