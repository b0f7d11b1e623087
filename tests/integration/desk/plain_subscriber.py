"""Somebody else's program: nats-py, a JSON Schema validator and the AsyncAPI document, no more.

    python plain_subscriber.py asyncapi.json NATS_URL SEED_FILE REQUEST_JSON

asks for a cycle and prints its decision event. Every address and schema is read from the document.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import nats
from jsonschema import Draft202012Validator

IDENTITY = "user"
PATIENCE_S = 60


class Document:
    """The AsyncAPI document: where messages travel, and what they look like."""

    def __init__(self, path: str) -> None:
        self._body: dict[str, Any] = json.loads(Path(path).read_text())

    def address(self, channel: str, **parameters: str) -> str:
        address: str = self._body["channels"][channel]["address"]
        return address.format(**parameters)

    def validate(self, channel: str, message: object) -> None:
        (reference,) = self._body["channels"][channel]["messages"].values()
        schema = {**self._body, "$ref": f"{reference['$ref']}/payload"}
        Draft202012Validator(schema).validate(message)


async def main(document: Document, url: str, seed: str, request: dict[str, Any]) -> None:
    client = await nats.connect(
        url, nkeys_seed=seed, inbox_prefix=f"_INBOX_{IDENTITY}".encode(), allow_reconnect=False
    )
    decisions = await client.subscribe(document.address("evt.orchestrator.decision", cycle_id="*"))
    await client.flush()

    document.validate("req.orchestrator.cycle", request)
    reply = await client.request(
        document.address("req.orchestrator.cycle", caller=IDENTITY),
        json.dumps(request).encode(),
        timeout=PATIENCE_S,
    )
    answer = json.loads(reply.data)
    document.validate("req.orchestrator.cycle.reply", answer)

    while True:
        event = json.loads((await decisions.next_msg(timeout=PATIENCE_S)).data)
        if event["cycle_id"] == answer["cycle_id"]:
            break
    document.validate("evt.orchestrator.decision", event)
    sys.stdout.write(json.dumps(event))
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(Document(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])))
