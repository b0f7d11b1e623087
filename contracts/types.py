"""Value types shared by the contracts. All are frozen, bounded and free of NaN and NUL."""

import operator
import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)

CycleId = UUID
OperationId = UUID

TEXT_CHARS_MAX = 8_000
NOTES = "notes"
"""The key of a validation context that holds the list of what was changed in a model's answer."""
CLAMPED_SHARE_MAX = Decimal("0.25")
"""Of a scale's length: 1.2 of at most 1 means 1. What lies further out means something else, such
as 85 for 85%, and is asked for again."""
TYPED_TICKER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9.^=/-]{0,14}$"
"""A ticker as somebody types it: in either case."""
SHARE_CLASS = re.compile(r"([A-Z]{1,6})[-/ ]([A-Z])")
"""A ticker with its class, as others write it."""
NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,39}$"


def _no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("contains a NUL character, which no text on the bus may have")
    return value


def spelled(text: str) -> str:
    """The desk's spelling of a ticker: trimmed, in capitals, a share class behind a dot.

    BRK.B, BRK-B, BRK/B and `BRK B` are one share. Letters that are not ASCII stay as they are: ß in
    capitals is SS, which somebody else may be listed as.
    """
    text = text.strip()
    ticker = text.upper() if text.isascii() else text
    share = SHARE_CLASS.fullmatch(ticker)
    return f"{share[1]}.{share[2]}" if share else ticker


def _spelled(value: Any) -> Any:
    # Blanks around it are for files of people: a request with them is refused.
    return spelled(value) if isinstance(value, str) and value == value.strip() else value


def _written_as_a_day(value: Any) -> Any:
    # Pydantic takes a bare number for seconds since 1970.
    if not isinstance(value, date) and not re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)):
        raise ValueError("write a day as in 2012-06-29")
    return value


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def scale(low: int, high: int) -> BeforeValidator:
    """Where a model's answer is read, sets a number just outside its scale to the end and tells it.

    Nothing else is read so: only a validation whose context has a list under `NOTES`.
    """

    def clamp(value: Any, info: ValidationInfo) -> Any:
        notes = info.context.get(NOTES) if isinstance(info.context, dict) else None
        if notes is None or isinstance(value, bool):
            return value
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            return value
        slack = CLAMPED_SHARE_MAX * (high - low)
        if not (low - slack <= number < low or high < number <= high + slack):
            return value
        end = low if number < low else high
        notes.append(f"{info.field_name}: {number} set to {end}, the end of its scale")
        return end

    return BeforeValidator(clamp)


def is_none(value: object) -> bool:
    """Whether a field is left out of the JSON: what does not apply is not mentioned, to models
    neither."""
    return value is None


def plainly(value: Decimal) -> str:
    """The number without an exponent and without needless zeros."""
    return f"{value.normalize():f}"


def shortened(text: str, chars_max: int) -> str:
    """The text, or its beginning with … where it is longer than a field takes."""
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def plain_shares(value: Decimal) -> Decimal:
    """The same number of shares without needless zeros: 10, 0.5."""
    return Decimal(plainly(value))


Text = Annotated[str, StringConstraints(max_length=TEXT_CHARS_MAX), AfterValidator(_no_nul)]
ShortText = Annotated[str, StringConstraints(max_length=400), AfterValidator(_no_nul)]
SEARCH_CHARS_MAX = 100
Sought = Annotated[str, StringConstraints(max_length=SEARCH_CHARS_MAX), AfterValidator(_no_nul)]
"""Words that a list is searched for; all of them must be there, in either case."""
Day = Annotated[date, BeforeValidator(_written_as_a_day)]
"""A day as somebody types it."""
Since = Annotated[Day | None, Field(description="From this session on.")]
Until = Annotated[Day | None, Field(description="Up to this session.")]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
Month = Annotated[str, StringConstraints(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")]
"""A calendar month: 2012-10."""
Ticker = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Z0-9][A-Z0-9.^=/-]{0,14}$"),
    BeforeValidator(_spelled),
]
IdDigits = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9A-Fa-f-]{4,36}$"),
    BeforeValidator(_as_text),
    WithJsonSchema(
        {"type": "string", "format": "uuid", "description": "Or its first digits, at least four"}
    ),
]
"""An id, or its first digits."""
OfAccount = Annotated[Name | None, Field(description="Only this account.")]
SoughtText = Annotated[
    Sought | None,
    Field(description="A ticker, a word of the outcome or result, or the first digits of an id."),
]
Behind = Annotated[
    IdDigits | None,
    Field(description="Continue the list after this one: its id, or its first digits."),
]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
Confidence = Annotated[float, Field(ge=0.0, le=1.0), scale(0, 1)]
Score10 = Annotated[float, Field(ge=0.0, le=10.0), scale(0, 10)]
Usd = Annotated[Decimal, PlainSerializer(plainly, return_type=str, when_used="json")]
"""US dollars that models cost, to eight places: written 0 and 0.00000012, never 0E-8."""
Cost = Annotated[Usd, Field(ge=0, max_digits=14, decimal_places=8)] | None
"""What calls of models cost; None where the price of any of them is unknown."""
Mood = Annotated[float, Field(ge=-1.0, le=1.0), scale(-1, 1)]
Percent = Annotated[Decimal, Field(ge=0, le=100, max_digits=9, decimal_places=4), scale(0, 100)]
Amount = Annotated[Decimal, Field(max_digits=20, decimal_places=6)]
Quantity = Annotated[
    Decimal, Field(ge=0, max_digits=20, decimal_places=6), AfterValidator(plain_shares)
]
"""Shares: whole ones are bought, fractions may be held. Written without needless zeros: 10, 0.5."""


def is_single(lot: object) -> bool:
    """Whether shares are traded one by one: then no lot is mentioned."""
    return lot == 1


LOT_MAX = 1_000_000
Lot = Annotated[int, Field(ge=1, le=LOT_MAX)]
"""How many shares of a security are bought together; 1 of most."""


class Value(BaseModel):
    """Base of the small frozen values that contracts are made of."""

    # A program that asks one question has no use for three hundred validators: each is built when
    # it is first needed, and all of them by `contracts.message.build_all`.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)


class Money(Value):
    """An exact amount in one currency."""

    amount: Amount
    currency: Currency = "USD"


class ExchangeRate(Value):
    """The worth of one unit of `currency` in units of `into` on the day `on`."""

    currency: Currency
    into: Currency
    rate: Decimal = Field(gt=0, max_digits=20, decimal_places=10)
    on: date

    def __str__(self) -> str:
        return f"{self.currency}{self.into} {self.rate.normalize():f} of {self.on}"


class Foreign(Value):
    """A price as it is traded, in another currency than the account's, and the rate between."""

    price: Money
    rate: ExchangeRate


def total_cost(costs: Iterable[Decimal | None]) -> Decimal | None:
    """The sum in US dollars; None where one of them is unknown."""
    total = Decimal(0)
    for cost_usd in costs:
        if cost_usd is None:
            return None
        total += cost_usd
    return total


class Usage(Value):
    """The usage of calls: tokens as counted by the provider, and their cost in US dollars.

    `cost_usd` is None if the price of any of them is unknown: this is not 0. `unsorted_tokens` are
    of unknown kind: reserved for a call without a reply.
    """

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    unsorted_tokens: int = Field(default=0, ge=0)
    cost_usd: Cost = Decimal(0)

    @property
    def tokens(self) -> int:
        """All tokens, of every sort."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
            + self.unsorted_tokens
        )

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            unsorted_tokens=self.unsorted_tokens + other.unsorted_tokens,
            cost_usd=total_cost((self.cost_usd, other.cost_usd)),
        )


class Failure(Value):
    """Why something could not be done: a stable code for machines, a sentence for people.

    `of_model`: a model's endpoint or its answer failed, so another provider could do it.
    """

    code: ShortText
    message: Text
    field: ShortText | None = None
    of_model: bool = Field(default=False, exclude_if=operator.not_)


class ToolDef(Value):
    """One read-only tool as a model sees it; `parameters` is a JSON Schema object."""

    name: Name
    description: Text
    parameters: dict[str, Any]
