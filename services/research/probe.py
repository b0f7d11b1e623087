"""The probe of a study's masked inputs: does the model under test recognise who and when it is?

Its input is what the masked arms of the same date see: the same codes, the same tools. A real name
is no mistake here but the answer, so the reply is read as it is, and only its codes are looked up.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from contracts.facts import UNKNOWN_SECTOR
from contracts.probe import Guess, GuessDraft, MaskProbe, ProbeDraft, ProbeInputs
from contracts.sentiment import Candidate
from libs.facts.desk import digest_facts
from libs.llm.agent import Role
from libs.llm.errors import ProviderNotUsable
from libs.llm.loop import generate
from libs.llm.masking.reader import Masked
from libs.llm.prompt import digest_for_prompt, task_for
from libs.market.source import MarketData
from libs.runtime.journal import Journal
from services.research.tools import probe_evidence

LEGAL_FORMS = frozenset(
    {
        "ag",
        "co",
        "company",
        "corp",
        "corporation",
        "group",
        "holding",
        "holdings",
        "inc",
        "incorporated",
        "limited",
        "ltd",
        "nv",
        "plc",
        "sa",
        "se",
    }
)
"""Words at the end of a name that one source writes and another does not."""
SILENCE = GuessDraft(code="")


async def probe_inputs(
    command: ProbeInputs, journal: Journal, *, market: MarketData, role: Role, tickers_max: int
) -> MaskProbe:
    """The guesses of a masked pipeline's model about the first `tickers_max` candidates."""
    agent = role.played_for(command)
    if agent.masking is None:
        raise ProviderNotUsable(f"{agent.provider.name} is asked nothing that is masked")
    masking = replace(agent.masking, asks_who=True)
    candidates = command.signal_digest.candidates[:tickers_max]
    names = [candidate.ticker for candidate in candidates]
    task = task_for(
        command,
        evidence=await probe_evidence(journal, market, command.as_of, names),
        about=names,
        facts=digest_facts(command.signal_digest),
        signal_digest=digest_for_prompt(command.signal_digest),
    )
    draft = await generate(replace(agent, masking=masking), task, ProbeDraft, journal)
    meant = Masked(masking, task).codebook.meant
    by_ticker = {meant(guess.code): guess for guess in reversed(draft.guesses)}
    return MaskProbe.of(
        command,
        llm=command.pipeline.provider,
        guesses=tuple(
            _guess(candidate, by_ticker.get(candidate.ticker, SILENCE), candidates, command)
            for candidate in candidates
        ),
    )


def _guess(
    about: Candidate, guess: GuessDraft, candidates: Sequence[Candidate], command: ProbeInputs
) -> Guess:
    on = _day(guess.on)
    known = about.sector != UNKNOWN_SECTOR
    return Guess(
        ticker=about.ticker,
        guessed=_whom(guess, candidates),
        name=guess.name,
        industry=guess.industry,
        on=on,
        days_off=None if on is None else abs((on - command.as_of).days),
        industry_right=_plain(guess.industry) == _plain(about.sector) if known else None,
    )


def _whom(guess: GuessDraft, candidates: Sequence[Candidate]) -> str:
    """The ticker of the candidate that is meant, by its ticker or its name; else what was said.
    `Apple Inc.` and `Apple` mean each other."""
    ticker, name = guess.ticker.strip().upper().rpartition(":")[2], f"{_named(guess.name)} "
    for item in candidates:
        if ticker == item.ticker or (item.name and name.startswith(f"{_named(item.name)} ")):
            return item.ticker
    return ticker or guess.name.strip()


def _named(words: str) -> str:
    """A company's name without what says only that it is a company."""
    parts = _plain(words).split()
    while len(parts) > 1 and parts[-1] in LEGAL_FORMS:
        parts.pop()
    return " ".join(parts)


def _plain(words: str) -> str:
    return " ".join(words.casefold().replace(".", " ").replace(",", " ").split())


def _day(words: str) -> date | None:
    try:
        return date.fromisoformat(words.strip()[:10])
    except ValueError:
        return None
