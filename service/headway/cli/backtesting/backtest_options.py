"""The options that commands which read the past on Spark share, in groups: see ``typer_app.takes_groups``."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli.backtesting.candidate_files import read_candidates, read_grid
from headway.cli.backtesting.history_source import Asked
from headway.cli.terminal.units import moment_s
from headway.errors import Misconfigured
from headway.simulate.studies.candidates import Candidate
from headway_spark.studies.bulk import bulk_session

EventLog = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The event log: every job, as far back as it is kept.")
]
From = Annotated[
    str | None, typer.Option("--from", metavar="MOMENT", help="As in 2026-03-02T06:00 (UTC), or 24h for a day ago.")
]
Until = Annotated[str | None, typer.Option(metavar="MOMENT", help="The end of it, in the same words.")]
ProfileFile = Annotated[
    Path | None, typer.Option("--profile", metavar="FILE", help="The policies now, a profiles.yaml.")
]


@dataclass(frozen=True, kw_only=True)
class PastOptions:
    """Whose recorded jobs are played."""

    files: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="More traces.")] = None
    event_log: EventLog = None
    database_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Postgres of a control plane: two weeks, by 5 s and by minutes.")
    ] = None
    trace: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Recorded jobs, a pool a file.")] = None
    columns: Annotated[
        str | None, typer.Option(metavar="ARRIVAL,SERVICE", help="The traces' columns, if not t_arrival,service_s.")
    ] = None
    from_: From = None
    until: Until = None
    pools: Annotated[str | None, typer.Option(metavar="POOL,…", help="Only these pools.")] = None
    profile: ProfileFile = None

    def asked(self, *, seed: int) -> Asked:
        """Which past is meant.

        Raises:
            Invalid: it is not clear which.
        """
        return Asked(
            event_log=self.event_log,
            database_url=self.database_url,
            traces=tuple(map(Path, (*(self.trace or ()), *(self.files or ())))),
            columns=self.columns,
            from_s=moment_s(self.from_, option="--from"),
            until_s=moment_s(self.until, option="--until"),
            pools=names_of(self.pools),
            profiles_file=self.profile,
            seed=seed,
        )


@dataclass(frozen=True, kw_only=True)
class CandidateOptions:
    """Which policies are compared."""

    candidates: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What to compare them with: name -> keys, in YAML.")
    ] = None
    grid: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE,…", help="Every combination, as in --grid risk=0.5,1,2.")
    ] = None

    def read(self) -> tuple[Candidate, ...]:
        """Those of the file, then those of the grid."""
        return (*(read_candidates(self.candidates) if self.candidates else ()), *read_grid(self.grid or ()))


@dataclass(frozen=True, kw_only=True)
class SparkOptions:
    """Where Spark runs."""

    master: Annotated[str | None, typer.Option(metavar="URL", help="A Spark cluster, as in spark://host:7077.")] = None
    cores: Annotated[int | None, typer.Option(metavar="COUNT", help="Of this machine; without it all of them.")] = None

    def check(self) -> None:
        """Refuse a number of cores that is none."""
        if self.cores is not None and self.cores < 1:
            raise Misconfigured(f"--cores={self.cores} must be 1 or more")

    @contextmanager
    def session(self) -> Iterator[tuple[Any, Path]]:
        """A session of Spark with a folder for its work; both go at the end.

        Raises:
            Misconfigured: there is no Java, or the cluster cannot be reached.
        """
        with tempfile.TemporaryDirectory(prefix="headway-") as folder:
            work_dir = Path(folder)
            with bulk_session(os.environ, work_dir=work_dir, master=self.master, cores=self.cores) as session:
                yield session, work_dir


def names_of(text: str | None) -> tuple[str, ...]:
    """The names that ``--pools`` or ``--queues`` lists, each once."""
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))
