"""The console's page of settings: all of them, and no secret."""

from urllib.parse import urlsplit

from pydantic import SecretStr

from libs.runtime.settings import Settings, all_settings
from tests.integration.console.over_http import client_of, serving

TOKEN = "a-token-of-some-length"


async def test_the_page_of_settings_has_each_of_them_and_no_secret(
    settings: Settings,
) -> None:
    given = {"http_token": SecretStr(TOKEN), "edgar_contact": SecretStr("Me me@example.org")}
    async with serving(settings, **given) as url, client_of(url) as http:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        page = (await http.get("/settings", headers=bearer)).text
        assert (await http.get("/settings")).status_code == 401
    for name, _ in all_settings():
        assert f'id="{name}"' in page
    password = urlsplit(settings.postgres_address).password
    for secret in (TOKEN, "example.org", password):
        assert secret is None or secret not in page
    changed = page.partition(">Defaults<")[0]
    assert 'id="http.token"' in changed
    assert 'id="broker.fee_bps"' not in changed
