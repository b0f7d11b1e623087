"""save_assessment: what a model calls to hand in its assessment of a strategy.

It writes nothing: the arguments are held against the contract, and come back with the time. The
service that asked writes what was handed in.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue, ValidationError

from contracts.strategy_result import AssessmentDraft
from contracts.types import ToolDef
from libs.facts.compose import SENTENCE_CHARS_MAX, names_in, shown_name
from libs.facts.fact import FactIndex
from libs.llm.answer import describe
from libs.llm.errors import BadToolArguments, ToolNotAllowed
from libs.llm.toolbox import CODE_ONLY, Toolbox
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.untrusted import clean_line

SAVE_ASSESSMENT = "save_assessment"
UNKNOWN_MAX = 4
"""Names that a model is asked about at once."""
POINTS = ("strengths", "weaknesses", "suggestions")
"""The fields of an assessment that hold sentences."""
SAVE_AGAIN = "Save it again with names that stand in figures, else these stay as they are"

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
                    "description": f"Two to four {name}, each a sentence that names its figures in "
                    "braces, such as {training.accuracy}.",
                }
                for name in POINTS
            },
        },
        "required": ["verdict", *POINTS],
        "additionalProperties": False,
    },
)


class AssessmentTool:
    """Takes an assessment of one strategy."""

    def __init__(
        self, strategy_name: str, path: str, clock: Callable[[], datetime], facts: FactIndex
    ) -> None:
        self._strategy_name = strategy_name
        self._path = path
        self._clock = clock
        self._facts = facts

    def definitions(self) -> Sequence[ToolDef]:
        """The one tool."""
        return (_DEFINITION,)

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The assessment as it was handed in; BadToolArguments names what is wrong with it.

        A name in braces that no fact has spoils nothing: the message asks for the right one.
        """
        if name != SAVE_ASSESSMENT:
            raise ToolNotAllowed(f"no tool of this name; the tool is {SAVE_ASSESSMENT}")
        if not self._strategy_name:
            raise BadToolArguments("there is no strategy that this could be an assessment of")
        try:
            draft = AssessmentDraft.model_validate(_cleaned(dict(arguments)))
        except ValidationError as error:
            raise BadToolArguments("; ".join(describe(error, AssessmentDraft))) from error
        unknown = names_to_correct(draft, self._facts)
        saved = f"Assessment saved; it is in {self._path} once you have ended"
        return {
            "success": True,
            "path": self._path,
            "message": ". ".join((saved, *unknown, *([SAVE_AGAIN] if unknown else []))),
            "saved": True,
            "strategy_name": self._strategy_name,
            "assessed_at": self._clock().isoformat(),
            CODE_ONLY: draft.model_dump(mode="json"),
        }


def unknown_in(draft: AssessmentDraft, facts: FactIndex) -> tuple[str, ...]:
    """In a sentence each, the names in braces that no fact has, for people."""
    names = (
        name for field in POINTS for point in getattr(draft, field) for name in names_in(point)
    )
    unknown = dict.fromkeys(name for name in names if facts.get(name) is None)
    return tuple(
        f"no figure is named {shown_name(name)}{_meant(name, facts)}"
        for name in list(unknown)[:UNKNOWN_MAX]
    )


def names_to_correct(draft: AssessmentDraft, facts: FactIndex) -> tuple[str, ...]:
    """In a sentence each, where a name stands in braces that no fact has, without the name."""
    problems = [
        f"{field}.{place}: no figure has the name in braces{_meant(name, facts)}"
        for field in POINTS
        for place, point in enumerate(getattr(draft, field))
        for name in names_in(point)
        if facts.get(name) is None
    ]
    return tuple(dict.fromkeys(problems))[:UNKNOWN_MAX]


def _meant(name: str, facts: FactIndex) -> str:
    return did_you_mean(nearest(name, facts.by_name))


def _cleaned(value: JsonValue) -> JsonValue:
    """Without what a person does not see: these words stand in files and on pages."""
    if isinstance(value, str):
        return clean_line(value, SENTENCE_CHARS_MAX)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return (
        {key: _cleaned(item) for key, item in value.items()} if isinstance(value, dict) else value
    )


def assessment_tools(
    strategy_name: str, path: str, clock: Callable[[], datetime], facts: FactIndex
) -> Toolbox:
    """The assessor's tools; `path` is where the assessment will be."""
    tool = AssessmentTool(strategy_name, path, clock, facts)
    return Toolbox((tool,), frozenset({SAVE_ASSESSMENT}))
