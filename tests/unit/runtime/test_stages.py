"""Who answers a stage, as it is set: both spellings, and settings that contradict themselves."""

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.message import Pipeline
from contracts.study import StudyArm
from libs.runtime.model_settings import STAGES
from libs.runtime.settings import Settings

LAB = {"base_url": "http://127.0.0.1:9/v1"}


def lab(**fields: Any) -> Any:
    return Settings(providers={"lab": {**LAB, **fields}}).providers["lab"]


def test_rules_among_the_models_give_the_stage_to_the_rules() -> None:
    one, other = lab(models={"small": "a", "planner": "rules"}), lab(stages={"planner": "rules"})

    assert one.stages == other.stages == {"planner": "rules"}
    assert one.models == {"small": "a"}
    asked = Pipeline(name="lab", models={"planner": "rules", "trader": "b"})
    assert (asked.stages, asked.models) == ({"planner": "rules"}, {"trader": "b"})
    arm = StudyArm(name="lab", provider="lab", models={"planner": "rules"})
    assert (arm.without, arm.models) == (("planner",), {})


def test_every_stage_may_be_given_away() -> None:
    every = dict.fromkeys(STAGES, "claude")

    assert lab(stages=every).stages == every


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"stages": {"planner": "nobody"}}, "no provider is named nobody; this desk has rules"),
        ({"stages": {"planner": "lab"}}, "lab already answers its own stages; remove this line"),
        ({"stages": {"panner": "rules"}}, "Input should be 'sentiment'"),
        (
            {"models": {"planner": "a"}, "stages": {"planner": "rules"}},
            "planner has a model in `models` and is given to rules in `stages`",
        ),
        (
            {"models": {"planner": "rules"}, "stages": {"planner": "claude"}},
            "planner: models says rules, and stages says claude",
        ),
        ({"models": {"trader": "claude"}}, 'to give it the stage, write stages.trader = "claude"'),
        ({"models": {"small": "rules"}}, "small: rules is not a model"),
        ({"fallback": {"planner": "lab"}}, "lab answers this stage already"),
        (
            {"stages": {"planner": "rules"}, "fallback": {"planner": "rules"}},
            "rules answers this stage already; name another provider",
        ),
    ],
)
def test_a_contradiction_is_refused_at_the_start(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        lab(**fields)

    assert sentence in str(refused.value)


def test_an_endpoint_may_have_the_name_of_its_model() -> None:
    named = Settings(providers={"qwen": {**LAB, "models": {"trader": "qwen"}}})

    assert named.providers["qwen"].models == {"trader": "qwen"}
