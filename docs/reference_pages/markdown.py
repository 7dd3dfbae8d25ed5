"""Docstrings and code as Markdown."""

import ast
import re
import textwrap


def prose(text: str | None) -> str:
    """Return a docstring as Markdown. Indented paragraphs, and a rest that is Python, become code; other text is escaped."""
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
    """Return whether `text` is Python with a call or an assignment. A reference such as "Knuth, 1973." parses as Python too."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Assign) for node in ast.walk(tree))


def escaped(text: str) -> str:
    """Escape emphasis, tags and links in `text`, except in inline code."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", text, flags=re.DOTALL)
    markup = r"\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!])|\](?=[(\[])"
    return "".join(piece if at % 2 else re.sub(markup, r"\\\g<0>", piece) for at, piece in enumerate(pieces))


def first_sentence(text: str | None) -> str:
    """Return the first sentence of a docstring, or its first clause, on one line. Parentheses are not cut."""
    line = " ".join((text or "").partition("\n\n")[0].split())
    for end in re.finditer(r"[.;:](?=\s|$)", line):
        if line.count("(", 0, end.start()) == line.count(")", 0, end.start()):
            line = line[: end.start()]
            break
    return escaped(line)


def code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def verbatim(text: str | None) -> list[str]:
    return ["```text", text or "", "```"]


def python(text: str) -> list[str]:
    return ["```python", text, "```", ""]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as repository hosts and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
