"""docs/options.md and docs/statistics.md say what the declarations say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import definitions  # noqa: E402 - the generators stand beside the pages, not in a package
import generate_options  # noqa: E402
import generate_statistics  # noqa: E402


def test_options_page_is_up_to_date() -> None:
    written = (DOCS / "options.md").read_text(encoding="utf-8")
    assert written == generate_options.page(generate_options.read_options()), "run docs/generate_options.py"


def test_statistics_page_is_up_to_date() -> None:
    written = (DOCS / "statistics.md").read_text(encoding="utf-8")
    assert written == generate_statistics.page(), "run docs/generate_statistics.py"


def test_every_declaration_is_on_its_page() -> None:
    """Counts the declarations in another way than the generators read them."""
    for source, macro, page in (
        (generate_options.SOURCE, "EBB_OPTION(", "options.md"),
        (generate_statistics.COUNTERS, "EBB_COUNTER(", "statistics.md"),
    ):
        declared = sum(line.startswith(macro) for line in source.read_text(encoding="utf-8").splitlines())
        assert declared > 5
        names = [arguments[0] for arguments in definitions.calls(source, macro[:-1])]
        assert len(names) == len(set(names)) == declared
        text = (DOCS / page).read_text(encoding="utf-8")
        assert all(f"`{name}`" in text or f"`EBB_{name.upper()}`" in text for name in names)


def test_options_decided_at_start_exist() -> None:
    assert {option.name for option in generate_options.read_options()} >= generate_options.AT_START


def test_words_and_defaults_are_shown(tmp_path: Path) -> None:
    source = tmp_path / "options.def"
    source.write_text(
        'EBB_OPTION(mode, 1, 0, 2, "What "  // a comment\n  "is done, \\"so\\"; see a//b.")\n'
        "EBB_OPTION_WORD(mode, off, 0)\nEBB_OPTION_WORD(mode, on, 1)\n"
        'EBB_OPTION(delay_ms, -5, -10, 10, "A delay.")\n'
    )
    options = generate_options.read_options(source)
    page = generate_options.page(options)
    assert '| `EBB_MODE` | `on` | `off` (0), `on` (1) | What is done, "so"; see a//b. |' in page
    assert "| `EBB_DELAY_MS` | -5 | -10 to 10 | A delay. |" in page


@pytest.mark.parametrize("text", ["EBB_OPTION", "EBB_OPTION(a, 1", "EBB_OPTION(a; b)", "1 2 3", 'EBB_OPTION("a)'])
def test_what_is_no_declaration_is_refused(text: str, tmp_path: Path) -> None:
    source = tmp_path / "options.def"
    source.write_text(text)
    with pytest.raises(definitions.DefinitionError, match=r"options\.def: "):
        definitions.calls(source, "EBB_OPTION")
