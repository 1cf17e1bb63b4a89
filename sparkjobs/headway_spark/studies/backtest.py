"""Many pools under many candidates at once: each rehearsal is `simulate`'s own, on the executors."""

import json
import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from random import Random

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it

from headway.errors import HeadwayError, Invalid, Unavailable
from headway.scaling.mapping import from_mapping
from headway.scaling.metrics.behaviour import Behaviour
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Zones
from headway.scaling.strategy import Strategy
from headway.simulate.engine.results import Result
from headway.simulate.studies.candidates import Candidate
from headway.simulate.studies.phases import phased
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from headway_spark.studies.bulk import interruptible

BACKTEST_TURNS_PER_CORE = 8  # so many tasks a core, or the last one would keep the others waiting
TICK_JOBS = 0.3  # an evaluation takes about as long as this many jobs do


Rehearsed = tuple[str, int]
"""A candidate's name and the number of the tick phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be rehearsed of the pools' jobs, and how."""

    profiles: Mapping[str, Profile]
    candidates: tuple[Candidate, ...]
    setting: Setting
    strategies: Mapping[str, Strategy]
    zones: Mapping[str, Zones] = field(default_factory=dict)
    """By pool, where a profile has schedules."""
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By pool, the seconds of its jobs that are rehearsed, from the first; all of them where it is not named."""
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By pool, the candidates that are rehearsed; all of them where it is not named."""
    drawn: frozenset[str] = frozenset()
    """Pools whose rehearsals are kept over time, for plots."""
    phases: int = 1
    """At so many tick phases each."""
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    """By pool, in place of the setting's, where it was learned."""

    def setting_of(self, pool: str, phase: int) -> Setting:
        """How workers of ``pool`` behave, at one of the phases."""
        setting = self.setting
        if pool in self.behaviours:
            setting = replace(setting, behaviour=self.behaviours[pool])
        return phased(setting, self.phases)[phase]

    def rehearsals_of(self, pool: str) -> list[Rehearsed]:
        """What is rehearsed of ``pool``: every candidate at every phase."""
        return [(each.name, phase) for each in self.candidates_of(pool) for phase in range(self.phases)]

    def candidates_of(self, pool: str) -> tuple[Candidate, ...]:
        """The candidates that are rehearsed of ``pool``."""
        names = self.chosen.get(pool)
        return self.candidates if names is None else tuple(each for each in self.candidates if each.name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much there is of one pool."""

    pool: str
    jobs: int
    ended_jobs: int
    """Of these it is known how long they took."""
    begins_at_s: float
    length_s: float
    """From the beginning to the last arrival."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One pool under one candidate, at one tick phase: what came of it, or why nothing did."""

    pool: str
    candidate: str
    phase: int = 0
    result: Result | None = None
    why: str = ""
    cpu_s: float = 0.0
    """Processor time that the rehearsal took."""


class _Gathered(AccumulatorParam[list[str]]):
    """Outcomes as text, as the tasks that made them end. A task that is done twice brings the same ones again."""

    def zero(self, value: list[str]) -> list[str]:  # noqa: ARG002 - the port's shape
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 - the port's name
        value1.extend(value2)
        return value1


def sizes_of(loads: DataFrame) -> tuple[Size, ...]:
    """How much there is of each pool, by name. ``loads`` is worked out, and kept."""
    asked = (
        loads.persist()
        .select(
            "pool",
            "begins_at_s",
            F.size("at_s").alias("jobs"),
            F.size(F.filter("service_s", lambda each: each.isNotNull())).alias("ended_jobs"),
            F.element_at("at_s", -1).alias("length_s"),
        )
        .orderBy("pool")
    )
    rows = interruptible(loads.sparkSession, asked.collect)
    return tuple(Size(**row.asDict()) for row in rows)


def backtest(
    loads: DataFrame, work: Work, sizes: Sequence[Size], *, on_done: Callable[[Sequence[Outcome]], None]
) -> None:
    """Rehearse the pools of ``sizes`` as ``work`` says. ``on_done`` receives what is done, as it is, each thing once.

    Args:
        loads: As in ``history.LOADS``.
        work: A pool without a profile in it is left out.
        sizes: Of the pools to rehearse; at least one.
        on_done: Called from this thread.

    Raises:
        Unavailable: Spark cannot do it.
        KeyboardInterrupt: Ctrl-C came; what was done has been reported.
    """
    session = loads.sparkSession
    context = session.sparkContext
    turns = turns_of(work, sizes, cores=context.defaultParallelism)
    gathered: Accumulator[list[str]] = context.accumulator([], _Gathered())
    plan = session.createDataFrame(turns, "pool string, turn int, asked array<struct<candidate:string,phase:int>>")
    # Each turn is a task of its own, the longest first, so that no core waits long for the last one.
    spread = loads.join(F.broadcast(plan), on="pool", how="inner").repartitionById(len(turns), "turn")
    done = spread.mapInArrow(partial(_rehearsed, work=work, gathered=gathered), "pool string")
    reported: set[tuple[str, str, int]] = set()
    received = 0

    def report() -> None:
        nonlocal received
        received = _report(gathered.value, received, reported, on_done)

    try:
        # Nothing is left of the rows but what was gathered.
        interruptible(session, done.write.format("noop").mode("overwrite").save, meanwhile=report)
    except (PySparkException, Py4JError) as error:
        reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise Unavailable(f"Spark could not do the back-test: {reason.strip()}") from error


def _report(
    texts: Sequence[str],
    received: int,
    reported: set[tuple[str, str, int]],
    on_done: Callable[[Sequence[Outcome]], None],
) -> int:
    """Report what was gathered after the first ``received`` texts. Returns how many there are."""
    count = len(texts)
    new = []
    for outcome in map(outcome_of, texts[received:count]):
        which = outcome.pool, outcome.candidate, outcome.phase
        if which not in reported:
            reported.add(which)
            new.append(outcome)
    if new:
        on_done(new)
    return count


def turns_of(work: Work, sizes: Sequence[Size], *, cores: int) -> list[tuple[str, int, list[Rehearsed]]]:
    """What is rehearsed in which task: pool, the task's number, candidates and phases. The longest come first.

    A pool's jobs travel once a turn, so a pool is only divided where it is large beside the others.
    """
    asked = {size.pool: work.rehearsals_of(size.pool) for size in sizes}
    weights = {
        size.pool: len(asked[size.pool]) * (size.jobs + TICK_JOBS * size.length_s / work.setting.tick_s)
        for size in sizes
    }
    fair = sum(weights.values()) / (cores * BACKTEST_TURNS_PER_CORE) or 1.0
    turns: list[tuple[float, str, list[Rehearsed]]] = []
    for pool, each in asked.items():
        count = min(len(each), max(1, math.ceil(weights[pool] / fair)))
        for first in range(count):
            part = each[first::count]
            turns.append((-weights[pool] * len(part) / len(each), pool, part))
    turns.sort()
    return [(pool, number, part) for number, (_, pool, part) in enumerate(turns)]


def _rehearsed(
    batches: Iterator[pa.RecordBatch], *, work: Work, gathered: Accumulator[list[str]]
) -> Iterator[pa.RecordBatch]:
    """On an executor: rehearse every row's pool under the candidates it names."""
    for batch in batches:
        for row in range(batch.num_rows):
            pool = batch.column("pool")[row].as_py()
            asked = [(each["candidate"], each["phase"]) for each in batch.column("asked")[row].as_py()]
            begins_at_s = batch.column("begins_at_s")[row].as_py()
            at_s, service_s, retries = (
                batch.column(name)[row].values.to_pylist() for name in ("at_s", "service_s", "retries")
            )
            gathered.add(list(_outcomes(pool, asked, begins_at_s, at_s, service_s, retries, work)))
        yield pa.RecordBatch.from_pydict({"pool": pa.array([], pa.string())})


def _outcomes(
    pool: str,
    asked: Sequence[Rehearsed],
    begins_at_s: float,
    at_s: Sequence[float],
    service_s: Sequence[float | None],
    retries: Sequence[bool],
    work: Work,
) -> Iterator[str]:
    candidates = {each.name: each for each in work.candidates}
    try:
        filled_s = filled(service_s, pool=pool, seed=work.setting.seed)
        jobs = Jobs(at_s=at_s, service_s=filled_s, retries=retries)
        if pool in work.parts:
            jobs, begins_at_s = part_of(jobs, *work.parts[pool], begins_at_s=begins_at_s)
    except HeadwayError as error:
        for name, phase in asked:
            yield _text(Outcome(pool=pool, candidate=name, phase=phase, why=str(error)))
        return
    for name, phase in asked:
        yield _text(_outcome(pool, candidates[name], phase, jobs, begins_at_s, work))


def _outcome(pool: str, candidate: Candidate, phase: int, jobs: Jobs, begins_at_s: float, work: Work) -> Outcome:
    began_s = time.process_time()
    try:
        profile = candidate.of(work.profiles[pool])
        result = rehearse(
            jobs,
            profile,
            work.setting_of(pool, phase),
            begins_at_s=begins_at_s,
            strategies=work.strategies,
            zones=work.zones.get(pool),
        )
    except Exception as error:  # noqa: BLE001 - one pool's failure is reported and ends no other's
        return Outcome(pool=pool, candidate=candidate.name, phase=phase, why=str(error) or type(error).__name__)
    if pool not in work.drawn or phase:
        result = replace(result, points=())
    cpu_s = time.process_time() - began_s
    return Outcome(pool=pool, candidate=candidate.name, phase=phase, result=result, cpu_s=cpu_s)


def filled(service_s: Sequence[float | None], *, pool: str, seed: int) -> Sequence[float]:
    """``service_s`` where each job whose end was not seen takes as long as one whose end was, whichever it was."""
    known = [each for each in service_s if each is not None]
    if not known:
        raise Invalid(f"no job of pool {pool!r} ended in that time: how long its jobs take is not known")
    if len(known) == len(service_s):
        return known
    chance = Random(f"{seed}/{pool}/service")  # noqa: S311 - no secret
    return [chance.choice(known) if each is None else each for each in service_s]


def part_of(jobs: Jobs, from_s: float, until_s: float, *, begins_at_s: float) -> tuple[Jobs, float]:
    """The jobs that came in [from_s, until_s), and when that begins by the clock. ``from_s`` is whole seconds."""
    first, end = bisect_left(jobs.at_s, from_s), bisect_left(jobs.at_s, until_s)
    return jobs.part(first, end, from_s=from_s), begins_at_s + from_s


def _text(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome))


def outcome_of(text: str) -> Outcome:
    """What an executor has returned; every figure is the one that it had."""
    return from_mapping(Outcome, json.loads(text))
