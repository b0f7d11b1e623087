"""Risk's second message: the rules in code. (The first, the model's review, is in review.py.)"""

import structlog

from contracts.risk import DecisionValidation, ValidateDecision
from libs.runtime.journal import Journal
from services.risk import logic

log = structlog.get_logger()


async def validate_decision(command: ValidateDecision, _: Journal) -> DecisionValidation:
    """Judge and size what the review left. Raises CurrencyMismatch."""
    validation = logic.validate(command)
    log.info(
        "risk.validated",
        account=command.portfolio.account,
        decisions=len(validation.decisions),
        vetoed=len(validation.vetoed_tickers),
        adjustments=len(validation.adjustments),
    )
    return validation
