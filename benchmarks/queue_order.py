"""In what order real workers take from two queues, and what deciding and predicting make of it.

    python benchmarks/queue_order.py [--only rq/in_turn …] [--workers 4] [--urgent 50] [--bulk 60] [--page FILE]

For each library and order: workers are up, ``bulk`` jobs of 0.5 s enter one queue, and then ``urgent`` jobs of 0.02 s
the other. The 99th percentile of the waits of each queue is measured in the workers, and stands beside the wait that is
predicted for a job which comes last, and the workers that deciding asks for so that each queue keeps its objective
(urgent 2 s, bulk 30 s). Predictions are for the workers that run, not for those that are asked for.

A machine without RabbitMQ's packages leaves Celery on RabbitMQ out, and says so.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from options import positive_count
from ordered_jobs import BROKER, BULK, LIBRARY, QUORUM, STRATEGY, URGENT, WAITS

from headway.scaling.decide import decide
from headway.scaling.metrics.behaviour import nearest_rank
from headway.scaling.model import Memory, Objective, QueueMetrics, QueueOrder
from headway.scaling.profile import Profile
from headway.scaling.view import PoolView

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.rabbitmq import RabbitServer
from support.valkeys import Valkey
from support.waiting import eventually

HERE = Path(__file__).parent
TAKES_S = {URGENT: 0.02, BULK: 0.5}
TARGET_S = {URGENT: 2.0, BULK: 30.0}
START_WITHIN_S = 120.0
DONE_WITHIN_S = 300.0
PAGE = """\
# Queues of one pool: decided, predicted, measured

{workers} workers of one job at a time are up. {bulk} jobs of {takes[bulk]} s enter the queue `bulk`, whose objective is
{target[bulk]:g} s. Then {urgent} jobs of {takes[urgent]} s enter the queue `urgent`, with {target[urgent]:g} s.

- *Decided* is how many workers the pool is to have at that moment, so that both queues keep their objectives.
- *Predicted* is the wait of a job that comes last, with the {workers} workers that run. *p99* is what workers measured.
  An order by arrival, or an unknown one, is calculated as the order that promises least: a job may wait so long.
  Between two jobs of a worker {dispatch[rq]} s are assumed for RQ, which forks, and {dispatch[celery]} s for others.
- *Starts* are the first letters of the queues from which jobs started, after the first {first} starts.

{table}

{conditions}.
One run per row. Written by `python benchmarks/queue_order.py --page docs/why/queue-order.md`; do not edit.

[How it is calculated](demand.md#several-queues-in-one-pool).
"""
DISPATCH_S = {"rq": 0.05, "celery": 0.01, "dramatiq": 0.01}  # RQ forks a process per job


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One library with the options that set its order."""

    name: str
    library: str
    order: QueueOrder | None
    argv: Sequence[str]
    """Of one worker, without its program. ``{broker}`` is the broker's URL, ``{number}`` the worker's."""
    ready: str
    strict_queues: Sequence[str] = (URGENT, BULK)
    strategy: str = ""
    is_on_rabbitmq: bool = False


def _rq(name: str, order: QueueOrder, *words: str) -> Case:
    argv = ("rq.cli", "worker", "--url", "{broker}", *words, URGENT, BULK)
    return Case(name=f"rq/{name}", library="rq", order=order, argv=argv, ready="Listening on")


def _celery(name: str, order: QueueOrder, strategy: str, *, is_on_rabbitmq: bool = False, **values: Any) -> Case:
    broker = "rabbitmq" if is_on_rabbitmq else "redis"
    words = ("--queues", f"{URGENT},{BULK}", "--concurrency", "1", "--prefetch-multiplier", "1", "-O", "fair")
    quiet = ("--without-mingle", "--without-gossip", "--hostname", "worker-{number}@%h", "--loglevel", "INFO")
    return Case(
        name=f"celery-{broker}/{name}",
        library="celery",
        order=order,
        argv=("celery", "--app", "ordered_jobs", "worker", *words, *quiet),
        ready=" ready.",
        strategy=strategy,
        is_on_rabbitmq=is_on_rabbitmq,
        **values,
    )


CASES = (
    _rq("strict", QueueOrder.STRICT),
    _rq("in_turn", QueueOrder.IN_TURN, "--dequeue-strategy", "round_robin"),
    _rq("random", QueueOrder.RANDOM, "--dequeue-strategy", "random"),
    _celery("round_robin", QueueOrder.IN_TURN, "round_robin"),
    _celery("sorted", QueueOrder.STRICT, "sorted", strict_queues=(BULK, URGENT)),
    _celery("priority", QueueOrder.STRICT, "priority"),
    _celery("classic", QueueOrder.BY_ARRIVAL, "", is_on_rabbitmq=True),
    _celery("quorum", QueueOrder.BY_ARRIVAL, QUORUM, is_on_rabbitmq=True),
    Case(
        name="dramatiq/default",
        library="dramatiq",
        order=None,
        argv=("dramatiq", "ordered_jobs", "--queues", URGENT, BULK, "--processes", "1", "--threads", "1"),
        ready="Worker process is ready for action",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one case came to. Workers are counted in all, waits in seconds."""

    case: str
    order: str
    workers: int
    urgent_jobs: int
    bulk_jobs: int
    decided_workers: int
    urgent_predicted_s: float
    urgent_p99_s: float
    bulk_predicted_s: float
    bulk_p99_s: float
    sequence: str
    """The first jobs that started after all had entered: ``u`` and ``b``."""


def measured(
    case: Case, broker: str, folder: Path, *, workers: int, jobs: Mapping[str, int]
) -> list[tuple[str, float]]:
    """The queue and the wait of each job, in the order in which they began."""
    waits = folder / "waits"
    environment = {
        **os.environ,
        LIBRARY: case.library,
        BROKER: broker,
        STRATEGY: case.strategy,
        WAITS: str(waits),
        "PYTHONPATH": str(HERE),
        "PYTHONUNBUFFERED": "1",
    }
    with ExitStack() as running:
        for number in range(workers):
            running.enter_context(_worker(case, broker, folder / f"worker-{number}.log", number, environment))
        subprocess.run(
            [sys.executable, __file__, "--enter", case.name, json.dumps(jobs)],
            env=environment,
            check=True,
            timeout=START_WITHIN_S,
        )
        total = sum(jobs.values())
        eventually(lambda: waits.exists() and waits.read_text().count("\n") >= total, within_s=DONE_WITHIN_S)
    rows = [line.split() for line in waits.read_text().splitlines()]
    return [(queue, float(waited)) for queue, waited in rows]


@contextmanager
def _worker(case: Case, broker: str, log: Path, number: int, environment: Mapping[str, str]) -> Iterator[None]:
    words = [each.format(broker=broker, number=number) for each in case.argv]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *words], env=environment, cwd=HERE, stdout=output, stderr=output
        )
    try:
        eventually(lambda: case.ready in log.read_text(), within_s=START_WITHIN_S)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        process.kill()


def enter(case: Case, jobs: Mapping[str, int]) -> None:
    """Send the jobs, those of ``bulk`` first. Runs in a process with the application's environment."""
    for queue in (BULK, URGENT):
        send = _sender(case, queue)
        for _ in range(jobs[queue]):
            send(queue, TAKES_S[queue], time.time())


def _sender(case: Case, queue: str) -> Callable[..., Any]:
    import ordered_jobs

    if case.library == "rq":
        import redis
        from rq import Queue

        connected = Queue(queue, connection=redis.Redis.from_url(os.environ[BROKER]))
        return lambda *given: connected.enqueue(ordered_jobs.run, *given)
    if case.library == "celery":
        return lambda *given: ordered_jobs.task.apply_async(given, queue=queue)
    return ordered_jobs.actors[queue].send


def view_of(case: Case, jobs: Mapping[str, int], *, workers: int) -> PoolView:
    """What a control plane would see the moment after all jobs have entered."""
    queues = tuple(
        QueueMetrics(
            queue=f"broker/{queue}",
            sampled_at_s=0.0,
            waiting_jobs=jobs[queue] - (workers if queue == BULK else 0),
            in_flight_jobs=workers if queue == BULK else 0,
            oldest_age_s=0.0,
            service_time_s=TAKES_S[queue],
        )
        for queue in (URGENT, BULK)
    )
    profile = Profile(
        pool="ordered",
        queues=tuple(each.queue for each in queues),
        template="ordered",
        objective=Objective(target_s=TARGET_S[BULK]),
        member_objectives={f"broker/{URGENT}": Objective(target_s=TARGET_S[URGENT])},
        workers_max=1000,
    )
    return PoolView(
        profile=profile,
        queues=queues,
        queue_order=case.order,
        strict_queues=tuple(case.strict_queues),
        capacity_workers=1000,
        running_workers=workers,
        assigned_workers=workers,
        start_up_s=1.0,
        dispatch_overhead_s=DISPATCH_S[case.library],
    )


def figures_of(case: Case, found: Sequence[tuple[str, float]], *, workers: int, jobs: Mapping[str, int]) -> Figures:
    """The row of a case."""
    view = view_of(case, jobs, workers=workers)
    decision, _ = decide(view, Memory(target_workers=workers), now_s=0.0)
    predicted_s = {each.queue.partition("/")[2]: each.predicted_pickup_s for each in decision.member_pickups}
    p99_s = {queue: nearest_rank(sorted(wait for each, wait in found if each == queue), 0.99) for queue in jobs}
    return Figures(
        case=case.name,
        order="unknown" if case.order is None else case.order.value,
        workers=workers,
        urgent_jobs=jobs[URGENT],
        bulk_jobs=jobs[BULK],
        decided_workers=decision.target_workers,
        urgent_predicted_s=round(predicted_s[URGENT], 2),
        urgent_p99_s=round(p99_s[URGENT], 2),
        bulk_predicted_s=round(predicted_s[BULK], 2),
        bulk_p99_s=round(p99_s[BULK], 2),
        sequence="".join(queue[0] for queue, _ in found[2 * workers :][:40]),
    )


def main() -> int:
    """Run the cases. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="cases, as rq/in_turn")
    parser.add_argument("--workers", type=positive_count, default=4)
    parser.add_argument("--urgent", type=positive_count, default=50, help="jobs")
    parser.add_argument("--bulk", type=positive_count, default=60, help="jobs")
    parser.add_argument("--page", type=Path, help="write the table and its conditions here")
    parser.add_argument("--enter", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    by_name = {case.name: case for case in CASES}
    if given.enter:
        enter(by_name[given.enter[0]], json.loads(given.enter[1]))
        return 0
    if unknown := sorted(set(given.only) - by_name.keys()):
        parser.error(f"{', '.join(unknown)}: not among {', '.join(by_name)}")
    jobs = {BULK: given.bulk, URGENT: given.urgent}
    load_before, rows = os.getloadavg()[0], []
    for case in [case for case in CASES if not given.only or case.name in given.only]:
        try:
            row = _run(case, workers=given.workers, jobs=jobs)
        except pytest.skip.Exception as reason:
            print(f"{case.name}: left out: {reason}")
            continue
        print(json.dumps(asdict(row)), flush=True)
        rows.append(row)
    if given.page and rows:
        loads = sorted((load_before, os.getloadavg()[0]))
        given.page.write_text(page_of(rows, conditions=_conditions(loads)))
    return 0


def page_of(rows: Sequence[Figures], *, conditions: str) -> str:
    """The page of a run."""
    one = rows[0]
    head = ("library", "order", "decided", "urgent predicted", "urgent p99", "bulk predicted", "bulk p99", "starts")
    cells = [
        (
            each.case,
            each.order.replace("_", " "),
            str(each.decided_workers),
            *(
                f"{s:.2f} s"
                for s in (each.urgent_predicted_s, each.urgent_p99_s, each.bulk_predicted_s, each.bulk_p99_s)
            ),
            f"`{each.sequence}`",
        )
        for each in rows
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *cells))
    return PAGE.format(
        workers=one.workers,
        urgent=one.urgent_jobs,
        bulk=one.bulk_jobs,
        takes=TAKES_S,
        target=TARGET_S,
        table=table,
        conditions=conditions,
        dispatch=DISPATCH_S,
        first=2 * one.workers,
    )


def _conditions(loads: Sequence[float]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("rq", "celery", "kombu", "dramatiq"))
    machine = f"{os.cpu_count()} cores, load {loads[0]:.0f} to {loads[1]:.0f}"
    return f"{versions}, Valkey and RabbitMQ 3.10 on the same machine, {machine}"


def _run(case: Case, *, workers: int, jobs: Mapping[str, int]) -> Figures:
    with tempfile.TemporaryDirectory() as name, _broker(case, Path(name)) as broker:
        found = measured(case, broker, Path(name), workers=workers, jobs=jobs)
    return figures_of(case, found, workers=workers, jobs=jobs)


@contextmanager
def _broker(case: Case, folder: Path) -> Iterator[str]:
    """A broker of this case alone."""
    if not case.is_on_rabbitmq:
        valkey = Valkey(folder)
        try:
            yield valkey.url
        finally:
            valkey.kill()
        return
    server = RabbitServer(folder / "rabbitmq")
    try:
        server.start()
        yield server.url
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
