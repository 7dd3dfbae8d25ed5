"""HTML read as a tree, whose elements must be closed where they were opened."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Element", "read_html"]

_EMPTY = {"meta", "input", "br", "img"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: "list[Element]" = field(default_factory=list)
    text: str = ""

    @property
    def classes(self) -> list[str]:
        return [name.removeprefix("ol-") for name in (self.attributes.get("class") or "").split()]

    def all(self) -> "list[Element]":
        """This element and those inside it, in the order of the text."""
        return [self, *(inner for child in self.children for inner in child.all())]

    def of_class(self, *names: str) -> "list[Element]":
        return [element for element in self.all() if set(names) <= set(element.classes)]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}"
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in _EMPTY:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> where {self.open[-1].tag} is open"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def read_html(text: str) -> Element:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"{reader.open[-1].tag} is never closed"
    return reader.open[0]
