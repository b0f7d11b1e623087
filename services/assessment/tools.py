"""save_assessment: what a model calls to hand in its assessment of a strategy.

It writes nothing: the arguments are held against the contract, and come back with the time. The
service that asked writes what was handed in.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue, ValidationError

from contracts.strategy_result import AssessmentDraft
from contracts.types import ToolDef
from libs.llm.answer import describe
from libs.llm.errors import BadToolArguments, ToolNotAllowed
from libs.llm.toolbox import Toolbox
from libs.quant.untrusted import clean_line

SAVE_ASSESSMENT = "save_assessment"

_DEFINITION = ToolDef(
    name=SAVE_ASSESSMENT,
    description="Save your assessment of the strategy. Call it once, after you have looked at the "
    "results; a later call takes the place of an earlier one.",
    parameters={
        "type": "object",
        "properties": {
            "verdict": {
                "type": "string",
                "enum": ["promising", "mediocre", "poor"],
                "description": "What you think of the strategy as a whole.",
            },
            **{
                name: {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 2,
                    "maxItems": 4,
                    "description": f"Two to four {name}, each a sentence with its figures.",
                }
                for name in ("strengths", "weaknesses", "suggestions")
            },
        },
        "required": ["verdict", "strengths", "weaknesses", "suggestions"],
        "additionalProperties": False,
    },
)


class AssessmentTool:
    """Takes an assessment of one strategy."""

    def __init__(self, strategy_name: str, path: str, clock: Callable[[], datetime]) -> None:
        self._strategy_name = strategy_name
        self._path = path
        self._clock = clock

    def definitions(self) -> Sequence[ToolDef]:
        """The one tool."""
        return (_DEFINITION,)

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The assessment as it was handed in; BadToolArguments names what is wrong with it."""
        if name != SAVE_ASSESSMENT:
            raise ToolNotAllowed(f"{name[:80]} is not {SAVE_ASSESSMENT}")
        if not self._strategy_name:
            raise BadToolArguments("there is no strategy that this could be an assessment of")
        try:
            draft = AssessmentDraft.model_validate(_cleaned(dict(arguments)))
        except ValidationError as error:
            raise BadToolArguments("; ".join(describe(error))) from error
        return {
            "success": True,
            "path": self._path,
            "message": f"Assessment saved; it is in {self._path} once you have ended",
            "saved": True,
            "strategy_name": self._strategy_name,
            "assessment": draft.model_dump(mode="json"),
            "assessed_at": self._clock().isoformat(),
        }


def _cleaned(value: JsonValue) -> JsonValue:
    """Without what a person does not see: these words stand in files and on pages."""
    if isinstance(value, str):
        return clean_line(value, len(value))
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return (
        {key: _cleaned(each) for key, each in value.items()} if isinstance(value, dict) else value
    )


def assessment_tools(strategy_name: str, path: str, clock: Callable[[], datetime]) -> Toolbox:
    """What the assessor may call; `path` is where the assessment will be."""
    return Toolbox((AssessmentTool(strategy_name, path, clock),), frozenset({SAVE_ASSESSMENT}))
