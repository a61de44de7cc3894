"""The page in a real browser: what a reader sees, clicks and types."""

import shutil

import numpy as np
import pytest

import m3n
from tests.cli.aligners import WordAligner
from tests.reports.pages import fixed, records

playwright = pytest.importorskip("playwright.sync_api")
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 900}
EVIL = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"

# WCAG 2: relative luminance and contrast of every piece of text with what is behind it
CONTRASTS = """() => {
  const channels = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = (c) => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = channels(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("script") || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const ink = channels(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [luminance(ink), luminance(behind(element))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.className, element.textContent]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A page with long tables, all colours, odd words and 60 records."""
    random = np.random.default_rng(0)
    labels = [f"B-{k:02d}" for k in range(70)]
    gold = [[labels[k] for k in random.integers(70, size=12)] for _ in range(150)]
    guessed = [[label if random.uniform() < 0.7 else labels[0] for label in sequence] for sequence in gold]
    words = [[("word" * int(random.integers(1, 30)), EVIL)] * 12 for _ in gold]
    words[0] = [(EVIL,)] * 12
    guessed[0] = [labels[1]] * 12
    table = random.normal(size=(70, 70))
    model = fixed(guessed, classes=labels, trace=records(60), transitions_=table)
    path = tmp_path_factory.mktemp("report") / "page.html"
    m3n.report(None, model, words, gold, title="A title " + "that is long " * 8 + EVIL).save(path)
    return path


@pytest.fixture
def visit(browser, saved):
    """Open a page, and insist that it neither complains nor asks for anything."""
    contexts, troubles = [], []

    def go(path=saved, **settings):
        context = browser.new_context(**{"viewport": DESK, "offline": True, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("request", lambda request: request.url == path.as_uri() or troubles.append(f"request: {request.url}"))
        page.goto(path.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert troubles == []


def readout(page):
    return [page.locator(f"dd[data-value={name}]").inner_text() for name in ("passes", "primal", "gap")]


def test_hovering_shows_the_nearest_record(visit):
    page = visit()
    assert readout(page) == ["60", "1.0167", "0.016667"]  # the last one
    picture = page.locator("figure[data-along=passes] svg[role=img]").nth(1)
    box = picture.bounding_box()
    left, width = box["x"] + box["width"] * 62 / 480, box["width"] * (468 - 62) / 480
    for passes in (1, 4, 30):
        across = left + width * np.log(passes * 1.01) / np.log(60)
        page.mouse.move(across, box["y"] + box["height"] / 2)
        assert readout(page) == [str(passes), f"{1 + 1 / passes:.5g}", f"{1 / passes:.5g}"]
        dot = page.locator("figure[data-along=passes] .dot.gap").bounding_box()
        assert dot["x"] + dot["width"] / 2 == pytest.approx(across, abs=3)


def test_the_keyboard_steps_through_the_records(visit):
    page = visit()
    slider = page.get_by_label("Step through the records")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert readout(page)[0] == "58"
    assert slider.get_attribute("aria-valuetext").startswith("passes 58, seconds 5.8, primal 1.0172")
    page.keyboard.press("Home")
    assert readout(page)[0] == "1"
    assert page.locator("figure[data-along=passes] .dot.dual").evaluate("e => e.style.visibility") == "hidden"


def test_the_horizontal_axis_can_be_switched(visit):
    page = visit()
    shown = page.locator("figure:visible")
    assert [shown.nth(k).get_attribute("data-along") for k in range(shown.count())] == ["passes", "passes"]
    page.get_by_role("radio", name="passes").focus()
    page.keyboard.press("ArrowRight")
    assert [shown.nth(k).get_attribute("data-along") for k in range(shown.count())] == ["seconds", "seconds"]


def column(page, k):
    return page.locator("#scores table.sortable").last.evaluate(
        "(table, k) => [...table.tBodies[0].rows].filter((row) => row.getClientRects().length)"
        ".map((row) => row.cells[k].dataset.value)", k
    )  # fmt: skip


def test_tables_sort_by_click_and_by_keyboard(visit):
    page = visit()
    table = page.locator("#scores table.sortable").last
    head = table.locator("th", has_text="recall")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    falling = list(map(float, column(page, 2)))
    assert falling == sorted(falling, reverse=True) and len(set(falling)) > 5
    page.keyboard.press("Enter")  # the button still has the focus
    assert head.get_attribute("aria-sort") == "ascending"
    rising = list(map(float, column(page, 2)))
    assert rising == sorted(rising) and rising[0] < falling[-1]
    label = table.locator("th", has_text="label").get_by_role("button")
    label.focus()
    page.keyboard.press("Space")
    assert column(page, 0) == [f"B-{k:02d}" for k in range(50)]
    assert head.get_attribute("aria-sort") == "none"


def test_long_tables_begin_short(visit):
    page = visit()
    assert len(column(page, 0)) == 50
    page.get_by_role("button", name="Show all 70 rows").last.click()
    assert len(column(page, 0)) == 70
    page.get_by_role("button", name="Show the first 50 rows").click()
    assert len(column(page, 0)) == 50


@pytest.mark.parametrize("viewport", [PHONE, DESK])
def test_nothing_is_wider_than_the_screen(visit, viewport):
    page = visit(viewport=viewport)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    for details in page.locator("details").all():
        details.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    if viewport is PHONE:  # wide matrices scroll in their own box
        assert page.locator(".box:has(table.heat)").first.evaluate("e => e.scrollWidth > e.clientWidth")


@pytest.mark.parametrize(("scheme", "media"), [("light", "screen"), ("dark", "screen"), ("dark", "print")])
def test_contrast_of_every_text(visit, scheme, media):
    page = visit(color_scheme=scheme)
    page.emulate_media(media=media, color_scheme=scheme)
    found = page.evaluate(CONTRASTS)
    styles = {style for _, style, _ in found if isinstance(style, str)}
    assert {f"{colour}-{step}" for colour in ("blue", "orange") for step in range(1, 7)} <= styles
    assert [entry for entry in found if entry[0] < 4.5] == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(15, 19, 24)") == (scheme == "dark" and media == "screen")


def test_focus_is_visible_and_everything_scrollable_can_be_reached(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    for selector in ("#scores th button", ".slider input", "#scores .box"):
        element = page.locator(selector).first
        page.evaluate("document.activeElement.blur()")
        element.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")  # focus that came by keyboard is shown
        assert element.evaluate("e => e === document.activeElement && getComputedStyle(e).outlineStyle") == "solid"


def test_printing_gives_few_pages_that_fit(visit):
    page = visit(viewport={"width": 688, "height": 980})
    document = page.pdf(format="A4", print_background=True)
    assert 1 < document.count(b"/Type /Page\n") < 40
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 688
    assert not page.locator("nav").is_visible()


def test_no_text_of_the_data_is_executed(visit):
    page = visit()
    assert page.evaluate("window.pwned") is None
    assert page.locator("h1").inner_text().endswith(EVIL)


def test_the_policy_stops_scripts_even_if_they_get_into_the_page(browser, saved, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text(saved.read_text().replace("</main>", f"{EVIL}</main>"))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("main img").count() == 1
    assert page.evaluate("window.pwned") is None
    page.close()


def test_without_scripts_everything_is_there(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("#scores table.sortable").last.locator("tbody tr:visible").count() == 70
    assert page.locator("figure:visible").count() == 4
    assert not page.locator(".slider").is_visible()


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    """A page with an alignment that is larger than any screen."""
    words = [f"word{k}" for k in range(120)]
    model, links = WordAligner(), [(k, k) for k in range(120)]
    path = tmp_path_factory.mktemp("report") / "page.html"
    m3n.report(None, model.fit([], []), [(words, words)], [links], title="Alignment").save(path)
    return path


@pytest.mark.parametrize("viewport", [PHONE, DESK])
def test_words_stay_beside_a_large_alignment(visit, aligned, viewport):
    page = visit(aligned, viewport=viewport)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    box = page.locator("figure.alignment .wide")
    places = [page.locator(f"figure.alignment {kind}").last for kind in (".above:not(.beside)", ".beside:not(.above)")]
    box.scroll_into_view_if_needed()
    before = [place.bounding_box() for place in places]
    box.evaluate("e => { e.scrollLeft = 900; e.scrollTop = 700; }")
    after = [place.bounding_box() for place in places]
    assert after[0]["x"] == before[0]["x"] - 900 and after[1]["y"] == before[1]["y"] - 700
    assert after[0]["y"] == pytest.approx(before[0]["y"]) and after[1]["x"] == pytest.approx(before[1]["x"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_words_of_alignments(visit, aligned, scheme):
    page = visit(aligned, color_scheme=scheme)
    found = [entry for entry in page.evaluate(CONTRASTS) if entry[2].startswith("word")]
    assert len(found) == 240
    assert [entry for entry in found if entry[0] < 4.5] == []
