"""Text that is escaped is the same text to who reads the markup, but for what markup cannot hold."""

from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from oarlock.drawing.escaping import escaped

TEXTS = ["plain", "a < b & c > d", "\"'`", "</title><script>", "&amp; &#60; &lt", "]]>", "one\ntwo\tthree", "\u202e\U0001f600 \u00e9"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_comes_back_out_of_xml_and_html(text):
    element = ElementTree.fromstring(f'<a title="{escaped(text)}">{escaped(text)}</a>')
    assert (element.text, element.get("title")) == (text, text.replace("\t", " "))
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.append(dict(attrs)["title"])

        def handle_data(self, data):
            found.append(data)

    reader = Reader(convert_charrefs=True)
    reader.feed(f'<a title="{escaped(text)}">{escaped(text)}</a>')
    reader.close()
    assert found == [text, text]


@pytest.mark.parametrize("letter", ["\x00", "\x0b", "\x1b", "\ud800", "\ufffe", "\uffff"])
def test_letters_that_xml_has_not_are_replaced(letter):
    assert ElementTree.fromstring(f'<a title="{escaped(letter)}">{escaped(letter)}</a>').text == "\ufffd"
