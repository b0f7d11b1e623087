"""Designs: given ones are taken as they are, others drawn or written, named, exported, judged."""

from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from contracts.cycle import CycleRequest
from contracts.gate import STRICT, GateThresholds
from contracts.strategy import CostSpec, FoldSpec, Period, StrategyDraft, StrategySpec, StrategyWish
from contracts.strategy_cycle import DesignStrategy, StrategyDesign
from libs.llm.errors import AnswerInvalid
from libs.llm.provider import ModelReply, ModelRequest, Provider
from libs.llm.rules.provider import RulesProvider
from libs.market.errors import UnknownTicker
from libs.report.strategies.files import spec_of
from libs.runtime.journal import Journal
from libs.runtime.settings import Settings
from services.strategy import app
from services.strategy.handler import SpecMisfit
from services.strategy.logic import sha256_of
from tests.fakes.scripted_model import ScriptedProvider, says
from tests.unit.services.conftest import Desk
from tests.unit.services.strategy_results import past_strategies

EXAMPLE = Path(__file__).parents[4] / "services/cli/desk/folder/strategy.yaml"
AS_OF = date(2013, 3, 1)


class Designing:
    """The design service on the bundled prices."""

    def __init__(self, market: Any, folder: Path) -> None:
        self._desk = Desk(market=market, providers={}, as_of=AS_OF)
        self.provider: Provider = RulesProvider()
        self.settings = Settings(strategies_dir=folder / "strategies")
        self.entries: list[Any] = []

    def costs(self, fee: str, slippage: str) -> None:
        """A desk with these costs."""
        where = {"strategies_dir": self.settings.strategies_dir}
        self.settings = Settings(broker={"fee_bps": fee, "slippage_bps": slippage}, **where)

    async def do(self, wish: StrategyWish | None = None, **changes: Any) -> StrategyDesign:
        asked: dict[str, Any] = changes.pop("request", {})
        request = CycleRequest(
            idempotency_key="a", kind="strategy", as_of=AS_OF, strategy=wish, **asked
        )
        route = app.designing(self._desk.market, {"rules": self.provider}, self.settings)
        command = self._desk.command(DesignStrategy, request=request, **changes)

        async def record(entries: Any, *_: object) -> None:
            self.entries += entries

        journal = Journal(list(self.entries), record)
        made = await route.handle(command, journal)
        await journal.flush()
        assert isinstance(made, StrategyDesign)
        return made


def exported(made: StrategyDesign) -> StrategySpec:
    return spec_of(Path(made.path).read_text())


def taken_over(made: StrategyDesign) -> None:
    Path(made.path).write_text("name: somebody else's\n")


@pytest.fixture
def designing(bundled: Any, tmp_path: Path) -> Designing:
    return Designing(bundled, tmp_path)


@pytest.fixture
def spec() -> StrategySpec:
    return spec_of(EXAMPLE.read_text())


async def test_a_given_design_is_taken_as_it_is(designing: Designing, spec: StrategySpec) -> None:
    given = spec.model_copy(update={"costs": CostSpec(fee_bps=1, slippage_bps=0)})
    made = await designing.do(StrategyWish(spec=given))
    assert (made.spec, made.origin, made.spec_sha256) == (given, "given", sha256_of(given))
    assert exported(made) == given


async def test_a_given_design_without_costs_has_the_desks_and_its_file_is_still_its_own(
    designing: Designing, spec: StrategySpec
) -> None:
    designing.costs(fee="12.5", slippage="7")
    kept = designing.settings.strategies_dir / f"{spec.name}.yaml"
    kept.parent.mkdir()
    kept.write_text(EXAMPLE.read_text())

    made = await designing.do(StrategyWish(spec=spec))
    assert made.spec.costs == CostSpec(fee_bps=12.5, slippage_bps=7)
    assert (made.path, kept.read_text()) == (str(kept), EXAMPLE.read_text())


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        (
            {"held_out": Period(first=date(2012, 1, 3), last=date(2020, 12, 31))},
            "held_out.last",
            "2020-12-31 is after AAPL's last bar (2013-03-01)",
        ),
        (
            {
                "universe": ("AAPL", "FB"),
                "train": Period(first=date(2005, 1, 3), last=date(2009, 12, 31)),
            },
            "train.first",
            "2005-01-03 is before FB's first bar (2012-05-18)",
        ),
    ],
)
async def test_a_given_design_that_the_prices_do_not_reach_is_refused_before_it_is_trained(
    designing: Designing, spec: StrategySpec, changes: dict[str, Any], field: str, told: str
) -> None:
    with pytest.raises(SpecMisfit) as caught:
        await designing.do(StrategyWish(spec=spec.model_copy(update=changes)))
    assert caught.value.field == field
    assert f"{field}: {told}" in caught.value.message
    kept = designing.settings.strategies_dir
    assert kept is not None
    assert not kept.exists()


async def test_the_rules_draw_a_design_and_say_that_they_are_rules(designing: Designing) -> None:
    made = await designing.do()
    assert made.origin == "designed"
    assert made.spec.hypothesis.startswith("rules: ")
    assert exported(made) == made.spec


async def test_the_same_operation_draws_the_same_design_and_another_one_another(
    designing: Designing,
) -> None:
    first = await designing.do(op_id=uuid4())
    designing.entries.clear()
    assert (await designing.do(op_id=first.op_id)).spec == first.spec
    designing.entries.clear()
    assert (await designing.do(op_id=uuid4())).spec != first.spec


@pytest.mark.parametrize("number", range(25))
async def test_every_draw_fits_the_prices_that_there_are(designing: Designing, number: int) -> None:
    made = await designing.do(op_id=uuid4())
    spec = made.spec
    assert "FB" not in spec.universe, "it began to trade in 2012: nothing could be learned"
    assert spec.train.last < spec.held_out.first <= spec.held_out.last <= AS_OF
    assert (spec.held_out.last - spec.held_out.first).days > 700, number


async def test_a_design_by_rules_keeps_away_from_past_ones_that_did_poorly(
    designing: Designing,
) -> None:
    op_id = uuid4()
    first = await designing.do(op_id=op_id)
    designing.entries.clear()
    again = await designing.do(op_id=op_id, past_strategies=past_strategies())
    assert again.spec.features != first.spec.features or "drawn away" in again.spec.hypothesis


async def test_a_model_is_told_of_past_strategies_and_what_was_thought_of_them(
    designing: Designing, spec: StrategySpec
) -> None:
    heard = []

    def answer(request: ModelRequest) -> ModelReply:
        heard.append(request.task["past"])
        return says(spec.model_dump(mode="json", include=IDEA))

    designing.provider = ScriptedProvider(answer)
    await designing.do(past_strategies=past_strategies())
    assessed, stopped = heard[0]
    assert assessed["verdict"] == "mediocre"
    assert assessed["suggestions"] == ["hold longer", "fewer features"]
    assert stopped["reason"].startswith("Training gate failed: ")


async def test_a_request_may_narrow_the_tickers(designing: Designing) -> None:
    made = await designing.do(request={"universe": ("IBM",)})
    assert made.spec.universe == ("IBM",)


async def test_an_unknown_ticker_ends_the_operation_with_its_name(designing: Designing) -> None:
    with pytest.raises(UnknownTicker, match="NOPE"):
        await designing.do(request={"universe": ("NOPE",)})


async def test_gates_are_fixed_with_the_design(designing: Designing) -> None:
    designing.settings = Settings(
        strategies_dir=designing.settings.strategies_dir,
        gates={"profile": "careful", "accuracy_min": 0.6},
    )
    made = await designing.do()
    assert made.gates == GateThresholds(profile="careful", accuracy_min=0.6)


def test_a_mistyped_threshold_is_refused_as_a_setting() -> None:
    with pytest.raises(ValidationError, match="acuracy_min"):
        Settings(gates={"acuracy_min": 0.5})


def test_the_strict_profile_needs_its_name_only_and_may_be_changed() -> None:
    assert GateThresholds(**dict(Settings(gates={"profile": "strict"}).gates)) == STRICT
    eased = Settings(gates={"profile": "strict", "skill_min": None}).gates
    assert (eased.skill_min, eased.deflated_sharpe_min) == (None, STRICT.deflated_sharpe_min)
    own = Settings(gates={"profile": "careful", "deflated_sharpe_min": 0.9}).gates
    assert (own.skill_min, own.deflated_sharpe_min) == (None, 0.9)


IDEA = set(StrategyDraft.model_fields) & set(StrategySpec.model_fields)


def written(spec: StrategySpec, **changes: Any) -> ScriptedProvider:
    body = {**spec.model_dump(mode="json", include=IDEA), **changes}
    return ScriptedProvider(lambda _: says(body))


async def test_a_models_design_is_run_as_it_was_written(
    designing: Designing, spec: StrategySpec
) -> None:
    designing.provider = written(spec, position_pct=40)
    made = await designing.do()
    assert made.origin == "designed"
    assert made.spec.model_dump(include=IDEA) == spec.model_dump(include=IDEA)
    assert made.spec.sizing.position_pct == 40


async def test_by_what_a_models_design_is_judged_the_desk_fills_in(
    designing: Designing, spec: StrategySpec
) -> None:
    designing.costs(fee="12.5", slippage="7")
    designing.provider = written(spec)
    found = (await designing.do()).spec
    assert found.costs == CostSpec(fee_bps=12.5, slippage_bps=7)
    assert found.sizing.capital == 100_000
    assert found.held_out == Period(first=date(2010, 3, 3), last=AS_OF)
    assert found.train == Period(first=date(2005, 3, 3), last=date(2010, 3, 2))
    assert (found.folds, found.seed) == (FoldSpec(), 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("costs", {"fee_bps": 0, "slippage_bps": 0}),
        ("held_out", {"first": "2011-01-03", "last": "2012-04-02"}),
        ("train", {"first": "2005-01-03", "last": "2009-12-31"}),
        ("folds", {"count": 2, "embargo_bars": 0}),
        ("seed", 7),
        ("sizing", {"capital": 1}),
    ],
)
async def test_a_model_cannot_choose_by_what_it_is_judged(
    designing: Designing, spec: StrategySpec, field: str, value: Any
) -> None:
    designing.provider = written(spec)
    plain = (await designing.do()).spec
    designing.provider = written(spec, **{field: value})
    assert (await designing.do()).spec == plain


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"universe": ["AAPL", "TSLA"]}, "universe.1: it has no prices here"),
        ({"universe": ["AAPL", "FB"]}, "2012-05-18 to 2013-03-01 only.*leave out FB"),
        ({"name": "../../etc/passwd"}, "name"),
        ({"features": [{"indicator": "tea_leaves"}]}, "features.0.indicator"),
    ],
)
async def test_a_models_design_that_cannot_be_run_is_sent_back_with_the_field(
    designing: Designing, spec: StrategySpec, changes: dict[str, Any], field: str
) -> None:
    designing.provider = written(spec, **changes)
    with pytest.raises(AnswerInvalid, match=field):
        await designing.do()
    assert not designing.settings.strategies_dir.exists()


async def test_an_operation_that_starts_again_has_its_name_still(
    designing: Designing, spec: StrategySpec
) -> None:
    first = await designing.do(StrategyWish(spec=spec))
    taken_over(first)
    assert await designing.do(StrategyWish(spec=spec)) == first
