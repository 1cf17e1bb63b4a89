"""What people set beside a profile, on a real Postgres: it outlives the next apply, and the audit log has it."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from headway.errors import Invalid, NotFound
from headway.scaling.model import Mode
from headway.scaling.profile import Override, Pause, Profile, profile_from_mapping
from headway.scaling.profile_keys.schedule import Schedule
from headway.store.engine import Engine, snapshot, transaction
from headway.store.pools.evaluation_io import _profiles
from headway.store.pools.overrides import set_override, set_pause
from headway.store.pools.profiles import StoredProfile, get_profile, put_profile
from headway.store.pools.versions import Expected
from headway.store.tables import audit_log

NOW_S = 1.6e9
DOWN = Pause(mode=Mode.PAUSE_DOWN, reason="deploying", until_s=1.75e9)
SALE = Override(workers=7, until_s=1.8e9, reason="sale")


async def put(engine: Engine, version: int | None = None, **values: Any) -> StoredProfile:
    profile = Profile(**{"pool": "mail", "queues": ("redis/mail",), "template": "rq", **values})
    async with transaction(engine) as conn:
        expected = Expected(is_absent=version is None, version=version)
        return (await put_profile(conn, profile, expected=expected, actor="local"))[0]


async def override(engine: Engine, wanted: Override | None, pool: str = "mail") -> StoredProfile:
    async with transaction(engine) as conn:
        return await set_override(conn, pool, wanted, actor="ada")


async def pause(engine: Engine, wanted: Pause | None) -> StoredProfile:
    async with transaction(engine) as conn:
        return await set_pause(conn, "mail", wanted, actor="ada")


async def test_both_outlive_the_next_apply_and_change_no_version(engine: Engine) -> None:
    await put(engine)
    await override(engine, SALE)
    stored = await pause(engine, DOWN)
    assert (stored.override, stored.pause, stored.version) == (SALE, DOWN, 1)
    stored = await put(engine, version=1, workers_max=30)
    assert (stored.override, stored.pause, stored.version) == (SALE, DOWN, 2)
    assert (stored.profile.override, stored.profile.mode) == (None, Mode.ACT)
    in_force = stored.in_force_at(NOW_S)
    assert (in_force.override, in_force.mode_at(NOW_S), in_force.workers_max) == (SALE, Mode.PAUSE_DOWN, 30)


async def test_both_can_be_taken_back(engine: Engine) -> None:
    await put(engine, override=Override(workers=2, until_s=1.9e9, reason="from the file"))
    await override(engine, SALE)
    assert (await get(engine)).in_force_at(NOW_S).override == SALE
    await pause(engine, Pause())
    await override(engine, None)
    stored = await pause(engine, None)
    assert (stored.override, stored.pause) == (None, None)
    assert stored.in_force_at(NOW_S) == stored.profile


async def get(engine: Engine) -> StoredProfile:
    async with transaction(engine) as conn:
        return await get_profile(conn, "mail")


async def test_a_pause_does_not_make_a_recommendation_act(engine: Engine) -> None:
    await put(engine)
    await pause(engine, Pause())
    stored = await put(engine, version=1, mode=Mode.RECOMMEND)
    assert stored.in_force_at(NOW_S).mode_at(NOW_S) is Mode.RECOMMEND
    with pytest.raises(Invalid, match="nothing moves that could be paused"):
        await pause(engine, Pause())
    async with snapshot(engine) as conn:
        (body,) = (await _profiles(conn, at_s=NOW_S)).values()
    assert profile_from_mapping("mail", body).mode_at(NOW_S) is Mode.RECOMMEND


async def test_the_audit_log_names_who_did_what_once_a_change(engine: Engine) -> None:
    await put(engine)
    for _ in range(2):
        await override(engine, SALE)
    for _ in range(2):
        await pause(engine, Pause(mode=Mode.PAUSE_UP, reason="a slow database", until_s=1.7e9))
    await pause(engine, None)
    await override(engine, None)
    async with transaction(engine) as conn:
        rows = list(await conn.execute(select(audit_log).order_by(audit_log.c.acted_at)))
    nothing = {"pause": None, "pause_reason": None, "pause_until_s": None}
    paused = {"pause": "pause_up", "pause_reason": "a slow database", "pause_until_s": 1.7e9}
    sale = {"workers": 7, "until_s": 1.8e9, "reason": "sale"}
    assert [(row.actor, row.action, row.subject, row.before, row.after) for row in rows[1:]] == [
        ("ada", "override set", "profile mail", {"override": None}, {"override": sale}),
        ("ada", "pool paused", "profile mail", nothing, paused),
        ("ada", "pool resumed", "profile mail", paused, nothing),
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


async def test_what_was_set_by_hand_and_is_over_gives_its_place_back_to_the_profiles_own(engine: Engine) -> None:
    """As the leader reads it, and as people are shown it."""
    own = {
        "pause": Pause(mode=Mode.PAUSE_UP, reason="a migration"),
        "override": Override(workers=3, until_s=1.9e9, reason="x"),
    }
    await put(engine, **own)
    await pause(engine, Pause(reason="for a moment", until_s=NOW_S))
    await override(engine, replace(SALE, until_s=NOW_S))
    stored = await get(engine)
    for now_s, mode, workers in ((NOW_S - 1, Mode.PAUSE, 7), (NOW_S, Mode.PAUSE_UP, 3)):
        async with snapshot(engine) as conn:
            (body,) = (await _profiles(conn, at_s=now_s)).values()
        in_force = stored.in_force_at(now_s)
        assert profile_from_mapping("mail", body) == in_force
        assert (in_force.mode_at(now_s), in_force.override_at(now_s).workers) == (mode, workers)
