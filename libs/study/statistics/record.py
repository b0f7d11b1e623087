"""The record of a study, as its score takes it: decisions, prices, accounts. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import Field

from contracts.performance import Benchmark
from contracts.probe import Guess
from contracts.stages import Substitute, Why, fell_back
from contracts.study import Study
from contracts.study_score import ArmScore, ConfigurationKind, Foresight, NotShown, Permuted, Shown
from contracts.types import Value

PATH_SESSIONS_LEAST = 3
"""Of an account that has returns at all."""


class Decided(Value):
    """The decision of an arm in one cell. `weights` are what it bought as parts of its equity,
    after the rules; `stated` the confidences of its picks, before them. One that did not `end` well
    has neither, nor has one that rests on a fallback: it is not the arm's own. `cost_usd` is None
    where it is unknown."""

    arm: str
    number: int
    sample: int
    on: date
    ended: bool = True
    weights: dict[str, float] = Field(default_factory=dict)
    stated: dict[str, float] = Field(default_factory=dict)
    substitutes: tuple[Substitute, ...] = ()
    tokens: int = 0
    cost_usd: float | None = 0.0

    @property
    def fell_back(self) -> bool:
        """Whether it rests on a fallback."""
        return fell_back(self.substitutes)


def cost_of(decided: Iterable[Decided]) -> float | None:
    """The cost of these decisions in US dollars; None where that of one is unknown."""
    costs = [one.cost_usd for one in decided]
    known = [cost_usd for cost_usd in costs if cost_usd is not None]
    return sum(known) if len(known) == len(costs) else None


class Probed(Value):
    """The guesses of an arm's model in one probe."""

    arm: str
    number: int
    on: date
    guesses: tuple[Guess, ...]


class AssetBars(Value):
    """An asset's prices by session, adjusted, in the currency that it trades in. One that stops
    trading keeps its last close: whoever holds it cannot sell."""

    sessions: tuple[date, ...]
    open: tuple[float, ...]
    close: tuple[float, ...]

    def close_at(self, day: date) -> float | None:
        """The close of the day, or the last one before it; None before all of them."""
        past = bisect_right(self.sessions, day)
        return self.close[past - 1] if past else None


class AccountEquity(Value):
    """An account's growth of 1 by each close, time-weighted, after costs."""

    arm: str
    sample: int
    sessions: tuple[date, ...]
    worth: tuple[float, ...]


class Tried(Value):
    """A configuration that was tried elsewhere on assets and sessions of the study: in which study
    or strategy (`source`), and its worth at each of the study's `common_sessions`; empty where that
    is not on record."""

    kind: ConfigurationKind
    source: str
    worth: tuple[float, ...] = ()


def common_sessions(accounts: Sequence[AccountEquity]) -> Sequence[date]:
    """The sessions that all accounts have which have enough to be measured, in order."""
    lived = [set(it.sessions) for it in accounts if len(it.sessions) >= PATH_SESSIONS_LEAST]
    return sorted(set.intersection(*lived)) if lived else []


class StudyRecord(Value):
    """Everything that a study is scored by. `sessions` are the exchange's, over all dates and their
    horizons as far as there are prices; an asset without prices is not in `bars`. `cutoffs` has the
    arms whose provider is a model, None where nobody said when its knowledge ended. `tried` are the
    configurations of other studies and strategies that a path is judged among."""

    study: Study
    horizon: int = Field(ge=1)
    cost_bps: float = Field(ge=0)
    benchmark: Benchmark
    sessions: tuple[date, ...]
    bars: dict[str, AssetBars]
    decided: tuple[Decided, ...]
    accounts: tuple[AccountEquity, ...] = ()
    cutoffs: dict[str, date | None] = Field(default_factory=dict)
    probed: tuple[Probed, ...] = ()
    tried: tuple[Tried, ...] = ()

    @property
    def heading(self) -> dict[str, Any]:
        """The fields of a score that say what is scored: the study, its cells, and by what."""
        return {
            "study": self.study,
            "cells": len({(one.number, one.sample) for one in self.decided}),
            "decided": sum(one.ended for one in self.decided),
            "failed": sum(not one.ended and not one.fell_back for one in self.decided),
            "fallbacks": sum(one.fell_back for one in self.decided),
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

    def arm_score(
        self,
        name: str,
        decided: Sequence[Decided],
        *,
        hits: Shown,
        excess: Shown,
        permuted: Permuted | NotShown,
        foresight: Foresight | NotShown,
        curve: tuple[float, ...] = (),
    ) -> ArmScore:
        """An arm's score: what it decided and spent, beside the statistics of that."""
        arm = next(arm for arm in self.study.arms if arm.name == name)
        ended = [one for one in decided if one.ended]
        invested = [sum(one.weights.values()) for one in ended]
        cost_usd = cost_of(decided)
        substitutes = [it for one in decided for it in one.substitutes if it.why is Why.SETTING]
        return ArmScore(
            name=name,
            provider=arm.provider,
            masked=arm.masked,
            decisions=len(ended),
            failed=sum(not one.ended and not one.fell_back for one in decided),
            fallbacks=sum(one.fell_back for one in decided),
            substitutes=tuple(dict.fromkeys(substitutes)),
            picks=sum(len(one.weights) for one in ended),
            invested=sum(invested) / len(invested) if invested else 0.0,
            hits=hits,
            excess=excess,
            permuted=permuted,
            foresight=foresight,
            tokens=sum(one.tokens for one in decided),
            cost_usd=None if cost_usd is None else Decimal(f"{cost_usd:.8f}"),
            curve=curve,
        )
