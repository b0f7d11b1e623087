# ruff: noqa: RUF001  (a minus sign is written)
"""Faults to put into sound claims, of the sorts that README.md names.

Each fault is another text for the figure, and sometimes for a word beside it. What would still be
right by the guide is left out.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from random import Random

from pydantic import JsonValue

from tests.data.grounding.labelled import Claim, Statement, evidence
from tests.data.grounding.sums import BOUNDS, OPERATIONS, found, given, is_rounded, numbers
from tests.data.grounding.written import NUMBER, WORDS, as_written, on_day

NEAR = (0.5, 2.0)
"""How far the field beside may be from the right one, as a factor; who errs errs near."""
OPPOSITES = (
    *(("above", "below"), ("over", "under"), ("rose", "fell"), ("gained", "lost"), ("up", "down")),
    *(("gain", "loss"), ("higher", "lower"), ("beat", "missed"), ("added", "shed")),
    *(("climbed", "slid"), ("more than", "less than"), ("ahead of", "behind"), ("rise", "fall")),
    *(("rising", "falling"), ("jumped", "dropped"), ("profit", "loss"), ("gains", "loses")),
    *(("positive", "negative"), ("advanced", "slipped"), ("increase", "decrease")),
)
_OTHER_WAY = {a: b for pair in OPPOSITES for a, b in (pair, pair[::-1])}
_DIRECTION = re.compile(rf"\b({'|'.join(_OTHER_WAY)})\b")
_NEGATIVE = re.compile(r"\b(?:loss(?:es)?|lost|negative|minus)\b", re.IGNORECASE)
"""Words that carry the sign, so that the figure may do without."""
_SCALES = {"million": "billion", "billion": "million", "thousand": "million"}
_CURRENCIES = {"$": "€", "€": "$"}
DIRECTION_CHARS = 18
COPIED = Claim("", "", 0, "exact", "grounded", how="copied")


@dataclass(frozen=True)
class Fault:
    """A statement with one more fault: which claim has it, of which sort."""

    statement: Statement
    claim: Claim
    fault: str


def faults(statement: Statement, claim: Claim) -> Iterator[Fault]:
    """Each sort of fault that the place of a grounded claim allows, once or twice."""
    chance = Random(claim.id)
    for sort, make in _SORTS.items():
        texts = list(dict.fromkeys(text for text in make(statement, claim) if text))
        for text in chance.sample(texts, min(len(texts), 2)):
            if text != claim.figure:
                yield _replaced(statement, claim, text, sort)
    yield from _turned(statement, claim)


def _replaced(statement: Statement, claim: Claim, figure: str, sort: str) -> Fault:
    text = statement.text[: claim.start] + figure + statement.text[claim.end :]
    changed = replace(claim, figure=figure, label="ungrounded", fault=sort)
    return Fault(replace(statement, text=text), changed, sort)


def _false(statement: Statement, claim: Claim, value: float) -> str | None:
    """The claim with this value, where that is wrong by more than its last place."""
    said = float(str(claim.value))
    signed = value if re.match(r"\W*[-+−]", claim.figure) else abs(value) * (1 if said >= 0 else -1)
    true = OPERATIONS[claim.how](given(statement.evidence, claim))
    if is_rounded(true, signed, claim.within) or abs(true - signed) <= 2 * claim.within:
        return None
    return as_written(claim, value)


def _transposed(statement: Statement, claim: Claim) -> Iterator[str | None]:
    for place, pair in enumerate(zip(claim.figure, claim.figure[1:], strict=False)):
        one, two = pair
        if one.isdigit() and two.isdigit() and one != two:
            figure = claim.figure[:place] + two + one + claim.figure[place + 2 :]
            yield _if_false(statement, claim, figure)


def _digit(statement: Statement, claim: Claim) -> Iterator[str | None]:
    if claim.how in {"date", "count", "days"}:
        return
    for place, one in enumerate(claim.figure):
        for other in (int(one) + 1, int(one) - 1) if one.isdigit() else ():
            if 0 <= other < 10:
                yield _if_false(
                    statement, claim, claim.figure[:place] + str(other) + claim.figure[place + 1 :]
                )


def _if_false(statement: Statement, claim: Claim, figure: str) -> str | None:
    """A figure whose digits were changed, where that makes the claim wrong."""
    old, new = NUMBER.search(claim.figure), NUMBER.search(figure)
    if not old or not new or new.group().startswith("0") != old.group().startswith("0"):
        return None
    if claim.how == "quoted":
        return (
            None if str(new.group()) in str(found(statement.evidence, claim.origins[0])) else figure
        )
    if claim.how not in OPERATIONS:
        return None
    before, after = (float(each.group().replace(",", "")) for each in (old, new))
    if not before:
        return None
    said = float(str(claim.value)) * after / before
    true = OPERATIONS[claim.how](given(statement.evidence, claim))
    wrong = not is_rounded(true, said, claim.within) and abs(true - said) > 2 * claim.within
    return figure if wrong else None


def _elsewhere(
    moved: Callable[[str, str], Iterator[str]],
) -> Callable[[Statement, Claim], Iterator[str | None]]:
    """The same sum of other places of the evidence."""

    def make(statement: Statement, claim: Claim) -> Iterator[str | None]:
        if claim.how not in OPERATIONS or any("*" in each for each in claim.origins):
            return
        ways = [list(moved(statement.evidence, each)) for each in claim.origins]
        for nth in range(max(map(len, ways), default=0)):
            origins = [
                way[nth] if nth < len(way) else old
                for way, old in zip(ways, claim.origins, strict=True)
            ]
            value = _sum(statement.evidence, claim, origins)
            if value is not None:
                yield _false(statement, claim, value)

    return make


def _sum(name: str, claim: Claim, origins: Sequence[str]) -> float | None:
    try:
        values = [number for origin in origins for number in numbers(name, origin)]
        return OPERATIONS[claim.how](values)
    except (KeyError, ValueError, IndexError, ZeroDivisionError, AssertionError):
        return None


def _of_others(name: str, origin: str) -> Iterator[str]:
    """The same place in the answers on other tickers, or in other entries of a list."""
    head, *steps = origin.split("/")
    if "#" in origin:
        return
    results = {item.id: item for item in evidence(name)}
    mine = results[head].result
    lists = [place for place, step in enumerate(steps) if step.isdigit() and steps[0] != "rows"]
    for place in lists[:1]:
        for other in range(len(found(name, "/".join([head, *steps[:place], "*"])))):
            if str(other) != steps[place]:
                yield "/".join([head, *steps[:place], str(other), *steps[place + 1 :]])
    if not lists:
        for item in results.values():
            if item.tool == results[head].tool and item.result.get("ticker") != mine.get("ticker"):
                yield "/".join([item.id, *steps])


def _of_other_fields(name: str, origin: str) -> Iterator[str]:
    """Other quantities of the same ticker that are near in size."""
    head, *steps = origin.split("/")
    if "#" in origin:
        return
    true = numbers(name, origin)[0]
    results = {item.id: item.result for item in evidence(name)}
    if steps[0] == "rows":
        places = [f"{head}/rows/{steps[1]}/{column}" for column in range(1, 6)]
    elif any(step.isdigit() for step in steps):
        row = "/".join([head, *steps[:-1]])
        places = [f"{row}/{key}" for key in _numeric(found(name, row)[0])]
    else:
        ticker = results[head].get("ticker")
        places = [
            f"{each}/{inner}{key}"
            for each, result in results.items()
            if result.get("ticker") == ticker
            for inner, part in (
                ("", result),
                ("values/", result.get("values")),
                ("figures/", result.get("figures")),
            )
            for key in _numeric(part)
        ]
    for place in places:
        alike = place.endswith("_pct") == origin.endswith("_pct")
        value = (_sum(name, COPIED, [place]) or 0.0) / true if true else 0.0
        if place != origin and alike and NEAR[0] <= abs(value) <= NEAR[1]:
            yield place


def _numeric(part: JsonValue) -> list[str]:
    if not isinstance(part, dict):
        return []
    return [
        key
        for key, value in part.items()
        if key not in {"bars", "volume"}
        and (
            isinstance(value, int | float)
            or (isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value))
        )
    ]


def _of_other_days(name: str, origin: str) -> Iterator[str]:
    """The sessions beside, of a row or of today's price."""
    head, *steps = origin.split("/")
    results = {item.id: item for item in evidence(name)}
    if steps[0] == "rows" and steps[1].isdigit():
        for other in (int(steps[1]) - 1, int(steps[1]) + 1):
            if other >= 0:
                yield "/".join([head, "rows", str(other), *steps[2:]])
        return
    column = {"price": "close", "close": "close", "volume": "volume"}.get(steps[-1])
    if column is None or steps[0] not in {"price", "volume", "values"}:
        return
    ticker = results[head].result.get("ticker")
    for item in results.values():
        rows, columns = item.result.get("rows"), item.result.get("columns")
        if (
            item.result.get("ticker") == ticker
            and isinstance(rows, list)
            and isinstance(columns, list)
        ):
            yield f"{item.id}/rows/{len(rows) - 2}/{columns.index(column)}"
            yield f"{item.id}/rows/{len(rows) - 3}/{columns.index(column)}"


def _other_base(statement: Statement, claim: Claim) -> Iterator[str | None]:
    if claim.how in {"change_pct", "ratio"} and len(claim.origins) == 2:
        value = _sum(statement.evidence, claim, claim.origins[::-1])
        if value is not None:
            yield _false(statement, claim, value)


def _other_unit(statement: Statement, claim: Claim) -> Iterator[str | None]:
    for scale, other in _SCALES.items():
        if scale in claim.figure:
            yield claim.figure.replace(scale, other)
    for sign, other in _CURRENCIES.items():
        if claim.figure.startswith(sign) and claim.how == "copied":
            yield claim.figure.replace(sign, other)
    if claim.how in OPERATIONS:
        for factor in (0.1, 10.0, 100.0):
            yield _false(
                statement, claim, OPERATIONS[claim.how](given(statement.evidence, claim)) * factor
            )


def _miscounted(statement: Statement, claim: Claim) -> Iterator[str | None]:
    if claim.how in {"count", "days"}:
        for off in (-1, 1, 2):
            if float(str(claim.value)) + off > 0:
                yield as_written(claim, float(str(claim.value)) + off)
    elif claim.how == "quoted" and claim.figure.lower() in WORDS:
        place = WORDS.index(claim.figure.lower())
        yield from (WORDS[other] for other in (place - 1, place + 1) if 0 < other < len(WORDS))


def _other_ratio(statement: Statement, claim: Claim) -> Iterator[str | None]:
    wrong = {
        "twice": "three times",
        "half": "a third",
        "a third": "half",
        "a quarter": "a third",
        "three times": "twice",
    }
    if claim.how == "ratio":
        yield wrong.get(claim.figure.lower())


def _other_day(statement: Statement, claim: Claim) -> Iterator[str | None]:
    if claim.how == "date":
        for off in (-1, 1, 2, -3):
            yield on_day(claim, date.fromisoformat(str(claim.value)) + timedelta(days=off))


def _other_event(statement: Statement, claim: Claim) -> Iterator[str | None]:
    if claim.how != "date":
        return
    mine = found(statement.evidence, claim.origins[0].partition("/")[0])[0]
    ticker = mine.get("ticker") if isinstance(mine, dict) else None
    for item in evidence(statement.evidence):
        if item.result.get("ticker") == ticker:
            for day in re.findall(
                r"\b(?:19|20)\d\d-\d\d-\d\d(?=[T\"'])",
                str({k: v for k, v in item.result.items() if k != "rows"}),
            ):
                if day != claim.value:
                    yield on_day(claim, date.fromisoformat(day))


def _false_bound(statement: Statement, claim: Claim) -> Iterator[str | None]:
    if claim.how not in BOUNDS:
        return
    values = given(statement.evidence, claim)
    edge = min(values) if claim.how == "above" else max(values)
    place = 10 ** -len((NUMBER.search(claim.figure) or re.match("", "")).group().partition(".")[2])  # type: ignore[union-attr]
    for steps in (1, 3):
        value = (
            (edge // place + steps) * place
            if claim.how == "above"
            else (edge // place - steps + 1) * place
        )
        if all(not BOUNDS[claim.how](each, value) for each in values if each == edge) and value > 0:
            yield as_written(replace(claim, within=place / 2), value)


def _turned(statement: Statement, claim: Claim) -> Iterator[Fault]:
    """The word of direction beside the figure turned round, or the sign that is written."""
    if claim.kind not in {"percent_change", "difference", "negative", "range", "rounded", "exact"}:
        return
    if claim.how not in {"change_pct", "difference", "copied", *BOUNDS}:
        return
    if claim.how == "copied" and not claim.origins[0].endswith(
        ("momentum_1m_pct", "momentum_3m_pct", "day_change_pct")
    ):
        said = _NEGATIVE.search(statement.text, max(0, claim.start - 80), claim.start)
        if re.match(r"[-−]", claim.figure) and not said:
            yield _replaced(statement, claim, claim.figure[1:], "sign")
        return
    if re.match(r"[-+−]", claim.figure):
        sign = "+" if claim.figure[0] in "-−" else "-"
        yield _replaced(statement, claim, sign + claim.figure[1:], "sign")
        return
    text = statement.text
    behind = _DIRECTION.match(text, claim.end + 1)
    ahead = [
        m
        for m in _DIRECTION.finditer(text, max(0, claim.start - DIRECTION_CHARS), claim.start)
        if not re.search(r"[,;.(]", text[m.end() : claim.start])
    ]
    word = behind or (ahead[-1] if ahead else None)
    if word is None:
        return
    other = _OTHER_WAY[word.group()]
    moved = len(other) - len(word.group()) if word.start() < claim.start else 0
    changed = text[: word.start()] + other + text[word.end() :]
    yield Fault(
        replace(statement, text=changed),
        replace(claim, start=claim.start + moved, label="ungrounded", fault="sign"),
        "sign",
    )


_SORTS: dict[str, Callable[[Statement, Claim], Iterator[str | None]]] = {
    "transposed": _transposed,
    "wrong_value": _digit,
    "other_ticker": _elsewhere(_of_others),
    "other_field": _elsewhere(_of_other_fields),
    "other_date": _elsewhere(_of_other_days),
    "wrong_base": _other_base,
    "wrong_unit": _other_unit,
    "miscounted": _miscounted,
    "wrong ratio": _other_ratio,
    "wrong day": _other_day,
    "other event": _other_event,
    "false bound": _false_bound,
}
