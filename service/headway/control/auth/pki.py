"""Keys and certificates for the servers and for their clients: a CA of the installation's own signs them."""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headway.errors import Conflict, Invalid, Misconfigured
from headway.local.files import write_whole

CA_DAYS = 3_650
LEAF_DAYS = 825  # the most that browsers and systems take
BACKDATED = timedelta(minutes=10)  # a host whose clock is a little behind must not find it not yet valid
HERE = ("localhost", "127.0.0.1", "::1")  # the server's own machine reaches it by these
NAME_CHARS_MAX = 64  # X.509's bound of a common name


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


def make_ca(name: str, *, days: int = CA_DAYS) -> Pair:
    """A new CA: whoever has its key can be any host."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _begun(subject, days=days)
        .issuer_name(subject)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def make_server(ca: Pair, names: Sequence[str], *, days: int = LEAF_DAYS) -> Pair:
    """A certificate for the servers under ``names``, host names or numbers, and under those of their own machine."""
    if not names:
        raise Invalid("a server needs a name: the one by which hosts call it")
    every = tuple(dict.fromkeys((*names, *HERE)))
    return _signed(ca, names[0], (_general_name(name) for name in every), ExtendedKeyUsageOID.SERVER_AUTH, days=days)


def make_client(ca: Pair, name: str, *, days: int = LEAF_DAYS) -> Pair:
    """A certificate for the host or the collector ``name``."""
    return _signed(ca, name, (_dns_name(name),), ExtendedKeyUsageOID.CLIENT_AUTH, days=days)


def write_pair(pair: Pair, *, certificate: Path, key: Path, is_replacing: bool) -> None:
    """Write both files, readable by their owner only.

    Raises:
        Conflict: one is there, and not to be replaced.
        Misconfigured: they cannot be written.
    """
    there = [str(file) for file in (certificate, key) if file.exists()]
    if there and not is_replacing:
        raise Conflict(f"{' and '.join(there)} would be overwritten: add --force to replace, and then copy them anew")
    for file, content in ((key, pair.key), (certificate, pair.certificate)):
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(file, content)
        except OSError as error:
            raise Misconfigured(f"{file} cannot be written: {error.strerror}; choose another --folder") from error


def read_ca(certificate: Path, key: Path) -> Pair:
    """The CA in these files. Raises ``Misconfigured``."""
    try:
        pair = Pair(certificate=certificate.read_bytes(), key=key.read_bytes())
        _loaded(pair)
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} is not there: run `headway keys init` first") from error
    except (OSError, ValueError) as error:
        raise Misconfigured(f"{certificate} and {key} are no CA that can be used: {error}") from error
    return pair


def _signed(
    ca: Pair, name: str, alternatives: Iterable[x509.GeneralName], purpose: x509.ObjectIdentifier, *, days: int
) -> Pair:
    if not 0 < len(name) <= NAME_CHARS_MAX:
        raise Invalid(f"name {name!r}: expected 1 to {NAME_CHARS_MAX} characters")
    authority, authority_key = _loaded(ca)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), days=days)
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName(list(alternatives)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
    )
    return _pair(builder.sign(authority_key, hashes.SHA256()), key)


def _begun(subject: x509.Name, *, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + timedelta(days=days)) - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return _dns_name(name)


def _dns_name(name: str) -> x509.DNSName:
    try:
        return x509.DNSName(name)
    except ValueError as error:
        raise Invalid(f"name {name!r} cannot be in a certificate: plain characters only") from error


def _loaded(ca: Pair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = serialization.load_pem_private_key(ca.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one that `headway keys init` made")  # noqa: TRY004 - reported as a bad file
    return x509.load_pem_x509_certificate(ca.certificate), key


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
