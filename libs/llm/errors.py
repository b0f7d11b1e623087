"""Errors between the desk and a model. Each has a stable code and says what to do."""

from collections.abc import Sequence

from libs.runtime.errors import DeskError


class ModelError(DeskError):
    """Any failure of a model call that an operation ends with.

    `corrections` are what the next attempt is sent, where asking again may help. They say what is
    right and never quote the model: a small model copies a quoted mistake into its next answer.
    `may_have_cost` says that the provider may want money for the call all the same.
    """

    code = "model_error"
    of_model = True
    corrections: Sequence[str] = ()
    may_have_cost = False


class AnswerInvalid(ModelError):
    """The model's answer does not fit its contract.

    `corrections` say what is wrong. `causes` are for people alone: they may quote an endpoint.
    """

    code = "answer_invalid"

    def __init__(
        self, agent: str, model: str, corrections: Sequence[str], causes: Sequence[str] = ()
    ) -> None:
        self.corrections = tuple(corrections)
        problems = "; ".join((*corrections, *causes))
        super().__init__(f"{agent} ({model}) returned an invalid answer: {problems}")


class ModelRefused(ModelError):
    """The model declined to answer."""

    code = "refused"


class Truncated(ModelError):
    """The reply hit the output limit before its end, even with a larger limit."""

    code = "truncated"


class ProviderFault(ModelError):
    """The provider's answer is not a valid reply, such as a page instead of JSON."""

    code = "provider_fault"

    def __init__(self, message: str, *, may_have_cost: bool = False) -> None:
        self.may_have_cost = may_have_cost
        super().__init__(message)


class ReplyUnreadable(ModelError):
    """The model wrote a tool call or an answer that its own server could not parse.

    It may be told so and asked once more; the same request again would bring the same.
    """

    code = "reply_unreadable"
    may_have_cost = True
    corrections = (
        (
            "the reply could not be read by the model's server; write whole JSON objects, with "
            "every quote and bracket closed"
        ),
    )


class ReplyTooLarge(ModelError):
    """The reply is too large for an answer. The same request would bring another one."""

    code = "reply_too_large"
    may_have_cost = True


class ProviderUnavailable(ModelError):
    """The provider is not reachable or overloaded, or asks for fewer calls.

    `retry_after_s` is the wait that it asked for, None where it did not.
    """

    code = "provider_unavailable"

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, may_have_cost: bool = False
    ) -> None:
        self.retry_after_s = retry_after_s
        self.may_have_cost = may_have_cost
        super().__init__(message)


class KeyRefused(ModelError):
    """The provider refuses the key, or refuses it for this use."""

    code = "key_refused"


class AccountExhausted(ModelError):
    """The account at the provider has no credit or quota left."""

    code = "account_exhausted"


class ModelUnknown(ModelError):
    """The provider offers no model of this name, or the model cannot call tools."""

    code = "model_unknown"


class RequestRefused(ModelError):
    """The provider rejects the request as invalid: a retry would not help."""

    code = "request_refused"


class FieldRefused(ModelError):
    """The endpoint refuses an optional field of the request; later calls leave it out.

    Asking again at once helps: what is left out, `fields`, is known to the wire.
    """

    code = "field_refused"

    def __init__(self, message: str, fields: Sequence[str] = ()) -> None:
        self.fields = tuple(fields)
        super().__init__(message)


class StageUnknown(ModelError):
    """A pipeline names a model for an unknown stage."""

    code = "stage_unknown"


class ProviderNotUsable(ModelError):
    """The desk knows this provider but cannot use it: no key, no model or no SDK."""

    code = "provider_not_usable"


class ProviderUnknown(ModelError):
    """A pipeline names a provider that this desk does not have."""

    code = "provider_unknown"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"no provider is named {name}; this desk has {', '.join(sorted(known)) or 'none'}: "
            f"name one of these in the pipeline's `provider`"
        )


class TaskTooLarge(ModelError):
    """The task is too large for one agent."""

    code = "task_too_large"


class ToolNotAllowed(DeskError):
    """The agent called a tool that is not on its allow-list."""

    code = "tool_not_allowed"


class BadToolArguments(DeskError):
    """The arguments of a tool call are not a JSON object."""

    code = "bad_tool_arguments"


class ToolLimitReached(DeskError):
    """The agent has used up its tool calls, or the space for their results."""

    code = "tool_limit_reached"


class ToolResultTooLarge(DeskError):
    """A tool's result is over its limit; a narrower question helps."""

    code = "tool_result_too_large"


class ToolResultBad(DeskError):
    """A tool's result cannot be written as JSON."""

    code = "tool_result_bad"
