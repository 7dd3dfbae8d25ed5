"""Count sentences that are hard to read, by folder of the package: docstrings, comments, messages and help texts.

    python tools/words.py                        the counts of each folder, and the limit of each
    python tools/words.py --list FOLDER          the sentences of a folder, such as src/oarlock/op
    python tools/words.py --lower                lower the limits in tests/golden/words.json to the counts

`tests/architecture/test_words.py` fails if a count is above its limit. The expressions also find some correct sentences, so a
folder need not reach 0.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "oarlock"
LIMITS = ROOT / "tests" / "golden" / "words.json"
GENERATED = {"proto/program_pb2.py"}

START = r"(?:^|(?<=[.;:]\s))"
PLACES = "no|a|an|the|one|some|each|any|all|both|none|nothing|something|there|it|its|they|their|this|these|that|those|`\\w+`"
CONSTRUCTIONS = {
    "a clause for a noun": (r"\b[Ww]hat(?:ever)?\b(?!\s+if\b)(?![^.;]*\?)",),
    "a part before its whole": (START + r"Of\s(?!course\b)[^.,;]+,", r",\s+of\s+(?:which|whom|these|those)\b"),
    "where for if": (rf"\b[Ww]here\s+(?:{PLACES})\b",),
    "a person for the passive": (
        r"\b(?:[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody|[Ww]hoever)\b",
        START + r"Who\b(?![^.;]*\?)",
        r"\b(?:by|for|of|to|with)\s+who\b",
    ),
    "a pronoun for a noun": (
        r"\b(?:is|are|be|as|than|from|with|by|and|or)\s+(?:that|those)\s+(?:of|by|which|whose|from|in|with)\b",
        r"\bthe\s+ones?\s+(?:that|which|of)\b",
    ),
    "so many": (r"\b[Ss]o\s+(?:many|much|few|often|long)\b",),
    "data as a person": (
        r"\b(?:tells?|told|lies|lying|stands?(?!-)|standing|lets?\s+go)\b",
        r"\b(?:is|are)\s+said\b",
        r"\bhand(?:s|ed)?\s+(?:out|over|back)\b",
    ),
    "a verb of earlier centuries": (
        r"\b(?:is|are|be|been)\s+had\b",
        r"\bspare[sd]?\b",
        r"\bgo(?:es|ne)?\s+on\b",
        r"\btake[sn]?\s+up\b",
        r"\bcut\s+short\b",
        r"\bunless\s+told\b",
    ),
    "an adverb of earlier centuries": (
        r"\b(?:anew|alike|apart|besides?|beforehand|meanwhile|thereby|therein|thereof|whereby|wherein|whereof)\b",
        r"\b(?:once\s+more|by\s+turns|at\s+once)\b",
    ),
    "a negated noun": (r"(?<!there\s)\b(?:is|are|was|were)\s+no\s+(?!longer\b|more\b|less\b|such\b|need\b|way\b|other\b)\w+",),
    "an opening that continues": (r"\A(?:What|Where|Who|Whose|That|Those|How|Which|The\s+same|Likewise|Also)\b",),
}
COMMENT = re.compile(r"(?:^\s*|  )#\s?([^'\"]*(?:['\"][^'\"]*['\"][^'\"]*)*)$")
PATTERNS = {name: re.compile("|".join(alternatives)) for name, alternatives in CONSTRUCTIONS.items()}


@dataclass(frozen=True)
class Text:
    """A docstring, a comment or a string of a file, by its line."""

    kind: str
    path: Path
    line: int
    text: str

    @property
    def constructions(self) -> list[str]:
        return [name for name, pattern in PATTERNS.items() if pattern.search(self.text)]


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the docstrings, the comments, and the strings of three words or more that are not docstrings."""
    source = path.read_text(encoding="utf-8")
    seen: set[int] = set()
    inside: set[int] = set()  # lines that begin inside a string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                seen.add(id(node.body[0].value))  # type: ignore[attr-defined]
                yield Text("docstrings", path, getattr(node, "lineno", 1), text)
        elif isinstance(node, ast.JoinedStr):
            inside.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
            seen.update(id(part) for part in node.values)
            parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield Text("strings", path, node.lineno, "".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            inside.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
            if id(node) not in seen and len(node.value.split()) > 2:
                yield Text("strings", path, node.lineno, node.value)
    for number, line in enumerate(source.splitlines(), 1):
        if number not in inside and (comment := COMMENT.search(line)):
            yield Text("comments", path, number, comment[1])


def folder_of(path: Path) -> str:
    """Return the folder below the package, at most two names deep; "." for the package itself."""
    return "/".join(path.relative_to(PACKAGE).parts[:-1][:2]) or "."


def count_words() -> dict[str, dict[str, int]]:
    """Count the texts with a construction by folder and kind; "two" counts the docstrings with two or more."""
    counts: dict[str, dict[str, int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix() in GENERATED:
            continue
        found = counts.setdefault(folder_of(path), {"docstrings": 0, "two": 0, "comments": 0, "strings": 0})
        for text in texts_of(path):
            found[text.kind] += bool(text.constructions)
            found["two"] += text.kind == "docstrings" and len(text.constructions) > 1
    return dict(sorted(counts.items()))


def read_limits() -> dict[str, dict[str, int]]:
    return json.loads(LIMITS.read_text(encoding="utf-8"))


def excesses(counts: dict[str, dict[str, int]], limits: dict[str, dict[str, int]]) -> list[str]:
    """Return a line for each count above its limit. The limits of a folder without any are 0."""
    return [
        f"{folder}: {count} {kind}, at most {limit}"
        for folder, found in counts.items()
        for kind, count in found.items()
        if count > (limit := limits.get(folder, {}).get(kind, 0))
    ]


def lower_limits() -> None:
    """Write the counts as limits, except those above their limit."""
    limits = read_limits() if LIMITS.exists() else None
    lowered = count_words()
    if limits is not None:
        lowered = {
            folder: {kind: min(count, limits.get(folder, {}).get(kind, 0)) for kind, count in found.items()}
            for folder, found in lowered.items()
        }
    rows = [f"  {json.dumps(folder)}: {json.dumps(found)}" for folder, found in lowered.items()]
    LIMITS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8", newline="\n")


def print_counts() -> None:
    limits = read_limits()
    print(f"{'folder':32s} docstrings       two  comments   strings   (limits)")
    for folder, found in count_words().items():
        allowed = limits.get(folder, {})
        cells = [f"{count:4d} ({allowed.get(kind, 0)})" for kind, count in found.items()]
        print(f"{folder:32s} {'  '.join(f'{cell:>10s}' for cell in cells)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", metavar="PATH", help="print the sentences found in a folder or a file")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the counts; limits are never raised")
    options = parser.parse_args()
    if options.list:
        place = Path(options.list).resolve()
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for text in texts_of(path):
                if text.constructions:
                    print(f"{path.relative_to(ROOT)}:{text.line}: {', '.join(text.constructions)}: {' '.join(text.text.split())}")
    elif options.lower:
        lower_limits()
    else:
        print_counts()
    for line in excesses(count_words(), read_limits()):
        print(f"above its limit: {line}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
