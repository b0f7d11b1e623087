"""The reasons why a candidate of a decision was not bought."""

from enum import StrEnum

from pydantic import Field

from contracts.types import Money, ShortText, Text, Ticker, Value, is_none


class Cause(StrEnum):
    """The cause why a ticker was not bought.

    `held`: the account has it. `rule`: a risk rule let none pass. `threshold`: a stated rule of the
    trader was not met. `own_words`: the model's own words. `unstable`: its answers did not agree.
    `no_reason`: the model gave none. `not_looked_into`: the plan left it out. `no_finding`:
    research has none. `not_decided`: the pipeline ended before. `person`: an approver took it out.
    `order`: it was ordered and not filled. `unreadable`: what would say it is on record and cannot
    be read by this version.
    """

    HELD = "held"
    RULE = "rule"
    THRESHOLD = "threshold"
    OWN_WORDS = "own_words"
    UNSTABLE = "unstable"
    NO_REASON = "no_reason"
    NOT_LOOKED_INTO = "not_looked_into"
    NO_FINDING = "no_finding"
    NOT_DECIDED = "not_decided"
    PERSON = "person"
    ORDER = "order"
    UNREADABLE = "unreadable"


class NotBought(Value):
    """One reason why a ticker was not bought.

    A rule or threshold has its `name`, and what it saw (`value`) against its `limit`; `why` is the
    reason in words. Above the price `buys_above` the stated rules would have proposed it, all else
    unchanged.
    """

    ticker: Ticker
    cause: Cause
    name: ShortText = ""
    value: ShortText = ""
    limit: ShortText = ""
    buys_above: Money | None = Field(default=None, exclude_if=is_none)
    why: Text = ""
