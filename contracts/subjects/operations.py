"""Operations: what services claim, record and answer, and how people look at it."""

from types import NoneType

from contracts.operation import (
    CancelOperation,
    Claim,
    ClaimAnswer,
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
    Record,
    RecordAnswer,
    Result,
    ResultAnswer,
    Sent,
    SentQuery,
)
from contracts.subjects.subject import ORCHESTRATOR, Class, Subject, console

CLAIM = Subject(Class.QUERY, ORCHESTRATOR, "claim", Claim, ClaimAnswer, ())
RECORD = Subject(Class.QUERY, ORCHESTRATOR, "record", Record, RecordAnswer, ())
RESULT = Subject(Class.QUERY, ORCHESTRATOR, "result", Result, ResultAnswer, ())

STOP = Subject(Class.CONTROL, "*", "cancel", CancelOperation, NoneType)
"""Sent to every instance of the service that takes the owner's place."""

OPERATIONS = console("operations", OperationsQuery, OperationsPage, agents=True)
OPERATION = console("operation", OperationQuery, OperationDetail, agents=True)
SENT = console("sent", SentQuery, Sent)
"""Prompts hold positions, cash and texts of strangers: for people and their programs."""
