"""Channels to people: one message over Apprise or a signed webhook, and how that ended."""
