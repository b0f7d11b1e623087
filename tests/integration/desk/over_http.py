"""What a caller over HTTP is answered."""

from typing import Any

import httpx2

from tests.integration.desk.caller import Json


async def got(http: httpx2.AsyncClient, path: str, **params: Any) -> Json:
    answer = await http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    said: Json = answer.json()
    return said


def refused(answer: httpx2.Response, status: int, code: str) -> Json:
    assert answer.status_code == status, answer.text
    said: Json = answer.json()
    assert said["code"] == code
    return said
