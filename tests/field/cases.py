"""The situations of the field as values: how somebody runs the workers of one pool."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from field.pairwise import pairwise, rows_of


class Broker(StrEnum):
    """What keeps the queue."""

    REDIS = "redis"
    RABBITMQ = "rabbitmq"


class Workers(StrEnum):
    """How a library runs the jobs of one worker."""

    PREFORK_1 = "prefork-1"
    PREFORK_4 = "prefork-4"
    THREADS = "threads"
    GEVENT = "gevent"
    SOLO = "solo"
    RQ_FORKING = "rq-forking"
    RQ_SIMPLE = "rq-simple"
    DRAMATIQ = "dramatiq"


class Acks(StrEnum):
    """When a worker acknowledges a job: as the job begins, or after its end."""

    EARLY = "early"
    LATE = "late"


class Queues(StrEnum):
    """What is in the broker beside the first queue of the pool."""

    ONE = "one-queue"
    TWO = "two-queues"
    """A second queue, which the pool does not serve."""
    TWO_IN_POOL = "two-in-pool"
    """A second queue of the same pool."""


class Wrapper(StrEnum):
    """What stands between the agent and the worker."""

    NONE = "direct"
    SH = "sh"
    BASH = "bash"
    NPM = "npm"


CELERY = (Workers.PREFORK_1, Workers.PREFORK_4, Workers.THREADS, Workers.GEVENT, Workers.SOLO)
RQ = (Workers.RQ_FORKING, Workers.RQ_SIMPLE)
SINGLE = (Workers.PREFORK_1, Workers.SOLO, *RQ)
"""One job at a time."""
SLOTS = 4
"""Jobs that a worker of all others runs at once."""
WRAPPERS = (Wrapper.SH, Wrapper.BASH, Wrapper.NPM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The workers of one pool."""

    workers: Workers
    broker: Broker = Broker.REDIS
    acks: Acks = Acks.LATE
    queues: Queues = Queues.ONE
    has_reporter: bool = False
    has_heartbeat: bool = True
    """Whether a Celery worker publishes heartbeats."""
    wrapper: Wrapper = Wrapper.NONE

    def __post_init__(self) -> None:
        assert not self.has_reporter or (self.is_celery and self.wrapper is Wrapper.NONE), "nothing loads a reporter"
        assert self.broker is (Broker.RABBITMQ if self.workers is Workers.DRAMATIQ else self.broker)
        assert self.workers not in RQ or self.broker is Broker.REDIS

    @property
    def is_celery(self) -> bool:
        """Whether the library is Celery."""
        return self.workers in CELERY

    @property
    def library(self) -> str:
        """The library, as Headway names it."""
        return "celery" if self.is_celery else "rq" if self.workers in RQ else "dramatiq"

    @property
    def name(self) -> str:
        """The name of the pool and of its template."""
        words = [self.workers, self.broker, self.queues]
        if self.is_celery:
            words += [self.acks, "reporter" if self.has_reporter else "no-reporter"]
            words += [] if self.has_heartbeat else ["no-heartbeat"]
        words += [] if self.wrapper is Wrapper.NONE else [f"in-{self.wrapper}"]
        return "-".join(words)

    @property
    def slots(self) -> int:
        """Jobs that one worker runs at once."""
        return 1 if self.workers in SINGLE else SLOTS

    @property
    def is_idle_known(self) -> bool:
        """Whether somebody says of each idle worker that it is idle: its reporter, or its broker.

        A broker's record of a worker exists where RQ keeps one, and where heartbeats of Celery come over a Redis.
        """
        is_recorded = self.is_celery and self.broker is Broker.REDIS and self.has_heartbeat
        return self.has_reporter or is_recorded or self.workers in RQ

    @property
    def is_busy_known(self) -> bool:
        """Whether somebody says how many jobs a worker runs. The heartbeats of solo workers stop while a job runs."""
        return self.is_idle_known and (self.has_reporter or self.workers is not Workers.SOLO)


def celery_cases() -> list[Case]:
    """Every combination of Celery's own factors."""
    factors = {
        "workers": CELERY,
        "broker": tuple(Broker),
        "acks": tuple(Acks),
        "queues": tuple(Queues),
        "has_reporter": (True, False),
        "has_heartbeat": (True, False),
    }
    return [Case(**row) for row in rows_of(factors)]


def other_cases() -> list[Case]:
    """RQ and Dramatiq, with each kind of queues."""
    rq = [Case(workers=workers, queues=queues) for workers in RQ for queues in Queues]
    return [*rq, *(Case(workers=Workers.DRAMATIQ, broker=Broker.RABBITMQ, queues=queues) for queues in Queues)]


def wrapped_cases() -> list[Case]:
    """Workers behind a shell, a script or npm."""
    plain = [
        Case(workers=workers, broker=broker, acks=Acks.EARLY)
        for workers in (Workers.PREFORK_1, Workers.PREFORK_4)
        for broker in Broker
    ]
    dramatiq = Case(workers=Workers.DRAMATIQ, broker=Broker.RABBITMQ)
    plain += [Case(workers=Workers.RQ_FORKING), dramatiq]
    return [replace(case, wrapper=wrapper) for case in plain for wrapper in WRAPPERS]


def whole_matrix() -> list[Case]:
    """Every case, each name once."""
    cases = [*celery_cases(), *other_cases(), *wrapped_cases()]
    return list({case.name: case for case in cases}.values())


def selection() -> list[Case]:
    """A pairwise selection of Celery's cases, three of them behind wrappers; and a case per other kind of worker."""
    names = ("workers", "broker", "acks", "queues", "has_reporter", "has_heartbeat")
    rows = pairwise([{name: getattr(case, name) for name in names} for case in celery_cases()])
    others = [
        Case(workers=Workers.RQ_FORKING),
        Case(workers=Workers.RQ_SIMPLE, queues=Queues.TWO_IN_POOL),
        Case(workers=Workers.DRAMATIQ, broker=Broker.RABBITMQ),
    ]
    return [*_with_wrappers(Case(**row) for row in rows), *others]


def _with_wrappers(cases: Iterable[Case]) -> list[Case]:
    """The cases, each wrapper around one of those that have no reporter."""
    left = list(WRAPPERS)
    return [case if case.has_reporter or not left else replace(case, wrapper=left.pop(0)) for case in cases]
