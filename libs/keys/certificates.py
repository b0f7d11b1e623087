"""A private certificate authority, and certificates for the servers of a desk.

Like the other secrets they are made once and then kept: nothing here replaces a file. The
authority's own key is needed for further certificates only, and may be kept elsewhere meanwhile.
"""

import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from libs.keys.credentials import CredentialError
from libs.keys.tls import CA_FILE
from libs.runtime.whole_file import OWN, READABLE, beside

CA_KEY_FILE = "ca.key"
CA_DAYS = 3_650
CERTIFICATE_DAYS = 825
"""The longest that the strictest clients take."""
CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class CertificatePair:
    """A certificate and its key: PEM files of one name."""

    directory: Path
    name: str

    @property
    def certificate(self) -> Path:
        """The file of the certificate."""
        return self.directory / f"{self.name}.pem"

    @property
    def key(self) -> Path:
        """The file of the private key."""
        return self.directory / f"{self.name}.key"

    @property
    def again(self) -> str:
        """The advice how to make a new pair."""
        return (
            f"Delete {self.certificate} and {self.key.name} and run `deskbus secrets init --tls` "
            "again, with all the names."
        )


def ensure_certificates(
    directory: Path, servers: Mapping[str, Sequence[str]], now: datetime | None = None
) -> Mapping[str, datetime]:
    """Make the authority and each server's certificate where there is none; when each one expires.

    `servers`: the names and addresses (host names, `*.`-patterns, IP addresses) by server. Raises
    `CredentialError` with what to do, where a certificate that is kept has expired, lacks a name,
    or is not of this authority. Nothing is replaced.
    """
    now = now or datetime.now(UTC)
    pairs = {name: CertificatePair(directory, name) for name in servers}
    missing = {name: pair for name, pair in pairs.items() if not _exists(pair)}
    authority = _authority(directory, bool(missing), now)
    for name, pair in missing.items():
        _write_pair(pair, *_signed(authority, name, servers[name], now))
    return {
        name: _usable_until(pair, servers[name], authority, now) for name, pair in pairs.items()
    }


@dataclass(frozen=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | None


def _authority(directory: Path, signs: bool, now: datetime) -> _Authority:
    """The authority of the directory, made where there is none; with its key where it `signs`."""
    pair = CertificatePair(directory, CA_FILE.removesuffix(".pem"))
    if not pair.certificate.exists() and not pair.key.exists():
        _write_pair(pair, *_self_signed(now))
    if not pair.certificate.exists():
        raise CredentialError(
            f"{pair.certificate} is gone, and {CA_KEY_FILE} is there. Restore it."
        )
    return _Authority(_certificate(pair.certificate), _key(pair.key) if signs else None)


def _self_signed(now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Deskbus CA {now:%Y-%m-%d}")])
    usage = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder(name, name, key, now, CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return builder.sign(key, hashes.SHA256()), key


def _signed(
    authority: _Authority, name: str, hosts: Sequence[str], now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    if authority.key is None:
        raise TypeError("an authority signs with its key")
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"deskbus {name}")])
    # NATS servers are one another's clients too, in a cluster.
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(subject, issuer.subject, key, now, CERTIFICATE_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectAlternativeName([_san(host) for host in hosts]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    return builder.sign(authority.key, hashes.SHA256()), key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _san(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise CredentialError(
            f"{host!r} is not a host name or address for a certificate: write other letters than "
            "ASCII in their xn-- form."
        ) from error


def _usable_until(
    pair: CertificatePair, hosts: Sequence[str], authority: _Authority, now: datetime
) -> datetime:
    """Check the pair and return when its certificate expires."""
    certificate = _certificate(pair.certificate)
    if now >= certificate.not_valid_after_utc:
        day = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
        raise CredentialError(f"{pair.certificate} expired on {day}. {pair.again}")
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise CredentialError(
            f"{pair.certificate} was not signed by the authority in {CA_FILE}. {pair.again}"
        ) from error
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    lacks = [host for host in hosts if _san(host) not in names]
    if lacks:
        raise CredentialError(
            f"{pair.certificate} does not name {', '.join(lacks)}, and is kept as it is. "
            f"{pair.again}"
        )
    return certificate.not_valid_after_utc


def _exists(pair: CertificatePair) -> bool:
    """True where both files are there; half a pair is an error."""
    there = [path for path in (pair.certificate, pair.key) if path.exists()]
    if len(there) == 1:
        raise CredentialError(
            f"Of {pair.name}'s certificate and key only {there[0]} is there. {pair.again}"
        )
    return bool(there)


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CredentialError(f"{path} is not a readable certificate: {error}") from error


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise CredentialError(
            f"The authority's key {path} cannot be read ({error}), and signs what is missing. Put "
            f"it back, or delete {CA_FILE} and all certificates to begin anew."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CredentialError(f"{path} is not a key of this program's (ECDSA).")
    return key


def _write_pair(
    pair: CertificatePair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write_new(pair.key, secret, OWN)
    _write_new(pair.certificate, certificate.public_bytes(Encoding.PEM), READABLE)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Put a file there in one step; FileExistsError where there is one."""
    with beside(path, content, mode) as whole:
        os.link(whole, path)
