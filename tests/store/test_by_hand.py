"""What people set beside a profile, on a real Postgres: it outlives the next apply, and the audit log has it."""

from typing import Any

import pytest
from sqlalchemy import select

from headway.errors import Invalid, NotFound
from headway.scaling.model import Mode
from headway.scaling.profile import Override, Profile
from headway.scaling.schedule import Schedule
from headway.store.by_hand import set_override, set_pause
from headway.store.engine import Engine, transaction
from headway.store.profiles import Expected, StoredProfile, get_profile, put_profile
from headway.store.tables import audit_log

SALE = Override(workers=7, until_s=1.8e9, reason="sale")


async def put(engine: Engine, version: int | None = None, **values: Any) -> StoredProfile:
    profile = Profile(**{"pool": "mail", "queues": ("redis/mail",), "template": "rq", **values})
    async with transaction(engine) as conn:
        expected = Expected(is_absent=version is None, version=version)
        return (await put_profile(conn, profile, expected=expected, actor="local"))[0]


async def override(engine: Engine, wanted: Override | None, pool: str = "mail") -> StoredProfile:
    async with transaction(engine) as conn:
        return await set_override(conn, pool, wanted, actor="ada")


async def pause(engine: Engine, wanted: Mode | None) -> StoredProfile:
    async with transaction(engine) as conn:
        return await set_pause(conn, "mail", wanted, actor="ada")


async def test_both_outlive_the_next_apply_and_change_no_version(engine: Engine) -> None:
    await put(engine)
    await override(engine, SALE)
    stored = await pause(engine, Mode.PAUSE_DOWN)
    assert (stored.override, stored.pause, stored.version) == (SALE, Mode.PAUSE_DOWN, 1)
    stored = await put(engine, version=1, workers_max=30)
    assert (stored.override, stored.pause, stored.version) == (SALE, Mode.PAUSE_DOWN, 2)
    assert (stored.profile.override, stored.profile.mode) == (None, Mode.ACT)
    assert (stored.in_force.override, stored.in_force.mode) == (SALE, Mode.PAUSE_DOWN)
    assert stored.in_force.workers_max == 30


async def test_both_can_be_taken_back(engine: Engine) -> None:
    await put(engine, override=Override(workers=2, until_s=1.9e9, reason="from the file"))
    await override(engine, SALE)
    assert (await get(engine)).in_force.override == SALE
    await pause(engine, Mode.PAUSE)
    await override(engine, None)
    stored = await pause(engine, None)
    assert (stored.override, stored.pause) == (None, None)
    assert stored.in_force == stored.profile


async def get(engine: Engine) -> StoredProfile:
    async with transaction(engine) as conn:
        return await get_profile(conn, "mail")


async def test_a_pause_does_not_make_a_recommendation_act(engine: Engine) -> None:
    await put(engine)
    await pause(engine, Mode.PAUSE)
    stored = await put(engine, version=1, mode=Mode.RECOMMEND)
    assert stored.in_force.mode is Mode.RECOMMEND
    with pytest.raises(Invalid, match="nothing moves that could be paused"):
        await pause(engine, Mode.PAUSE)


async def test_the_audit_log_names_who_did_what_once_a_change(engine: Engine) -> None:
    await put(engine)
    for _ in range(2):
        await override(engine, SALE)
    await pause(engine, Mode.PAUSE_UP)
    await pause(engine, None)
    await override(engine, None)
    async with transaction(engine) as conn:
        rows = list(await conn.execute(select(audit_log).order_by(audit_log.c.acted_at)))
    sale = {"workers": 7, "until_s": 1.8e9, "reason": "sale"}
    assert [(row.actor, row.action, row.subject, row.before, row.after) for row in rows[1:]] == [
        ("ada", "override set", "profile mail", {"override": None}, {"override": sale}),
        ("ada", "pool paused", "profile mail", {"pause": None}, {"pause": "pause_up"}),
        ("ada", "pool resumed", "profile mail", {"pause": "pause_up"}, {"pause": None}),
        ("ada", "override ended", "profile mail", {"override": sale}, {"override": None}),
    ]


async def test_a_pool_without_a_profile_has_nothing_to_set(engine: Engine) -> None:
    with pytest.raises(NotFound, match="no profile 'news'"):
        await override(engine, SALE, pool="news")


async def test_a_count_that_no_bound_would_ever_let_be_is_refused(engine: Engine) -> None:
    night = Schedule(starts="22:00", ends="06:00", workers_min=0, workers_max=40)
    await put(engine, workers_min=2, workers_max=20, schedules=(night,))
    for workers in (0, 40):
        await override(engine, Override(workers=workers, until_s=1.8e9, reason="x"))
    with pytest.raises(Invalid, match=r"override.workers=41 lies outside workers_min=0..workers_max=40"):
        await override(engine, Override(workers=41, until_s=1.8e9, reason="x"))
    await put(engine, version=1, workers_min=2, workers_max=20, pinned=4)
    with pytest.raises(Invalid, match="the pool is pinned to 4"):
        await override(engine, Override(workers=5, until_s=1.8e9, reason="x"))


async def test_nothing_but_a_pause_pauses(engine: Engine) -> None:
    await put(engine)
    with pytest.raises(Invalid, match="pause='act': expected one of pause, pause_up, pause_down"):
        await pause(engine, Mode.ACT)
