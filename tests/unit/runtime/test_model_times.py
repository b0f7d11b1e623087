"""How long calls of models and the steps around them may take: what the settings allow together."""

import pytest
from pydantic import ValidationError

from libs.llm.endpoints.endpoint import endpoints_of
from libs.runtime.model_settings import EndpointSettings
from libs.runtime.settings import Settings
from services.orchestrator.machine.workflow import STEP_TIME_LIMIT_S
from services.orchestrator.machine.workflows import workflows_of
from tests.flat_settings import settings_with


@pytest.mark.parametrize("name", ["claude", "openai", "minimax", "lab"])
def test_by_default_two_calls_that_hang_leave_a_step_and_a_cycle_time_for_a_whole_one(name):
    settings = Settings(providers={"lab": EndpointSettings(base_url="https://x.example/v1")})
    endpoint = endpoints_of(settings)[name]
    assert endpoint.tells_while_it_works
    used_s = 2 * endpoint.read_timeout_s + endpoint.timeout_s
    assert used_s <= settings.model.step_limit_s
    assert used_s < 600


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        ({"model_timeout_s": 1_000}, "1240"),
        ({"model_timeout_s": 300, "model_silence_s": 400}, None),
        ({"model_step_limit_s": 500}, "540"),
        ({"providers": {"lab": {"base_url": "https://x/v1", "timeout_s": 800}}}, "1040"),
        ({"providers": {"llamacpp": {"timeout_s": 1_800}}, "model_step_limit_s": 3_600}, None),
    ],
)
def test_calls_that_would_not_fit_into_their_step_are_refused_with_what_would(fields, needed):
    if needed is None:
        assert settings_with(**fields)
        return
    with pytest.raises(ValidationError, match=f"DESKBUS_MODEL_STEP_LIMIT_S.*at least {needed}"):
        settings_with(**fields)


def test_a_local_server_may_be_silent_unless_somebody_says_how_long():
    given = {
        "ollama": EndpointSettings(timeout_s=250),
        "llamacpp": EndpointSettings(timeout_s=250, silence_s=30),
    }
    found = endpoints_of(Settings(providers=given))
    assert found["ollama"].read_timeout_s == 250
    assert found["llamacpp"].read_timeout_s == 30


def test_the_limit_is_that_of_the_steps_that_models_answer():
    steps = {
        step.name: step.time_limit_s
        for workflow in workflows_of(Settings(model={"step_limit_s": 1_234}))
        for state in (*workflow.shared, *workflow.states, *filter(None, [workflow.closing]))
        for step in state.steps
    }
    asked = {"sentiment", "plan", "quant", "analyst", "picks", "review", "memorize", "design"}
    assert {name for name, limit_s in steps.items() if limit_s == 1_234} == asked | {
        "assess",
        "probe",
    }
    assert steps["digest"] == STEP_TIME_LIMIT_S
