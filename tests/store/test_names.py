"""Names are claimed by one rule whatever their kind, and a queue that is forgotten leaves no row behind."""

import pytest
from sqlalchemy import Table, insert
from sqlalchemy.dialects.postgresql import JSONB

from headway.errors import Conflict, Forbidden, NotFound
from headway.scaling.profile import Profile
from headway.store.claimed_names import (
    OF_A_QUEUE,
    Full,
    Kind,
    NameCapacity,
    Sender,
    claim,
    forget_queues,
    queues_beginning,
)
from headway.store.engine import Engine, transaction
from support.seed import Seed

ONE, OTHER, SHARED = Sender(name="one", sha256="1"), Sender(name="other", sha256="2"), Sender(name="HEADWAY_TOKEN")
ROOM = NameCapacity(one_max=3, all_max=5)
ODD = ["a\nb", "a/../b", "..", "a\x1b[2J", "a%2Fb", "a_b", "\u202egnp", " "]


async def claimed(engine: Engine, kind: Kind, *names: str, sender: Sender = ONE) -> tuple[set[str], Full | None]:
    async with transaction(engine) as conn:
        found = await claim(conn, kind, names, sender=sender, room=ROOM)
    return set(found.known), found.full


async def forget(engine: Engine, *names: str) -> None:
    async with transaction(engine) as conn:
        await forget_queues(conn, names, actor="somebody")


@pytest.mark.parametrize("kind", Kind)
async def test_names_of_each_kind_are_bounded_for_one_sender_and_for_all(engine: Engine, kind: Kind) -> None:
    assert await claimed(engine, kind, "a", "b") == ({"a", "b"}, None)
    assert await claimed(engine, kind, "a", "c", "d") == ({"a", "c"}, Full.OWN)
    assert await claimed(engine, kind, "a", "c") == ({"a", "c"}, None)
    assert await claimed(engine, kind, "e", "f", "g", sender=OTHER) == ({"e", "f"}, Full.ALL)
    # Who shows the token of all has no bound but that of all.
    assert await claimed(engine, kind, "h", sender=SHARED) == (set(), Full.ALL)


async def test_a_producer_is_its_senders_own_and_a_queue_everybodys(engine: Engine, seed: Seed) -> None:
    seed.execute("insert into credentials (sha256, role, name, created_by) values ('1', 'ingest', 'o', 'x')")
    for kind in Kind:
        await claimed(engine, kind, "a")
    assert await claimed(engine, Kind.QUEUES, "a", sender=OTHER) == ({"a"}, None)
    with pytest.raises(Forbidden, match="producer 'a': one sends under this name"):
        await claimed(engine, Kind.PRODUCERS, "a", sender=OTHER)
    seed.execute("update credentials set revoked_at = now()")
    assert await claimed(engine, Kind.PRODUCERS, "a", sender=OTHER) == ({"a"}, None)
    assert seed.rows("select sent_by from producers") == [("other",)]


async def test_what_a_profile_names_takes_no_room(engine: Engine, seed: Seed) -> None:
    seed.profile(Profile(pool="mail", queues=("mail",), template="rq"))
    assert await claimed(engine, Kind.QUEUES, "a", "b", "c", "mail", "z") == ({"a", "b", "c", "mail"}, Full.OWN)
    assert seed.rows("select queue from queues order by queue") == [("a",), ("b",), ("c",)]


def row_of(table: Table, queue: str) -> dict[str, object]:
    """A row with something in each column that must have something."""
    some = {float: 1.0, int: 1, str: "x"}
    needed = [each for each in table.c if not each.nullable and each.server_default is None and each.name != "queue"]
    return {"queue": queue} | {
        column.name: {} if isinstance(column.type, JSONB) else some[column.type.python_type] for column in needed
    }


async def test_a_queue_that_is_forgotten_is_in_no_table_and_others_stay(engine: Engine, seed: Seed) -> None:
    async with transaction(engine) as conn:
        for table in OF_A_QUEUE:
            await conn.execute(insert(table), [row_of(table, queue) for queue in ("gone", "stays")])
    await forget(engine, "gone")
    for table in OF_A_QUEUE:
        assert seed.rows(f"select queue from {table.name}") == [("stays",)], table.name


async def test_no_table_about_queues_is_missed_when_one_is_forgotten(engine: Engine, seed: Seed) -> None:
    """The database says which there are: one that a migration adds cannot be left out of what is forgotten."""
    found = seed.rows(
        "select distinct table_name from information_schema.columns where table_schema = current_schema() "
        "and column_name like '%queue%' "
        # A profile's, and gone with it; and what is known of workers: a job cut, and what one does right now.
        "and table_name not in ('profile_queues', 'job_cuts', 'worker_activities')"
    )
    assert {name for (name,) in found} == {table.name for table in OF_A_QUEUE}


async def test_all_that_are_named_are_forgotten_or_none_and_the_audit_log_names_them(
    engine: Engine, seed: Seed
) -> None:
    seed.profile(Profile(pool="mail", queues=("mail",), template="rq"))
    for queue in ("a", "b", "c"):
        seed.sample(queue, at_s=1.0)
    with pytest.raises(NotFound, match="queue 'x': not seen"):
        await forget(engine, "a", "x")
    with pytest.raises(Conflict, match="queue 'mail' belongs to pool 'mail'"):
        await forget(engine, "a", "mail")
    await forget(engine, "b", "a", "a")
    assert seed.rows("select queue from queue_samples") == [("c",)]
    acts = seed.rows("select actor, action, subject, before from audit_log")
    assert acts == [("somebody", "queues forgotten", "2 queues", {"queues": ["a", "b"], "rows": 2})]


@pytest.mark.parametrize("queue", ODD)
async def test_a_queue_is_found_by_how_its_name_begins_whatever_the_name(
    engine: Engine, seed: Seed, queue: str
) -> None:
    seed.profile(Profile(pool="mail", queues=("mail",), template="rq"))
    seed.execute_with("update profile_queues set queue = %s", f"{queue}/mail")
    for name in (queue, f"{queue}/1", f"{queue}/mail", "other"):
        seed.sample(name, at_s=1.0)
    async with transaction(engine) as conn:
        assert await queues_beginning(conn, queue, limit=9) == sorted([queue, f"{queue}/1"])
        assert await queues_beginning(conn, queue, limit=1) == [queue]
