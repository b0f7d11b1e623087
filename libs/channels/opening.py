"""A channel as the settings name it, with the address that its secret holds."""

from libs.channels.addresses import Addresses
from libs.channels.apprise import AppriseChannel
from libs.channels.channel import Channel, ChannelUnusable
from libs.channels.webhook import Webhook
from libs.runtime.extras import ExtraMissing, require
from libs.runtime.notify_settings import ChannelSettings


async def open_channel(name: str, settings: ChannelSettings, addresses: Addresses) -> Channel:
    """The channel; nothing is sent. Raises ChannelUnusable."""
    address = addresses.address(name)
    if settings.service == "webhook":
        key = addresses.key(name)
        return Webhook(name, address, key, settings.timeout_s, private=settings.private)
    try:
        require("notify", f"channel {name}")
    except ExtraMissing as error:
        raise ChannelUnusable(error.message) from None
    return await AppriseChannel.opened(name, address, settings.timeout_s)
