"""Charts as pictures of scripts/drawing.py: rows of marks on one axis, and points in a plane."""
import math

from drawing import FAINT, INK, PAPER, Drawing

WIDTH = 900
GRID, LOW = "#e4e7eb", "#b91c1c"
BLUE, ORANGE, GREEN = "#1d4ed8", "#c2410c", "#047857"


class Series:
    """A mark with a name: `shape` is dot, ring, square or tick."""

    def __init__(self, name, shape, colour):
        self.name, self.shape, self.colour = name, shape, colour

    def draw(self, d, x, y):
        if self.shape == "tick":
            d.line(x, y - 5, x, y + 5, self.colour)
        elif self.shape == "square":
            d.box(f"{x - 3.5:.1f}", f"{y - 3.5:.1f}", 7, 7, self.colour, stroke=self.colour)
        else:
            d.circle(round(x, 1), y, 3.8, self.colour if self.shape == "dot" else PAPER, self.colour)


class Axis:
    """Values to pixels, by logarithms where `log`. `ticks` are the values that are written, by `written`."""

    def __init__(self, title, ticks, low, high, log=False, written="{:g}".format):
        self.title, self.ticks, self.low, self.high, self.log, self.written = title, ticks, low, high, log, written

    def place(self, value, begin, end):
        scale = math.log if self.log else float
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.title}: {value} is outside of {self.low} to {self.high}")
        return round(begin + (end - begin) * (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low)), 1)


def legend(d, x, y, series):
    for one in series:
        one.draw(d, x, y - 4)
        d.text(x + 10, y, one.name, 12)
        x += 34 + 6.6 * len(one.name)


class Row:
    """One line of a dot plot: a value or None for each series; `span` is a line from its first to its second value."""

    def __init__(self, label, values, text="", span=None, low=False):
        self.label, self.values, self.text, self.span, self.low = label, values, text, span, low


def dot_plot(title, rows, series, axis, left=250, right=70, reference=None):
    """Rows from top to bottom, `row.text` at the right; a line at `reference`."""
    pitch, top = 17, 64
    bottom = top + pitch * len(rows)
    begin, end = left, WIDTH - right
    d = Drawing(WIDTH, bottom + 46, title)
    d.text(20, 24, title, 15, bold=True)
    legend(d, 24, 46, series)
    for tick in axis.ticks:
        x = axis.place(tick, begin, end)
        d.line(x, top - 4, x, bottom, GRID)
        d.text(x, bottom + 16, axis.written(tick), 12, "middle")
    d.text((begin + end) / 2, bottom + 36, axis.title, 12, "middle")
    for number in range(len(rows)):
        y = top + pitch * (number + 0.5)
        d.line(begin, y, end, y, GRID)
    if reference is not None:
        x = axis.place(reference, begin, end)
        d.line(x, top - 4, x, bottom, INK)
    for number, row in enumerate(rows):
        y = top + pitch * (number + 0.5)
        if len(row.label) * 6.6 > begin - 12:
            raise ValueError(f"{row.label} does not fit into {left} pixels")
        d.text(begin - 12, y + 4, row.label, 12, "end", LOW if row.low else INK)
        if row.span is not None:
            x = axis.place(row.span[0], begin, end)
            d.box(x, y - 1.5, round(axis.place(row.span[1], begin, end) - x, 1), 3, FAINT, stroke=FAINT)
        for one, value in reversed(list(zip(series, row.values))):
            if value is not None:
                one.draw(d, axis.place(value, begin, end), y)
        if row.text:
            d.text(WIDTH - 14, y + 4, row.text, 12, "end", LOW if row.low else INK)
    return d


class Point:
    """A point of a plane. Those with a label get a number, which the key explains."""

    def __init__(self, series, x, y, label=""):
        self.series, self.x, self.y, self.label = series, x, y, label


def scatter(title, points, series, x_axis, y_axis, lines=(), key=(0, 0), height=420):
    """`lines` are (name, x and y of both ends), drawn before the points, each name at the line's end; `key` is where the
    list of the labels begins."""
    begin, end, top, bottom = 60, WIDTH - 24, 84, height - 50
    d = Drawing(WIDTH, height, title)
    d.text(20, 24, title, 15, bold=True)
    legend(d, 24, 46, series)
    d.text(20, top - 14, y_axis.title, 12)
    for tick in x_axis.ticks:
        x = x_axis.place(tick, begin, end)
        d.line(x, top, x, bottom, GRID)
        d.text(x, bottom + 16, x_axis.written(tick), 12, "middle")
    for tick in y_axis.ticks:
        y = y_axis.place(tick, bottom, top)
        d.line(begin, y, end, y, GRID)
        d.text(begin - 8, y + 4, y_axis.written(tick), 12, "end")
    d.text((begin + end) / 2, bottom + 38, x_axis.title, 12, "middle")
    for name, x1, y1, x2, y2 in lines:
        y = y_axis.place(y2, bottom, top)
        d.line(x_axis.place(x1, begin, end), y_axis.place(y1, bottom, top), x_axis.place(x2, begin, end), y, INK)
        d.text(x_axis.place(x2, begin, end) - 6, y - 6, name, 12, "end")
    places = [(x_axis.place(point.x, begin, end), y_axis.place(point.y, bottom, top)) for point in points]
    number = 0
    for point, (x, y) in zip(points, places):
        point.series.draw(d, x, y)
        if point.label:
            number += 1
            d.text(x, round(y + (-8 if is_taken(places, x, y) else 17), 1), number, 11, "middle", LOW)
            d.text(key[0], key[1] + 16 * number, f"{number}  {point.label}", 12)
    return d


def is_taken(places, x, y):
    """Whether other marks occupy the place of a point's number, below it."""
    return any(abs(other_x - x) < 10 and 0 < other_y - y < 24 for other_x, other_y in places)
