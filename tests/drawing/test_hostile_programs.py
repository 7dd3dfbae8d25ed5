"""Programs of strangers: whatever they say is text in a drawing, never an element, an attribute, an address or a style."""

import re
import time
from xml.etree import ElementTree

import pytest
from drawing.markup import Element, read_html
from drawing.test_program import PROGRAMS
from fuzz.making import make

import oarlock as ol
from oarlock.ir.location import Location
from oarlock.ir.var import Initializer

PAYLOADS = [
    "<script>window.stolen = 1</script>",
    '"><img src=x onerror="window.stolen = 1">',
    "' onmouseover='window.stolen = 1' x='",
    "</style></title></svg></details><script>window.stolen = 1</script>",
    "javascript:window.stolen=1",
    "]]>--><!--<svg/onload=window.stolen=1>",
    "&lt;script&gt;&#60;script&#62;",
    "\x00\x1b[2J\ud800\ufffe\u202e\n\t",
    "url(//example.org/x){}} .oarlock{display:none}",
]
TAGS = {
    *("a", "b", "div", "details", "header", "i", "span", "style", "summary", "table", "tbody", "td", "tr"),
    *("svg", "circle", "line", "path", "rect"),
}
ATTRIBUTES = {
    *(
        "aria-hidden",
        "class",
        "cx",
        "cy",
        "d",
        "data-tip",
        "height",
        "href",
        "id",
        "open",
        "r",
        "rx",
        "style",
        "tabindex",
        "title",
        "width",
    ),
    *("x", "x1", "x2", "y", "y1", "y2"),
}


def spoil(program: ol.Program, payload: str) -> ol.Program:
    """Put a text wherever a program has one, whether or not a reader of files would let it pass."""
    for block in program.blocks:
        block.name = payload
        for number, var in enumerate(block.vars.values()):
            var.name = f"{payload}.{number}.{payload}"
            var.location = Location(payload, 1, payload, payload)
            if var.shape:
                var.shape = (payload, *var.shape[1:])
            if var.persistable:
                var.initializer = Initializer(payload, {payload: payload})
        for op in block.ops:
            op.type, op.name, op.location = payload, payload, Location(payload, 1, payload, payload)
            op.inputs = {f"{slot}{payload}": vars for slot, vars in op.inputs.items()}
            op.outputs = {f"{slot}{payload}": vars for slot, vars in op.outputs.items()}
            op.attributes = {f"{name}{payload}": value for name, value in op.attributes.items()} | {payload: payload}
    program.targets = dict.fromkeys([payload], next(iter(program.targets.values())))
    return program


def require_text_only(drawing: ol.ProgramDrawing) -> Element:
    tree = read_html(drawing.html)
    for element in tree.all()[1:]:
        assert element.tag in TAGS
        assert set(element.attributes) <= ATTRIBUTES
        assert re.fullmatch(r"#[\w-]+", element.attributes.get("href") or "#x")
        assert re.fullmatch(r"--g:\d+px;--l:\d+ch", element.attributes.get("style") or "--g:1px;--l:1ch")
        assert re.fullmatch(r"[\w -]*", element.attributes.get("class") or "")
    assert len([element for element in tree.all() if element.tag == "style"]) == 1
    svg = ElementTree.fromstring(drawing.svg)
    names = {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in svg.iter()}
    assert names <= {"svg", "title", "style", "g", "text", "circle", "line", "path", "rect"}
    assert not [name for element in svg.iter() for name in element.attrib if name.lower().startswith("on") or name == "href"]
    return tree


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_texts_of_a_program_are_text_in_its_drawing(payload):
    for make_program in PROGRAMS.values():
        require_text_only(ol.draw(spoil(make_program(), payload)))


def test_the_lines_that_a_file_says_its_author_wrote_are_escaped():
    program = PROGRAMS["classifier"]()
    for op in program.main.ops:
        op.location = Location("<i>.py", 1, "<b>", '"><script>x</script>')
    read = ol.Program.from_bytes(program.to_bytes())
    tips = [head.attributes["data-tip"] for head in require_text_only(ol.draw(read)).of_class("head") if "<b>" in str(head.attributes)]
    assert len(tips) >= len(program.main.ops)
    assert all(tip.startswith('<i>.py:1 in <b>\n    "><script>x</script>\n') for tip in tips)


def test_the_page_lets_no_script_run_but_its_own():
    page = ol.draw(spoil(PROGRAMS["classifier"](), PAYLOADS[0])).page
    assert page.count("<script>") == page.count("</script>") == 1
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert re.fullmatch(r"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-[\w+/=]+'", policy)
    assert not re.search(r'(src|href)="(?!#)', page)


def test_malformed_programs_that_load_are_drawn(tmp_path):
    drawn = 0
    for number in range(60):
        path = tmp_path / "model.safetensors"
        path.write_bytes(make(7, number).data)
        try:
            program = ol.load_model(path).program
        except ol.OarlockError:
            continue
        require_text_only(ol.draw(program))
        drawn += 1
    assert drawn > 5


def test_a_program_that_is_not_verified_is_drawn_to_its_end():
    """Blocks that own one another, ops that read what comes later, variables of no block."""
    program = PROGRAMS["nested_loops"]()
    outer, inner = (block for block in program.blocks if block.parent is not None and "GRAD" not in block.name)
    inner.ops[0].attributes["body"] = outer
    program.main.ops.reverse()
    del program.main.vars[program.main.inputs[0].name]
    require_text_only(ol.draw(program))


def test_long_names_and_many_variables_do_not_fill_a_line():
    with ol.Program() as program:
        xs = [ol.layer.data(f"{'long.' * 40}{number}", shape=[2]) for number in range(300)]
        program.targets = {"y": ol.op.sum(xs)}
    tree = read_html(ol.draw(program).html)
    item = next(item for item in tree.of_class("item", "op") if item.of_class("label")[0].text == "sum")
    words = item.of_class("words")[0].children
    assert len(words) == 9
    assert max(len(word.text) for word in words) <= 34
    assert "... 284 more" in item.of_class("head")[0].attributes["data-tip"]


def test_the_time_of_a_drawing_is_linear_in_the_ops():
    def seconds(count: int) -> float:
        with ol.Program() as program:
            values = [ol.layer.data("x", shape=[2])]
            for number in range(count):
                values.append(ol.op.add(values[-1], values[number // 2]))
        best = []
        for _ in range(3):
            started = time.process_time()
            drawing = ol.draw(program)
            _ = drawing.html, drawing.svg
            best.append(time.process_time() - started)
        return min(best)

    assert seconds(1000) < 4 * 2 * seconds(250)
