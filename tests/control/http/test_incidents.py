"""Incidents: opened once and closed once by what the overview shows, never closed on what is not known."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from headway.control.http.overview.alerting import Alerting
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.scaling.conditions.incident_rules import (
    IncidentCondition,
    IncidentKey,
    changed,
    is_silenced,
    pending_since,
)
from headway.scaling.model import Decision, Stoppage, Suspension
from headway.scaling.profile import Profile
from headway.store.engine import Engine
from headway.store.leadership import Superseded
from headway.store.outbox.pool_events import Subscribers, no_subscribers
from support.seed import Seed

LATE = IncidentKey(rule="pool_late", pool="mail")
CONDITION = IncidentCondition(severity="page", summary="s", action="a")


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def alerting(engine: Engine, clock: Clock, seed: Seed) -> Callable[..., Alerting]:
    """Makes the evaluation of a leader of an epoch."""
    seed.leader()
    seed.pipeline()
    seed.host("a")
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    epoch = int(seed.rows("select epoch from leader_epoch")[0][0])

    def made(ahead: int = 0, subscribers_of: Subscribers = no_subscribers) -> Alerting:
        overviews = OverviewBuilder(engine=engine, clock=clock)
        return Alerting(engine=engine, overviews=overviews, epoch=lambda: epoch + ahead, subscribers_of=subscribers_of)

    return made


def late(seed: Seed, clock: Clock, oldest_age_s: float = 50.0) -> None:
    """The queue is read now; its oldest job has waited for so long."""
    seed.sample("redis/mail", at_s=clock.now_s, waiting_jobs=3, oldest_age_s=oldest_age_s)
    seed.execute("delete from queue_buckets")
    seed.bucket("redis/mail", at_s=clock.now_s, waiting_jobs=3, oldest_age_s=oldest_age_s)


async def test_a_new_queue_is_an_incident_only_while_nobody_polls_its_broker(
    seed: Seed, clock: Clock, alerting: Callable[..., Alerting]
) -> None:
    seed.execute("insert into collectors (connection, producer) values ('redis', 'collect-a')")
    leading = alerting()
    unknown = IncidentKey(rule="pool_unknown", pool="mail")
    for _ in range(30):
        assert unknown not in (await leading.evaluate()).opened
        clock.now_s += 10
    seed.execute("update collectors set seen_at = now() - interval '1 hour'")
    for _ in range(7):
        change = await leading.evaluate()
        clock.now_s += 10
    assert set(change.opened) == {unknown}
    assert "no collector or producer has reported all its queues: redis/mail" in change.opened[unknown][1].summary
    seed.execute("update collectors set seen_at = now()")
    assert (await leading.evaluate()).closed == [unknown]


async def test_pools_are_judged_without_the_queues_that_nobody_serves(
    engine: Engine, clock: Clock, seed: Seed, alerting: Callable[..., Alerting]
) -> None:
    """Thousands of names that somebody invents must not make each evaluation and each health check dearer."""
    seed.sample("redis/stray", at_s=NOW_S, waiting_jobs=9)
    late(seed, clock)
    overviews = OverviewBuilder(engine=engine, clock=clock)
    seen, whole = await overviews.of_pools(), await overviews.overview()
    assert [queue.queue for queue in seen.queues] == ["redis/mail"]
    assert [queue.queue for queue in whole.queues] == ["redis/mail", "redis/stray"]
    assert seen.pools == whole.pools


async def test_a_suspension_is_a_ticket_and_no_page(
    client: httpx.AsyncClient, alerting: Callable[..., Alerting], seed: Seed, clock: Clock
) -> None:
    """However late its jobs are; and while nobody knows whether it goes on, it is not closed."""

    async def firing() -> list[tuple[str, str]]:
        answer = await client.get("/v1/alerts", params={"state": "firing"})
        return [(each["rule"], each["severity"]) for each in answer.json()["alerts"]]

    evaluates = alerting()

    async def decided(suspension: Suspension, stoppage: Stoppage, *, is_read: bool = True) -> None:
        seed.decision(
            Decision(pool="mail", at_s=0, target_workers=0, binding="x", suspension=suspension, stoppage=stoppage)
        )
        for _ in range(2):
            clock.now_s += 61.0
            if is_read:
                late(seed, clock, oldest_age_s=500.0)
            await evaluates.evaluate()

    begun = Stoppage(since_s=NOW_S - 1_000.0)
    await decided(Suspension.LIBRARY, begun)
    assert [each for each in await firing() if each[0] != "degraded"] == [("pool_suspended", "ticket")]
    answer = await client.get("/v1/alerts", params={"state": "all"})
    assert "suspended" not in {each["kind"] for each in answer.json()["alerts"]}
    await decided(Suspension.NONE, begun, is_read=False)
    assert ("pool_suspended", "ticket") in await firing()
    await decided(Suspension.NONE, Stoppage(since_s=begun.since_s, until_s=clock.now_s + 120.0))
    assert {rule for rule, _ in await firing()} & {"pool_suspended", "pool_late"} == set()


async def test_a_late_pool_is_one_event_of_a_breach_over_leaders_and_its_end_another(
    alerting: Callable[..., Alerting], seed: Seed, clock: Clock
) -> None:
    """As often as it is evaluated, and not before the incident is confirmed."""
    seed.decision(Decision(pool="mail", at_s=0, target_workers=2, binding="x"))
    for oldest_age_s in (500.0, 0.0):
        for leader in [alerting(subscribers_of=lambda *_: ["hook"]) for _ in range(2)]:
            for _ in range(4):
                late(seed, clock, oldest_age_s=oldest_age_s)
                await leader.evaluate()
                clock.now_s += 30.0
    found = seed.rows(
        "select event, from_workers, to_workers, decisions.target_workers, why from pool_events "
        "join decisions using (decision_id) order by number"
    )
    assert [row[:4] for row in found] == [("breach", 2, 2, 2), ("recovered", 2, 2, 2)]
    assert found[0][4].startswith("the oldest job had waited 8.3 min, longer than the objective's 10 s")


async def of_mail(client: httpx.AsyncClient, state: str = "firing") -> list[dict[str, Any]]:
    answer = await client.get("/v1/alerts", params={"state": state, "pool": "mail"})
    return [each for each in answer.json()["alerts"] if each["rule"] == "pool_late"]


async def test_an_incident_opens_once_over_leaders_and_ends_once(
    client: httpx.AsyncClient, alerting: Callable[..., Alerting], seed: Seed, clock: Clock
) -> None:
    first = alerting()
    for _ in range(3):
        late(seed, clock)
        await first.evaluate()
        clock.now_s += 30
    (alert,) = await of_mail(client)
    assert (alert["since_s"], alert["until_s"], alert["severity"]) == (NOW_S, None, "page")
    assert "longer than the objective" in alert["summary"]
    next_leader = alerting()
    for _ in range(3):
        late(seed, clock)
        await next_leader.evaluate()
        clock.now_s += 30
    assert [each["id"] for each in await of_mail(client)] == [alert["id"]]
    late(seed, clock, oldest_age_s=0.0)
    ended_s = clock.now_s
    for _ in range(2):
        await next_leader.evaluate()
    assert await of_mail(client) == []
    (ended,) = await of_mail(client, "all")
    assert (ended["id"], ended["until_s"]) == (alert["id"], ended_s)


async def test_what_is_not_known_closes_nothing(
    client: httpx.AsyncClient, alerting: Callable[..., Alerting], seed: Seed, clock: Clock
) -> None:
    leader = alerting()
    for _ in range(3):
        late(seed, clock)
        await leader.evaluate()
        clock.now_s += 30
    late(seed, clock, oldest_age_s=0.0)
    clock.now_s += 600  # the queue was not read since
    await leader.evaluate()
    assert len(await of_mail(client)) == 1


async def test_a_leader_that_was_superseded_writes_nothing(
    client: httpx.AsyncClient, alerting: Callable[..., Alerting], seed: Seed, clock: Clock
) -> None:
    old = alerting(ahead=-1)
    late(seed, clock)
    await old.evaluate()
    clock.now_s += 61
    late(seed, clock)
    with pytest.raises(Superseded):
        await old.evaluate()
    assert await of_mail(client, "all") == []


async def test_a_silence_names_labels_a_reason_and_an_end(
    client: httpx.AsyncClient, alerting: Callable[..., Alerting], seed: Seed, clock: Clock
) -> None:
    leader = alerting()
    for _ in range(3):
        late(seed, clock)
        await leader.evaluate()
        clock.now_s += 30
    body = {"matchers": {"pool": "mail"}, "reason": "a sale", "for_s": 600}
    answer = await client.put("/v1/silences/sale", json=body)
    assert answer.status_code == 200, answer.text
    (alert,) = await of_mail(client)
    assert alert["silenced_until_s"] == NOW_S + 600
    assert [each["name"] for each in (await client.get("/v1/silences")).json()["silences"]] == ["sale"]
    assert (await client.delete("/v1/silences/sale")).status_code == 204
    assert (await client.delete("/v1/silences/sale")).status_code == 404
    (alert,) = await of_mail(client)
    assert alert["silenced_until_s"] is None
    acts = seed.rows("select action from audit_log where subject = 'sale' order by acted_at")
    assert acts == [("silence set",), ("silence ended",)]


@pytest.mark.parametrize(
    "body",
    [
        {"matchers": {}, "reason": "r", "for_s": 1},
        {"matchers": {"pool": "mail"}, "for_s": 1},
        {"matchers": {"pool": "mail"}, "reason": "r"},
        {"matchers": {"colour": "red"}, "reason": "r", "for_s": 1},
        {"matchers": {"pool": "mail"}, "reason": "r", "until_s": NOW_S - 1},
        {"matchers": {"pool": "mail"}, "reason": "r", "for_s": 1e9},
    ],
)
async def test_a_silence_of_everything_for_ever_or_without_a_reason_is_refused(
    client: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    assert (await client.put("/v1/silences/x", json=body)).status_code == 422


def test_a_condition_has_to_hold_for_its_time_without_a_break() -> None:
    pending: dict[IncidentKey, float] = {}
    for now_s, holds in ((0.0, True), (30.0, False), (40.0, True), (99.0, True)):
        found = {LATE: CONDITION} if holds else {}
        pending = pending_since(pending, found, now_s=now_s)
        assert not changed(found, pending, (), (), now_s=now_s).opened
    pending = pending_since(pending, [LATE], now_s=100.0)
    assert changed({LATE: CONDITION}, pending, (), (), now_s=100.0).opened == {LATE: (40.0, CONDITION)}


def test_a_silence_takes_every_label_it_names() -> None:
    labels = {"pool": "mail", "rule": "pool_late"}
    assert is_silenced({"pool": "mail"}, labels)
    assert not is_silenced({"pool": "mail", "rule": "jobs_lost"}, labels)
    assert not is_silenced({}, labels)
