"""What the provisioner makes of the streams that it meets."""

from contextlib import suppress
from dataclasses import replace

import pytest
from nats.js.api import ConsumerConfig, DeliverPolicy, StoreCompression
from nats.js.errors import NotFoundError

from contracts.subjects.commands import COMMANDS
from libs.bus.permissions import PROVISIONER
from libs.bus.streams import (
    COMMAND_STREAM,
    NOTICE_STREAM,
    Provisioner,
    StreamsNotMade,
    durable_of,
    streams,
)
from tests.integration.bus.conftest import Connect


async def test_a_stream_from_before_is_compressed_from_then_on_and_keeps_its_messages(
    connected: Connect,
) -> None:
    client = await connected(PROVISIONER)
    provisioner = Provisioner(client, COMMANDS)
    await provisioner.provision()
    before = replace(streams()[0], compression=StoreCompression.NONE)
    assert before.name == COMMAND_STREAM
    await client.jsm().update_stream(before)
    kept = (await client.jsm().stream_info(COMMAND_STREAM)).state

    await provisioner.provision()

    info = await client.jsm().stream_info(COMMAND_STREAM)
    assert info.config.compression == StoreCompression.S2
    assert (info.state.messages, info.state.last_seq) == (kept.messages, kept.last_seq)


async def test_channels_of_a_new_stream_get_all_of_it_though_it_was_made_in_two_tries(
    connected: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connected(PROVISIONER)
    manager = client.jsm()
    with suppress(NotFoundError):
        await manager.delete_stream(NOTICE_STREAM)
    provisioner = Provisioner(client, COMMANDS, channels=("first", "second"))
    add = provisioner._manager.add_consumer

    async def fails_once(stream: str, config: ConsumerConfig) -> object:
        if config.name == durable_of("second"):
            monkeypatch.undo()
            raise TimeoutError
        return await add(stream, config)

    monkeypatch.setattr(provisioner._manager, "add_consumer", fails_once)
    with pytest.raises(StreamsNotMade):
        await provisioner.provision()
    await provisioner.provision()
    for channel in ("first", "second"):
        info = await manager.consumer_info(NOTICE_STREAM, durable_of(channel))
        assert info.config.deliver_policy == DeliverPolicy.ALL
