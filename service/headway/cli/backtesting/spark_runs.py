"""A back-test from its sources to its outcomes: what `backtest` and `tune` have in common."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headway.cli.backtesting.backtest_options import SparkOptions
from headway.cli.backtesting.history_source import Asked, Past, profile_of_queue
from headway.cli.terminal.screen import errors
from headway.errors import Invalid
from headway.scaling.metrics.behaviour import Behaviour
from headway.scaling.profile import Profile
from headway.simulate.engine.results import Result
from headway.simulate.report.rows import Row
from headway.simulate.studies.phases import middle, phased
from headway.zones import zones_of
from headway_spark.studies.backtest import Outcome, Size, Work, backtest, sizes_of
from headway_spark.studies.history import given_loads, held_events, jobs_of, loads_of

DRAWN_MAX = 12  # pools whose rehearsals are kept over time: each weighs some 100 kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Jobs that Spark holds, and whose they are."""

    loads: Any
    sizes: tuple[Size, ...]
    """Of the pools that can be rehearsed."""
    profiles: Mapping[str, Profile]
    skipped: Mapping[str, str]
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)

    def work(self, given: Work) -> Work:
        """``given`` for the pools of this bench."""
        return replace(
            given,
            profiles=self.profiles,
            behaviours=self.behaviours,
            zones={pool: zones for pool, profile in self.profiles.items() if (zones := zones_of(profile))},
            drawn=frozenset(self.profiles) if len(self.sizes) <= DRAWN_MAX else frozenset(),
        )


@contextmanager
def bench(asked: Asked, past: Past, spark: SparkOptions) -> Iterator[Bench]:
    """Spark with the jobs of ``past``; the session is closed at the end.

    Raises:
        HeadwayError: Spark does not start, or there is nothing to rehearse.
    """
    with ExitStack() as stack:
        with errors().status("starting Spark and reading the jobs"):
            session, folder = stack.enter_context(spark.session())
            found = _bench(session, asked, past, stack, folder)
        yield found


def _bench(session: Any, asked: Asked, past: Past, stack: ExitStack, folder: Path) -> Bench:
    if asked.event_log is not None:
        events = stack.enter_context(held_events(session, asked.event_log, from_s=asked.from_s, until_s=asked.until_s))
        jobs = jobs_of(events, from_s=asked.from_s, until_s=asked.until_s)
        loads = loads_of(jobs, pools=past.pools_by_queue)
    else:
        loads = given_loads(session, past.loads, folder=folder)
    sizes = sizes_of(loads)
    profiles = dict(past.profiles) or {size.pool: profile_of_queue(size.pool) for size in sizes}
    skipped = dict(past.skipped)
    if asked.pools:
        unknown = [pool for pool in asked.pools if pool not in profiles]
        if unknown:
            raise Invalid(f"--pools: no job of {', '.join(unknown)} came in that time")
        sizes = tuple(size for size in sizes if size.pool in asked.pools)
    skipped |= {
        size.pool: "no job of it ended in that time: how long its jobs take is not known"
        for size in sizes
        if not size.ended_jobs
    }
    seen = {size.pool for size in sizes}
    skipped |= {pool: "no job of it came in that time" for pool in profiles if pool not in seen | skipped.keys()}
    usable = tuple(size for size in sizes if size.ended_jobs)
    if not usable:
        lines = [f"{pool}: {why}" for pool, why in skipped.items()]
        more = f" (and {len(lines) - 3} more)" if len(lines) > 3 else ""
        raise Invalid(f"nothing to rehearse: {'; '.join(lines[:3]) + more or 'no job came in that time'}")
    return Bench(
        loads=loads,
        sizes=usable,
        profiles={size.pool: profiles[size.pool] for size in usable},
        skipped=skipped,
        behaviours={size.pool: past.behaviours[size.pool] for size in usable if size.pool in past.behaviours},
    )


def rehearsed(on: Bench, work: Work, *, doing: str) -> tuple[list[Outcome], bool]:
    """What was done, and whether that is all: Ctrl-C ends it early and keeps what is done."""
    found: list[Outcome] = []
    if not on.sizes:
        return found, True
    count = sum(len(work.rehearsals_of(size.pool)) for size in on.sizes)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors(), transient=True) as bar:
        task = bar.add_task(doing, total=count)

        def on_done(outcomes: Sequence[Outcome]) -> None:
            found.extend(outcomes)
            bar.update(task, completed=len(found))

        try:
            backtest(on.loads, work, on.sizes, on_done=on_done)
        except KeyboardInterrupt:
            return found, False
    return found, True


def rows_of(outcomes: Sequence[Outcome], work: Work) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """The rehearsals by pool, in the candidates' order, and why others are missing, each reason once a pool.

    A candidate is there once it was rehearsed at every tick phase.
    """
    settings = phased(work.setting, work.phases)
    failures: dict[str, str] = {}
    done: dict[tuple[str, str], dict[int, Result]] = {}
    for outcome in sorted(outcomes, key=lambda each: (each.pool, each.phase)):
        if outcome.result is None:
            failures.setdefault(outcome.pool, outcome.why)
        else:
            done.setdefault((outcome.pool, outcome.candidate), {})[outcome.phase] = outcome.result
    rows: dict[str, list[Row]] = {}
    for pool in sorted({pool for pool, _ in done}):
        for candidate in work.candidates:
            found = done.get((pool, candidate.name), {})
            if len(found) == work.phases:
                rows.setdefault(pool, []).append(
                    Row(
                        workload=pool,
                        strategy=candidate.name,
                        result=middle([found[phase] for phase in range(work.phases)], settings),
                        percentile=work.profiles[pool].objective.percentile,
                    )
                )
    return rows, failures
