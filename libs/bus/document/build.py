"""The AsyncAPI 3.0 document, generated from the contracts and the subject table."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from contracts.audit import DECISION_EVENTS, Event, EventType
from contracts.event_data import EVENT_DATA
from contracts.subjects.commands import COMMANDS
from contracts.subjects.events import EVENTS, NOTICES
from contracts.subjects.notices import durable_of
from contracts.subjects.operations import CLAIM, RECORD, RESULT, STOP
from contracts.subjects.subject import PREFIX, AnySubject, Class
from contracts.subjects.table import OF_SERVICES, QUERIES, REQUESTS
from libs.bus.headers import (
    CODE_HEADER,
    CUT_HEADER,
    ERROR_HEADER,
    POSITION_HEADER,
    SENDER_HEADER,
)
from libs.bus.streams import (
    COMMAND_STREAM,
    DEAD_LETTER_STREAM,
    DECISION_STREAM,
    NOTICE_STREAM,
)

Json = dict[str, Any]
Model = type[BaseModel]

DESCRIPTION = Path(__file__).with_name("asyncapi.md")
DOCUMENT_VERSION = "1.0.0"
"""The version of the contracts, not of the program: it changes with a new version of a subject."""

SERVICE_QUERIES: tuple[AnySubject, ...] = (CLAIM, RECORD, RESULT, *OF_SERVICES)
ROWS: tuple[AnySubject, ...] = (
    *REQUESTS,
    *EVENTS,
    *NOTICES,
    *QUERIES,
    *COMMANDS,
    *SERVICE_QUERIES,
    STOP,
)
EVENT_CLASSES = frozenset({Class.EVENT, Class.NOTICE})
REPLY_TO = {
    "location": "$message.header#/reply",
    "description": "NATS's own reply subject of the request, below the caller's inbox prefix.",
}


def models() -> Sequence[tuple[Model, JsonSchemaMode]]:
    """Every message, and the side it is described from.

    What the desk sends (events, replies) is described as it is written; what it receives, and what
    passes through it, as it is read: a little wider, since a number may stand for a decimal string.
    """
    sent: list[Model] = [Event, *EVENT_DATA.values()]
    received: list[Model] = []
    for row in ROWS:
        received.append(row.message)
        if row.is_answered:
            (received if row.kind is Class.COMMAND else sent).append(row.reply)
    writes: list[tuple[Model, JsonSchemaMode]] = [(model, "serialization") for model in sent]
    reads: list[tuple[Model, JsonSchemaMode]] = [
        (model, "validation") for model in received if model not in sent
    ]
    return list(dict.fromkeys([*writes, *reads]))


def _without_discriminators(schema: Any) -> Any:
    """As AsyncAPI has them they name a field only; which of several it is, a constant says too."""
    match schema:
        case dict():
            return {
                key: _without_discriminators(value)
                for key, value in schema.items()
                if not (key == "discriminator" and isinstance(value, dict))
            }
        case list():
            return [_without_discriminators(value) for value in schema]
        case _:
            return schema


def document() -> Json:
    """The AsyncAPI 3.0 document, complete in itself."""
    references, definitions = models_json_schema(
        models(), ref_template="#/components/schemas/{model}"
    )
    definitions = _without_discriminators(definitions)
    payloads = {model.__name__: reference for (model, _), reference in references.items()}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Deskbus",
            "version": DOCUMENT_VERSION,
            "description": DESCRIPTION.read_text(),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"desk": _server()},
        "channels": {
            **{name: channel for row in ROWS for name, channel in _channels(row).items()},
            "dlq": _dead_letter_channel(),
        },
        "operations": {
            **{_key(row): _operation(row) for row in ROWS},
            "dlq": _dead_letter_operation(),
        },
        "components": {
            "securitySchemes": {"nkey": _nkey()},
            "messageTraits": {"desk": {"headers": _headers()}},
            "messages": {
                **{name: message for row in ROWS for name, message in _messages(row, payloads)},
                "DeadLetter": _dead_letter(),
            },
            "schemas": definitions["$defs"],
        },
    }


def _server() -> Json:
    return {
        "host": "{address}",
        "protocol": "nats",
        "description": "The NATS server of one desk.",
        "variables": {
            "address": {
                "default": "127.0.0.1:4222",
                "description": (
                    "`nats_url` in the desk's runtime.json, or the address from its operator."
                ),
            }
        },
        "security": [{"$ref": "#/components/securitySchemes/nkey"}],
    }


def _nkey() -> Json:
    return {
        "type": "asymmetricEncryption",
        "description": "A NATS nkey (Ed25519): the client signs the server's nonce with its seed.",
    }


def _headers() -> Json:
    names = {
        "Nats-Msg-Id": "The event's id, or the operation's id and the number of its sending.",
        "traceparent": "W3C trace context; one trace holds all of one cycle.",
        "ce-specversion": "CloudEvents 1.0.",
        "ce-id": "As Nats-Msg-Id.",
        "ce-type": "`desk.` and what it is, for example `desk.decision`.",
        "ce-source": "`deskbus/` and the owner.",
        "ce-subject": "The cycle's id.",
        POSITION_HEADER: "For events: its position in the order of publishing.",
    }
    return {"type": "object", "properties": {k: _text_field(v) for k, v in names.items()}}


def _text_field(description: str) -> Json:
    return {"type": "string", "description": description}


# --- one row of the subject table ---------------------------------------------------------------


def _key(row: AnySubject) -> str:
    owner = "service" if row is STOP else row.owner
    return f"{row.kind}.{owner}.{row.what}"


def _address(row: AnySubject) -> tuple[str, Json]:
    """The channel's address and its parameters."""
    match row.kind:
        case Class.EVENT | Class.NOTICE:
            parameters = {"cycle_id": {"description": "The cycle's id, a UUID in lower case."}}
            return row.by("{cycle_id}"), parameters
        case Class.CONTROL:
            services = sorted({command.owner for command in COMMANDS})
            named = {"service": {"description": "The service it is meant for.", "enum": services}}
            return f"{PREFIX}.{row.kind}.{{service}}.{row.what}", named
        case Class.COMMAND:
            return row.address, {}
        case _:
            caller: Json = {"description": "The caller's identity; only it may publish here."}
            if _senders(row):
                caller["enum"] = _senders(row)
            return row.by("{caller}"), {"caller": caller}


def _senders(row: AnySubject) -> list[str]:
    services = sorted({command.owner for command in COMMANDS})
    if row in SERVICE_QUERIES and not row.senders:
        return services
    return [*row.senders, *services] if row.what == "portfolio" else list(row.senders)


def _channels(row: AnySubject) -> Json:
    address, parameters = _address(row)
    name = _message_name(row)
    channel: Json = {"address": address, "messages": {name: _ref(f"components/messages/{name}")}}
    if parameters:
        channel["parameters"] = parameters
    stored = _stored(row)
    if stored:
        channel["x-jetstream"] = stored
    if not _replies(row):
        return {_key(row): channel}
    reply = row.reply.__name__
    answers = {"address": None, "messages": {reply: _ref(f"components/messages/{reply}")}}
    return {_key(row): channel, f"{_key(row)}.reply": answers}


def _stored(row: AnySubject) -> Json:
    if row.kind is Class.COMMAND:
        return {"stream": COMMAND_STREAM, "durable": row.durable}
    if row.kind is Class.EVENT and row.what in DECISION_EVENTS:
        return {"stream": DECISION_STREAM}
    if row.kind is Class.NOTICE:
        return {"stream": NOTICE_STREAM, "durable": durable_of("{channel}")}
    return {}


def _operation(row: AnySubject) -> Json:
    """The desk's operation on the row's channel."""
    name = _message_name(row)
    received = row.kind in {Class.REQUEST, Class.QUERY}
    channel = f"channels/{_key(row)}"
    operation: Json = {
        "action": "receive" if received else "send",
        "channel": _ref(channel),
        "summary": _summary(EVENT_DATA[EventType(row.what)] if _is_event(row) else row.message),
        "tags": [{"name": row.kind}, {"name": row.owner if row is not STOP else "orchestrator"}],
        "messages": [_ref(f"{channel}/messages/{name}")],
        "x-senders": _senders(row),
    }
    if _replies(row):
        answers = f"{channel}.reply"
        operation["reply"] = {
            "address": REPLY_TO,
            "channel": _ref(answers),
            "messages": [_ref(f"{answers}/messages/{row.reply.__name__}")],
        }
    if row.kind is Class.COMMAND:
        operation["x-result-contract"] = row.reply.__name__
        operation["x-claimed"] = row.claimed
    return operation


def _messages(row: AnySubject, payloads: Mapping[str, Json]) -> Sequence[tuple[str, Json]]:
    message: Json = {"name": _message_name(row), "payload": payloads[row.message.__name__]}
    if _is_event(row):
        data = EVENT_DATA[EventType(row.what)]
        of_this_type = {"type": {"const": row.what}, "data": payloads[data.__name__]}
        message["payload"] = {
            "allOf": [payloads["Event"], {"type": "object", "properties": of_this_type}]
        }
        message["summary"] = _summary(data)
    else:
        message["summary"] = _summary(row.message)
    if row.kind in {*EVENT_CLASSES, Class.COMMAND, Class.CONTROL}:
        message["traits"] = [_ref("components/messageTraits/desk")]
    if not row.is_answered:
        return [(_message_name(row), message)]
    reply = row.reply.__name__
    answer = {"name": reply, "payload": payloads[reply], "summary": _summary(row.reply)}
    return [(_message_name(row), message), (reply, answer)]


def _is_event(row: AnySubject) -> bool:
    return row.kind in EVENT_CLASSES


def _replies(row: AnySubject) -> bool:
    return row.is_answered and row.kind is not Class.COMMAND


def _message_name(row: AnySubject) -> str:
    if not _is_event(row):
        return row.message.__name__
    return "".join(part.capitalize() for part in row.what.split("_")) + "Event"


def _summary(model: Model) -> str:
    return (inspect.getdoc(model) or "").split("\n\n", maxsplit=1)[0].replace("\n", " ")


# --- dead letters -------------------------------------------------------------------------------


def _dead_letter_channel() -> Json:
    return {
        "address": f"{PREFIX}.dlq.{{owner}}.{{what}}",
        "messages": {"DeadLetter": _ref("components/messages/DeadLetter")},
        "parameters": {
            "owner": {"description": "Who could not read it."},
            "what": {
                "description": "What it should have been: a command's name; of what others say to "
                "the orchestrator `request`, `claim`, `record` or `result`, and then who said it "
                "as one token more."
            },
        },
        "x-jetstream": {"stream": DEAD_LETTER_STREAM},
    }


def _dead_letter_operation() -> Json:
    return {
        "action": "send",
        "channel": _ref("channels/dlq"),
        "summary": "A message that could not be read is kept with the reason.",
        "tags": [{"name": Class.DEAD_LETTER}],
        "messages": [_ref("channels/dlq/messages/DeadLetter")],
    }


def _dead_letter() -> Json:
    names = {
        ERROR_HEADER: "What is wrong with it.",
        CODE_HEADER: "The same for machines.",
        SENDER_HEADER: "The identity that sent it, where that is known.",
        CUT_HEADER: "How many bytes of a body over the size limit were left out, where there are.",
    }
    headers = {"type": "object", "properties": {k: _text_field(v) for k, v in names.items()}}
    return {
        "name": "DeadLetter",
        "summary": "The body exactly as it came, up to the size limit.",
        "contentType": "application/octet-stream",
        "headers": headers,
        "payload": {"description": "Any bytes."},
    }


def _ref(path: str) -> Json:
    return {"$ref": f"#/{path}"}
