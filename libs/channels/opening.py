"""A channel as the settings name it, with the address that its secret holds."""

from libs.channels.addresses import Addresses
from libs.channels.channel import Channel
from libs.channels.webhook import Webhook
from libs.runtime.notify_settings import ChannelSettings


def open_channel(name: str, settings: ChannelSettings, addresses: Addresses) -> Channel:
    """The channel, which has not spoken to anybody yet. Raises ChannelUnusable."""
    address = addresses.address(name)
    if settings.service == "webhook":
        key = addresses.key(name)
        return Webhook(name, address, key, settings.timeout_s, private=settings.private)
    # A hundred plugins: loaded where one is used.
    from libs.channels.apprise import AppriseChannel  # noqa: PLC0415

    return AppriseChannel(name, address, settings.timeout_s)
