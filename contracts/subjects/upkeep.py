"""For operators: dead letters, the model budget, and whether NATS stores messages."""

from contracts.subjects.subject import console, request
from contracts.upkeep import (
    BudgetQuery,
    BudgetView,
    DeadLettersPage,
    DeadLettersQuery,
    DiscardLetter,
    LetterAnswer,
    RetryLetter,
    Storing,
    StoringQuery,
)

RETRY_LETTER = request("retry_letter", RetryLetter, LetterAnswer)
DISCARD_LETTER = request("discard_letter", DiscardLetter, LetterAnswer)
DEAD_LETTERS = console("dead_letters", DeadLettersQuery, DeadLettersPage)
BUDGET = console("budget", BudgetQuery, BudgetView)
STORING = console("storing", StoringQuery, Storing)
