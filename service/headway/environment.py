"""What every program takes from the environment: the reader of its values, and what a client of the HTTP API needs.

Every mistake is reported together, by name. Programs of others import this with ``headway.emit``, so it imports little.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from headway.errors import Invalid

HTTP_ADDRESS = "127.0.0.1:8460"
COUNT_MAX = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """What a client trusts and shows: files. Without ``ca``, it trusts whom the system trusts."""

    ca: Path | None
    certificate: Path | None
    key: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What a client of the HTTP API needs."""

    url: str
    token: str | None
    tls: ClientTls | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ClientSettings":
        """The settings in ``env``. Raises ``Invalid`` with every value that is missing or wrong."""
        with reading(EnvironmentReader(env)) as read:
            url = env.get("HEADWAY_URL") or f"http://{HTTP_ADDRESS}"
            return cls(url=url, token=read.token(), tls=read.client_tls())


class EnvironmentReader:
    """Reads values and gathers what is wrong with them, so that one message names every mistake."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.breaches: list[str] = []

    def text(self, name: str, *, needed_for: str) -> str:
        value = self.secret(name, holds=needed_for) or ""
        if not value and not self._env.get(f"{name}_FILE"):
            self.breaches.append(f"{name} is not set: it says {needed_for}")
        return value

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        value = self._env.get(name) or words[0]
        if value not in words:
            self.refuse(f"{name}={value!r}: expected {' or '.join(words)}")
        return value

    def path(self, name: str, default: str) -> Path:
        value = self._env.get(name) or default
        if "://" in value:
            self.refuse(
                f"{name}={value} is no folder: what is kept there needs renames and locks; mount a disk or NFSv4"
            )
        return Path(value).expanduser().absolute()

    def file(self, name: str) -> Path | None:
        value = self._env.get(name)
        return Path(value).expanduser().absolute() if value else None

    def path_or_uri(self, name: str, default: str) -> Path | str:
        value = self._env.get(name) or default
        return value if "://" in value else self.path(name, default)

    def refuse(self, breach: str) -> None:
        self.breaches.append(breach)

    def positive(self, name: str, default: float) -> float:
        value = self._env.get(name) or default
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.breaches.append(f"{name}={value!r}: expected a number above 0, as in {default:g}")
            return default
        return number

    def count(self, name: str, default: int) -> int:
        value = self._env.get(name) or str(default)
        if not value.isdecimal() or not 0 < int(value) <= COUNT_MAX:
            self.refuse(f"{name}={value!r}: expected a whole number from 1 to {COUNT_MAX}, as in {default}")
            return default
        return int(value)

    def token(self) -> str | None:
        return self.secret("HEADWAY_TOKEN", holds="the token, as `headway token create` prints it")

    def secret(self, name: str, *, holds: str) -> str | None:
        """A credential: the value of the variable ``name``, or the file that ``name_FILE`` names."""
        given, file = self._env.get(name) or None, self.file(f"{name}_FILE")
        if file is None:
            return given
        if given is not None:
            self.refuse(f"{name} and {name}_FILE exclude each other: keep the file")
        try:  # the secret is in no message
            secret = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            self.refuse(f"{name}_FILE={file} cannot be read: {why}")
            return None
        if not secret:
            self.refuse(f"{name}_FILE={file} is empty: it holds {holds}")
        return secret or None

    def client_tls(self) -> ClientTls | None:
        certificate, key = self.pair()
        ca = self._env.get("HEADWAY_TLS_CA")
        if not ca:
            # A certificate alone does not ask for TLS here: on one machine it may be the control plane's.
            return None
        trusted = None if ca == "system" else self.file("HEADWAY_TLS_CA")
        return ClientTls(ca=trusted, certificate=certificate, key=key)

    def pair(self) -> tuple[Path | None, Path | None]:
        certificate, key = self.file("HEADWAY_TLS_CERT"), self.file("HEADWAY_TLS_KEY")
        if (certificate is None) != (key is None):
            self.refuse("HEADWAY_TLS_CERT and HEADWAY_TLS_KEY: one needs the other")
        return certificate, key


Reader = TypeVar("Reader", bound=EnvironmentReader)


@contextmanager
def reading(read: Reader) -> Iterator[Reader]:
    """``read`` for the block. Raises ``Invalid`` at its end with everything that was wrong."""
    yield read
    if read.breaches:
        raise Invalid(*read.breaches)
