"""What `deskbus doctor` says of providers that are programs: what they could reach, tried."""

import shutil
from collections.abc import Sequence

from libs.llm.endpoints.command import unproven
from libs.llm.endpoints.endpoint import ModelEndpoint, endpoints_of
from libs.runtime.settings import Settings
from services.cli.operating.checks import DoctorCheck, off, ok, problem

TODO = "until then the desk does not use it; see docs/providers.md for examples"


async def programs_tried(settings: Settings) -> Sequence[DoctorCheck]:
    """Each program among the providers of the settings, with what its probe could reach."""
    endpoints = endpoints_of(settings).values()
    return [await _tried(endpoint, settings) for endpoint in endpoints if endpoint.command]


async def _tried(endpoint: ModelEndpoint, settings: Settings) -> DoctorCheck:
    if (error := await unproven(endpoint)) is not None:
        return problem("program", error.message, TODO)
    program = endpoint.command
    if program is None:
        raise TypeError(f"{endpoint.name} is not a program")
    way, argv = program.containment, program.argv
    if not way.wrapper and shutil.which(argv[0], path=way.path) is None:
        return problem("program", f"{endpoint.name}: program {argv[0]} is not in {way.path}")
    if not settings.data_dir.exists():
        return off("program", f"{endpoint.name}: tested once the desk has data here")
    reach = "its settings state that its sandbox reaches only its vendor"
    if not settings.providers[endpoint.name].sandbox.only_vendor:
        reach = "outside tools are possible, so it is not used for studies or past dates"
    return ok(
        "program",
        f"{endpoint.name}: in a test, started as usual, it could neither read nor write the desk's "
        f"data and secrets; {reach}",
    )
