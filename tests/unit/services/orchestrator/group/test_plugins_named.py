"""Which plug-ins a command names: those of the settings, and no tool where inputs must be alike."""

from typing import Any
from uuid import uuid4

import orjson
import pytest

from contracts.cycle import CycleRequest, StudyCell
from contracts.message import Pipeline
from contracts.subjects.commands import MAKE_PLAN, PREVIEW_DECISION, VALIDATE_DECISION
from contracts.subjects.subject import STUDY, AnySubject
from libs.runtime.settings import Settings
from services.orchestrator.group.changes import command_json
from services.orchestrator.machine.logic import Start
from services.orchestrator.machine.workflow import Step
from tests.unit.services.orchestrator.driven import cycle_row

SETTINGS = Settings(plugins=("mine:rule",), tool_plugins=("mine:tool",))
CELL = StudyCell(study="one", number=0, seed=1)


def command_of(of: AnySubject, *, masked: bool = False, requester: str = "user") -> Any:
    pipelines = (Pipeline(name="alpha", masked=masked),)
    study = CELL if requester == STUDY else None
    request = CycleRequest(idempotency_key="k", pipelines=pipelines, study=study)
    row = cycle_row(requester=requester, request=orjson.dumps(request.model_dump(mode="json")))
    start = Start(uuid4(), "alpha", "state", Step(of), 1, {})
    return orjson.loads(command_json(row, start, {}, SETTINGS))


@pytest.mark.parametrize("of", [VALIDATE_DECISION, PREVIEW_DECISION])
def test_a_preview_is_judged_by_the_rules_of_a_decision(of: AnySubject) -> None:
    assert command_of(of)["plugins"] == ["mine:rule"]
    assert command_of(of, requester=STUDY)["plugins"] == ["mine:rule"]


def test_a_study_and_a_masked_pipeline_have_no_tool() -> None:
    assert command_of(MAKE_PLAN)["tool_plugins"] == ["mine:tool"]
    assert "tool_plugins" not in command_of(MAKE_PLAN, requester=STUDY)
    assert "tool_plugins" not in command_of(MAKE_PLAN, masked=True)
