"""In what order the workers of a command line take from their queues, by its options."""

from dataclasses import replace

import pytest

from headway.agent.config.commands.queue_orders import queue_order_of
from headway.scaling.model import QueueOrder
from support.workers import template

STRICT, IN_TURN, RANDOM, BY_ARRIVAL = QueueOrder
RQ = ("rq", "worker", "--with-scheduler")
SAFE = ("--worker-class", "headway.workers.rq.DrainingWorker")


@pytest.mark.parametrize(
    ("argv", "order", "queues"),
    [
        ((*RQ, "urgent", "bulk"), STRICT, ("urgent", "bulk")),
        ((*RQ, *SAFE, "bulk", "urgent"), STRICT, ("bulk", "urgent")),
        ((*RQ, "--dequeue-strategy", "default", "a", "b"), STRICT, ("a", "b")),
        ((*RQ, "-ds", "round_robin", "a", "b"), IN_TURN, ()),
        ((*RQ, "--dequeue-strategy=random", "a", "b"), RANDOM, ()),
        ((*RQ, "--dequeue-strategy", "newest", "a", "b"), None, ()),  # of a later version
        ((*RQ, "-w", "rq.worker.RoundRobinWorker", "a", "b"), IN_TURN, ()),
        ((*RQ, "-w", "rq.worker.RandomWorker", "a", "b"), RANDOM, ()),
        ((*RQ, "-w", "rq.SimpleWorker", "a", "b"), STRICT, ("a", "b")),
        ((*RQ, "-w", "shop.workers.OurWorker", "a", "b"), None, ()),
        (("python", "-m", "rq.cli", "worker", "a", "b"), STRICT, ("a", "b")),
        (("rq", "worker-pool", "a", "b", "-n", "3"), STRICT, ("a", "b")),
        (("celery", "-A", "shop", "worker", "-Q", "a,b"), None, ()),  # its application says
        (("dramatiq", "shop", "--queues", "a", "b"), None, ()),
        (("procrastinate", "--app", "shop.app", "worker", "--queues", "a,b"), BY_ARRIVAL, ()),
        (("php", "artisan", "queue:work", "redis", "--queue=a,b"), STRICT, ("a", "b")),
        (("php", "artisan", "queue:work", "redis", "--queue", "a,b"), STRICT, ("a", "b")),
        (("php", "artisan", "horizon"), None, ()),
        (("bundle", "exec", "sidekiq", "-q", "a", "-q", "b"), STRICT, ("a", "b")),
        (("sidekiq", "--queue", "a,2", "--queue", "b,1"), None, ()),  # chances that differ
        (("sidekiq", "-C", "config/sidekiq.yml", "-q", "a"), None, ()),
        (("sidekiq",), None, ()),
        (("php", "artisan", "queue:work", "--queue=a,,b"), None, ()),  # no name of a queue, and refused
        ((*RQ, *(f"queue-{number}" for number in range(101))), None, ()),
        ((*RQ, "a" * 501, "b"), None, ()),
        (("nice", "rq", "worker", "a", "b"), STRICT, ("a", "b")),
        (("nice", "-n", "5", "env", "A=b", "python", "-m", "rq.cli", "worker", "a", "b"), STRICT, ("a", "b")),
        (("poetry", "run", "rq", "worker", "a", "b"), STRICT, ("a", "b")),
        (("nice", "./worker.sh"), None, ()),
        (("./worker.sh",), None, ()),
        ((), None, ()),
    ],
)
def test_a_command_line_says_in_what_order_its_worker_takes_jobs(
    argv: tuple[str, ...], order: QueueOrder | None, queues: tuple[str, ...]
) -> None:
    assert queue_order_of(argv) == (order, queues)


def test_a_host_reports_the_order_of_each_template() -> None:
    reported = replace(template(), argv=(*RQ, "urgent", "bulk")).reported()
    assert (reported.queue_order, reported.strict_queues) == (STRICT, ("urgent", "bulk"))
    assert template().reported().queue_order is None
