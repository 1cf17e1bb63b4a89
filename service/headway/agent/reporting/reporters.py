"""The reporters of one host's workers: their pipes, from before the start of a worker until after its end."""

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from headway.agent.config.commands.queue_orders import UNKNOWN, Taking
from headway.agent.config.templates import Reporter, Template
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.forgotten_jobs import forgotten_jobs
from headway.agent.reporting.loading import Loading, LoadingDoubts
from headway.agent.reporting.receptions import Consumer
from headway.agent.reporting.report_lines import JobReport
from headway.agent.reporting.report_pipe import READ_BYTES_MAX, Kind, ReportPipe, make_pipe, open_pipe
from headway.agent.reporting.run_folder import PIPES, RunFolder
from headway.agent.reporting.worker_report import Beat
from headway.agent.state.state_dir import StateFolder
from headway.errors import printable
from headway.scaling.model import QueueOrder

BYTES_PER_SCAN_MAX = 1024 * 1024  # of all pipes; those that were not read come first in the next scan
LAST_READS_MAX = 8  # of a worker that has ended: all that its pipe can hold
EVENTS_HELD_MAX = 50_000  # of all workers together
EVENTS_PER_WORKER_MIN, EVENTS_PER_WORKER_MAX = 200, 5_000
FIRST_WORD_S = 10.0  # an idle worker's: two beats, and a loop that may count only every 4 s; on a machine that is busy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReports:
    """What one worker has reported of jobs, its pool and its template."""

    pool: str
    template: str
    reports: tuple[JobReport, ...]


class Reporters:
    """What the workers of this host report. Nothing here waits, and a worker's lines count for that worker alone."""

    def __init__(
        self,
        state: StateFolder,
        *,
        agent_id: str,
        environment: Mapping[str, str],
        clock: Callable[[], float],
        unix_clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = RunFolder(state, agent_id=agent_id, environment=environment)
        self._forgotten = forgotten_jobs(state)
        self._clock = clock
        self._unix_clock = unix_clock
        self.doubts = LoadingDoubts()
        """Which templates do without the reporter, by how their starts went."""
        self._pipes: dict[str, ReportPipe] = {}
        self._have_loaded: set[str] = set()
        """Workers whose command line the agent added the reporter to."""
        self._left: dict[str, JobReports] = {}
        """What workers have reported that have ended since."""
        self._is_ill = False
        """Whether the last pipe could not be made, which is logged once."""
        self._taken_over: frozenset[str] = frozenset()
        """The ids of workers of an earlier agent that have a pipe."""
        self._taken_over_at_s = float("-inf")

    # --- the life of a worker ----------------------------------------------------------------------------------------

    def take_over(self, kinds: Mapping[str, Kind], *, others: Collection[str] = ()) -> None:
        """Read what the workers of an earlier agent report, by their ids and kinds; remove the pipes of none of them.

        ``others`` are the ids of what may be workers: their pipes stay, and are not read.
        """
        self._folder.find()
        try:
            opened = self._folder.opened_pipes()
        except OSError:
            return  # no worker of this boot reports
        with opened as folder:
            for name in os.listdir(folder):  # noqa: PTH208 - of an open folder
                with suppress(OSError):
                    if name in kinds:
                        self._pipes[name] = open_pipe(name, folder=folder, kind=kinds[name])
                    elif name not in others:
                        os.unlink(name, dir_fd=folder)
        for worker_id, ends in self._forgotten.read().items():
            if worker_id in self._pipes:
                self._pipes[worker_id].report.take_over(ends)
        self._taken_over, self._taken_over_at_s = frozenset(self._pipes), self._clock()

    def prepare(self, worker_id: str, pool: str, template: Template, *, uid: int | None) -> Loading | None:
        """What is added to the start of the worker, which runs as ``uid``; ``None``: nothing, it does not report."""
        if template.reporter is Reporter.NONE or not self.doubts.allows(template.name):
            return None
        try:
            folder = self._folder.make()
            with self._folder.opened_pipes() as pipes:
                self._pipes[worker_id] = make_pipe(
                    worker_id,
                    folder=pipes,
                    kind=(pool, template.name),
                    uid=os.geteuid() if uid is None else uid,
                )
        except OSError as error:
            if not self._is_ill:
                self._is_ill = True
                log.warning(
                    "not reporting template=%s: the pipe of a worker cannot be made: %s%s",
                    template.name,
                    error,
                    _CURE if isinstance(error, PermissionError) and os.geteuid() == 0 else "",
                )
            return None
        self._is_ill = False
        loading = Loading(module=self._folder.module, pipe=folder / PIPES / worker_id)
        if loading.argv(template.argv) != template.argv:
            self._have_loaded.add(worker_id)
        return loading

    def note_ready(self, worker_id: str, template: str) -> None:
        """Take note that a worker has become ready."""
        self.doubts.note_ready(template, has_loaded=worker_id in self._have_loaded)

    def has_loaded(self, worker_id: str) -> bool:
        """Whether the agent has added the reporter to the command line of a worker that has not ended."""
        return worker_id in self._have_loaded

    def end(self, worker_id: str) -> Activity:
        """The last that a worker has reported that has ended. Its pipe is removed."""
        pipe = self._pipes.pop(worker_id, None)
        self._have_loaded.discard(worker_id)
        if pipe is None:
            return NOT_KNOWN
        for _ in range(LAST_READS_MAX):
            if not self._read(worker_id, pipe):
                break
        last = self._activity(pipe)
        if events := pipe.report.take_events():
            self._left[worker_id] = _reports(pipe, events)
            while sum(len(each.reports) for each in self._left.values()) > EVENTS_HELD_MAX:
                self._left.pop(next(iter(self._left)))
        pipe.close()
        with suppress(OSError), self._folder.opened_pipes() as folder:
            os.unlink(worker_id, dir_fd=folder)
        return last

    def keep(self) -> None:
        """Write down what the next agent is to know of what these workers have reported."""
        reported = ((worker_id, pipe.report.forgotten) for worker_id, pipe in self._pipes.items())
        self._forgotten.keep({worker_id: ends for worker_id, ends in reported if ends})

    def close(self) -> None:
        """Let go of the pipes. Those of workers that run on stay, for the next agent."""
        self.keep()
        for pipe in self._pipes.values():
            pipe.close()
        self._pipes.clear()
        self._folder.clear()

    # --- what they say -----------------------------------------------------------------------------------------------

    def watchable(self) -> frozenset[int]:
        """File descriptors that are readable when a worker has reported something."""
        return frozenset(pipe.fd for pipe in self._pipes.values() if not pipe.is_hung_up)

    def read(self, fds: Collection[int] | None = None) -> bool:
        """Take what workers have reported: all of them, or those whose descriptors are ``fds``.

        Returns whether these had reported no more than that.
        """
        due = [worker_id for worker_id, pipe in self._pipes.items() if fds is None or pipe.fd in fds]
        bytes_left, is_all = BYTES_PER_SCAN_MAX, True
        for worker_id in due:
            if bytes_left <= 0:
                return False
            if taken_bytes := self._read(worker_id, self._pipes[worker_id]):
                bytes_left -= taken_bytes
                is_all = is_all and taken_bytes < READ_BYTES_MAX
                self._pipes[worker_id] = self._pipes.pop(worker_id)  # the others come first next time
        return is_all

    def activity(self, worker_id: str) -> Activity:
        """What the worker says of itself; unknown where it does not report."""
        pipe = self._pipes.get(worker_id)
        return NOT_KNOWN if pipe is None else self._activity(pipe)

    def awaited(self) -> frozenset[str]:
        """The ids of workers of an earlier agent of which this one does not know yet whether they are busy.

        Of those that have not reported it after ``FIRST_WORD_S`` nobody waits for a report.
        """
        if self._taken_over and self._clock() - self._taken_over_at_s >= FIRST_WORD_S:
            self._taken_over = frozenset()
        return frozenset(each for each in self._taken_over if self.activity(each).is_busy is None)

    def has_beats_since(self, at_s: float) -> bool:
        """Whether each worker that reports has sent a whole beat since then."""
        beats = (pipe.report.beat for pipe in self._pipes.values() if not pipe.is_hung_up)
        return all(beat is not None and beat.received_at_s >= at_s for beat in beats)

    def beat(self, worker_id: str) -> Beat | None:
        """The worker's last whole beat; ``None``: there was none."""
        pipe = self._pipes.get(worker_id)
        return None if pipe is None else pipe.report.beat

    @property
    def consumers(self) -> list[Consumer]:
        """The workers that have reported which queues they consume."""
        return [
            Consumer(pool=pipe.kind[0], queues=beat.queues, execution=beat.execution)
            for pipe in self._pipes.values()
            if (beat := pipe.report.beat) is not None
        ]

    @property
    def queue_orders(self) -> dict[str, Taking]:
        """Template -> in what order its workers report that they take from their queues; unknown where they differ.

        A worker that is away from its broker does not know.
        """
        found: dict[str, Taking] = {}
        for pipe in self._pipes.values():
            beat = pipe.report.beat
            if beat is None or beat.queue_order is None:
                continue
            taking = (beat.queue_order, beat.queues if beat.queue_order is QueueOrder.STRICT else ())
            template = pipe.kind[1]
            found[template] = taking if found.setdefault(template, taking) == taking else UNKNOWN
        return found

    @property
    def slots(self) -> dict[str, int]:
        """Template -> how many jobs each of its workers reports to run at once, at least; as many as it may grow to."""
        found: dict[str, int] = {}
        for pipe in self._pipes.values():
            beat, template = pipe.report.beat, pipe.kind[1]
            slots = beat and (beat.slots if beat.slots_max is None else beat.slots_max)
            if slots:
                found[template] = min(slots, found.get(template, slots))
        return found

    @property
    def lost_lines(self) -> int:
        """Lines of the present workers that are known to be lost."""
        return sum(
            each.unread_lines + each.lost_reports + (0 if each.beat is None else each.beat.lost)
            for each in (pipe.report for pipe in self._pipes.values())
        )

    def take_events(self) -> dict[str, JobReports]:
        """What workers have reported of jobs since the last call, by worker id."""
        taken, self._left = self._left, {}
        for worker_id, pipe in self._pipes.items():
            if events := pipe.report.take_events():
                taken[worker_id] = _reports(pipe, events)
        return taken

    def _activity(self, pipe: ReportPipe) -> Activity:
        now_s = self._clock()
        return pipe.report.activity(now_s=now_s, unix_ahead_s=self._unix_clock() - now_s)

    def _read(self, worker_id: str, pipe: ReportPipe) -> int:
        """Take what is in one pipe. Returns how many bytes that was."""
        share = EVENTS_HELD_MAX // max(1, len(self._pipes))
        events_max = min(EVENTS_PER_WORKER_MAX, max(EVENTS_PER_WORKER_MIN, share))
        before = pipe.refusal
        taken_bytes = pipe.read(now_s=self._clock(), unix_s=self._unix_clock(), events_max=events_max)
        if before is None and pipe.refusal is not None:
            log.warning(
                "not understood pool=%s worker=%s: what it reports is no line of the protocol: %s",
                pipe.kind[0],
                worker_id,
                printable(pipe.refusal),
            )
        return taken_bytes


def _reports(pipe: ReportPipe, events: Iterable[JobReport]) -> JobReports:
    pool, template = pipe.kind
    return JobReports(pool=pool, template=template, reports=tuple(events))


_CURE = "; an agent of root needs CAP_CHOWN in its unit: `headway agent unit` prints the present one"
