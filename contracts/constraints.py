"""Constraints: what a request or a plan asks for beyond an account's limits. They only tighten.

They travel as words: a dict of short names with short texts. The names of `Constraints` are rules
that code enforces; any other is a note, which the planner, the trader and the reviewer read.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo

from contracts.types import NOTES, Percent, Score10, ShortText, Ticker, Value

CONSTRAINTS_MAX = 20
POSITIONS_MAX = 500
EXCLUDED_MAX = 50


def _comma_separated(value: Any) -> Any:
    """`AAPL, MSFT` as two; a sector's name may have blanks in it."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _upper(value: Any) -> Any:
    names = _comma_separated(value)
    if not isinstance(names, list | tuple):
        return names
    return [name.upper() if isinstance(name, str) else name for name in names]


def _number(value: Any) -> Any:
    return value.strip().removesuffix("%") if isinstance(value, str) else value


_Pct = Annotated[Percent, BeforeValidator(_number)]


class BuyConstraints(Value):
    """The constraints of buys, which a plan may ask for too; None and empty are no constraint.

    `max_positions` counts what is held and bought together. `max_allocation_pct` is one buy's share
    of the budget. `max_sector_pct` and `max_risk_score` lower the account's limits of these names.
    `no_buys` leaves sales only. Sales pass all of them: they lower risk.
    """

    max_positions: int | None = Field(default=None, ge=0, le=POSITIONS_MAX)
    max_allocation_pct: _Pct | None = None
    max_sector_pct: _Pct | None = None
    max_risk_score: Score10 | None = None
    exclude_tickers: Annotated[
        tuple[Ticker, ...], Field(max_length=EXCLUDED_MAX), BeforeValidator(_upper)
    ] = ()
    exclude_sectors: Annotated[
        tuple[ShortText, ...], Field(max_length=EXCLUDED_MAX), BeforeValidator(_comma_separated)
    ] = ()
    no_buys: bool = False


class Constraints(BuyConstraints):
    """The constraints that code enforces. `max_sales` and `max_sold_pct` (of equity) are of the
    sales of one session, with those that still wait; exits and stops pass them."""

    max_sales: int | None = Field(default=None, ge=0, le=POSITIONS_MAX)
    max_sold_pct: _Pct | None = None

    def also(self, other: "Constraints") -> "Constraints":
        """Both at once: of each the stricter."""
        return Constraints(
            max_positions=_least(self.max_positions, other.max_positions),
            max_allocation_pct=_least(self.max_allocation_pct, other.max_allocation_pct),
            max_sector_pct=_least(self.max_sector_pct, other.max_sector_pct),
            max_risk_score=_least(self.max_risk_score, other.max_risk_score),
            exclude_tickers=_all(self.exclude_tickers, other.exclude_tickers),
            exclude_sectors=_all(self.exclude_sectors, other.exclude_sectors),
            no_buys=self.no_buys or other.no_buys,
            max_sales=_least(self.max_sales, other.max_sales),
            max_sold_pct=_least(self.max_sold_pct, other.max_sold_pct),
        )


ENFORCED = tuple(Constraints.model_fields)
"""Names of the constraints that code enforces."""
TAKES: Mapping[str, str] = {
    "max_positions": f"a whole number from 0 to {POSITIONS_MAX}",
    "max_allocation_pct": "a percentage from 0 to 100",
    "max_sector_pct": "a percentage from 0 to 100",
    "max_risk_score": "a number from 0 to 10",
    "exclude_tickers": f"at most {EXCLUDED_MAX} tickers: AAPL, MSFT",
    "exclude_sectors": f"at most {EXCLUDED_MAX} sectors: Energy, Utilities",
    "no_buys": "true or false",
    "max_sales": f"a whole number from 0 to {POSITIONS_MAX}",
    "max_sold_pct": "a percentage from 0 to 100",
}
"""What each of them takes."""


def constraints_of(words: Mapping[str, str]) -> Constraints:
    """The enforced ones of some constraints. Raises ValueError that names what cannot be read."""
    known = {name: words[name] for name in ENFORCED if name in words}
    try:
        return Constraints.model_validate(known)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise ValueError(f"{name} is {words[name][:40]!r}; it takes {TAKES[name]}") from None


def usable(value: Any, info: ValidationInfo) -> Any:
    """Where a model's answer is read: the constraints without those that cannot be used, which the
    notes name. They only tighten, and those of the request hold anyway."""
    notes = info.context.get(NOTES) if isinstance(info.context, dict) else None
    if notes is None or not isinstance(value, Mapping):
        return value
    kept: dict[str, Any] = {}
    for name, limit in value.items():
        try:
            Constraints.model_validate({name: limit})
        except ValidationError:
            notes.append(f"limits.{name}: left out, it takes {TAKES.get(name, 'no value')}")
        else:
            kept[name] = limit
    return kept


def words_of(constraints: BuyConstraints, remarks: Sequence[str] = ()) -> dict[str, str]:
    """The constraints in words, as a plan carries them, with remarks as `note 1`, `note 2`, ..."""
    stated = constraints.model_dump(mode="json", exclude_defaults=True)
    notes = {f"note {place}": text for place, text in enumerate(remarks, start=1) if text.strip()}
    return {**{name: _word(value) for name, value in stated.items()}, **notes}


def _as_words(value: Any) -> Any:
    """Numbers, yes and no, and lists in their words: 3 is as good as "3"."""
    if not isinstance(value, dict):
        return value
    return {name: _word(word) for name, word in value.items()}


def _word(value: Any) -> Any:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list() | tuple() if all(isinstance(item, str) for item in value):
            return ", ".join(value)
        case _:
            return value


def _readable(words: dict[str, str]) -> dict[str, str]:
    constraints_of(words)
    return words


ConstraintWords = Annotated[
    dict[ShortText, ShortText],
    Field(max_length=CONSTRAINTS_MAX),
    BeforeValidator(_as_words),
    AfterValidator(_readable),
]
"""Constraints as they travel; one that code enforces but cannot read is refused."""


def _least(one: Any, other: Any) -> Any:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def _all(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
