"""Events of pools: written with the decision or the incident that makes them so, posted once, in order per pool."""

import asyncio
import base64
import json
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from control.hooks import SECRET, Hook, serving_hook
from control.ticks import LATE, Database, leading
from headway.control.notifications.messages import message_of, signature
from headway.control.notifications.receivers import Receiver, read_receivers, receivers_of, subscribers_of
from headway.control.notifications.sender import PAUSE, NotificationSender
from headway.errors import Invalid
from headway.scaling.conditions.incident_rules import IncidentChange, IncidentCondition, IncidentKey
from headway.scaling.model import Decision, Memory, PoolEventKind
from headway.store.engine import Engine, transaction
from headway.store.incidents import Silence, put_silence, save_change
from headway.store.leadership import Superseded
from headway.store.outbox.pool_events import (
    PREDICTED_AGAIN_AFTER_S,
    PossibleEvents,
    PostedEvent,
    events_of,
    note_predictions,
)
from headway.store.pools.evaluation_io import EvaluationResult, apply, gather
from headway.store.retention import forget_old
from security.planes import serving
from support.engines import engine_to
from support.pools import NOW_S
from support.seed import Seed
from support.waiting import eventually

SCALED, PREDICTED, BREACH, RECOVERED = (
    PoolEventKind.SCALED,
    PoolEventKind.BREACH_PREDICTED,
    PoolEventKind.BREACH,
    PoolEventKind.RECOVERED,
)
PLANES_S = 90.0


def to_hook(kind: PoolEventKind, pool: str) -> Collection[str]:
    """One receiver of everything."""
    del kind, pool
    return ["hook"]


def only(*kinds: PoolEventKind) -> Any:
    return lambda kind, _: ["hook"] if kind in kinds else []


def rows(database: Database) -> list[tuple[str, int, str, int, int]]:
    """What is kept: pool, number, event, from and to how many workers."""
    found = database._connection.execute(
        "select pool, number, event, from_workers, to_workers from pool_events order by receiver, pool, number"
    )
    return found.fetchall()


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving_hook() as server:
        yield server


async def send(url: str, *to: Receiver, now_s: float = NOW_S) -> None:
    """One poll of a sender that has just started, under the newest epoch."""
    engine = engine_to(url)
    try:
        async with transaction(engine) as conn:
            epoch = (await conn.exec_driver_sql("select epoch from leader_epoch")).scalar_one()
        sender = NotificationSender(
            engine=engine, receivers=to, epoch=lambda: epoch, clock=lambda: now_s, attempt_s=0.5
        )
        async with httpx.AsyncClient(trust_env=False, timeout=0.5) as client:
            await asyncio.gather(*(sender.send_due(client, each) for each in to))
    finally:
        await engine.dispose()


# --- what is written -------------------------------------------------------------------------------------------------


async def test_a_changed_target_is_one_event_with_its_decision_and_its_reason(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url, subscribers_of=only(SCALED)) as (ticker, epoch):
        for _ in range(3):
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert rows(database) == [("mail", 1, "scaled", 0, 4)]
    why, decided = database._connection.execute(
        "select why, target_workers from pool_events join decisions using (decision_id)"
    ).fetchone() or ("", 0)
    assert decided == 4
    assert why.startswith("4 jobs wait (the oldest for 60 s)")


async def test_the_next_leader_goes_on_without_repeating_an_event(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    for _ in range(2):
        async with leading(migrated_url, subscribers_of=only(SCALED)) as (ticker, epoch):
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert rows(database) == [("mail", 1, "scaled", 0, 4)]


async def test_a_memory_of_another_version_is_no_change_of_the_target(migrated_url: str, database: Database) -> None:
    """The pool begins afresh and holds what is assigned: nothing was scaled."""
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url, subscribers_of=only(SCALED)) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    database.run("update pool_states set memory = memory || '{\"version\": -1}'")
    async with leading(migrated_url, subscribers_of=only(SCALED)) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert rows(database) == [("mail", 1, "scaled", 0, 4)]


async def test_what_is_only_recommended_scales_nothing(migrated_url: str, database: Database) -> None:
    database.profile(mode="recommend")
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url, subscribers_of=only(SCALED)) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.decisions()[0][1] == 4
    assert rows(database) == []


async def test_a_pool_whose_evaluation_fails_has_not_scaled(engine: Engine, database: Database, seed: Seed) -> None:
    """Its decision has what is assigned, which is not remembered as its target."""
    seed.leader()
    database.profile()
    decision = Decision(pool="mail", at_s=NOW_S, target_workers=1, binding="failed")
    possible = PossibleEvents(subscribers_of=to_hook, predicted={}, reasons={(SCALED, "mail"): "Because."})
    gathered = await gather(engine, revision=0, from_s=0.0)
    epoch = database.read("select epoch from leader_epoch")
    for remembered in ([], [(decision, Memory(target_workers=1))]):
        result = EvaluationResult(remembered=remembered, decisions=[decision], assignments=[], events=possible)
        await apply(engine, result, gathered, epoch=epoch)
        assert len(rows(database)) == len(remembered)


async def test_without_a_subscriber_nothing_is_written(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert (rows(database), len(database.decisions())) == ([], 1)


class _DiedError(Exception):
    """In the place of the end of a process."""


def too_late(database: Database) -> None:
    """A pool of which no host has room for all wanted workers: a new job waits too long whatever is decided."""
    database.profile()
    database.host(cpu_cores=0.2)
    for ago in range(12, -1, -1):
        database.bucket(
            at_s=NOW_S - 5 * ago,
            waiting_jobs=400,
            oldest_age_s=1.0,
            arrived_jobs=50,
            started_jobs=5,
            finished_jobs=5,
            service_sum_s=5.0,
        )


async def test_a_predicted_breach_is_one_event_before_the_change_that_it_led_to(
    migrated_url: str, database: Database
) -> None:
    too_late(database)
    async with leading(migrated_url, subscribers_of=to_hook) as (ticker, epoch):
        for _ in range(3):
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert [row[2] for row in rows(database)] == ["breach_predicted", "scaled"]
    (predicted, scaled) = database._connection.execute(
        "select decision_id, why from pool_events order by number"
    ).fetchall()
    assert predicted[0] == scaled[0]
    assert "too late: " in predicted[1]
    async with leading(migrated_url, subscribers_of=to_hook) as (ticker, epoch):  # another leader knows of it
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert len(rows(database)) == 2
    database.run("update pool_states set breach_predicted_at_s = breach_predicted_at_s - 360")
    async with leading(migrated_url, subscribers_of=to_hook) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert [row[2] for row in rows(database)] == ["breach_predicted", "scaled", "breach_predicted"]
    number = database.read("select count(*) from pool_events join decisions using (decision_id)")
    assert number == 3  # also of a decision that would not have been stored otherwise


async def test_a_prediction_is_posted_though_the_evaluation_that_made_it_first_was_not_stored(
    migrated_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_late(database)

    async def dies(*_: Any, **__: Any) -> None:
        raise _DiedError

    async with leading(migrated_url, subscribers_of=only(PREDICTED)) as (ticker, epoch):
        with monkeypatch.context() as patched:
            patched.setattr("headway.store.pools.evaluation_io._save_assignments", dies)
            with pytest.raises(_DiedError):
                await ticker.tick(epoch=epoch, is_all_due=True)
        for _ in range(2):
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert [row[2] for row in rows(database)] == ["breach_predicted"]


async def test_a_prediction_that_goes_on_or_comes_and_goes_is_one_event(engine: Engine, seed: Seed) -> None:
    seed.execute("insert into profiles (pool, body) values ('mail', '{}')")
    seed.execute("insert into pool_states (pool, target_workers, memory, epoch) values ('mail', 7, '{}', 1)")
    decision = Decision(pool="mail", at_s=NOW_S, target_workers=7, binding="capacity")
    possible = PossibleEvents(
        subscribers_of=to_hook, predicted={"mail": decision}, reasons={(PREDICTED, "mail"): "Because."}
    )

    async def events_at(at_s: float) -> int:
        async with transaction(engine) as conn:
            found = await events_of(conn, [], possible, at_s=NOW_S + at_s)
            await note_predictions(conn, ["mail"], at_s=NOW_S + at_s)
        return len(found)

    lasting = [await events_at(at_s) for at_s in range(0, 3600, 20)]
    assert lasting == [1, *[0] * (len(lasting) - 1)]
    assert [await events_at(3600 + at_s) for at_s in (280, 560, 840)] == [0, 0, 0]  # within five minutes
    assert await events_at(3600 + 840 + PREDICTED_AGAIN_AFTER_S + 60) == 1
    assert await events_at(0) == 1  # the clock was set back


async def test_a_superseded_leader_writes_no_event(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url, subscribers_of=to_hook) as (ticker, epoch):
        database.run("update leader_epoch set epoch = epoch + 1")
        with pytest.raises(Superseded):
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert rows(database) == []


async def test_a_tick_that_fails_after_its_events_leaves_none(
    migrated_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a control plane that is killed there. The next one decides the same and writes it once."""
    database.profile()
    database.host()
    database.bucket(**LATE)

    async def dies(*_: Any, **__: Any) -> None:
        raise _DiedError

    async with leading(migrated_url, subscribers_of=only(SCALED)) as (ticker, epoch):
        with monkeypatch.context() as patched:
            patched.setattr("headway.store.pools.evaluation_io._save_assignments", dies)
            with pytest.raises(_DiedError):
                await ticker.tick(epoch=epoch, is_all_due=True)
        assert rows(database) == []
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert rows(database) == [("mail", 1, "scaled", 0, 4)]


async def test_a_breach_and_its_end_follow_the_incident_silenced_or_not(engine: Engine, seed: Seed) -> None:
    seed.leader()
    epoch = int(seed.rows("select epoch from leader_epoch")[0][0])
    seed.execute("insert into profiles (pool, body) values ('mail', '{}'), ('new', '{}')")
    seed.execute("insert into pool_states (pool, target_workers, memory, epoch) values ('mail', 7, '{}', 1)")
    silence = Silence(name="s", matchers={"pool": "mail"}, until_s=NOW_S + 60, reason="r", created_by="c")
    is_so = NOW_S - 90, IncidentCondition(severity="page", summary="so", action="a")
    late = {IncidentKey(rule="pool_late", pool=pool): is_so for pool in ("mail", "new")}
    opened = IncidentChange(opened={**late, IncidentKey(rule="pool_bottleneck", pool="mail"): is_so})
    closed = IncidentChange(closed=[*opened.opened])
    async with transaction(engine) as conn:
        await put_silence(conn, silence, actor="c")
    for change, at_s in ((opened, NOW_S), (closed, NOW_S + 30)):
        for _ in range(2):  # repeated, it adds nothing
            async with transaction(engine) as conn:
                await save_change(conn, change, now_s=at_s, epoch=epoch, subscribers_of=to_hook)
    found = seed.rows("select pool, event, number, from_workers, to_workers, why from pool_events order by number")
    assert found == [
        ("mail", "breach", 1, 7, 7, "so"),
        ("mail", "recovered", 2, 7, 7, "The incident has ended after 2 min."),
    ]


# --- what is posted --------------------------------------------------------------------------------------------------


def add(database: Database, pool: str, event: str, *, receiver: str = "hook", number: int | None = None) -> None:
    database._connection.execute(
        "insert into pool_events (receiver, pool, number, event, at_s, from_workers, to_workers, why)"
        " select %(r)s, %(p)s, coalesce(%(n)s, 1 + count(*)), %(e)s, %(at)s, 2, 5, 'Because.' from pool_events"
        " where receiver = %(r)s and pool = %(p)s",
        {"r": receiver, "p": pool, "e": event, "at": NOW_S, "n": number},
    )


async def led(url: str) -> None:
    """Somebody has led."""
    async with leading(url):
        pass


async def test_an_event_is_a_signed_cloud_event_that_says_everything(
    migrated_url: str, database: Database, hook: Hook
) -> None:
    await led(migrated_url)
    add(database, "mail", "scaled")
    await send(migrated_url, hook.receiver("hook"))
    await send(migrated_url, hook.receiver("hook"))
    (head,), (body,) = hook.heads, hook.bodies
    assert head["webhook-signature"] == signature(SECRET, head["webhook-id"], head["webhook-timestamp"], body)
    event = json.loads(body)
    assert (event["type"], event["subject"], event["source"]) == ("headway.pool.scaled", "mail", "/headway/pools")
    assert event["id"] == head["webhook-id"]
    assert event["data"] == {
        "pool": "mail",
        "event": "scaled",
        "sequence": 1,
        "at_s": NOW_S,
        "from_workers": 2,
        "to_workers": 5,
        "why": "Because.",
        "decision_id": None,
    }


async def test_a_failing_pool_delays_its_own_later_events_only(
    migrated_url: str, database: Database, hook: Hook
) -> None:
    await led(migrated_url)
    for pool, event in (("mail", "breach"), ("mail", "recovered"), ("video", "scaled"), ("video", "breach")):
        add(database, pool, event)
    to = hook.receiver("hook")
    hook.status["mail"] = 500
    for _ in range(3):
        await send(migrated_url, to)
    assert hook.taken == [("video", "scaled"), ("video", "breach")]
    hook.status.clear()
    for _ in range(2):
        await send(migrated_url, to, now_s=NOW_S + PAUSE.after_s(1))
    assert hook.taken[2:] == [("mail", "breach"), ("mail", "recovered")]


async def test_a_receiver_that_hangs_delays_no_other(migrated_url: str, database: Database, hook: Hook) -> None:
    await led(migrated_url)
    with serving_hook() as slow:
        slow.hangs.set()
        for name in ("slow", "hook"):
            add(database, "mail", "scaled", receiver=name)
        await send(migrated_url, slow.receiver("slow"), hook.receiver("hook"))
        assert (slow.taken, hook.taken) == ([], [("mail", "scaled")])
        slow.hangs.clear()
        await send(migrated_url, slow.receiver("slow"), now_s=NOW_S + PAUSE.after_s(1))
        assert slow.taken == [("mail", "scaled")]


async def test_a_receiver_that_restarts_misses_nothing(migrated_url: str, database: Database) -> None:
    await led(migrated_url)
    for event in ("breach_predicted", "scaled"):
        add(database, "mail", event)
    with serving_hook() as first:
        to = first.receiver("hook")
        await send(migrated_url, to)
    await send(migrated_url, to)  # nobody listens
    with serving_hook(first.server_port) as second:
        await send(migrated_url, to, now_s=NOW_S + PAUSE.after_s(1))
    assert first.taken + second.taken == [("mail", "breach_predicted"), ("mail", "scaled")]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ("scaled", "a\\nb: 2 → 5 workers. Because &lt;it&gt; is so."),
        ("breach_predicted", "a\\nb: breach predicted, 2 → 5 workers. Because &lt;it&gt; is so."),
    ],
)
def test_slack_receives_one_escaped_line(event: str, text: str) -> None:
    posted = PostedEvent(
        pool="a\nb",
        event=PoolEventKind(event),
        at_s=NOW_S,
        from_workers=2,
        to_workers=5,
        why="Because <it> is so.",
        receiver="hook",
        number=1,
        event_id=UUID(int=1),
        attempts=0,
    )
    to = Receiver(name="hook", url="http://127.0.0.1:1/", template="slack", secret=b"", match={})
    body, _ = message_of(posted, to, now_s=NOW_S)
    assert json.loads(body) == {"text": text}


# --- who subscribes --------------------------------------------------------------------------------------------------


def written(folder: Path, *tables: str) -> tuple[Receiver, ...]:
    (folder / "secret").write_text("whsec_" + base64.b64encode(SECRET).decode())
    file = folder / "n.toml"
    common = f'url = "https://a.example/x"\nsecret_file = "{folder}/secret"\n'
    file.write_text(
        "".join(f"[receivers.{name}]\n{common}{table}\n" for name, table in zip("abc", tables, strict=False))
    )
    return read_receivers(file)


def test_events_are_opt_in_by_kind_and_pool(tmp_path: Path) -> None:
    read = written(
        tmp_path,
        'match = { severity = "page" }',
        'events = ["scaled", "breach"]\nmatch = { pool = "mail-*", severity = "page" }',
        'events = ["recovered"]\nincidents = false',
    )
    assert [list(subscribers_of(read, kind, "mail-eu")) for kind in (SCALED, PREDICTED, BREACH, RECOVERED)] == [
        ["b"],
        [],
        ["b"],
        ["c"],
    ]
    assert subscribers_of(read, SCALED, "video") == []
    labels = {"pool": "mail-eu", "severity": "page"}
    assert receivers_of(read, labels) == ["a", "b"]  # incidents as before, but for who wants none


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('events = ["scale"]', "expected a list of scaled, breach_predicted, breach, recovered"),
        ('events = "scaled"', "expected a list of scaled, breach_predicted, breach, recovered"),
        ("incidents = false", "incidents = false needs events: it would receive nothing"),
    ],
)
def test_a_wrong_subscription_is_refused(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        written(tmp_path, table)


# --- what stays ------------------------------------------------------------------------------------------------------


async def test_the_newest_event_of_a_pool_stays_so_that_numbers_go_on(
    engine: Engine, seed: Seed, database: Database
) -> None:
    seed.execute("insert into profiles (pool, body) values ('mail', '{}')")
    for pool in ("mail", "gone"):
        for _ in range(2):
            add(database, pool, "scaled")
    seed.execute("update pool_events set at_s = extract(epoch from now()) - 8 * 86400")
    add(database, "new", "scaled")
    seed.execute("update pool_events set at_s = extract(epoch from now()) where pool = 'new'")
    await forget_old(engine, "pool_events")
    assert rows(database) == [("mail", 2, "scaled", 2, 5), ("new", 1, "scaled", 2, 5)]


# --- a control plane that is killed ----------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.parametrize("trouble", ["hangs", "fails"])
async def test_no_event_is_lost_doubled_or_moved_where_a_control_plane_is_killed(
    migrated_url: str, database: Database, hook: Hook, tmp_path: Path, trouble: str
) -> None:
    """Its next one decides as before, and sends what was not taken under the same id."""
    (tmp_path / "secret").write_bytes(SECRET)
    file = tmp_path / "notifications.toml"
    file.write_text(
        f'[receivers.hook]\nurl = "http://127.0.0.1:{hook.server_port}/"\nsecret_file = "{tmp_path}/secret"\n'
        'incidents = false\nevents = ["scaled"]\n'
    )
    settings = {"HEADWAY_NOTIFICATIONS": str(file)}
    database.profile(workers_min=3)
    database.host()
    if trouble == "hangs":
        hook.hangs.set()
    else:
        hook.status["mail"] = 500
    with serving(migrated_url, tmp_path, settings) as plane:
        eventually(lambda: hook.tries, within_s=PLANES_S)
        os.kill(plane.pid, signal.SIGKILL)
    hook.status.clear()
    hook.hangs.clear()
    database.run("update profiles set body = body || '{\"workers_min\": 5}'")
    with serving(migrated_url, tmp_path, settings):
        are_sent = "select count(*) filter (where state = 'sent') from pool_events"
        eventually(lambda: database.read(are_sent) == 2, within_s=PLANES_S)
    data = [json.loads(body)["data"] for body in hook.bodies]
    assert [(each["sequence"], each["from_workers"], each["to_workers"]) for each in data] == [(1, 0, 3), (2, 3, 5)]
    assert hook.tries >= 3
