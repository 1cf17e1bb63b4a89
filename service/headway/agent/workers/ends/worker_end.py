"""The end of a worker's process, with what was known of the worker by then: its consequences are judged by both."""

from dataclasses import dataclass

from headway.agent.config.commands.ending_options import idle_end_options, work_end_options
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.workers.worker_record import Record
from headway.scaling.model import WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnd:
    """How one worker ended."""

    record: Record
    """The worker as it was before its end."""
    exit_code: int | None
    """``None`` where nobody could see it, as of a worker that an earlier agent started."""
    last: Activity = NOT_KNOWN
    """The last that was known of its jobs: by its own report, else by its broker and its processes."""
    argv: tuple[str, ...] = ()
    """What it was started with; empty where ``host.toml`` says something else by now."""

    @property
    def was_asked(self) -> bool:
        """Whether it had been asked to stop."""
        return self.record.life.state is WorkerState.DRAINING

    @property
    def had_jobs(self) -> bool:
        """Whether it is known to have begun a job."""
        return bool(self.last.running or self.last.running_jobs or self.last.ended_jobs)

    @property
    def is_good(self) -> bool:
        """Whether it finished what it had begun: by its exit code, else by all that is known."""
        if self.exit_code is not None:
            return self.exit_code == 0
        if self.last.is_busy or self.record.life.is_forced:
            return False
        return self.was_asked or self.last.is_busy is False

    @property
    def ends_by_itself(self) -> bool:
        """Whether it was started so that it ends when it has done enough, or finds no job."""
        return self.record.life.is_burst or bool(idle_end_options(self.argv) or work_end_options(self.argv))

    @property
    def is_due(self) -> bool:
        """Whether it has ended well of its own accord, and as it was meant to: it is of use, however short its life."""
        return self.is_good and not self.was_asked and (self.ends_by_itself or bool(self.last.ended_jobs))

    @property
    def has_found_no_job(self) -> bool:
        """Whether its end was due because there was no job, as far as is known."""
        return self.is_due and not self.had_jobs and bool(idle_end_options(self.argv))
