"""Which queues are levels of Celery's delayed delivery, with and without a prefix."""

import json

import pytest

from headway.collect.celery.delay_chains import PREFIXES_MAX, DelayChains, DelayQueue, delay_queue
from headway.collect.rabbitmq.management_api import ListedQueue
from headway.scaling.model.due_jobs import delayed_from


def listed(name: str, *, ttl_ms: int | None = None, exchange: str | None = None) -> ListedQueue:
    return ListedQueue(
        name=name,
        kind="quorum",
        is_transient=False,
        ready_jobs=0,
        unacked_jobs=0,
        state="running",
        expires_after_ms=ttl_ms,
        dead_letter_exchange=exchange,
    )


def chain_of(*prefixes: str, levels: int = 28) -> DelayChains:
    """Chains whose queues were listed as kombu declares them."""
    chains = DelayChains()
    for prefix in prefixes:
        for level in range(levels):
            after = f"{prefix}_celery_delayed_{level - 1 if level else 'delivery'}"
            queue = listed(f"{prefix}_celery_delayed_{level}", ttl_ms=1_000 * 2**level, exchange=after)
            assert chains.accepts(queue)
    return chains


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("celery_delayed_0", DelayQueue("", 0)),
        ("celery_delayed_27", DelayQueue("", 27)),
        ("eu_celery_delayed_27", DelayQueue("eu", 27)),
        ("a_celery_delayed_1_celery_delayed_2", DelayQueue("a_celery_delayed_1", 2)),
        ("celery_delayed_28", None),
        ("celery_delayed_07", None),
        ("_celery_delayed_7", None),
        ("eucelery_delayed_7", None),
        ("eu_celery_delayed_7_old", None),
        ("eu_celery_delayed_delivery", None),
        ("celery_delayed_delivery", None),
        ("mail", None),
    ],
)
def test_the_name_of_a_level_has_its_prefix_and_its_bit(name: str, level: DelayQueue | None) -> None:
    assert delay_queue(name) == level
    assert level is None or level.name == name


@pytest.mark.parametrize(
    ("ttl_ms", "exchange"),
    [
        (None, None),
        (8_000, None),
        (8_000, "celery_delayed_2"),  # the chain of no prefix
        (8_000, "eu_celery_delayed_4"),
        (9_000, "eu_celery_delayed_2"),
    ],
)
def test_a_queue_with_a_prefix_and_other_arguments_is_one_of_jobs(ttl_ms: int | None, exchange: str | None) -> None:
    chains = chain_of("eu")
    assert chains.level("eu_celery_delayed_3") == DelayQueue("eu", 3)
    assert not chains.accepts(listed("eu_celery_delayed_3", ttl_ms=ttl_ms, exchange=exchange))
    assert chains.level("eu_celery_delayed_3") is None


def test_a_chain_without_a_prefix_is_known_by_its_names() -> None:
    """Without the management API, nobody shows arguments."""
    assert DelayChains().level("celery_delayed_7") == DelayQueue("", 7)
    assert DelayChains().level("eu_celery_delayed_7") is None


def test_chains_side_by_side_are_learned_apart_and_due_together() -> None:
    chains = chain_of("eu", "us")
    plain, eu, us = (DelayQueue(prefix, 7) for prefix in ("", "eu", "us"))
    for at_s, counts in ((10.0, {plain: 0, eu: 0, us: 0}), (20.0, {eu: 5}), (50.0, {plain: 1, us: 2})):
        chains.see(counts, at_s=at_s)
    chains = DelayChains(*json.loads(json.dumps(chains.to_state())))  # another collector goes on
    due = chains.due({plain: 1, eu: 5, us: 2}, at_s=60.0)
    assert due is not None
    assert [(round(each.due_in_s), each.jobs) for each in delayed_from(due)] == [(10 + 128 - 60, 5 + 1 + 2)]
    assert chains.level("us_celery_delayed_7") == us
    chains.forget_except(["eu_celery_delayed_7"])
    assert (chains.level("us_celery_delayed_7"), chains.level("eu_celery_delayed_7")) == (None, eu)


def test_with_more_prefixes_than_are_read_nobody_knows_when_jobs_are_due() -> None:
    prefixes = [f"p{number}" for number in range(PREFIXES_MAX + 1)]
    chains = chain_of(*prefixes, levels=1)
    levels = {DelayQueue(prefix, 0): 1 for prefix in prefixes}
    chains.see(levels, at_s=1.0)
    assert chains.due(levels, at_s=1.0) is None
    chains.forget_except([DelayQueue(prefix, 0).name for prefix in prefixes[1:]])
    chains.see(dict(list(levels.items())[1:]), at_s=2.0)
    assert chains.due(dict(list(levels.items())[1:]), at_s=2.0) is not None
