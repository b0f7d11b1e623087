"""The site's page of all messages, made from the AsyncAPI document."""

from collections.abc import Iterator

from libs.bus.document.build import Json, document

KINDS = (
    (
        "req",
        "Requests",
        "You publish these. A request that comes again with the same key changes nothing.",
    ),
    ("qry", "Questions", "Answered from what is on record; the last token is who asks."),
    ("evt", "Events", "What happened, in order; subscribe with `desk.v1.evt.>`."),
    ("ntc", "Notices", "The events that people may be told of, as the notifier pulls them."),
    ("cmd", "Commands", "What the orchestrator has services do. Nobody else may publish them."),
    ("ctl", "Control", "Short-lived words between the desk's own processes."),
    ("dlq", "Dead letters", "Messages that could not be used."),
)
"""The third token of a subject, its heading, and a sentence."""
PREFACE = """\
# Messages

<!-- made from the AsyncAPI document -->

Every subject of the bus, and the contract that travels on it (→ its answer). Fields, types and
limits are in the AsyncAPI document: [asyncapi.json](/files/contracts/schemas/asyncapi.json). How to
connect: [subscribing](subscribing.md)."""


def page() -> str:
    """A table of subjects for each kind of message."""
    whole = document()
    tables = [PREFACE]
    for kind, title, about in KINDS:
        rows = [*_rows(whole, kind)]
        if rows:
            head = "| subject | message | |\n| --- | --- | --- |"
            tables.append(f"## {title}\n\n{about}\n\n{head}\n" + "\n".join(rows))
    return "\n\n".join(tables) + "\n"


def _rows(whole: Json, kind: str) -> Iterator[str]:
    channels, messages = whole["channels"], whole["components"]["messages"]
    for key, channel in channels.items():
        address = channel["address"] or ""
        if address.split(".")[2:3] == [kind]:
            name = next(iter(channel["messages"]))
            answers = channels.get(f"{key}.reply", {"messages": ()})["messages"]
            said = " → ".join(f"`{each}`" for each in (name, *answers))
            about = " ".join(messages[name].get("summary", "").split()).replace("|", "/")
            yield f"| `{address}` | {said} | {about} |"
