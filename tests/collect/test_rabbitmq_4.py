"""RabbitMQ 4.0 is counted as 3.10 is, and gives each message of a classic queue its time."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collect import rabbit_shop
from collect.rabbit_shop import QUORUM, Shop
from support.rabbitmq import TRIXIE, RabbitServer
from support.waiting import eventually

pytestmark = pytest.mark.proof
QUORUM_LAG_S = 6.0
STAMPS = "message_interceptors.incoming.set_header_timestamp.overwrite = true\n"


@pytest.fixture
def shop(data_folder: Path) -> Iterator[Shop]:
    server = RabbitServer(data_folder / "rabbitmq-4", TRIXIE, config=STAMPS)
    try:
        server.start()
        with rabbit_shop.opened(server, "shop") as shop:
            yield shop
    finally:
        server.close()


def test_counts_and_ages_are_those_of_the_broker(shop: Shop) -> None:
    assert shop.server.api("GET", "overview")["rabbitmq_version"].startswith("4.0")
    shop.declare("mail")
    shop.declare("quorum", arguments=QUORUM)
    shop.samples()
    sent_s = time.time()
    shop.publish("mail", 5)  # without a timestamp of the publisher's own
    shop.publish("quorum", 5)
    eventually(lambda: {queue: waiting for queue, (waiting, _) in shop.counts().items()} == {"mail": 5, "quorum": 5})
    offset_s = iter(range(0, 10_000, 10))  # the source's own clock: it need not wait to ask again
    found = eventually(
        lambda: (each := shop.samples(time.time() + next(offset_s))["mail"]).oldest_age_s is not None and each
    )
    assert found.oldest_age_s <= found.at_s - sent_s <= found.oldest_age_max_s
    shop.channel.basic_get("mail")
    shop.channel.basic_get("quorum")
    eventually(lambda: shop.counts()["mail"] == (4, 1))
    eventually(lambda: shop.counts()["quorum"] == (4, 1))
    shop.channel.queue_delete("mail")
    eventually(lambda: shop.counts()["mail"] == (0, 0))


def test_own_answer_of_a_quorum_queue_is_sampled_6_s_late_at_most(shop: Shop) -> None:
    """Both counts rise with each step, so each value was true in one moment alone: that of its sample, less the lag."""
    shop.declare("mail", arguments=QUORUM)
    true_until_s: dict[tuple[str, int | None], float] = {}
    lags_s: list[float] = []
    until_s, step = time.monotonic() + 25.0, 0
    while (now_s := time.monotonic()) < until_s:
        true_until_s |= {("waiting", step): now_s, ("in flight", step): now_s}
        step += 1
        shop.publish("mail", 2)
        shop.channel.basic_get("mail")
        found = shop.samples().get("mail")
        if found is not None:  # the queue is in no list before its leader was counted for the first time
            seen_s, counts = time.monotonic(), (("waiting", found.waiting_jobs), ("in flight", found.in_flight_jobs))
            true_until_s |= {("waiting", step): seen_s, ("in flight", step): seen_s}
            lags_s += [seen_s - true_until_s[each] for each in counts]
    assert step > 25
    assert len(lags_s) > step
    assert max(lags_s) <= QUORUM_LAG_S


def test_a_restart_makes_nothing_zero_that_is_not(shop: Shop) -> None:
    shop.declare("mail")
    shop.declare("quorum", arguments=QUORUM)
    shop.publish("mail", 3, delivery_mode=2)
    shop.publish("quorum", 3)
    eventually(lambda: shop.counts() == {"mail": (3, 0), "quorum": (3, 0)})
    shop.server.kill()
    shop.server.start()
    until_s, seen = time.monotonic() + 10.0, []
    while time.monotonic() < until_s:
        seen.append({queue: waiting for queue, (waiting, _) in shop.counts().items()})
        time.sleep(0.05)
    assert seen[-1] == {"mail": 3, "quorum": 3}
    assert all(each.items() <= seen[-1].items() for each in seen), seen
