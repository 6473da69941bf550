"""How readable and how distinct colours are: WCAG contrast, and distances as colour-blind eyes see them.

Pure functions over CSS colours as a browser computes them: `rgb(1, 2, 3)` or `rgba(1, 2, 3, 0.5)`.
"""

from __future__ import annotations

import re

RGB = tuple[float, float, float]


def parse(colour: str) -> RGB:
    """Return red, green and blue from 0 to 1."""
    numbers = [float(each) for each in re.findall(r"[\d.]+", colour)]
    return numbers[0] / 255, numbers[1] / 255, numbers[2] / 255


def contrast(text: str, ground: str, opacity: float) -> float:
    """Return the contrast ratio of WCAG 2.1, from 1 to 21, of a text that lets some of its ground through."""
    behind = parse(ground)
    front = parse(text)
    mixed = (
        front[0] * opacity + behind[0] * (1 - opacity),
        front[1] * opacity + behind[1] * (1 - opacity),
        front[2] * opacity + behind[2] * (1 - opacity),
    )
    lighter, darker = sorted((_luminance(mixed), _luminance(behind)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def seen_with_deuteranopia(colour: str) -> RGB:
    """Return a colour as an eye without M cones sees it (matrix of Machado, Oliveira and Fernandes 2009, severity 1)."""
    red, green, blue = (_linear(channel) for channel in parse(colour))
    mixed = (
        0.367322 * red + 0.860646 * green - 0.227968 * blue,
        0.280085 * red + 0.672501 * green + 0.047413 * blue,
        -0.011820 * red + 0.042940 * green + 0.968881 * blue,
    )
    encoded = [_encoded(min(1.0, max(0.0, channel))) for channel in mixed]
    return encoded[0], encoded[1], encoded[2]


def distance(one: RGB, other: RGB) -> float:
    """Return the CIE 1976 difference of two colours; about 2.3 can just be told apart side by side."""
    return sum((a - b) ** 2 for a, b in zip(_lab(one), _lab(other))) ** 0.5


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def _encoded(channel: float) -> float:
    return channel * 12.92 if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055


def _luminance(colour: RGB) -> float:
    red, green, blue = (_linear(channel) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _lab(colour: RGB) -> RGB:
    red, green, blue = (_linear(channel) for channel in colour)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883

    def curve(value: float) -> float:
        return value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116

    return 116 * curve(y) - 16, 500 * (curve(x) - curve(y)), 200 * (curve(y) - curve(z))
