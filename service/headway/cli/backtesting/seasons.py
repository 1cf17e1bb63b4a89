"""`headway seasons`: what each hour of the week brings to a queue, learned on Spark (`train`) and shown (`show`)."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from headway.cli.backtesting.backtest_options import EventLog, From, SparkOptions, Until, names_of
from headway.cli.terminal.cells import figures_table
from headway.cli.terminal.screen import Text, errors, output
from headway.cli.terminal.units import moment_s
from headway.cli.typer_app import main_of, takes_groups
from headway.errors import Invalid, Misconfigured
from headway.scaling.explanations.phrases import counted as counted_of
from headway.scaling.history.weekly import HOUR_MINUTES, WEEKS_MIN, Season
from headway.scaling.profile_keys.schedule import UTC_NAME, Zone
from headway.settings import database_url_of
from headway.store.engine import named
from headway.store.metrics.seasons import (
    ROLLUPS,
    Trained,
    all_seasons,
    connected,
    counted,
    counted_until_s,
    served_queues,
    write_seasons,
)
from headway.zones import zone_of
from headway_spark.studies.history import fresh, held_events, jobs_of
from headway_spark.studies.seasons import counts_of, given_counts, learned

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PEAKS_SHOWN = 12

app = typer.Typer(add_completion=False, no_args_is_help=True, help="What each hour of the week brings to a queue.")
main = main_of(app)

DatabaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Postgres of a control plane; else HEADWAY_DATABASE_URL.")
]
Queues = Annotated[str | None, typer.Option(metavar="QUEUE,…", help="Only these queues.")]


@app.command("train")
@takes_groups
def train(
    *,
    database_url: DatabaseUrl = None,
    event_log: EventLog = None,
    from_: From = None,
    until: Until = None,
    queues: Queues = None,
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Whose hours, as in Europe/Berlin; else HEADWAY_TIME_ZONE, UTC.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is learned and store nothing.")] = False,
    spark: SparkOptions,
) -> None:
    """Learn the weeks of all queues now, in parallel on Spark, and store them for the live forecast.

    From the event log where it is named, else from the counts by minute and hour that Postgres keeps.
    """
    spark.check()
    zone = zone_of(time_zone or os.environ.get("HEADWAY_TIME_ZONE", "") or UTC_NAME)
    wanted = names_of(queues)
    url = _database_url(database_url, is_needed=event_log is None or not dry_run)
    if event_log is None and (from_ or until):
        raise Invalid("--from and --until take a part of an event log: name it with --event-log")
    found = _learned(
        url,
        event_log,
        from_s=moment_s(from_, option="--from"),
        until_s=moment_s(until, option="--until"),
        wanted=wanted,
        zone=zone,
        spark=spark,
    )
    missing = sorted(set(wanted) - {each.queue for each in found})
    if missing or not found:
        whose = ", ".join(missing) or "any queue"
        needed = f"it takes {WEEKS_MIN} whole weeks, one to learn from and one to judge by"
        raise Invalid(f"nothing was learned of {whose}: {needed}")
    if not dry_run:
        with connected(url) as connection:
            write_seasons(connection, found)
    _print(found)
    better = sum(each.season.is_better for each in found)
    did = "would be believed" if dry_run else f"will be believed: stored in the database {named(url)}"
    errors().print(Text(f"{counted_of(better, 'queue')} of {len(found)} {did}"), soft_wrap=True)


@app.command("show")
def show(
    *,
    database_url: DatabaseUrl = None,
    queue: Annotated[str | None, typer.Option(metavar="QUEUE", help="Hour by hour, of this one.")] = None,
) -> None:
    """Show the weeks that are stored, and whether they are believed."""
    with connected(_database_url(database_url, is_needed=True)) as connection:
        stored = all_seasons(connection)
    for each, why in stored.unfit.items():
        errors().print(Text(f"not used: {each}: {why}; `headway seasons train` makes it anew"), soft_wrap=True)
    if queue is None:
        _print(list(stored.seasons.values()))
        return
    if queue not in stored.seasons:
        raise Invalid(f"nothing is stored of queue {queue!r}; there is {', '.join(stored.seasons) or 'none'}")
    _print([stored.seasons[queue]])
    output().print(week_table(stored.seasons[queue].season))
    greatest = sorted(stored.seasons[queue].season.peaks.items(), key=lambda each: -each[1])
    for minute, jobs in greatest[:PEAKS_SHOWN]:
        slot, of_hour = divmod(minute, HOUR_MINUTES)
        output().print(Text(f"{hour_name(slot)}:{of_hour:02d} brings {jobs:.0f} jobs within the minute"))
    if len(greatest) > PEAKS_SHOWN:
        output().print(Text(f"and {len(greatest) - PEAKS_SHOWN} more minutes stand out", style="dim"))


def _database_url(given: str | None, *, is_needed: bool) -> str:
    """Where Postgres is; empty where it is not named and not needed."""
    url = given or database_url_of(os.environ) or ""
    if is_needed and not url:
        raise Misconfigured("--database-url is not given, nor HEADWAY_DATABASE_URL set: where weeks are stored")
    return url


def _learned(
    database_url: str,
    event_log: Path | None,
    *,
    from_s: float | None,
    until_s: float | None,
    wanted: Sequence[str],
    zone: Zone,
    spark: SparkOptions,
) -> list[Trained]:
    known = {}
    if event_log is None:
        with connected(database_url) as connection:
            names = wanted or served_queues(connection)
            known = counted(connection, queues=names, until_s=counted_until_s(connection))
        if not known:
            return []
    with (
        errors().status("starting Spark and learning weeks"),
        spark.session() as (session, folder),
    ):
        if event_log is None:
            source, found = ROLLUPS, learned(given_counts(session, known, folder=folder), zone=zone)
        else:
            source = f"event log {event_log}"
            with held_events(session, event_log, from_s=from_s, until_s=until_s) as events:
                found = learned(counts_of(jobs_of(fresh(events), from_s=from_s, until_s=until_s)), zone=zone)
    return [
        Trained(queue=queue, season=season, source=source, from_s=begins_s, until_s=ends_s)
        for queue, (season, begins_s, ends_s) in found.items()
        if not wanted or queue in wanted
    ]


def _print(found: Sequence[Trained]) -> None:
    figures = ("weeks", "busiest hour", "jobs a minute", "peaks", "wrong by weeks", "by days", "by last minute")
    shown = figures_table(("queue",), figures)
    shown.add_column("believed")
    shown.add_column("until")
    for each in found:
        season = each.season
        busiest = max(range(len(season.mean_jobs)), key=season.mean_jobs.__getitem__)
        errors = season.errors
        wrong = () if errors is None else (errors.season, errors.days, errors.recent)
        shown.add_row(
            Text(each.queue),
            f"{season.weeks_seen}",
            hour_name(busiest),
            f"{season.mean_jobs[busiest]:.1f}",
            f"{len(season.peaks)}",
            *([f"{jobs:,.0f}" for jobs in wrong] or [""] * 3),
            Text("yes", style="green") if season.is_better else Text("no", style="dim"),
            datetime.fromtimestamp(each.until_s, UTC).strftime("%Y-%m-%d %H:%M"),
        )
    output().print(shown)


def hour_name(slot: int) -> str:
    """An hour of the week, as in ``Mon 09``."""
    return f"{DAYS[slot // 24]} {slot % 24:02d}"


def week_table(season: Season) -> Table:
    """Jobs a minute, by hour and day: on average, and what 95 % of the minutes do not exceed."""
    shown = figures_table((str(season.zone),), DAYS)
    for hour in range(24):
        slots = range(hour, len(season.mean_jobs), 24)
        shown.add_row(
            f"{hour:02d}:00",
            *(f"{season.mean_jobs[slot]:.1f} ≤{season.high_jobs[slot]:.0f}" for slot in slots),
        )
    return shown
