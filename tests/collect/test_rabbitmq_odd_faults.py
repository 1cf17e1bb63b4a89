"""What a RabbitMQ may hold that nobody expects: names that are hardly text, bodies that are none, clocks that differ.

It takes no name that is not UTF-8, and removes line breaks from names.
"""

import time
from functools import partial

import amqp
import pytest

from collect.rabbit_shop import Shop
from headway.collect.celery.celery_on_rabbitmq import CeleryOnRabbitmq
from headway.scaling.model import QueueSample
from support.waiting import eventually

pytestmark = pytest.mark.e2e

NAMES = {
    "a\x00b": "a?b",
    "né \U0001f407": "né \U0001f407",
    " ": " ",
    "../..": "../..",
    "%2F": "%2F",
    '"\\': '"\\',
    "a" * 255: "a" * 255,
}
"""Queue -> how it is reported."""


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_faults_of_a_name_stay_with_its_queue(shop: Shop, name: str) -> None:
    shop.declare("mail")
    shop.publish("mail", 3)
    shop.declare(name)
    shop.publish(name)
    shown = NAMES[name]
    for _ in range(2):
        assert shop.counts() == {"mail": (3, 0), shown: (1, 0)}
    shop.channel.queue_delete(name)
    assert shop.counts() == {"mail": (3, 0), shown: (0, 0)}


def test_faults_of_a_body_are_not_seen_and_a_purged_queue_is_empty(shop: Shop) -> None:
    """A body is never read."""
    shop.declare("mail")
    source = CeleryOnRabbitmq(shop.connection(library="celery"), None)
    for body in ("{", b"\xff\x00", "", '{"headers": {"eta": "never"}}'):
        shop.channel.basic_publish_confirm(
            amqp.Message(body, content_type="application/json", application_headers={"eta": "\x00", "retries": -1}),
            routing_key="mail",
        )

    def sample() -> QueueSample:
        (found,) = source.poll(time.time()).samples
        return found

    assert (sample().waiting_jobs, sample().in_flight_min_jobs) == (4, 0)
    shop.channel.queue_purge("mail")
    assert (sample().waiting_jobs, sample().oldest_age_s) == (0, 0.0)
    shop.channel.queue_delete("mail")
    assert sample().waiting_jobs == 0
    shop.declare("mail")
    shop.publish("mail", 2)
    assert sample().waiting_jobs == 2
    source.close()


def test_faults_of_clocks_make_no_job_young(shop: Shop) -> None:
    """A publisher's clock that is 60 s ahead: for a minute, whatever waits would have no age."""
    shop.declare("ahead")
    shop.declare("behind")
    now_s = int(time.time())
    for queue, off_s in (("ahead", 60), ("behind", -60)):
        shop.publish(queue, timestamp=now_s + off_s)
    for queue, off_s in (("ahead", 60), ("behind", -60)):
        eventually(partial(_is_head_known, shop, queue, now_s + off_s))
    for after_s in (6, 12):
        found = shop.samples(now_s + after_s)
        assert (found["ahead"].waiting_jobs, found["ahead"].oldest_age_s) == (1, None)
        assert found["behind"].oldest_age_max_s == 60.0 + after_s


def _is_head_known(shop: Shop, queue: str, head_s: int) -> bool:
    return shop.server.head_time_s(shop.vhost, queue) == head_s
