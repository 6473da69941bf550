"""Line charts as inline SVG, drawn when the site is built.

Who calls it: memory and timeline pages. Pure, safe from any thread. Colours, dashes and markers come from
style.css by class, so that a chart follows the reader's light or dark scheme; every point carries its
figure in a <title> and in data attributes, and a page shows the same figures in a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from dashboards.figures import Scale, scale_for, significant, tick_text

WIDTH, HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 18, 30, 44
_TICKS = 5
_SPAN_MIN = 1e-300
"""Below it the steps between ticks would no longer be numbers."""
_CROWDED = 40
"""Lines with more points than this get smaller ones."""


@dataclass(frozen=True)
class Point:
    """One figure. `x` is a place on the axis, `y` is in the chart's unit, `title` is read out and shown on hover."""

    x: float
    y: float
    title: str
    low: float | None = None
    high: float | None = None
    """The range over repeats, where there is more than one."""


@dataclass(frozen=True)
class Line:
    """One series with the style of its arm."""

    name: str
    style: int
    points: tuple[Point, ...]
    emphasized: bool = False


@dataclass(frozen=True)
class LineChart:
    """What is drawn."""

    slug: str
    """Identifies the chart within its page; characters that an id can't have are replaced."""
    title: str
    description: str
    x_label: str
    unit: str
    lines: tuple[Line, ...]
    x_ticks: tuple[tuple[float, str], ...] = ()
    """Places and texts of the ticks; without any, round numbers are chosen."""
    marks: tuple[tuple[float, str], ...] = ()
    """Vertical marks: places and texts."""
    from_zero: bool = True
    is_continuous: bool = True
    """Ranges are a band along the line; otherwise a bar at each point."""


@dataclass(frozen=True)
class _Frame:
    """The mapping from figures to the drawing's coordinates."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        span = self.x_high - self.x_low
        share = (value - self.x_low) / span if span else 0.5
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        span = self.y_high - self.y_low or 1.0
        return HEIGHT - _BOTTOM - (value - self.y_low) / span * (HEIGHT - _TOP - _BOTTOM)


def nice_ticks(low: float, high: float, wanted: int = _TICKS) -> list[float]:
    """Return about so many round numbers that cover [low, high]; the first is <= low, the last >= high."""
    span = high - low
    if span < _SPAN_MIN:
        return [low, low + 1.0]
    raw = span / wanted
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= raw * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def render(chart: LineChart) -> Markup:
    """Return the chart as an <svg> element."""
    points = [point for line in chart.lines for point in line.points]
    if not points:
        return Markup('<p class="empty">No figure was measured for this chart.</p>')
    scale = scale_for(chart.unit, max(abs(point.y) for point in points))
    y_ticks = _y_ticks(chart, points, scale)
    xs = [point.x for point in points]
    name = re.sub("[^A-Za-z0-9_-]", "-", chart.slug)
    frame = _Frame(min(xs), max(xs), y_ticks[0] * scale.divisor, y_ticks[-1] * scale.divisor)
    parts = [
        f'<svg class="chart" id="{name}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{escape(chart.title)}</title>',
        f'<desc id="{name}-desc">{escape(chart.description)}</desc>',
        *_axes(chart, frame, y_ticks, scale),
        *_marks(chart, frame),
    ]
    for line in sorted(chart.lines, key=lambda each: each.emphasized):
        parts += _line(line, frame, chart.is_continuous)
    parts.append("</svg>")
    return Markup("".join(parts))


def _y_ticks(chart: LineChart, points: Sequence[Point], scale: Scale) -> list[float]:
    """Return the ticks in the axis's unit; a close-up is never closer than one percent, or noise looks like news."""
    high = max(max(point.y, point.high or point.y) for point in points) / scale.divisor
    low = min(min(point.y, point.low if point.low is not None else point.y) for point in points) / scale.divisor
    if chart.from_zero:
        return nice_ticks(min(0.0, low), high if high > 0 else 1.0)
    margin = max(0.15 * (high - low), 0.005 * abs(high)) or 1.0
    return nice_ticks(low - margin, high + margin)


def _axes(chart: LineChart, frame: _Frame, y_ticks: Sequence[float], scale: Scale) -> list[str]:
    parts = ['<g class="grid" aria-hidden="true">']
    for tick in y_ticks:
        y = frame.y(tick * scale.divisor)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="tick-y" x="{_LEFT - 8}" y="{y + 4:.1f}">{tick_text(tick, y_ticks[1] - y_ticks[0])}</text>'
        )
    parts.append(f'<text class="unit" x="{_LEFT - 8}" y="{_TOP - 14}">{escape(scale.suffix)}</text>')
    for place, text in chart.x_ticks or _round_x_ticks(frame):
        x, y = frame.x(place), HEIGHT - _BOTTOM + 17
        parts.append(f'<text class="tick-x" x="{x:.1f}" y="{y}">{escape(text)}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text class="axis" x="{middle:.0f}" y="{HEIGHT - 8}">{escape(chart.x_label)}</text></g>')
    return parts


def _round_x_ticks(frame: _Frame) -> list[tuple[float, str]]:
    if frame.x_high == frame.x_low:
        return [(frame.x_low, significant(frame.x_low))]
    inside = [tick for tick in nice_ticks(frame.x_low, frame.x_high, 8) if frame.x_low <= tick <= frame.x_high]
    whole = [tick for tick in inside if tick == int(tick)]
    return [(tick, significant(tick)) for tick in whole or inside]


def _marks(chart: LineChart, frame: _Frame) -> list[str]:
    parts = []
    for place, text in chart.marks:
        x = frame.x(place)
        parts.append(
            f'<g class="mark"><title>{escape(text)}</title>'
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
            f'<path d="M{x - 5:.1f} {_TOP - 8}h10l-5 8z"/></g>'
        )
    return parts


def _line(line: Line, frame: _Frame, is_continuous: bool) -> list[str]:
    emphasis = " emphasized" if line.emphasized else ""
    parts = [f'<g class="series s{line.style}{emphasis}" data-series="{escape(line.name)}">']
    parts += _band(line, frame) if is_continuous else _bars(line, frame)
    if len(line.points) > 1:
        path = " ".join(f"{frame.x(point.x):.1f},{frame.y(point.y):.1f}" for point in line.points)
        parts.append(f'<polyline points="{path}"/>')
    radius = 2.6 if len(line.points) <= _CROWDED else 1.5
    for point in line.points:
        parts.append(
            f'<circle cx="{frame.x(point.x):.1f}" cy="{frame.y(point.y):.1f}" r="{radius}" data-x="{point.x:g}" '
            f'data-value="{point.y!r}"><title>{escape(point.title)}</title></circle>'
        )
    parts.append("</g>")
    return parts


def _bands_of(line: Line) -> list[list[tuple[float, float, float]]]:
    """Return the stretches of the line where every point has a range: (x, low, high) each."""
    stretches: list[list[tuple[float, float, float]]] = [[]]
    for point in line.points:
        if point.low is None or point.high is None:
            stretches.append([])
        else:
            stretches[-1].append((point.x, point.low, point.high))
    return [stretch for stretch in stretches if len(stretch) > 1]


def _band(line: Line, frame: _Frame) -> list[str]:
    parts = []
    for stretch in _bands_of(line):
        upper = " ".join(f"{frame.x(x):.1f},{frame.y(high):.1f}" for x, _, high in stretch)
        lower = " ".join(f"{frame.x(x):.1f},{frame.y(low):.1f}" for x, low, _ in reversed(stretch))
        parts.append(f'<polygon class="band" points="{upper} {lower}"/>')
    return parts


def _bars(line: Line, frame: _Frame) -> list[str]:
    return [
        f'<line class="range" x1="{frame.x(point.x):.1f}" x2="{frame.x(point.x):.1f}" '
        f'y1="{frame.y(point.low):.1f}" y2="{frame.y(point.high):.1f}"/>'
        for point in line.points
        if point.low is not None and point.high is not None
    ]
