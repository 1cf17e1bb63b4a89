"""Decisions on a real Postgres: stored whole, read newest first, a page at a time."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from headway.errors import Invalid
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Decision, Demand, Mode, Note, NoteFact, NoteKind, Objective, QueueMetrics, Step
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.pools.decisions import (
    DecisionQuery,
    decision_to_json,
    insert_decisions,
    latest_decisions,
    list_decisions,
)
from headway.store.pools.profiles import put_profile
from headway.store.pools.versions import Expected

DECISION = Decision(
    pool="mail",
    at_s=1_800_000_000.5,
    target_workers=9,
    binding="backlog_drain",
    demands=(Demand(name="steady_state", slots=2.5), Demand(name="backlog_drain", slots=8.75)),
    steps=(Step(name="wanted", workers=9), Step(name="workers_max", workers=9)),
    metrics=(QueueMetrics(queue="redis/mail", sampled_at_s=1_800_000_000.0, waiting_jobs=40, oldest_age_s=3.25),),
    running_workers=4,
    unknown_workers=1,
    predicted_pickup_s=4.5,
    notes=("metrics are older than 20 s: they lower nothing until fresh ones arrive",),
)


async def store(engine: Engine, *decisions: Decision) -> None:
    async with transaction(engine) as conn:
        await insert_decisions(conn, [(decision, 3, None) for decision in decisions])


@given(
    st.builds(
        Decision,
        pool=st.text(max_size=20),
        at_s=st.floats(allow_nan=False, allow_infinity=False),
        target_workers=st.integers(0, 10_000),
        binding=st.text(max_size=20),
        mode=st.sampled_from(Mode),
        objective=st.none() | st.builds(Objective, target_s=st.floats(0.1, 1e4)),
        demands=st.lists(st.builds(Demand, slots=st.floats(0, 1e6)), max_size=3).map(tuple),
        steps=st.lists(st.builds(Step), max_size=3).map(tuple),
        metrics=st.lists(
            st.builds(QueueMetrics, oldest_age_s=st.none() | st.floats(0, 1e6), waiting_jobs=st.none() | st.just(0)),
            max_size=2,
        ).map(tuple),
        notes=st.lists(st.text(max_size=20), max_size=2).map(tuple),
        note_facts=st.lists(
            st.builds(NoteFact, kind=st.sampled_from(NoteKind), about=st.lists(st.text(max_size=9)).map(tuple)),
            max_size=2,
        ).map(tuple),
    )
)
def test_a_decision_comes_back_from_json_as_it_was(decision: Decision) -> None:
    assert from_mapping(Decision, json.loads(json.dumps(decision_to_json(decision)))) == decision


def test_what_json_cannot_hold_is_stored_as_not_known() -> None:
    body = decision_to_json(replace(DECISION, predicted_pickup_s=float("inf")))
    assert from_mapping(Decision, body).predicted_pickup_s is None


def test_a_decision_of_another_version_is_read_as_far_as_it_goes() -> None:
    body = {"pool": "mail", "at_s": 1.0, "target_workers": 2, "binding": "idle", "invented_later": {"a": 1}}
    assert from_mapping(Decision, body) == Decision(pool="mail", at_s=1.0, target_workers=2, binding="idle")


def test_notes_of_an_earlier_version_are_sentences_alone() -> None:
    body = decision_to_json(DECISION)
    del body["note_facts"]
    read = from_mapping(Decision, body)
    assert (read.notes, read.note_facts) == (DECISION.notes, ())
    assert read.note_of(NoteKind.STALE_METRICS) is None


def test_an_earlier_version_reads_notes_as_sentences() -> None:
    fresh = DECISION.with_notes(Note(kind=NoteKind.NO_HOST, text="no known host", about=("rq",)))
    assert decision_to_json(fresh)["notes"] == [*DECISION.notes, "no known host"]


async def test_a_stored_decision_is_read_back_whole(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await insert_decisions(conn, [(DECISION, 7, 4)])
        (stored,) = await list_decisions(conn)
    assert (stored.decision, stored.epoch, stored.previous_workers) == (DECISION, 7, 4)


async def test_pages_follow_each_other_without_a_gap_also_inside_one_transaction(engine: Engine) -> None:
    for tick in range(3):  # each of five decisions that share their time
        await store(engine, *(replace(DECISION, pool=f"pool{number}", target_workers=tick) for number in range(5)))
    seen, before = [], None
    async with transaction(engine) as conn:
        while page := await list_decisions(conn, limit=4, before=before):
            seen += [(each.decision.target_workers, each.decision.pool) for each in page]
            before = page[-1].cursor
    assert [target for target, _ in seen] == [2] * 5 + [1] * 5 + [0] * 5
    assert len(set(seen)) == 15


async def test_one_pools_decisions_can_be_asked_for(engine: Engine) -> None:
    await store(engine, DECISION, replace(DECISION, pool="news"))
    async with transaction(engine) as conn:
        assert [each.decision.pool for each in await list_decisions(conn, query=DecisionQuery(pool="news"))] == ["news"]


@pytest.mark.parametrize("cursor", ["", "x", "12-zz", "9999999999999999999-00", f"{10**30}-{'0' * 32}"])
async def test_what_is_no_cursor_is_refused(engine: Engine, cursor: str) -> None:
    async with transaction(engine) as conn:
        with pytest.raises(Invalid, match="no cursor"):
            await list_decisions(conn, before=cursor)


async def test_the_latest_of_each_pool_leaves_out_pools_without_a_profile(engine: Engine) -> None:
    async with transaction(engine) as conn:
        profile = Profile(pool="mail", queues=("redis/mail",), template="rq")
        await put_profile(conn, profile, expected=Expected(), actor="local")
    for target in (1, 2):
        await store(engine, replace(DECISION, target_workers=target), replace(DECISION, pool="gone"))
    async with transaction(engine) as conn:
        latest = await latest_decisions(conn)
    assert {pool: each.decision.target_workers for pool, each in latest.items()} == {"mail": 2}


async def test_changes_and_reasons_are_found_without_reading_what_repeats(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await insert_decisions(conn, [(DECISION, 1, 9)] * 2_000)
        await insert_decisions(conn, [(replace(DECISION, binding="budget"), 1, 4)])
    async with engine.connect() as conn:
        await conn.execution_options(isolation_level="AUTOCOMMIT")
        await conn.execute(text("analyze decisions"))
    for query in (DecisionQuery(direction="up"), DecisionQuery(direction="down"), DecisionQuery(reason="budget")):
        async with transaction(engine) as conn:
            found = await list_decisions(conn, query=query)
            assert len(found) == (0 if query.direction == "down" else 1)
            read = "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_xact_user_tables"
            rows = (await conn.execute(text(f"{read} where relname like 'decisions%'"))).scalar_one()
        assert rows <= 10, query
