"""Every page in a real browser: it loads from its file, asks for nothing, complains of nothing, and reads well."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

import dashboards
from browser import Browser
from colours import contrast, seen_with_deuteranopia, distance
from results import Run, Store, open_store
from sample_results import ENVIRONMENT, WORKLOADS

KINDS = ("index", "memory", "timeline", "compare", "environment", "comparison", "workload")


def page_of(site: Path, kind: str) -> Path:
    """Return a page of each template."""
    special = {"comparison": "compare-*.html", "workload": "workload-teardown.html"}
    return next(iter(sorted(site.glob(special.get(kind, f"{kind}.html")))))


def test_the_site_has_a_page_for_each_workload_and_comparison(site: Path, store: Store) -> None:
    names = {path.name for path in site.glob("*.html")}
    workloads = {f"workload-{name}.html" for name in (*(workload for workload, *_ in WORKLOADS), "micro")}
    compared = {f"compare-{run.id}.html" for run in store.runs(kind="compare")}
    assert names == {f"{kind}.html" for kind in KINDS[:5]} | workloads | compared
    assert len(compared) == 1


def test_every_page_loads_without_a_request_or_a_complaint(site: Path, browser: Browser) -> None:
    for page in sorted(site.glob("*.html")):
        browser.open(page)
        assert browser.complaints() == [], page.name
        assert browser.requests() == [page.as_uri()], page.name
        assert browser.evaluate("document.readyState") == "complete"
        assert browser.evaluate("document.title").endswith("· Tidemark")


def test_no_page_names_anything_outside_the_site(site: Path) -> None:
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"https?://(?!www\.w3\.org)", text) == [], page.name
        assert re.findall(r"""(?:src|url)\s*[=(]\s*["']?(?!data:)[^"')\s>]+""", text) == [], page.name
        assert "/tmp/" not in text and str(site) not in text, page.name


def test_every_link_leads_to_a_page_or_a_place_on_it(site: Path, browser: Browser) -> None:
    for page in sorted(site.glob("*.html")):
        browser.open(page)
        links = browser.evaluate("[...document.querySelectorAll('a')].map((each) => each.href)")
        assert len(links) >= 6
        for link in links:
            parsed = urlparse(link)
            target = Path(unquote(parsed.path))
            assert target.parent == site and target.is_file(), (page.name, link)
            if parsed.fragment:
                assert f'id="{parsed.fragment}"' in target.read_text(encoding="utf-8"), (page.name, link)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [360, 800, 1360])
def test_no_page_is_wider_than_its_window(site: Path, browser: Browser, kind: str, width: int) -> None:
    browser.use_width(width)
    browser.open(page_of(site, kind))
    widths = browser.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1], widths


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_built_for_readers_of_all_kinds(site: Path, browser: Browser, kind: str) -> None:
    browser.open(page_of(site, kind))
    assert browser.evaluate("document.documentElement.lang") == "en"
    assert browser.evaluate("document.querySelectorAll('h1').length") == 1
    levels = browser.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1 and all(after - before <= 1 for before, after in zip(levels, levels[1:])), levels
    nameless = "[...document.querySelectorAll('svg.chart')].filter((each) => !each.querySelector('title, desc')).length"
    assert browser.evaluate(nameless) == 0
    assert browser.evaluate("[...document.querySelectorAll('th')].filter((each) => !each.scope).length") == 0
    assert (
        browser.evaluate(
            "[...document.querySelectorAll('a, button')].filter((each) => !each.textContent.trim()).length"
        )
        == 0
    )
    ids = browser.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))


TEXTS = """[...document.querySelectorAll('td, th, p, li, a, h1, h2, h3, dt, dd, code, summary, caption, small')]
  .filter((each) => each.offsetParent && [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
  .map((each) => {
    let behind = each;
    let opacity = 1;
    for (let one = each; one; one = one.parentElement) opacity *= Number(getComputedStyle(one).opacity);
    while (behind && getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
    const ground = behind ? getComputedStyle(behind).backgroundColor : 'rgb(255, 255, 255)';
    return [getComputedStyle(each).color, ground, opacity, each.textContent.trim().slice(0, 30), each.className];
  })"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["index", "environment", "comparison", "workload"])
def test_all_text_can_be_read_in_both_schemes(site: Path, browser: Browser, kind: str, scheme: str) -> None:
    """WCAG 2.1, level AA: a contrast of 4.5 to 1."""
    browser.use_scheme(scheme)
    browser.open(page_of(site, kind))
    texts = browser.evaluate(TEXTS)
    assert len(texts) > 20
    poor = [each for each in texts if contrast(each[0], each[1], each[2]) < 4.5]
    assert poor == []


STEPS = "[0, 1, 2, 3, 4, 5, 6].map((n) => getComputedStyle(document.querySelector('.scale .i' + n)).backgroundColor)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_steps_of_the_ratio_are_told_apart_by_colour_blind_eyes(site: Path, browser: Browser, scheme: str) -> None:
    browser.use_scheme(scheme)
    browser.open(page_of(site, "index"))
    steps = browser.evaluate(STEPS)
    seen = [seen_with_deuteranopia(colour) for colour in steps]
    too_close = [
        (steps[one], steps[other], round(distance(seen[one], seen[other]), 1))
        for one in range(len(seen))
        for other in range(one)
        if distance(seen[one], seen[other]) < 6.0
    ]
    assert too_close == []


def test_light_and_dark_follow_the_reader(site: Path, browser: Browser) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        browser.use_scheme(scheme)
        browser.open(page_of(site, "index"))
        grounds.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert contrast(grounds[0], grounds[1], 1.0) > 12


def test_pages_can_be_read_without_script(site: Path) -> None:
    for page in site.glob("*.html"):
        text = re.sub(r"<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)
        assert "<table" in text or "<p" in text
        assert "onclick" not in text


def test_an_empty_store_says_how_to_fill_it(tmp_path: Path, browser: Browser) -> None:
    with open_store(str(tmp_path / "empty.sqlite")) as store:
        site = dashboards.build(store, tmp_path / "site")
    for page in sorted(site.glob("*.html")):
        browser.open(page)
        assert browser.complaints() == []
    browser.open(site / "index.html")
    assert "make bench" in browser.evaluate("document.querySelector('main').textContent")


def test_a_run_that_measured_nothing_yet_is_no_reason_to_hide_the_one_before(tmp_path: Path, browser: Browser) -> None:
    import sample_results

    with open_store(str(tmp_path / "s.sqlite")) as store:
        shown = sample_results.fill(store)
        later = Run("bench", "make bench", "f" * 40, ENVIRONMENT)
        store.begin_run(later)
        site = dashboards.build(store, tmp_path / "site")
    browser.open(site / "index.html")
    assert shown.id[:12] in browser.evaluate("document.querySelector('footer').textContent")
    rows = browser.evaluate("[...document.querySelectorAll('table.runs tbody tr')].map((each) => each.textContent)")
    assert "running" in rows[0] and "shown" in rows[1]
