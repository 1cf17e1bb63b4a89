"""Tokens as the HTTP API takes and gives them."""

import secrets
from typing import Annotated, Literal, Self

from pydantic import Field

from headway.control.http.schemas.requests import Taken, Text
from headway.control.http.schemas.schema_base import Given
from headway.store.access.credentials import Role
from headway.store.access.tokens import Token, TokenWanted
from headway.store.hosts.host_allowance import Allowance

JOIN_TOKEN_S = 3_600.0  # one that lets a host in is at hand when it is needed
FOR_S_MAX = 10 * 366 * 86_400.0
PATTERNS_MAX = 100
SOON_S = 7 * 86_400.0
SOON_SHARE = 0.1  # of the time that a token was made for

TokenState = Literal["valid", "expires_soon", "expired"]


Patterns = Annotated[list[Text], Field(max_length=PATTERNS_MAX)]


class TokenBody(Taken):
    """A token to be made. A join token lets hosts in, and nothing else."""

    role: Literal["viewer", "operator", "admin", "ingest", "auditor", "join"]
    name: Text | None = None
    """Whom the audit log names; only a join token can do without."""
    for_s: float | None = Field(default=None, gt=0, le=FOR_S_MAX)
    """How long it is valid; without it for ever, and a join token an hour."""
    uses: int | None = Field(default=None, ge=1, le=100_000)
    """How many hosts a join token lets in; 1 unless said."""
    host: Text | None = None
    """The only host that a join token lets in, also where that host has lost its credential."""

    labels: Patterns | None = None
    """The labels that hosts of a join token may have, as `name=value`; `*` stands for anything. Any, without it."""
    templates: Patterns | None = None
    """The templates that they may have; `*` stands for anything. Any, without it."""

    def value(self) -> TokenWanted:
        """The store's value. Raises ``Invalid``."""
        is_join = self.role == "join"
        return TokenWanted(
            name=self.name or (f"join-{secrets.token_hex(4)}" if is_join else ""),
            role=Role(self.role),
            for_s=JOIN_TOKEN_S if is_join and self.for_s is None else self.for_s,
            uses=1 if is_join and self.uses is None else self.uses,
            host_name=self.host,
            allowance=Allowance(
                labels=None if self.labels is None else tuple(self.labels),
                templates=None if self.templates is None else tuple(self.templates),
            ),
        )


class TokenOut(Given):
    """A token. Its secret was shown when it was made, and is kept nowhere."""

    name: str
    role: str
    created_by: str
    created_at_s: float
    expires_at_s: float | None
    state: TokenState
    """`expires_soon`: within a week and the last tenth of its time; `expired`: refused, and listed for a week."""
    host: str | None
    """The only host that a join token lets in."""
    uses_left: int | None
    """How many hosts a join token still lets in."""
    first_used_at_s: float | None
    labels: list[str] | None
    """The labels that hosts of a join token may have; null: any."""
    templates: list[str] | None
    """The templates that they may have; null: any."""

    @classmethod
    def of(cls, token: Token, **beside: str) -> Self:
        """``token`` as it is shown."""
        return cls.taken_from(
            token,
            token.allowance,
            role=token.role.value,
            state=_state(token),
            host=token.host_name,
            first_used_at_s=token.used_at_s,
            **beside,
        )


class TokensOut(Given):
    """The tokens that are valid, or expired in the last week, newest first."""

    tokens: list[TokenOut]
    refused_calls: dict[str, int]
    """How many calls this control plane has refused since it started, by reason, at both servers."""


class TokenMadeOut(TokenOut):
    """A token that was made just now."""

    secret: str
    """What its holder shows. It is shown this once."""


class HostCredentialOut(Given):
    """What was done about the credential of a host."""

    host: str
    outcome: Literal["rotating", "revoked"]


def _state(token: Token) -> TokenState:
    left_s = token.expires_in_s
    if left_s is None or token.expires_at_s is None:
        return "valid"
    if left_s <= 0:
        return "expired"
    return "expires_soon" if left_s < min(SOON_S, SOON_SHARE * (token.expires_at_s - token.created_at_s)) else "valid"
