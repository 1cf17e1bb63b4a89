"""Until when certificates serve: those in this machine's files, and the one that the control plane shows."""

import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from headway.cli.doctor.finding import Finding, fault, fine, skipped, warning
from headway.cli.tls import http_context
from headway.environment import ClientSettings
from headway.errors import HeadwayError
from headway.scaling.conditions.condition_table import CONDITIONS

CERTIFICATE_SOON_DAYS = 14.0  # as the control plane's log warns
SHOWN_WITHIN_S = 5.0


def certificate_findings(env: Mapping[str, str], *, now_s: float) -> Iterator[Finding]:
    """A finding for each certificate that is named here, and for the control plane's."""
    named = [name for name in ("HEADWAY_TLS_CERT", "HEADWAY_TLS_CA") if env.get(name, "system") != "system"]
    for name in named:
        yield _of_file(name, Path(env[name]).expanduser(), now_s=now_s)
    shown = _shown(env, now_s=now_s)
    if shown is not None:
        yield shown
    elif not named:
        yield skipped("certificate", "TLS is not set up here: no HEADWAY_TLS_CERT, no HEADWAY_TLS_CA, no https://")


def _of_file(name: str, path: Path, *, now_s: float) -> Finding:
    what = f"{name}={path}"
    try:
        from cryptography import x509

        ends_at_s = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()
    except ModuleNotFoundError:
        return skipped("certificate", f"{what}: reading it needs the extra control")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no certificate in PEM form"
        cure = f"name in {name} a certificate in PEM form that this user can read"
        return fault("certificate", f"{what} cannot be used: {why}", cure=cure)
    return _ending(what, ends_at_s - now_s)


def _shown(env: Mapping[str, str], *, now_s: float) -> Finding | None:
    """Of the certificate that the control plane shows; ``None`` where it shows none that is trusted here."""
    try:
        settings = ClientSettings.from_env(env)
        url = urlsplit(settings.url)
        if url.scheme != "https" or not url.hostname:
            return None
        context = http_context(settings.tls) or ssl.create_default_context()
        address = (url.hostname, url.port or 443)
        with (
            socket.create_connection(address, timeout=SHOWN_WITHIN_S) as plain,
            context.wrap_socket(plain, server_hostname=url.hostname) as shown,
        ):
            ends = str((shown.getpeercert() or {}).get("notAfter", ""))
    except (HeadwayError, OSError, ValueError):
        return None  # asking the control plane says why
    return (
        _ending(f"the certificate that {settings.url} shows", ssl.cert_time_to_seconds(ends) - now_s) if ends else None
    )


def _ending(what: str, left_s: float) -> Finding:
    days = left_s / 86_400
    if days <= 0:
        return fault("certificate", f"{what} expired {-days:.1f} days ago", cure=CONDITIONS["certificate"].cure)
    if days < CERTIFICATE_SOON_DAYS:
        return warning("certificate", f"{what} expires in {days:.1f} days", cure=CONDITIONS["certificate"].cure)
    return fine("certificate", f"{what} is valid for {days:.0f} days")
