"""`headway report savings`: what runs pools today, by the record, beside what Headway would have run."""

import asyncio
import csv
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from headway import __version__
from headway.cli.backtesting.backtest_options import From, Until, names_of
from headway.cli.backtesting.history_source import Asked, Past, past_of
from headway.cli.local.data_dir import DataDir
from headway.cli.rehearse import shared_options as options
from headway.cli.rehearse.rehearsal import Case
from headway.cli.rehearse.trace_files import Workload
from headway.cli.terminal.cells import UNKNOWN, figure, table
from headway.cli.terminal.printing import say_json
from headway.cli.terminal.screen import Text, errors, output
from headway.cli.terminal.units import moment_s
from headway.cli.typer_app import main_of, takes_groups
from headway.errors import Invalid, Refused, csv_cell
from headway.scaling.arithmetic import HOUR_S
from headway.scaling.metrics.reports.listed_time import ListedSpan, listed_time
from headway.scaling.strategy import Strategy
from headway.settings import DATA_DIR, database_url_of
from headway.simulate.engine.results import Result
from headway.simulate.report.savings import HeadwaySide, Savings, TodaySide, headway_side, today_side
from headway.simulate.studies.phases import middle, phased
from headway.simulate.studies.single_pool import Setting
from headway.store.embedded import ensure_postgres
from headway.store.engine import create_engine, snapshot
from headway.store.metrics.listed_workers import read_listed
from headway.strategies import load_strategies, refuse_unknown
from headway_spark.studies.history import Load

FORMS = ("table", "json", "csv")
HEAD = ("pool", "hours", "unknown", "in time", "with Headway", "worker-hours", "with Headway", "saved")

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Report on what was recorded.")
main = main_of(app)


@app.callback()
def report() -> None:
    """Report on what was recorded."""


@app.command("savings")
@takes_groups
def savings(
    *,
    from_: From = None,
    until: Until = None,
    pools: Annotated[str | None, typer.Option("--pool", "--pools", metavar="POOL,…", help="Only these pools.")] = None,
    form: Annotated[str, typer.Option("-o", "--output", metavar="table|json|csv", help="How it is printed.")] = "table",
    database_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Postgres of a control plane, if not that of the data folder.")
    ] = None,
    data_dir: Annotated[Path, typer.Option(metavar="FOLDER", help="Where `headway up` keeps its state.")] = Path(
        DATA_DIR
    ),
    workers: options.WorkerOptions,
    weeks: options.Weeks = True,
    seed: options.Seed = 0,
) -> None:
    """Compare the workers that a broker listed with those that Headway would have run for the same jobs."""
    if form not in FORMS:
        raise Invalid(f"-o {form!r} is none of {', '.join(FORMS)}")
    setting = workers.setting(recalls_weeks=weeks, seed=seed)
    phased(setting, workers.phases)
    from_s, until_s = moment_s(from_, option="--from"), moment_s(until, option="--until")
    with _database(database_url, data_dir) as url:
        asked = Asked(database_url=url, from_s=from_s, until_s=until_s, pools=names_of(pools), seed=seed)
        past = past_of(asked, with_behaviours=workers.takes_learned(url))
        listed = asyncio.run(_listed(url, past))
    known = dict(load_strategies())
    for profile in past.profiles.values():
        refuse_unknown(profile, known)
    found = _compared(past, listed, setting, phases=workers.phases, strategies=known, from_s=from_s)
    _print(found, form)


@contextmanager
def _database(url: str | None, data_dir: Path) -> Iterator[str]:
    """Where Postgres is: as is said here, as the environment says, or the embedded one, for as long as it is read."""
    given = url or database_url_of(os.environ)
    if given is not None:
        yield given
        return
    layout = DataDir(data_dir.absolute())
    if not (layout.postgres / "pgdata").is_dir():
        raise Refused(
            f"{layout.root} holds no embedded Postgres: name the data folder of a `headway up` with --data-dir, "
            "or another Postgres with --database-url"
        )
    with ensure_postgres(layout.postgres) as server:
        yield server.url


async def _listed(database_url: str, past: Past) -> Mapping[str, Sequence[ListedSpan]]:
    engine = create_engine(database_url)
    try:
        async with snapshot(engine) as conn:
            return await read_listed(conn, {queue for each in past.profiles.values() for queue in each.queues})
    finally:
        await engine.dispose()


def _compared(
    past: Past,
    listed: Mapping[str, Sequence[ListedSpan]],
    setting: Setting,
    *,
    phases: int,
    strategies: Mapping[str, Strategy],
    from_s: float | None,
) -> list[Savings]:
    """Both sides of every pool, by name."""
    loads = {load.pool: load for load in past.loads}
    found = []
    with errors().status("rehearsing the recorded jobs") as status:
        for number, pool in enumerate(sorted(past.profiles), start=1):
            status.update(Text(f"rehearsing the recorded jobs: {pool}, {number} of {len(past.profiles)}"))
            result = None
            if (load := loads.get(pool)) is not None:  # as `headway backtest` rehearses the profile as it is
                workload = Workload(name=pool, jobs=load.jobs, begins_at_s=load.begins_at_s)
                case = Case(workload=workload, profile=past.profiles[pool])
                behaviour = past.behaviours.get(pool, setting.behaviour)
                settings = phased(replace(setting, behaviour=behaviour), phases)
                result = middle([case.rows(each, strategies=strategies)[0].result for each in settings], settings)
            found.append(_both(past, pool, loads.get(pool), result, listed, from_s=from_s))
    return found


def _both(
    past: Past,
    pool: str,
    load: Load | None,
    result: Result | None,
    listed: Mapping[str, Sequence[ListedSpan]],
    *,
    from_s: float | None,
) -> Savings:
    """Both sides of ``pool`` over one stretch: that of its jobs, else all that was asked for."""
    profile, asked_until_s = past.profiles[pool], past.until_s or 0.0
    spans = {queue: listed.get(queue, ()) for queue in profile.queues}
    if load is not None and result is not None:
        begins_s = load.begins_at_s
        ends_s = min(asked_until_s, begins_s + result.ended_s)
    else:
        starts_s = [span.from_s for each in spans.values() for span in each]
        begins_s = min((*starts_s, asked_until_s)) if from_s is None else from_s
        ends_s = max(begins_s, asked_until_s)
    time = listed_time(profile.queues, spans, from_s=begins_s, until_s=ends_s)
    return Savings(
        pool=pool,
        objective_s=profile.objective.target_s,
        percentile=profile.objective.percentile,
        from_s=begins_s,
        until_s=ends_s,
        today=today_side(time, past.attained[pool]),
        headway=None if result is None else headway_side(result, stretch_s=ends_s - begins_s),
        why_not=past.skipped.get(pool, ""),
    )


def _print(found: Sequence[Savings], form: str) -> None:
    match form:
        case "json":
            say_json({"headway": __version__, "pools": [_values(each) for each in found]})
        case "csv":
            lines = [_flat(_values(each)) for each in found]
            written = csv.DictWriter(sys.stdout, CSV_COLUMNS, lineterminator="\n")
            written.writeheader()
            written.writerows(lines)
        case _:
            empty = "no pools: send a profile with `headway apply profiles.yaml`"
            output().print(table(HEAD, map(_cells, found), empty=empty))
            for each in found:
                if each.why_not:
                    errors().print(Text(f"not rehearsed: {each.pool}: {each.why_not}"), soft_wrap=True)


def _values(each: Savings) -> dict[str, Any]:
    return asdict(each) | {"saved_percent": each.saved_percent}


CSV_COLUMNS = (
    "pool",
    "objective_s",
    "percentile",
    "from_s",
    "until_s",
    *(f"today_{each.name}" for each in fields(TodaySide)),
    *(f"headway_{each.name}" for each in fields(HeadwaySide)),
    "saved_percent",
    "why_not",
)
"""A line a pool; what is not known is empty."""


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` in one level, as the columns of CSV; no name is a formula."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name in {"today", "headway"}:
            flat |= {f"{name}_{key}": each for key, each in (value or {}).items()}
        else:
            flat[name] = csv_cell(value) if isinstance(value, str) else value
    return flat


def _cells(each: Savings) -> tuple[str, ...]:
    today, headway = each.today, each.headway
    return (
        each.pool,
        f"{(each.until_s - each.from_s) / HOUR_S:.1f}",
        f"{today.unknown_hours:.1f}",
        _percent(today.attainment_percent),
        _percent(None if headway is None else headway.attainment_percent),
        figure(today.worker_hours, ".2f"),
        figure(None if headway is None else headway.worker_hours, ".2f"),
        _percent(each.saved_percent, digits=0),
    )


def _percent(value: float | None, *, digits: int = 2) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f} %"
