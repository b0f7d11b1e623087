"""What goes wrong between the desk and a model. Each has a stable code and says what to do."""

from collections.abc import Sequence
from typing import ClassVar

from libs.runtime.errors import DeskError


class ModelError(DeskError):
    """Any failure of a model call that an operation ends with.

    `wrong_answer` marks those where asking again, with the errors quoted, may help.
    """

    code = "model_error"
    wrong_answer: ClassVar[bool] = False


class AnswerInvalid(ModelError):
    """The model answered, but not with what its contract asks for. `errors` say what is wrong."""

    code = "answer_invalid"
    wrong_answer = True

    def __init__(self, agent: str, model: str, errors: Sequence[str]) -> None:
        self.errors = tuple(errors)
        super().__init__(f"{agent} ({model}) gave no valid answer: {'; '.join(self.errors)}")


class Refused(ModelError):
    """The model declined to answer."""

    code = "refused"


class Truncated(ModelError):
    """The answer hit the output limit before it was whole."""

    code = "truncated"


class ProviderFault(ModelError):
    """The provider answered with something that is no reply: a malformed body, an HTTP 500."""

    code = "provider_fault"


class ProviderUnavailable(ModelError):
    """The provider could not be reached, or kept refusing work, through all retries."""

    code = "provider_unavailable"


class ProviderUnknown(ModelError):
    """A pipeline names a provider that this desk does not have."""

    code = "provider_unknown"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"no provider is named {name}; this desk has {', '.join(sorted(known)) or 'none'}: "
            f"name one of these in the pipeline's `provider`"
        )


class TaskTooLarge(ModelError):
    """What the agent would have to read is over the limit of one task."""

    code = "task_too_large"


class ToolNotAllowed(DeskError):
    """An agent called a tool that is not on its allow-list."""

    code = "tool_not_allowed"


class BadToolArguments(DeskError):
    """The arguments of a tool call are no JSON object."""

    code = "bad_tool_arguments"


class ToolLimitReached(DeskError):
    """The agent has used up its calls, or the room for their results."""

    code = "tool_limit_reached"


class ToolResultTooLarge(DeskError):
    """One tool result is over its limit; a narrower question gets an answer."""

    code = "tool_result_too_large"


class ToolResultBad(DeskError):
    """A tool gave something that JSON cannot carry."""

    code = "tool_result_bad"
