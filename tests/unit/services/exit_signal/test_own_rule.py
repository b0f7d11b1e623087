"""What an exit rule needs besides its row: terms, a way to its trigger, facts on record, a page."""

from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import get_args

from libs.market.sources import market_of
from libs.quant.exits.history import HistoryRequest, PriceHistory
from libs.quant.exits.rules import rules_of
from libs.quant.exits.terms import ExitTerms, SellTerms
from libs.runtime.journal import Journal
from libs.runtime.settings import Settings
from services.exit_signal.distance import WAYS
from services.exit_signal.reads import ExitReads

NAMED = {
    name: terms
    for name, field in ExitTerms.model_fields.items()
    for terms in get_args(field.annotation)
    if isinstance(terms, type) and issubclass(terms, SellTerms)
}
RULES = rules_of(ExitTerms.model_construct(**{name: SellTerms() for name in NAMED}))
AS_OF = date(2012, 6, 29)
PAGE = Path(__file__).parents[4] / "docs/exit-signals.md"


def test_every_named_rule_has_its_terms_and_all_terms_have_their_rule() -> None:
    assert {rule.name for rule in RULES if not rule.monthly} == set(NAMED)


def test_every_rule_has_a_way_to_its_trigger() -> None:
    assert {rule.name for rule in RULES} == set(WAYS)


def test_the_page_has_a_row_of_every_rule() -> None:
    table = PAGE.read_text().partition("## The rules\n")[2].partition("\n## ")[0]
    rows = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert {rule.name for rule in RULES} <= rows


async def test_what_a_cycle_has_from_the_journal_is_what_was_read() -> None:
    async def record(*_: object) -> None:
        """The journal of a test tells nobody."""

    since = date(2012, 5, 1)
    wanted = HistoryRequest("AAPL", 400, peak_since=since, closes_since=since)
    reads = ExitReads(market_of(Settings()))
    read = await reads.histories((wanted,), AS_OF)
    journal = Journal((), record)
    assert await reads.journalled(journal, (wanted,), AS_OF) == (read, ())
    history = read["AAPL"]
    assert isinstance(history, PriceHistory)
    assert all(getattr(history, field.name) for field in fields(PriceHistory)), (
        "ask for all there is"
    )
