"""What brokers say of workers that are kept from taking jobs, by the libraries' own commands."""

from pathlib import Path

from rq.suspension import resume, suspend

from collect.collecting import collecting
from collect.rq_jobs import Rq, Watch, work
from headway.collect.change_filter import ChangeFilter
from headway.collect.rq.rq_source import RqSource
from headway.connections import Connection
from headway.scaling.model import QueueSample, Suspension
from support.waiting import eventually


def said(watch: Watch) -> set[Suspension | None]:
    return {sample.suspension for sample in watch.poll_once().samples}


def test_rq_suspend_shows_in_every_queue_until_rq_resume(rq: Rq, watch: Watch) -> None:
    rq.queue().enqueue(work)
    rq.queue("news").enqueue(work)
    assert said(watch) == {Suspension.NONE}
    suspend(rq.redis)
    assert said(watch) == {Suspension.LIBRARY}
    resume(rq.redis)
    assert said(watch) == {Suspension.NONE}


def test_a_suspension_that_ends_by_itself_ends(rq: Rq, watch: Watch) -> None:
    """`rq suspend --duration`."""
    rq.queue().enqueue(work)
    suspend(rq.redis, ttl=1)
    assert said(watch) == {Suspension.LIBRARY}
    eventually(lambda: said(watch) == {Suspension.NONE})


def test_a_key_prefix_changes_nothing_of_it(rq: Rq, valkey_url: str) -> None:
    """RQ writes and reads the very key, whatever ``RQ_KEY_PREFIX`` is."""
    rq.redis.sadd("shop:queues", "shop:queue:mail")
    suspend(rq.redis)
    source = RqSource(Connection(name="redis", url=valkey_url, prefix="shop"), None)
    (sample,) = source.poll(1.0).samples
    assert (sample.queue, sample.suspension) == ("redis/mail", Suspension.LIBRARY)


def test_a_login_that_may_not_read_the_key_does_not_know(rq: Rq, valkey_url: str) -> None:
    rq.queue().enqueue(work)
    others = ("~rq:queue*", "~rq:wip:*", "~rq:w*", "~rq:finished:*", "~rq:failed:*", "~rq:job:*", "~rq:scheduled:*")
    rq.redis.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "+@all", "resetkeys", *others)
    try:
        assert said(Watch(f"{valkey_url}&username=reader&password=secret")) == {None}
    finally:
        rq.redis.execute_command("ACL", "DELUSER", "reader")


def test_a_change_is_sent_at_once() -> None:
    """Nothing else of the queue has changed, and nothing waits there."""
    news = ChangeFilter()
    before, after = (
        QueueSample(queue="redis/mail", at_s=at_s, waiting_jobs=0, suspension=suspension)
        for at_s, suspension in ((1.0, Suspension.NONE), (1.1, Suspension.LIBRARY))
    )
    news.sent([before], [], at_s=1.0)
    assert news.due([after], [], at_s=1.1) == ([after], [])


def test_a_collector_sends_it_within_a_poll(rq: Rq, valkey_url: str, tmp_path: Path) -> None:
    rq.queue().enqueue(work)
    with collecting([Connection(name="redis", url=valkey_url)], tmp_path) as collected:
        collected.comes_to("redis/mail", 1)
        for act, expected in ((suspend, Suspension.LIBRARY), (resume, Suspension.NONE)):
            act(rq.redis)
            eventually(lambda expected=expected: collected.samples["redis/mail"][-1][0].suspension is expected)
