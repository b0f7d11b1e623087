"""Risk's messages for the rules in code. (The other, the model's review, is in review.py.)"""

from collections.abc import Sequence

import structlog

from contracts.risk import DecisionValidation, ValidateDecision, ValidateExits
from libs.market.moves import moves_read
from libs.market.source import MarketData
from libs.quant.risk.evidence import evidence_of
from libs.quant.risk.plugins import questions_of
from libs.runtime.journal import Journal
from services.risk import exits, logic
from services.risk.plugins import verdicts_read

log = structlog.get_logger()


async def validate_exits(command: ValidateExits, _: Journal) -> DecisionValidation:
    """Judge the exits that a check proposed. No model is asked: they come from rules in code."""
    validation = exits.validate(command)
    log.info(
        "risk.exits_validated",
        account=command.portfolio.account,
        decisions=len(validation.decisions),
        vetoed=len(validation.vetoed_tickers),
    )
    return validation


async def validate_decision(
    command: ValidateDecision, journal: Journal, *, market: MarketData, plugins: Sequence[str] = ()
) -> DecisionValidation:
    """Judge and size what the review left; last, by the user's own rules, of which those run that
    this service's settings name (`plugins`). Raises BudgetCurrencyMismatch."""
    evidence = evidence_of(command.research_report, command.quant_report, command.portfolio)
    tickers = {*command.portfolio.exposed, *(item.ticker for item in evidence)}
    moves = await moves_read(journal, market, tickers, command.as_of)
    validation = logic.validate(command, moves)
    questions = questions_of(validation.decisions, evidence, command.portfolio)
    if command.plugins and questions:
        verdicts = await verdicts_read(journal, command.plugins, questions, plugins)
        validation = logic.validate(command, moves, verdicts)
    log.info(
        "risk.validated",
        account=command.portfolio.account,
        decisions=len(validation.decisions),
        vetoed=len(validation.vetoed_tickers),
        adjustments=len(validation.adjustments),
    )
    return validation
