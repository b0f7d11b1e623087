"""The sums behind the labels: what the evidence says of a claim's quantity."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from pydantic import JsonValue

from tests.data.grounding.labelled import Claim, evidence

Arithmetic = Callable[[Sequence[float]], float]
OPERATIONS: Mapping[str, Arithmetic] = {
    "copied": lambda given: given[0],
    "change_pct": lambda given: (given[1] / given[0] - 1) * 100,
    "difference": lambda given: given[0] - given[1],
    "ratio": lambda given: given[0] / given[1],
    "ratio_pct": lambda given: given[0] / given[1] * 100,
    "product": lambda given: given[0] * given[1],
    "product_pct": lambda given: given[0] * given[1] / 100,
    "mean": fmean,
    "sum": sum,
    "lowest": min,
    "highest": max,
}
BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "above": lambda found, line: found > line,
    "below": lambda found, line: found < line,
}


def found(name: str, origin: str) -> list[JsonValue]:
    """What stands at a place such as E5/rows/3/4, or at all that E5/rows/*/4 names."""
    head, *steps = origin.split("/")
    by_id = {item.id: item.result for item in evidence(name)}
    values: list[JsonValue] = [by_id[head]]
    for step in steps:
        values = [inner for value in values for inner in _into(value, step)]
    return values


def _into(value: JsonValue, step: str) -> list[JsonValue]:
    if isinstance(value, list):
        return value if step == "*" else [value[int(step)]]
    assert isinstance(value, dict), step
    return list(value.values()) if step == "*" else [value[step]]


def numbers(name: str, origin: str) -> list[float]:
    """As `found`, as numbers; E3/items/1/title#$95=95 reads `$95` in a headline as 95."""
    place, _, quoted = origin.partition("#")
    values = found(name, place)
    if not quoted:
        return [float(str(value)) for value in values]
    words, _, number = quoted.rpartition("=")
    assert words in str(values[0])
    return [float(number)]


def given(name: str, claim: Claim) -> list[float]:
    """All numbers that a claim's sum is made of."""
    return [number for origin in claim.origins for number in numbers(name, origin)]


def is_rounded(true: float, said: float, within: float) -> bool:
    """Rounded to the last place written, or cut off there; `within` is half of that place."""
    slack = 1e-9 * max(1.0, abs(true))
    cut_off = true * said > 0 and -slack <= abs(true) - abs(said) < 2 * within - slack
    return abs(true - said) <= within + slack or cut_off
