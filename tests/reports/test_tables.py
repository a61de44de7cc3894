import pytest

from m3n.reports.markup import Cell, Column, Sides, facts, heat_map, table
from tests.reports.pages import Page


def test_heads_are_buttons_that_say_how_they_sort():
    page = Page(table("A & B", [Column("name"), Column("size", numeric=True)], [[("x", "x"), ("1 000", 1000.0)]]))
    heads = [th for th in page.all("th") if "thead" in th["inside"]]
    assert [head["attributes"]["data-kind"] for head in heads] == ["text", "number"]
    assert {head["attributes"]["aria-sort"] for head in heads} == {"none"}
    assert page.texts("button") == ["name", "size"]
    assert page.texts("caption") == ["A & B"]
    assert page.all("td")[0]["attributes"]["data-value"] == "1000"
    box = page.all("div", "box")[0]["attributes"]
    assert box["tabindex"] == "0" and box["role"] == "region" and box["aria-label"] == "A & B"


@pytest.mark.parametrize(("value", "written"), [(float("inf"), "Infinity"), (0.1, "0.1"), (3, "3"), (1e-9, "1e-09")])
def test_values_to_sort_by_are_numbers_of_the_script(value, written):
    page = Page(table("t", [Column("n", numeric=True)], [[("shown", value)]]))
    assert page.all("td")[0]["attributes"]["data-value"] == written


def test_heat_maps_show_numbers_and_six_steps_of_colour():
    cells = [[Cell("5", "blue", 1.0, "note"), Cell("·")], [Cell("1", "orange", 0.01), Cell("3", "orange", 0.5)]]
    page = Page(heat_map("M", Sides("right", "predicted", ["a", "b"], ["a", "b"]), cells))
    found = [td for td in page.all("td") if "tbody" in td["inside"]]
    assert [td["text"] for td in found] == ["5", "·", "1", "3"]
    assert [td["attributes"].get("class") for td in found] == ["blue-6", None, "orange-1", "orange-3"]
    assert found[0]["attributes"]["title"] == "note"
    assert [th["attributes"]["scope"] for th in page.all("th")] == ["col", "col", "row", "row"]


def test_facts():
    page = Page(facts("F", [("a", "<1>"), ("b", 2)]))
    assert page.texts("td") == ["<1>", "2"]
