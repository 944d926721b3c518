"""Plots as SVG, written by hand so that they need nothing and look alike: bars with whiskers, and lines over an axis.

Colours follow the reader's light or dark scheme, and are told apart without seeing colours by their labels and dashes.
"""

import math
from html import escape

WIDTH = 760
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px } .small { font-size: 11.5px; fill: #57606a }
  .axis { stroke: #57606a; stroke-width: 1 } .grid { stroke: #d0d7de; stroke-width: 1 }
  .whisker { stroke: #24292f; stroke-width: 1.5; fill: none }
  .f0 { fill: #0969da } .f1 { fill: #bf5b04 } .f2 { fill: #6e7781 } .f3 { fill: #1a7f37 }
  .s0 { stroke: #0969da } .s1 { stroke: #bf5b04 } .s2 { stroke: #6e7781 } .s3 { stroke: #1a7f37 }
  .line { fill: none; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .axis { stroke: #9198a1 } .grid { stroke: #3d444d }
    .whisker { stroke: #e6edf3 }
    .f0 { fill: #4493f8 } .f1 { fill: #f0883e } .f2 { fill: #9198a1 } .f3 { fill: #3fb950 }
    .s0 { stroke: #4493f8 } .s1 { stroke: #f0883e } .s2 { stroke: #9198a1 } .s3 { stroke: #3fb950 }
  }
"""
DASHES = ("", "7 4", "2 3", "10 3 2 3")


class Canvas:
    def __init__(self, title, subtitle, height):
        self.height = height
        self._title = title
        self._subtitle = subtitle
        self._parts = []
        self.text(0, 18, title, "title")
        self.text(0, 36, subtitle, "small")

    def text(self, x, y, words, kind="", anchor="start"):
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(str(words))}</text>'
        )

    def line(self, x1, y1, x2, y2, kind):
        self._parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def box(self, x, y, width, height, kind):
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" rx="2" class="{kind}"/>'
        )

    def path(self, points, colour, dash):
        steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{steps}" class="line s{colour}" stroke-dasharray="{DASHES[dash]}"/>')

    def dot(self, x, y, colour):
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="f{colour}"/>')

    def svg(self):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 0 {WIDTH + 20} {self.height}" role="img"'
            f' aria-labelledby="t d"><title id="t">{escape(self._title)}</title>'
            f'<desc id="d">{escape(self._subtitle)}</desc><style>{STYLE}</style>'
        )
        return "\n".join([head, *self._parts, "</svg>"]) + "\n"


class Scale:
    """From values to places, linear or logarithmic, with round marks."""

    def __init__(self, least, most, start, end, logarithmic=False):
        self._logarithmic = logarithmic
        self._start, self._end = start, end
        if logarithmic:
            self.least, self.most = 10 ** math.floor(math.log10(least)), 10 ** math.ceil(math.log10(most))
            if self.least == self.most:
                self.most *= 10
        else:
            self.step = _round_step((most - least) / 4)
            self.least, self.most = least, math.ceil(most / self.step) * self.step

    def __call__(self, value):
        if self._logarithmic:
            value = max(value, self.least)
            part = math.log10(value / self.least) / math.log10(self.most / self.least)
        else:
            part = (value - self.least) / (self.most - self.least)
        return self._start + part * (self._end - self._start)

    def marks(self):
        if self._logarithmic:
            powers = range(round(math.log10(self.least)), round(math.log10(self.most)) + 1)
            return [10.0**power for power in powers]
        count = round((self.most - self.least) / self.step)
        return [self.least + number * self.step for number in range(count + 1)]


def _round_step(step):
    if step <= 0:
        return 1
    power = 10 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step)


def mark(value):
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def bars(title, subtitle, axis, rows):
    """Horizontal bars; a row is a label, a summary, a colour and what stands behind the bar."""
    top, step, left = 56, 34, 272
    canvas = Canvas(title, subtitle, top + step * len(rows) + 48)
    scale = Scale(0, max(figure["max"] for _, figure, *_ in rows), left, WIDTH - 110)
    bottom = top + step * len(rows)
    for value in scale.marks():
        canvas.line(scale(value), top, scale(value), bottom, "grid")
        canvas.text(scale(value), bottom + 17, mark(value), "small", "middle")
    canvas.text((left + WIDTH - 110) / 2, bottom + 36, axis, "small", "middle")
    for number, (label, figure, colour, note) in enumerate(rows):
        y = top + step * number + 6
        canvas.text(left - 10, y + 16, label, anchor="end")
        canvas.box(left, y, scale(figure["median"]) - left, 22, f"f{colour}")
        if figure["max"] > figure["min"]:
            middle = y + 11
            canvas.line(scale(figure["min"]), middle, scale(figure["max"]), middle, "whisker")
            for end in ("min", "max"):
                canvas.line(scale(figure[end]), middle - 4, scale(figure[end]), middle + 4, "whisker")
        canvas.text(scale(max(figure["max"], figure["median"])) + 8, y + 16, note, "small")
    canvas.line(left, top, left, bottom, "axis")
    return canvas.svg()


def lines(title, subtitle, across, upwards, series, logarithmic=False, dots=True):
    """Lines over an axis; each of `series` is a label, its points, a colour and a kind of dashes."""
    top, left, height = 76, 62, 300
    right = WIDTH - 170
    canvas = Canvas(title, subtitle, top + height + 48)
    values = [y for _, points, *_ in series for _, y in points]
    x_scale = Scale(0, max(x for _, points, *_ in series for x, _ in points), left, right)
    y_scale = Scale(min(values) if logarithmic else 0, max(values), top + height, top, logarithmic)
    for value in y_scale.marks():
        canvas.line(left, y_scale(value), right, y_scale(value), "grid")
        canvas.text(left - 8, y_scale(value) + 4, mark(value), "small", "end")
    for value in x_scale.marks():
        canvas.text(x_scale(value), top + height + 17, mark(value), "small", "middle")
    canvas.line(left, top + height, right, top + height, "axis")
    canvas.text((left + right) / 2, top + height + 36, across, "small", "middle")
    canvas.text(left, top - 10, upwards, "small")
    labels = []
    for label, points, colour, dash in series:
        placed = [(x_scale(x), y_scale(y)) for x, y in points]
        canvas.path(placed, colour, dash)
        for x, y in placed if dots else []:
            canvas.dot(x, y, colour)
        labels.append((placed[-1][1], label, colour, dash))
    # Labels at the lines' ends, pushed apart where lines meet.
    last = top - 20
    for y, label, colour, dash in sorted(labels):
        last = max(y, last + 18)
        canvas.path([(right + 8, last), (right + 34, last)], colour, dash)
        canvas.text(right + 40, last + 4, label)
    return canvas.svg()
