"""The certificate of HTTP: what is wrong with it is in the log from the start."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from libs.keys.certificates import CERTIFICATE_DAYS, ensure_certificates
from libs.runtime.http_address import Certificate
from libs.web.certificate import context_of
from tests.fakes.log_lines import log_lines


def logged(folder: Path, made: datetime) -> list[str]:
    folder.mkdir()
    ensure_certificates(folder, {"http": ("localhost",)}, made)
    with log_lines() as lines:
        context_of(Certificate(folder / "http.pem", folder / "http.key"))
    return [str(line["why"]) for line in lines if line["event"] == "http.certificate"]


def test_a_certificate_that_has_expired_or_soon_will_is_told_when_it_is_first_shown(
    tmp_path: Path,
) -> None:
    now, life = datetime.now(UTC), timedelta(days=CERTIFICATE_DAYS)
    assert logged(tmp_path / "good", now) == []
    (expired,) = logged(tmp_path / "expired", now - life - timedelta(days=1))
    assert "it expired on" in expired
    (soon,) = logged(tmp_path / "soon", now - life + timedelta(days=5))
    assert "days" in soon
    (early,) = logged(tmp_path / "early", now + timedelta(days=2))
    assert "not yet" in early
