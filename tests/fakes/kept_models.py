"""Trained models in a dictionary, as the orchestrator would keep them."""


class KeptModels:
    """Keeps and gives bytes by hash."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    async def keep(self, sha256: str, body: bytes) -> None:
        self.bodies[sha256] = body

    async def read(self, sha256: str) -> bytes:
        return self.bodies[sha256]
