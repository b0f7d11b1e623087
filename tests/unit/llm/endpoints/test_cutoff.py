"""A provider's knowledge cutoff is for whoever scores it, and no property of the endpoint."""

from datetime import date

from libs.llm.endpoints.endpoint import endpoints_of
from libs.runtime.model_settings import EndpointSettings
from libs.runtime.settings import Settings


def test_a_provider_with_a_knowledge_cutoff_is_the_same_endpoint() -> None:
    plain = EndpointSettings()
    dated = EndpointSettings(knowledge_cutoff=date(2025, 3, 31))
    one, other = (
        endpoints_of(Settings(providers={"claude": each}))["claude"] for each in (plain, dated)
    )
    assert one == other
