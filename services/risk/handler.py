"""Risk's messages for the rules in code. (The other, the model's review, is in review.py.)"""

import structlog

from contracts.risk import DecisionValidation, ValidateDecision, ValidateExits
from libs.market.moves import moves_read
from libs.market.source import MarketData
from libs.quant.risk.evidence import evidence_of
from libs.runtime.journal import Journal
from services.risk import exits, logic

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
    command: ValidateDecision, journal: Journal, *, market: MarketData
) -> DecisionValidation:
    """Judge and size what the review left. Raises BudgetCurrencyMismatch."""
    evidence = evidence_of(command.research_report, command.quant_report, command.portfolio)
    tickers = {*command.portfolio.exposed, *(item.ticker for item in evidence)}
    moves = await moves_read(journal, market, tickers, command.as_of)
    validation = logic.validate(command, moves)
    log.info(
        "risk.validated",
        account=command.portfolio.account,
        decisions=len(validation.decisions),
        vetoed=len(validation.vetoed_tickers),
        adjustments=len(validation.adjustments),
    )
    return validation
