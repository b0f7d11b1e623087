"""Every strategy ever tried is counted, and the count travels to where the gate is judged."""

import asyncio
import statistics
import uuid
from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import pytest

from contracts.cycle import STRATEGY, CycleRequest, RequestAnswer
from contracts.message import Contract
from contracts.operation import Claim, ClaimAnswer, Result, ResultAnswer
from contracts.strategy import StrategyWish
from contracts.strategy_cycle import (
    PAST_STRATEGIES_MAX,
    BacktestStrategy,
    DesignStrategy,
    PastStrategy,
    Trials,
)
from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.orchestrator import store
from services.orchestrator.commit import Committer
from services.orchestrator.group.inputs import CancelRequested, Claimed, CycleRequested, Resulted
from services.orchestrator.machine.workflows import workflows_of
from tests.fakes.log_lines import log_lines
from tests.integration.orchestrator.conftest import DAY, Sent
from tests.unit.services.strategy_results import assessment, backtest, design, training

RACES = 5
APART_S = 0.1
PASSED = {"gate": "training", "profile": "default", "passed": True, "checks": []}
STOPPED = {**PASSED, "passed": False, "reason": "Training gate failed: too little"}


class Cycles:
    """Strategy cycles, answered by hand."""

    def __init__(self, pool: Pool, committer: Committer) -> None:
        self.pool = pool
        self._committer = committer

    async def begin(self, as_of: date = DAY, strategy: StrategyWish | None = None) -> UUID:
        key = uuid.uuid4().hex
        request = CycleRequest(idempotency_key=key, kind=STRATEGY, as_of=as_of, strategy=strategy)
        cycle_id = ids.cycle_id("user", key)
        asked = CycleRequested(cycle_id, "user", request, as_of, key.encode())
        answer = await self._committer.ask(asked)
        assert isinstance(answer, RequestAnswer)
        assert answer.outcome == "accepted", answer
        return cycle_id

    async def command(self, cycle_id: UUID, step: str) -> tuple[UUID, str, bytes]:
        row = await self.pool.fetchrow(
            "select op_id, service, command from operations where cycle_id = $1 and step = $2",
            cycle_id,
            step,
        )
        assert row is not None, f"{step} was not sent"
        return row["op_id"], row["service"], row["command"]

    async def answer(self, cycle_id: UUID, step: str, contract: Contract, **changes: Any) -> None:
        op_id, service, _ = await self.command(cycle_id, step)
        claimed = await self._committer.ask(Claimed(service, Claim(op_id=op_id, instance="test")))
        assert isinstance(claimed, ClaimAnswer)
        made = {
            **contract.model_dump(mode="json"),
            **changes,
            "cycle_id": str(cycle_id),
            "op_id": str(op_id),
        }
        result = Result(op_id=op_id, epoch=claimed.epoch, contract=made)
        answer = await self._committer.ask(Resulted(service, result))
        assert isinstance(answer, ResultAnswer)
        assert answer.outcome == "ok"

    async def designed(self, name: str, sha256: str) -> UUID:
        cycle_id = await self.begin()
        spec = {**design().spec.model_dump(mode="json"), "name": name}
        await self.answer(cycle_id, "design", design(), spec=spec, spec_sha256=sha256)
        return cycle_id

    async def trained(self, name: str, sha256: str, gate: Any = PASSED) -> UUID:
        cycle_id = await self.designed(name, sha256)
        named = {"strategy_name": name, "spec_sha256": sha256, "gate": gate}
        await self.answer(cycle_id, "train", training(), **named)
        return cycle_id

    async def backtested(self, name: str, sha256: str, ratio: float | None) -> Trials:
        """Run a design to the end of its backtest; returns what its command said of others."""
        cycle_id = await self.trained(name, sha256)
        _, _, body = await self.command(cycle_id, "backtest")
        told = BacktestStrategy.model_validate_json(body).trials
        assert told is not None
        stopped = {**STOPPED, "gate": "backtest", "reason": "Backtest gate failed: too little"}
        named = {"strategy_name": name, "spec_sha256": sha256, "gate": stopped}
        await self.answer(cycle_id, "backtest", backtest(), sharpe_ratio=ratio, **named)
        return told

    async def past(self, as_of: date = DAY) -> tuple[PastStrategy, ...]:
        """What the next design is told of those before it."""
        cycle_id = await self.begin(as_of)
        _, _, body = await self.command(cycle_id, "design")
        await self.stop(cycle_id)
        return DesignStrategy.model_validate_json(body).past_strategies

    async def stop(self, cycle_id: UUID) -> None:
        await self._committer.ask(CancelRequested(cycle_id, "enough"))


@pytest.fixture
async def cycles(pool: Pool) -> AsyncIterator[Cycles]:
    """One orchestrator; no strategy was tried yet."""
    await pool.execute("update cycles set status = 'cancelled' where kind = 'strategy'")
    await pool.execute("update strategies set train_op_id = null, sharpe_ratio = null")
    settings, sent = Settings(), Sent()
    committer = Committer(pool, workflows_of(settings), settings, sent, sent)
    running = asyncio.create_task(committer.run())
    yield Cycles(pool, committer)
    running.cancel()


def sha(number: int) -> str:
    return f"{number:064x}"


async def test_the_first_strategy_has_no_others(cycles: Cycles) -> None:
    assert await cycles.backtested("first", sha(1), 0.5) == Trials()


async def test_a_backtest_is_told_how_many_others_were_tried_and_how_they_did(
    cycles: Cycles,
) -> None:
    ratios = [0.5, -0.3, 1.1]
    for number, ratio in enumerate(ratios):
        await cycles.backtested(f"tried-{number}", sha(number), ratio)
    told = await cycles.backtested("next", sha(9), None)
    assert (told.count, told.with_ratio) == (3, 3)
    assert told.ratio_mean == pytest.approx(statistics.mean(ratios))
    assert told.ratio_variance == pytest.approx(statistics.variance(ratios))


async def test_a_design_that_the_training_gate_stopped_was_tried_too(cycles: Cycles) -> None:
    await cycles.trained("stopped", sha(1), STOPPED)
    told = await cycles.backtested("next", sha(2), 0.1)
    assert (told.count, told.with_ratio) == (1, 0)


async def test_a_design_that_was_never_trained_was_not_tried(cycles: Cycles) -> None:
    await cycles.stop(await cycles.designed("dropped", sha(1)))
    assert (await cycles.backtested("next", sha(2), 0.1)).count == 0


async def test_the_same_spec_counts_once_however_often_it_is_run(cycles: Cycles) -> None:
    for _ in range(3):
        told = await cycles.backtested("again", sha(1), 0.4)
        assert told.count == 0, "it is no other than itself"
    told = await cycles.backtested("next", sha(2), 0.1)
    assert (told.count, told.with_ratio) == (1, 1)
    assert told.ratio_mean == pytest.approx(0.4)


async def test_the_next_design_is_told_what_became_of_the_last_ones(cycles: Cycles) -> None:
    await cycles.trained("stopped", sha(1), STOPPED)
    await cycles.backtested("weak", sha(2), 0.2)
    assessed = await cycles.trained("good", sha(3))
    named = {"strategy_name": "good", "spec_sha256": sha(3), "gate": PASSED}
    await cycles.answer(assessed, "backtest", backtest(), **named)
    await cycles.answer(assessed, "assess", assessment(), strategy_name="good")
    past = await cycles.past()
    assert [(each.name, each.ended) for each in past] == [
        ("good", "assessed"),
        ("weak", "backtest_gate"),
        ("stopped", "training_gate"),
    ]
    good, weak, stopped = past
    assert (good.verdict, good.suggestions) == ("mediocre", assessment().suggestions)
    assert (weak.sharpe_ratio, weak.reason) == (0.2, "Backtest gate failed: too little")
    assert (stopped.sharpe_ratio, stopped.features[0]) == (None, "sma_distance(20)")


@pytest.mark.parametrize(
    ("step", "later"),
    [
        ("design", b'{"of": "a later version"}'),
        ("design", b'{"spec": {"of": "a later version"}}'),
        ("train", b'{"gate": {"of": "a later version"}}'),
        ("assess", b'{"verdict": "of a later version", "strengths": null}'),
    ],
)
async def test_a_strategy_that_cannot_be_read_is_left_out_and_the_others_are_told(
    cycles: Cycles, step: str, later: bytes
) -> None:
    await cycles.trained("before", sha(1), STOPPED)
    newer = await cycles.trained("newer", sha(2), PASSED if step == "assess" else STOPPED)
    if step == "assess":
        named = {"strategy_name": "newer", "spec_sha256": sha(2), "gate": PASSED}
        await cycles.answer(newer, "backtest", backtest(), **named)
        await cycles.answer(newer, "assess", assessment(), strategy_name="newer")
    await cycles.pool.execute(
        "update operations set result = $3 where cycle_id = $1 and step = $2",
        newer,
        step,
        later,
    )

    with log_lines() as lines:
        past = await cycles.past()

    assert [each.name for each in past] == ["before"]
    [line] = [line for line in lines if line["event"] == "strategies.unreadable"]
    assert line["name"] == "newer"


async def test_the_next_attempt_is_told_of_the_one_before_it(cycles: Cycles) -> None:
    cycle_id = await cycles.begin(strategy=StrategyWish(attempts=2))
    await cycles.answer(cycle_id, "design", design())
    await cycles.answer(cycle_id, "train", training(), gate=STOPPED)
    designs = "select command from operations where cycle_id = $1 and step = 'design'"
    bodies = await cycles.pool.fetch(f"{designs} order by created_at", cycle_id)
    first, second = (DesignStrategy.model_validate_json(row["command"]) for row in bodies)
    assert first.past_strategies == ()
    [told] = second.past_strategies
    assert (told.ended, told.reason) == ("training_gate", STOPPED["reason"])
    assert told.accuracy == training().accuracy
    await cycles.stop(cycle_id)


async def test_a_design_is_told_nothing_of_a_later_as_of(cycles: Cycles) -> None:
    await cycles.trained("known", sha(1), STOPPED)
    before = await cycles.past(DAY - timedelta(days=1))
    assert before == ()
    assert [each.name for each in await cycles.past(DAY)] == ["known"]


async def test_the_newest_strategies_are_told_where_there_are_many(cycles: Cycles) -> None:
    for number in range(PAST_STRATEGIES_MAX + 2):
        await cycles.trained(f"many-{number}", sha(number), STOPPED)
    told = [each.name for each in await cycles.past()]
    assert told == [f"many-{number}" for number in range(PAST_STRATEGIES_MAX + 1, 1, -1)]


async def test_of_two_triggers_at_two_orchestrators_one_begins(
    cycles: Cycles, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = store.load_for_requests

    async def read_slowly(*given: Any) -> None:
        await read(*given)
        await asyncio.sleep(APART_S)  # so that the other one reads before this one writes

    monkeypatch.setattr(store, "load_for_requests", read_slowly)
    settings, sent = Settings(), Sent()
    committers = [
        Committer(cycles.pool, workflows_of(settings), settings, sent, sent) for _ in range(2)
    ]
    running = [asyncio.create_task(each.run()) for each in committers]

    async def trigger(committer: Committer) -> RequestAnswer:
        key = uuid.uuid4().hex
        request = CycleRequest(idempotency_key=key, kind=STRATEGY, as_of=DAY)
        asked = CycleRequested(ids.cycle_id("user", key), "user", request, DAY, key.encode())
        answer = await committer.ask(asked)
        assert isinstance(answer, RequestAnswer)
        return answer

    for _ in range(RACES):
        answers = await asyncio.gather(*map(trigger, committers))
        assert sorted(each.code or "" for each in answers) == ["", "active_cycle_exists"]
        (begun,) = (each.cycle_id for each in answers if each.outcome == "accepted")
        assert begun is not None
        await cycles.stop(begun)
    for task in running:
        task.cancel()
