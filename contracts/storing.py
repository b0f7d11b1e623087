"""The query whether NATS stores messages, and its answer."""

from contracts.message import Message


class StoringQuery(Message):
    """Ask whether NATS stores commands."""


class Storing(Message):
    """`problem` is why NATS does not store commands; empty where it does."""

    problem: str = ""
