import math
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3n.reports.markup import Markup, count, grouped, joined, number, percent, tag
from tests.reports.pages import Page


class Text(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found, self.tags, self.attributes = "", [], {}
        self.feed(html)
        self.close()

    def handle_data(self, data):
        self.found += data

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.update(attributes)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_any_text_comes_back_as_text_and_makes_no_element(text):
    read = Text(tag("p", text, title=text))
    assert read.tags == ["p"]
    assert read.found == text
    assert read.attributes == {"title": text}


def test_only_markup_is_taken_for_html():
    assert tag("p", "<b>", tag("b", "&")) == "<p>&lt;b&gt;<b>&amp;</b></p>"
    assert joined("<", [tag("br"), None, 3], Markup("<i></i>")) == "&lt;<br>3<i></i>"


def test_what_no_page_may_hold_is_replaced():
    html = tag("p", "a\x00b\ud800c\td", title="\x1b")
    assert html == '<p title="�">a�b�c\td</p>'
    assert html.encode()


def test_attributes():
    html = tag("td", class_="a b", aria_label="x", hidden=True, title=None, checked=False, tabindex=0)
    assert html == '<td class="a b" aria-label="x" hidden tabindex="0"></td>'
    assert tag("input", name="n") == '<input name="n">'
    assert Page(html).all("td", "b")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.00084191, "0.000842"),
        (-1.5, "−1.5"),
        (1234.5, "1234"),
        (999.6, "1000"),
        (3.2e12, "3.2e+12"),
        (1e-9, "1e−09"),
        (9.84e-5, "0.0000984"),
        (100.0, "100"),
        (0.99999, "1"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "unknown"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.9591, "95.9 %"), (0.0004, "0.04 %"), (3.0, "300.0 %"), (math.inf, "∞")],
)
def test_percents(share, text):
    assert percent(share).replace("\u202f", " ") == text


def test_counts():
    assert count(1, "box", "boxes") == "1 box"
    assert count(0, "box", "boxes") == "0 boxes"
    assert grouped(1234567) == "1\u202f234\u202f567"
