"""Which writes were answered, and how: so that a request that is sent again is not carried out again.

A key belongs to who sent it. Keys and what was asked are kept as SHA-256.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from headway.errors import Conflict, Overloaded
from headway.store.engine import Engine, transaction
from headway.store.retention import KEYS_KEPT_S
from headway.store.tables import idempotency_keys as keys

KEYS_KEPT = timedelta(seconds=KEYS_KEPT_S)
KEYS_PER_IDENTITY_MAX = 2_000  # of a day: more is no person, and no program that thinks before it writes
CLAIM_HOLDS = timedelta(seconds=60)  # twice what Postgres lets a statement take: who has not answered then is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a write was answered."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    """``None``: it was too large to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A write that its sender named."""

    identity: str
    """Whose key it is."""
    key_sha256: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Whoever has it carries the write out."""

    asked: Asked
    claimed_at: datetime


async def claim(engine: Engine, asked: Asked) -> Claim | Answer | None:
    """The right to carry ``asked`` out; or how it was answered; ``None`` while somebody else is at it.

    Raises:
        Conflict: the key was sent with another request.
        Overloaded: the identity has sent as many keys as are kept.
    """
    is_this = and_(keys.c.identity == asked.identity, keys.c.key_sha256 == asked.key_sha256)
    is_given_up = and_(
        keys.c.status.is_(None),
        keys.c.request_sha256 == asked.request_sha256,
        keys.c.claimed_at < func.now() - CLAIM_HOLDS,
    )
    wanted = insert(keys).values(
        identity=asked.identity, key_sha256=asked.key_sha256, request_sha256=asked.request_sha256
    )
    anew = {"request_sha256": asked.request_sha256, "claimed_at": func.now(), "status": None, "headers": None}
    claiming = wanted.on_conflict_do_update(
        index_elements=[keys.c.identity, keys.c.key_sha256],
        set_={**anew, "body": None},
        where=or_(keys.c.claimed_at < func.now() - KEYS_KEPT, is_given_up),
    ).returning(keys.c.claimed_at)
    async with transaction(engine) as conn:
        claimed_at = (await conn.execute(claiming)).scalar_one_or_none()
        if claimed_at is not None:
            of_identity = (keys.c.identity == asked.identity, keys.c.claimed_at > func.now() - KEYS_KEPT)
            if (
                await conn.execute(select(func.count()).select_from(keys).where(*of_identity))
            ).scalar_one() > KEYS_PER_IDENTITY_MAX:
                raise Overloaded(
                    f"{KEYS_PER_IDENTITY_MAX:,} idempotency keys of this caller are kept, each for 24 h: send no key "
                    "with what may be done twice"
                )
            return Claim(asked, claimed_at)
        row = (await conn.execute(select(keys).where(is_this))).one_or_none()
    if row is None:  # given back meanwhile
        return None
    if row.request_sha256 != asked.request_sha256:
        raise Conflict("this Idempotency-Key was sent with another request: draw a new one for each")
    if row.status is None:
        return None
    return Answer(status=row.status, headers=tuple((name, value) for name, value in row.headers), body=row.body)


async def keep_answer(engine: Engine, claim: Claim, answer: Answer) -> None:
    """Keep how the write was answered, unless somebody else has claimed it since."""
    values = {"status": answer.status, "headers": [list(each) for each in answer.headers], "body": answer.body}
    async with transaction(engine) as conn:
        await conn.execute(update(keys).where(*_is(claim)).values(**values))


async def give_back(engine: Engine, claim: Claim) -> None:
    """Let the write be tried again: it was not carried out, or nobody knows."""
    async with transaction(engine) as conn:
        await conn.execute(delete(keys).where(*_is(claim)))


def _is(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    asked = claim.asked
    return (
        keys.c.identity == asked.identity,
        keys.c.key_sha256 == asked.key_sha256,
        keys.c.claimed_at == claim.claimed_at,
        keys.c.status.is_(None),
    )
