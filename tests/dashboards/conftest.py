"""One store with the results of a whole bench, its site, and one browser for all tests of the dashboard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

for folder in (Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import dashboards  # noqa: E402
import sample_results  # noqa: E402
from browser import Browser  # noqa: E402
from results import Run, Store, open_store  # noqa: E402


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store as a few benches and a comparison leave it. Only read."""
    with open_store(str(tmp_path_factory.mktemp("store") / "tidemark.sqlite")) as opened:
        sample_results.fill(opened)
        yield opened


@pytest.fixture(scope="session")
def bench(store: Store) -> Run:
    """The newest bench, which the site shows."""
    return store.runs(kind="bench", limit=1)[0]


@pytest.fixture(scope="session")
def site(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    return dashboards.build(store, tmp_path_factory.mktemp("built") / "site")


@pytest.fixture(scope="session")
def running_browser() -> Iterator[Browser]:
    """The one browser of the session; it is stopped whatever happens."""
    started = Browser.start()
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture
def browser(running_browser: Browser) -> Browser:
    """The browser with the scheme and the size of the window as a test expects them."""
    running_browser.use_scheme("light")
    running_browser.use_width(1360)
    return running_browser
