"""What the provisioner makes of the streams that it meets."""

from dataclasses import replace

from nats.js.api import StoreCompression

from contracts.subjects.commands import COMMANDS
from libs.bus.permissions import PROVISIONER
from libs.bus.streams import COMMAND_STREAM, Provisioner, streams
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
