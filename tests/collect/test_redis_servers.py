"""A Redis behind TLS, sentinels or a cluster: real servers, and a real failover of each."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from collect.collecting import collecting
from collect.rq_jobs import Rq, work
from headway.collect.celery.celery_source import CelerySource
from headway.collect.redis_client import connect, refusals
from headway.collect.rq.rq_source import RqSource
from headway.connections import Connection
from headway.control.auth.pki import Pair, make_ca, make_server, write_pair
from headway.errors import Unavailable
from headway.scaling.model import EventKind
from support.faulty_proxy import FaultyProxy
from support.valkeys import HOST, Cluster, Valkey, Watched, closing
from support.waiting import eventually

pytestmark = pytest.mark.e2e

SECRET = "se,cret@"
BACK_WITHIN_S = 30.0  # 5 s, where others do not keep the machine busy


# --- TLS --------------------------------------------------------------------------------------------------------------


class Encrypted:
    """A server behind TLS, whose certificate ``ca`` has signed."""

    def __init__(self, folder: Path) -> None:
        self.server = Valkey(folder)
        signer = make_ca("of the test")
        self.ca, self.other_ca = (self._file(folder / name, pair) for name, pair in
                                  (("ca", signer), ("other-ca", make_ca("of others"))))  # fmt: skip
        certificate = self._file(folder / "server", make_server(signer, [HOST]))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self.proxy = FaultyProxy(self.server.port, tls=context)
        self.url = f"rediss://{HOST}:{self.proxy.port}/0"

    @staticmethod
    def _file(path: Path, pair: Pair) -> Path:
        write_pair(pair, certificate=path.with_suffix(".crt"), key=path.with_suffix(".key"), is_replacing=False)
        return path.with_suffix(".crt")

    def close(self) -> None:
        self.proxy.close()
        self.server.close()


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[Encrypted]:
    with closing(Encrypted(tmp_path)) as made:
        yield made


def test_a_broker_that_speaks_tls_is_read_with_the_ca_of_its_certificate(encrypted: Encrypted) -> None:
    Rq(encrypted.server.url).queue().enqueue(work)
    source = RqSource(Connection(name="a", url=encrypted.url, ca_file=encrypted.ca), None)
    assert [(each.queue, each.waiting_jobs) for each in source.poll(1.0).samples] == [("a/mail", 1)]
    source.close()


@pytest.mark.parametrize("is_named", [True, False], ids=["the CA of others", "none named"])
def test_a_certificate_that_nobody_trusted_has_signed_is_refused_in_one_line(
    encrypted: Encrypted, *, is_named: bool
) -> None:
    Rq(encrypted.server.url).queue().enqueue(work)
    ca_file = encrypted.other_ca if is_named else None
    for opened in (RqSource, CelerySource):
        source = opened(Connection(name="a", url=encrypted.url, ca_file=ca_file), None)
        with pytest.raises(Unavailable, match="shows a certificate that is not trusted here") as caught:
            source.poll(1.0)
        assert "ca_file names those that signed it" in str(caught.value)
        assert "\n" not in str(caught.value)
        source.close()


# --- Sentinel ---------------------------------------------------------------------------------------------------------

WORKER = """
import os
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.broker_transport_options = {"master_name": "mymaster", "sentinel_kwargs": {"password": "sentinels"}}
app.conf.worker_hijack_root_logger = False
"""


class Shop:
    """An application of RQ and one of Celery behind the same sentinels, and both collectors."""

    def __init__(self, watched: Watched, folder: Path) -> None:
        password, sentinel_password = folder / "password", folder / "sentinel-password"
        password.write_text(SECRET)
        sentinel_password.write_text("sentinels")
        login = {"password_file": password, "sentinel_password_file": sentinel_password}
        self.watched = watched
        self.connections = [
            Connection(name="rq", url=watched.url, every_s=0.2, **login),
            Connection(name="shop", url=watched.url, library="celery", every_s=0.2, **login),
        ]
        self.client = connect(self.connections[0])
        broker = ";".join(f"sentinel://:{quote(SECRET)}@{HOST}:{each.port}" for each in watched.sentinels)
        self._env = {**os.environ, "BROKER_URL": broker}
        (folder / "shop.py").write_text(WORKER)
        self._folder = folder
        self.worker: subprocess.Popen[bytes] | None = None

    def send(self, name: str) -> None:
        """As Celery's own client does, which knows nothing of us."""
        script = f"import shop; shop.app.send_task('work', ({name!r},), queue='mail')"
        subprocess.run([sys.executable, "-c", script], cwd=self._folder, env=self._env, check=True, timeout=60)

    def work(self) -> None:
        argv = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-Q", "other", "--pool", "solo", "-l", "info"]
        with (self._folder / "log").open("ab") as log:
            self.worker = subprocess.Popen(argv, cwd=self._folder, env=self._env, stdout=log, stderr=log)

    def close(self) -> None:
        self.client.close()
        if self.worker is not None:
            self.worker.kill()
            self.worker.wait()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Servers and sentinels that want passwords, each its own."""
    with closing(Watched(tmp_path, password=SECRET, sentinel_password="sentinels")) as made:
        yield made


@pytest.fixture
def shop(watched: Watched, tmp_path: Path) -> Iterator[Shop]:
    with closing(Shop(watched, tmp_path)) as made:
        yield made


def test_a_server_that_was_away_for_longer_than_a_reply_may_take_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a connection that waited in the pool counted as a reply that is late, and it stayed there for ever."""
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr("headway.collect.reply_bounds.time", SimpleNamespace(monotonic=lambda: clock.now_s))
    with closing(Valkey(tmp_path)) as server:
        source = CelerySource(Connection(name="a", url=server.url, library="celery"), None)
        source.poll(1.0)
        server.kill()
        with pytest.raises(Unavailable):
            source.poll(2.0)
        server.start()
        clock.now_s = 60.0
        assert source.poll(3.0).samples == ()
        source.close()


def test_a_failover_by_sentinels_loses_nothing_and_counts_nothing_twice(
    shop: Shop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="headway.collect")
    rq = Rq(shop.watched.master.url.replace("//", f"//:{quote(SECRET)}@"))
    shop.send("first")
    shop.client.delete("mail")
    shop.work()
    with collecting(shop.connections, tmp_path / "state") as collected:
        collected.comes_to("shop/mail", 0)  # whatever comes now, came after this
        eventually(lambda: collected.activities)
        for _ in range(3):
            rq.queue().enqueue(work)
        rq.run(jobs=1)
        shop.send("second")
        collected.comes_to("rq/mail", 2)
        collected.comes_to("shop/mail", 1)
        before = shop.watched.master
        assert before.redis.wait(1, 5_000) == 1
        before.kill()
        eventually(lambda: shop.watched.is_failed_over_from(before))
        promoted_s = time.monotonic()
        for queue, waiting in (("rq/mail", 2), ("shop/mail", 1)):
            sample, at_s = eventually(lambda queue=queue: collected.since(queue, promoted_s))
            assert at_s - promoted_s <= BACK_WITHIN_S
            assert sample.waiting_jobs == waiting
        assert sample.oldest_age_s is not None, "the marks were lost"
        count = len(collected.activities)
        eventually(lambda: len(collected.activities) > count)  # the worker's heartbeats come from the new master
        Rq(shop.watched.master.url.replace("//", f"//:{quote(SECRET)}@")).queue().enqueue(work)
        collected.comes_to("rq/mail", 3)
    assert {each.waiting_jobs for each, _ in collected.samples["shop/mail"]} == {0, 1}
    waited = [each.waiting_jobs for each, _ in collected.samples["rq/mail"]]
    assert min(waited[waited.index(2) :]) == 2
    assert Counter(event.kind for event in collected.events) == {
        EventKind.ENQUEUED: 4,
        EventKind.STARTED: 1,
        EventKind.FINISHED: 1,
    }
    for name in ("rq", "shop"):
        lines = [
            each.message.split(" connection")[0] for each in caplog.records if f"connection={name}" in each.message
        ]
        assert [line for line in lines if line != "watching"] == ["broker lost", "broker back"]


def test_a_master_that_was_replaced_unawares_is_left(watched: Watched, shop: Shop, tmp_path: Path) -> None:
    """It was cut off from everybody but us: its connections stay whole, and what it holds is old."""
    other = Valkey(tmp_path, f'requirepass "{SECRET}"', password=SECRET)
    with closing(other), collecting(shop.connections, tmp_path / "state") as collected:
        watched.master.redis.sadd("rq:queues", "rq:queue:mail")
        collected.comes_to("rq/mail", 0)
        other.redis.sadd("rq:queues", "rq:queue:mail")
        other.redis.rpush("rq:queue:mail", "a", "b")
        watched.watch(other)
        collected.comes_to("rq/mail", 2)
        for each in watched.sentinels:  # who has no sentinel to ask goes on with the master that it knows
            each.process.send_signal(signal.SIGSTOP)
        other.redis.rpush("rq:queue:mail", "c")
        collected.comes_to("rq/mail", 3)


# --- Cluster ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def test_a_cluster_is_read_where_the_keys_are_through_moves_and_a_failover(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """RQ and Celery with a prefix that has a hash tag, whose slot moves to another node and whose node then dies."""
    caplog.set_level("INFO", logger="headway.collect")
    tag = cluster.tag_of(cluster.servers[0])
    connections = [
        Connection(name="rq", url=cluster.url, prefix=tag, every_s=0.2),
        Connection(name="shop", url=cluster.url, prefix=tag, library="celery", every_s=0.2),
    ]
    owner = cluster.owner(tag).redis
    owner.sadd(f"{tag}:queues", f"{tag}:queue:mail")
    owner.rpush(f"{tag}:queue:mail", "a", "b")
    owner.sadd(f"{tag}_kombu.binding.mail", "mail\x06\x16\x06\x16mail")
    owner.lpush(f"{tag}mail", "{}")
    with collecting(connections, tmp_path / "state") as collected:
        collected.comes_to("rq/mail", 2)
        collected.comes_to("shop/mail", 1)
        cluster.move(tag, cluster.servers[0], cluster.servers[1], half_way=lambda: time.sleep(1.0))
        cluster.owner(tag).redis.rpush(f"{tag}:queue:mail", "c")
        collected.comes_to("rq/mail", 3)
        cluster.move(tag, cluster.servers[1], cluster.servers[0])
        cluster.owner(tag).redis.lpush(f"{tag}mail", "{}")
        collected.comes_to("shop/mail", 2)
        assert cluster.servers[0].redis.wait(1, 5_000) == 1
        cluster.servers[0].kill()
        eventually(lambda: cluster.owner(tag) is cluster.servers[3])
        promoted_s = time.monotonic()
        for queue in ("rq/mail", "shop/mail"):
            _, at_s = eventually(lambda queue=queue: collected.since(queue, promoted_s))
            assert at_s - promoted_s <= BACK_WITHIN_S
    for queue, least in (("rq/mail", 2), ("shop/mail", 1)):
        assert min(each.waiting_jobs for each, _ in collected.samples[queue]) == least
    assert Counter(event.kind for event in collected.events) == {}
    assert "queue unreadable" not in caplog.text


@pytest.mark.parametrize(
    ("url", "more", "says"),
    [
        ("redis+cluster://h", {}, "needs a prefix with a hash tag, as {jobs}: a queue library runs on a cluster only "),
        ("redis+cluster://h", {"prefix": "a{}b"}, "needs a prefix with a hash tag"),
        ("redis+cluster://h/1", {"prefix": "{a}"}, "a cluster has no databases; expected "),
        ("redis+sentinel://h:1,:2/m", {}, "a host is missing; expected "),
        ("redis+sentinel://h:1,i:2", {}, "the master's name is missing; expected "),
        ("redis+sentinel://h/m/x", {}, "the database is no number; expected "),
        ("redis+sentinel://h/m?db=1", {}, "it takes no '?' and no '#'; expected "),
        ("redis+sentinel://h/m", {"ca_file": Path("/ca")}, "ca_file needs a URL that begins with rediss"),
        ("redis://h", {"sentinel_password_file": Path("/p")}, "sentinel_password_file needs a URL that begins with "),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(url: str, more: dict, says: str) -> None:
    (refusal,) = refusals(Connection(name="a", url=url, **more))
    assert says in refusal
