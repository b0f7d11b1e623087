"""Cycles: request, cancel, look at them, and read their record for a replay."""

from contracts.cycle import CancelCycle, CycleRequest, RequestAnswer
from contracts.cycle_query import (
    CycleQuery,
    CyclesPage,
    CyclesQuery,
    CycleView,
    Recording,
    RecordingQuery,
)
from contracts.subjects.subject import MCP_REQUESTER, REQUESTERS, STUDY, console, request

REQUEST_CYCLE = request("cycle", CycleRequest, RequestAnswer, (*REQUESTERS, MCP_REQUESTER, STUDY))
CANCEL_CYCLE = request("cancel", CancelCycle, RequestAnswer)

CYCLE = console("cycle", CycleQuery, CycleView, agents=True)
CYCLES = console("cycles", CyclesQuery, CyclesPage, agents=True)
RECORDING = console("recording", RecordingQuery, Recording)
