"""What is said of a row of measurements: the median, and between which values they lie."""

from statistics import median


def summary(values):
    """Median, least and greatest; None where nothing was measured."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"median": median(known), "min": min(known), "max": max(known), "values": known}


def ratios(values, bases):
    """Of values and bases measured side by side, pair by pair: what a busy moment did to both drops out."""
    pairs = zip(values, bases, strict=True)
    return [value / base if value is not None and base else None for value, base in pairs]


def number(value, digits=3):
    """With so many significant digits, and thousands set apart."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    places = digits - 1 - _magnitude(value)
    rounded = round(value, places)
    return f"{rounded:,.{max(places, 0)}f}"


def _magnitude(value):
    power, rest = 0, abs(value)
    while rest >= 10:
        rest, power = rest / 10, power + 1
    while rest < 1:
        rest, power = rest * 10, power - 1
    return power


def spread(figure, digits=3):
    """`0.61 (0.58–0.64)`."""
    if figure is None:
        return "–"
    if len(figure["values"]) == 1:
        return number(figure["median"], digits)
    return f"{number(figure['median'], digits)} ({number(figure['min'], digits)}–{number(figure['max'], digits)})"


def table(heads, rows):
    """A table in Markdown; all but the first column to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
