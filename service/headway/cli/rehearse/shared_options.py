"""The options that `simulate`, `backtest` and `tune` share."""

from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[list[str] | None, typer.Argument(metavar="FILE", help="More traces.")]
EventLog = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The event log: every job, as far back as it is kept.")
]
DatabaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Postgres of a control plane: two weeks, by 5 s and by minutes.")
]
Traces = Annotated[list[str] | None, typer.Option("--trace", metavar="FILE", help="Recorded jobs, a pool a file.")]
Columns = Annotated[
    str | None, typer.Option(metavar="ARRIVAL,SERVICE", help="The traces' columns, if not t_arrival,service_s.")
]
From = Annotated[
    str | None, typer.Option("--from", metavar="MOMENT", help="As in 2026-03-02T06:00 (UTC), or 24h for a day ago.")
]
Until = Annotated[str | None, typer.Option(metavar="MOMENT", help="The end of it, in the same words.")]
Pools = Annotated[str | None, typer.Option(metavar="POOL,…", help="Only these pools.")]
ProfileFile = Annotated[
    Path | None, typer.Option("--profile", metavar="FILE", help="The policies now, a profiles.yaml.")
]
CandidatesFile = Annotated[
    Path | None, typer.Option("--candidates", metavar="FILE", help="What to compare them with: name -> keys, in YAML.")
]
Grid = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE,…", help="Every combination, as in --grid risk=0.5,1,2.")
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="A Spark cluster, as in spark://host:7077.")]
Cores = Annotated[int | None, typer.Option(metavar="COUNT", help="Of this machine; without it all of them.")]
Slots = Annotated[int, typer.Option(metavar="COUNT", help="Jobs that one worker runs at once.")]
StartUp = Annotated[
    str | None, typer.Option(metavar="DURATION", help="From a worker's spawn to its first job, if not 2 s.")
]
Jitter = Annotated[float, typer.Option(metavar="SIGMA", help="Spread of the start-up around that mean (lognormal).")]
Phases = Annotated[
    int, typer.Option(metavar="COUNT", help="Each rehearsal so often, with ticks at other moments; 1: once.")
]
BehaviourSource = Annotated[
    str | None,
    typer.Option(
        "--behaviour",
        metavar="FILE|learned|plain",
        help="How workers and control plane behave: as a file says, as was learned live, or exactly.",
    ),
]
StartingMax = Annotated[int | None, typer.Option(metavar="COUNT", help="So many workers start on a host at once.")]
JobCores = Annotated[float, typer.Option(metavar="COUNT", help="Of a core, that a job takes from workers that start.")]
HostCores = Annotated[
    float | None, typer.Option(metavar="COUNT", help="Of a host, shared by workers that start and end.")
]
Tick = Annotated[str, typer.Option(metavar="DURATION", help="From one decision to the next.")]
Weeks = Annotated[
    bool, typer.Option("--weeks/--no-weeks", help="Recall hours of the week as the live loop does, or days only.")
]
Seed = Annotated[int, typer.Option(help="Of everything random.")]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="Write plots and tables as one HTML file.")]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures for a program.")]
START_UP = "2s"
