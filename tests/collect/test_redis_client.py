"""Connections to a Redis: passwords from files, certificates, and which of RQ's queues and keys are read."""

from pathlib import Path

import pytest

from collect.rq_jobs import Rq, work
from headway.collect.rq.rq_source import RqSource
from headway.connections import Connection
from headway.errors import Misconfigured, Unavailable


def names(connection: Connection, cursor: dict | None = None) -> list[str]:
    return [sample.queue for sample in RqSource(connection, cursor).poll(1.0).samples]


def test_the_password_of_a_file_logs_in_and_a_changed_one_serves_soon(rq: Rq, tmp_path: Path) -> None:
    rq.queue().enqueue(work)
    file = tmp_path / "password"
    file.write_text("se,cret@\n")
    connection = Connection(name="a", url=rq.url.replace("?", "?username=app&"), password_file=file)
    rq.redis.acl_setuser("app", enabled=True, passwords=["+se,cret@"], keys=["*"], commands=["+@all"])
    source = RqSource(connection, None)
    assert [sample.queue for sample in source.poll(1.0).samples] == ["a/mail"]
    rq.redis.acl_setuser("app", enabled=True, reset=True, passwords=["+other"], keys=["*"], commands=["+@all"])
    rq.redis.client_kill_filter(_type="normal", skipme=True)
    with pytest.raises(Unavailable, match="refuses the login") as caught:
        source.poll(2.0)
    assert "se,cret" not in str(caught.value)
    file.unlink()
    with pytest.raises(Unavailable, match="refuses the login"):
        source.poll(3.0)
    file.write_text("other")
    with pytest.raises(Unavailable, match="refuses the login"):
        source.poll(4.0)
    assert [sample.queue for sample in source.poll(5.0).samples] == ["a/mail"]
    file.unlink()
    with pytest.raises(Misconfigured, match=r"password_file .* cannot be read: No such file"):
        names(connection)
    rq.redis.acl_deluser("app")


def test_only_the_queues_that_a_connection_names_and_does_not_exclude_are_read(rq: Rq) -> None:
    for queue in ("mail", "m-1", "m-2", "news"):
        rq.queue(queue).enqueue(work)
    connection = Connection(name="a", url=rq.url, queues=("mail", "m-*"), exclude=("m-2",))
    assert sorted(names(connection)) == ["a/m-1", "a/mail"]
    assert [queue.name for queue in RqSource(connection, None).discover()] == ["m-1", "mail"]


def test_a_queue_that_is_excluded_later_is_unknown_and_not_empty(rq: Rq) -> None:
    rq.queue().enqueue(work)
    rq.queue("news").enqueue(work)
    source = RqSource(Connection(name="a", url=rq.url), None)
    source.poll(1.0)
    assert names(Connection(name="a", url=rq.url, exclude=("news",)), source.cursor()) == ["a/mail"]


def test_keys_with_another_prefix_are_those_of_another_rq(rq: Rq) -> None:
    rq.queue().enqueue(work)
    rq.redis.sadd("acme:{1}:queues", "acme:{1}:queue:shop")
    rq.redis.rpush("acme:{1}:queue:shop", "a", "b")
    source = RqSource(Connection(name="a", url=rq.url, prefix="acme:{1}"), None)
    assert [(sample.queue, sample.waiting_jobs) for sample in source.poll(1.0).samples] == [("a/shop", 2)]
    assert names(Connection(name="a", url=rq.url)) == ["a/mail"]
