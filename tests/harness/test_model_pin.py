"""The pin file: what is written is what is read, whatever stands in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import CannotMeasure
from harness.model.pin import Figure, PastPin, Pin, load_pin, render, save_pin, succeed

WORDS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=30)


def pin(commit="a" * 40, reason="why", figures=(), history=()):
    """Return a pin."""
    return Pin(commit, reason, "2024-05-06", "key", {"libc": "2.36"}, "quick", tuple(figures), tuple(history))


@given(reason=WORDS, value=st.integers(0, 2**53), past=WORDS)
def test_a_pin_survives_the_file(tmp_path_factory, reason, value, past):
    path = tmp_path_factory.mktemp("pin") / "pin.toml"
    figure = Figure("churn", "default", "callgrind", "instructions", float(value), "count")
    written = pin(reason=reason, figures=[figure], history=[PastPin("b" * 40, past, "2024-01-01")])
    save_pin(path, written)
    assert load_pin(path) == written
    assert render(load_pin(path)) == path.read_text(encoding="utf-8")


def test_times_keep_six_digits_and_counts_all():
    text = render(pin(figures=[Figure("w", "v", "p", "wall_s", 0.10400226500000001, "s"),
                               Figure("w", "v", "p", "instructions", 123456789012.0, "count")]))  # fmt: skip
    assert "value = 0.104002," in text and "value = 123456789012," in text


def test_the_order_of_figures_never_changes_a_diff():
    figures = [Figure("w", str(index), "p", "m", float(index), "count") for index in range(5)]
    assert render(pin(figures=figures)) == render(pin(figures=reversed(figures)))


def test_history_grows_at_its_top():
    first, second, third = (pin(commit=letter * 40, reason=letter) for letter in "abc")
    chain = succeed(succeed(succeed(None, first), second), third)
    assert chain.commit == "c" * 40 and [past.reason for past in chain.history] == ["b", "a"]


def test_figures_of_another_environment_are_not_handed_out():
    assert pin().figures_for("key") == ()
    with pytest.raises(CannotMeasure, match="another environment .libc 2.36."):
        pin().figures_for("other")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "pin.toml"
    save_pin(path, pin(reason="old"))

    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(OSError):
        save_pin(path, pin(reason="new"))
    assert load_pin(path).reason == "old" and [p.name for p in tmp_path.iterdir()] == ["pin.toml"]
