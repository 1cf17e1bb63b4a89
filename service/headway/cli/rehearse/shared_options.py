"""The options that commands which rehearse share, in groups: see ``typer_app.takes_groups``."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli.rehearse.behaviour_source import LEARNED, given_behaviour
from headway.cli.rehearse.figures import write
from headway.cli.terminal.units import seconds
from headway.errors import Invalid, Misconfigured
from headway.scaling.fields import taken_from
from headway.scaling.metrics.behaviour import Behaviour
from headway.simulate.studies.phases import PHASES
from headway.simulate.studies.single_pool import Setting

Slots = Annotated[int, typer.Option(metavar="COUNT", help="Jobs that one worker runs at once.")]
StartUp = Annotated[
    str | None, typer.Option(metavar="DURATION", help="From a worker's spawn to its first job, if not 2 s.")
]
Jitter = Annotated[float, typer.Option(metavar="SIGMA", help="Spread of the start-up around that mean (lognormal).")]
Tick = Annotated[str, typer.Option(metavar="DURATION", help="From one decision to the next.")]
Weeks = Annotated[
    bool, typer.Option("--weeks/--no-weeks", help="Recall hours of the week as the live loop does, or days only.")
]
Seed = Annotated[int, typer.Option(help="Of everything random.")]
START_UP = "2s"


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How workers behave, and how often is decided."""

    slots: Slots = 1
    start_up: StartUp = None
    jitter: Jitter = 0.0
    tick: Tick = "5s"
    phases: Annotated[
        int, typer.Option(metavar="COUNT", help="Each rehearsal so often, with ticks at other moments; 1: once.")
    ] = PHASES
    behaviour: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|learned|plain",
            help="How workers and control plane behave: as a file says, as was learned live, or exactly.",
        ),
    ] = None
    host_cores: Annotated[
        float | None, typer.Option(metavar="COUNT", help="Of a host, shared by workers that start and end.")
    ] = None
    starting_max: Annotated[
        int | None, typer.Option(metavar="COUNT", help="So many workers start on a host at once.")
    ] = None
    job_cores: Annotated[
        float, typer.Option(metavar="COUNT", help="Of a core, that a job takes from workers that start.")
    ] = 0.0
    depth_only: Annotated[
        bool, typer.Option("--depth-only", help="The queue's source reports how many jobs wait, and no events.")
    ] = False

    def takes_learned(self, source: str | None) -> bool:
        """Whether each pool is rehearsed as the control plane at ``source`` has learned that it behaves.

        By the word of these options, or where they say nothing else of how workers behave.

        Raises:
            Invalid: it is asked for, and the jobs come from where nothing of the kind is kept: ``source`` is ``None``.
        """
        if self.behaviour == LEARNED and source is None:
            raise Invalid(
                "--behaviour=learned: only a control plane has learned any; name one with its jobs, or a file"
            )
        is_start_up_given = self.start_up is not None or bool(self.jitter)
        is_wanted = self.behaviour == LEARNED or (self.behaviour is None and not is_start_up_given)
        return source is not None and is_wanted

    def setting(self, *, learned: Behaviour | None = None, **others: Any) -> Setting:
        """What these options say, with ``others`` of a setting; workers behave as ``learned``, where that is given.

        Raises:
            Invalid: with every value that is wrong.
        """
        return taken_from(
            Setting,
            self,
            tick_s=seconds(self.tick, option="--tick"),
            start_up_s=seconds(self.start_up or START_UP, option="--start-up"),
            start_up_spread=self.jitter,
            is_depth_only=self.depth_only,
            behaviour=learned or given_behaviour(self.behaviour),
            **others,
        )


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Where a command writes what it found, besides printing it."""

    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write plots and tables as one HTML file.")] = None
    json_: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures for a program.")] = (
        None
    )

    def write(self, figures: Callable[[], Mapping[str, Any]], page: Callable[[], str]) -> None:
        """Write the files that were asked for, and say so on standard error."""
        if self.json_ is not None:
            write(self.json_, json.dumps(figures(), indent=2, allow_nan=False) + "\n")
        if self.report is not None:
            write(self.report, page())

    def refuse_unwritable(self, *others: Path | None) -> None:
        """Refuse now, of these files and ``others``, what could not be written after the work."""
        for file in filter(None, (self.report, self.json_, *others)):
            folder = file.parent
            if file.is_dir() or not folder.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
                raise Misconfigured(f"{file} cannot be written: name a file in a folder that exists and is yours")
