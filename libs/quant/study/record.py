"""The record of a study, as its score takes it: decisions, prices, accounts. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from pydantic import Field

from contracts.performance import Benchmark
from contracts.probe import Guess
from contracts.study import Study
from contracts.types import Value


class Decided(Value):
    """The decision of an arm in one cell. `weights` are what it bought as parts of its equity,
    after the rules; `stated` the confidences of its picks, before them. One that did not `end` well
    has neither."""

    arm: str
    number: int
    sample: int
    on: date
    ended: bool = True
    weights: dict[str, float] = Field(default_factory=dict)
    stated: dict[str, float] = Field(default_factory=dict)
    tokens: int = 0
    cost_usd: float = 0.0


class Probed(Value):
    """The guesses of an arm's model in one probe."""

    arm: str
    number: int
    on: date
    guesses: tuple[Guess, ...]


class Bars(Value):
    """An asset's prices by session, adjusted, in the currency that it trades in."""

    sessions: tuple[date, ...]
    open: tuple[float, ...]
    close: tuple[float, ...]


class AccountEquity(Value):
    """An account's growth of 1 by each close, time-weighted, after costs."""

    arm: str
    sample: int
    sessions: tuple[date, ...]
    worth: tuple[float, ...]


class Recorded(Value):
    """Everything that a study is scored by. `sessions` are the exchange's, over all dates and their
    horizons as far as there are prices; an asset without prices is not in `bars`. `cutoffs` has the
    arms whose provider is a model, None where nobody said when its knowledge ended."""

    study: Study
    horizon: int = Field(ge=1)
    cost_bps: float = Field(ge=0)
    benchmark: Benchmark
    sessions: tuple[date, ...]
    bars: dict[str, Bars]
    decided: tuple[Decided, ...]
    accounts: tuple[AccountEquity, ...] = ()
    cutoffs: dict[str, date | None] = Field(default_factory=dict)
    probed: tuple[Probed, ...] = ()

    @property
    def heading(self) -> dict[str, Any]:
        """The fields of a score that say what is scored: the study, its cells, and by what."""
        return {
            "study": self.study,
            "cells": len({(one.number, one.sample) for one in self.decided}),
            "decided": sum(one.ended for one in self.decided),
            "failed": sum(not one.ended for one in self.decided),
            "horizon": self.horizon,
            "cost_bps": self.cost_bps,
            "benchmark": self.benchmark,
        }

    def by_arm(self) -> Mapping[str, Sequence[Decided]]:
        """The decisions of each arm, arms in the order of the study's file."""
        arms: dict[str, list[Decided]] = {arm.name: [] for arm in self.study.arms}
        for decided in self.decided:
            arms[decided.arm].append(decided)
        return arms
