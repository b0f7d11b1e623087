"""The score of a study of accounts that live through the sessions (`path`): money after costs,
beside controls, and how much of it was luck. Pure.

Two controls have no cells. `hold` buys equal parts of the universe at the first close and leaves
them alone, after costs; `equal weight` has equal parts at every close, without any.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from math import ceil, isfinite, sqrt
from typing import Any

import numpy as np

from contracts.performance import CANDIDATES, CASH
from contracts.study_score import (
    RATIO_SESSIONS_LEAST,
    Equity,
    NotShown,
    StudyScore,
)
from libs.quant.arrays import Array
from libs.quant.strategy import performance
from libs.quant.strategy.skill import deflated_sharpe, sharpe_error, track_record_least
from libs.study.statistics.choices import BPS
from libs.study.statistics.overfitting import overfitting
from libs.study.statistics.record import (
    PATH_SESSIONS_LEAST,
    AccountEquity,
    AssetBars,
    Decided,
    StudyRecord,
    common_sessions,
    cost_of,
)
from libs.study.statistics.shares import Z_95
from libs.study.statistics.shown import DATES_MAX, thinned
from libs.study.statistics.tried import Account, TrialRecord, on_record

HOLD, EQUAL_WEIGHT = "hold", "equal weight"
YEAR = sqrt(performance.YEAR_SESSIONS)
CONFIGURATIONS_LEAST = 2
NO_PATH = NotShown(why="of a path's decisions none is independent: see its equity")


def score_path(recorded: StudyRecord) -> StudyScore:
    """The money of each arm and sample, on the sessions that all accounts have."""
    arms = recorded.by_arm()
    accounts = [it for it in recorded.accounts if len(it.sessions) >= PATH_SESSIONS_LEAST]
    common = common_sessions(recorded.accounts)
    head = StudyScore(
        **recorded.heading,
        arms=tuple(
            recorded.arm_score(
                name, decided, hits=NO_PATH, excess=NO_PATH, permuted=NO_PATH, foresight=NO_PATH
            )
            for name, decided in arms.items()
        ),
    )
    if len(common) < PATH_SESSIONS_LEAST:
        few = f"the accounts have {len(common)} sessions in common, needs {PATH_SESSIONS_LEAST}"
        return head.model_copy(update={"overfitting": NotShown(why=few), "message": few})
    curves = {(it.arm, it.sample): _on(it, common) for it in accounts}
    controls = _controls(recorded, common)
    beside = _benchmark(recorded, controls, common)
    own = {key: performance.daily_returns(curve) for key, curve in curves.items()}
    tried = on_record(own, recorded.tried)
    rows = [_equity(key, curve, tried, beside, arms[key[0]]) for key, curve in curves.items()]
    return head.model_copy(
        update={
            "dates": len(common),
            "first": common[0],
            "last": common[-1],
            "equity": (*rows, *(_control(name, curve) for name, curve in controls.items())),
            "configurations": tried.counted,
            "overfitting": overfitting(tried.returns),
            "points": thinned(common),
        }
    )


def _on(account: AccountEquity, sessions: Sequence[date]) -> Array:
    worth = dict(zip(account.sessions, account.worth, strict=True))
    curve = np.array([worth[day] for day in sessions])
    return np.asarray(curve / curve[0])


def _controls(recorded: StudyRecord, sessions: Sequence[date]) -> Mapping[str, Array]:
    """The two controls over the assets that have a price at the first session; none where none
    has."""
    closes = _closes(recorded.bars, recorded.study.universe, sessions)
    if not len(closes):
        return {}
    bought = closes / closes[:, :1]
    paid = 1 - recorded.cost_bps * BPS
    held = bought.mean(axis=0) * paid
    held[0] = 1.0
    daily = (closes[:, 1:] / closes[:, :-1]).mean(axis=0)
    return {HOLD: held, EQUAL_WEIGHT: np.concatenate([[1.0], np.cumprod(daily)])}


def _closes(
    bars: Mapping[str, AssetBars], assets: Sequence[str], sessions: Sequence[date]
) -> Array:
    """A row for each asset that has a close at the first session, a column a session."""
    known = [bars[asset] for asset in assets if asset in bars]
    rows = [[of.close_at(day) for day in sessions] for of in known if sessions[0] in of.sessions]
    return np.array(rows, dtype=np.float64)


def _benchmark(
    recorded: StudyRecord, controls: Mapping[str, Array], sessions: Sequence[date]
) -> float | None:
    """The benchmark's return over the sessions; None where it has no price."""
    if recorded.benchmark == CASH:
        return 0.0
    if recorded.benchmark == CANDIDATES:
        return float(controls[HOLD][-1] - 1) if HOLD in controls else None
    closes = _closes(recorded.bars, [recorded.benchmark.upper()], sessions)
    return float(closes[0, -1] / closes[0, 0] - 1) if len(closes) else None


def _equity(
    key: Account,
    curve: Array,
    tried: TrialRecord,
    beside: float | None,
    decided: Sequence[Decided],
) -> Equity:
    arm, sample = key
    of = [one for one in decided if one.sample == sample]
    decisions, tokens, usd = sum(it.ended for it in of), sum(it.tokens for it in of), cost_of(of)
    above = 0.0 if beside is None else max((float(curve[-1] - 1) - beside) / BPS, 0.0)
    return _figures(f"{arm} {sample}" if len(tried.own) > 1 else arm, curve).model_copy(
        update={
            "arm": arm,
            "sample": sample,
            "deflated_sharpe": _deflated(tried, key),
            "tokens_decision": tokens // decisions if decisions else None,
            "usd_decision": usd / decisions if decisions and usd is not None else None,
            "usd_bp": usd / above if above and usd is not None else None,
            "tokens_bp": tokens / above if above else None,
        }
    )


def _deflated(tried: TrialRecord, key: Account) -> float | None:
    """The deflated Sharpe ratio. Of one configuration alone it would be no deflated one, and with
    heavy tails too often high."""
    returns = tried.own[key]
    if len(returns) < RATIO_SESSIONS_LEAST or tried.count < CONFIGURATIONS_LEAST:
        return None
    return deflated_sharpe(returns, tried.besides(key))


def _control(name: str, curve: Array) -> Equity:
    return _figures(name, curve).model_copy(update={"control": True})


def _figures(name: str, curve: Array) -> Equity:
    returns = performance.daily_returns(curve)
    highest = np.maximum.accumulate(curve)
    is_a_year = len(returns) >= performance.YEAR_SESSIONS
    return Equity(
        name=name,
        sessions=len(curve),
        total_return=float(curve[-1] - 1),
        annual_return=float(performance.cagr(curve)) if is_a_year else None,
        drawdown=float((1 - curve / highest).max()),
        curve=thinned([float(value) for value in curve]),
        **_ratio(returns),
    )


def _ratio(returns: Array) -> dict[str, Any]:
    """The fields of a yearly Sharpe ratio, its interval and the minimum track record length in
    sessions, as far as there are these."""
    sharpe = float(performance.sharpe_ratio(returns))
    if not isfinite(sharpe) or returns.std() <= 0:
        return {}
    if len(returns) < RATIO_SESSIONS_LEAST:
        return {"sharpe": sharpe}
    least = track_record_least(sharpe / YEAR, 0.0, *_shape(returns))
    low, high = sharpe_interval(sharpe, returns)
    return {
        "sharpe": sharpe,
        "sharpe_low": low,
        "sharpe_high": high,
        "sessions_needed": ceil(least) if isfinite(least) and least < DATES_MAX else None,
    }


def sharpe_interval(sharpe: float, returns: Array) -> tuple[float, float]:
    """The 95 % interval of a yearly Sharpe ratio, however few the returns are that it is of."""
    reach = Z_95 * sharpe_error(sharpe / YEAR, len(returns), *_shape(returns)) * YEAR
    return sharpe - reach, sharpe + reach


def _shape(returns: Array) -> tuple[float, float]:
    """Skewness and kurtosis."""
    centred = (returns - returns.mean()) / returns.std()
    return float((centred**3).mean()), float((centred**4).mean())
