"""What agents ask of the control plane once it knows them: to report, and to receive what to run."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from headway.control.agents.batcher import Batcher
from headway.control.agents.disconnects import Disconnects
from headway.control.agents.report_writer import ReportHeartbeat, ReportWriter
from headway.control.agents.worker_quota import WorkerQuota
from headway.control.bounds import DEFAULT, Bounds
from headway.errors import Overloaded
from headway.store.engine import WAKE, Engine, transaction
from headway.store.hosts.host_assignments import HostAssignments, read_standings, unknown
from headway.store.hosts.host_lease import HOST_LEASE_S
from headway.store.hosts.host_reports import HostReport
from headway.store.hosts.hosts import note_certificate, read_cluster_id
from headway.store.leadership import note_ahead

POLL_WAIT_MAX_S = 300.0
# A host whose workers a broker reports needs their hints now and then; after a change the broker may begin to.
AGENT_HINTED_WAIT_S = 20.0
# When every agent connects anew they queue here, so that the tick, ingest and people still find a connection free.
AGENT_STATEMENTS_AT_ONCE = 2
POLL_LINES = 2
# A storm of ten thousand was over after 30 s so, and after 44 s where all were answered in one go.
AGENT_ANSWERS_TOGETHER_MAX = 500
KNOWN_MAX = 100_000
AGENT_POLLS_PER_HOST_MAX = 8  # an agent has one; those it left behind end with their connections

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedAssignment:
    """What an agent has: the epoch and revision of the assignment that it acts on, 0 and 0 before the first."""

    cluster_id: str
    host_id: str
    epoch: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The last answer to a host."""

    epoch: int
    revision: int
    is_hinted: bool
    """Whether a broker reports its workers, or may have begun to."""


class AgentService:
    """Answers agents. Polls are held here, one event a host; ``host_changed`` ends the wait of those concerned.

    The last answer to a host is kept until a notification of its change, so that an agent that returns with that answer
    is held without a query to Postgres.
    """

    def __init__(self, *, engine: Engine, bounds: Bounds = DEFAULT, refused: Counter[str] | None = None) -> None:
        self._engine = engine
        self._room = WorkerQuota(engine=engine, bounds=bounds, refused=refused)
        self._held: dict[str, _HeldPoll] = {}
        self._known: dict[str, _Known] = {}
        self._statements = asyncio.Semaphore(AGENT_STATEMENTS_AT_ONCE)
        self._standings = Batcher(self._read, lines=POLL_LINES, questions_max=AGENT_ANSWERS_TOGETHER_MAX)
        self._line = ReportWriter(engine=engine)
        self.hang_ups = Disconnects(engine=engine)
        self._certificate_ends_s: dict[str, float | None] = {}
        self._cluster_id: str | None = None
        self._asking_cluster = asyncio.Lock()

    def host_changed(self, notice: str) -> None:
        """The assignments of one host or several have changed: their ids with commas between.

        The payload of a fresh connection means any host.
        """
        if notice == WAKE:
            self._cluster_id = None  # another database may answer at the same address
            self._known.clear()
            for held in self._held.values():
                held.wake()
            return
        for host_id in notice.split(","):
            self._known.pop(host_id, None)
            if host_id in self._held:
                self._held[host_id].wake()

    async def cluster_id(self) -> str:
        """The id of this installation, sent with every answer."""
        if self._cluster_id is not None:
            return self._cluster_id
        async with self._asking_cluster:  # asked once for all who want to know
            cluster_id = self._cluster_id
            if cluster_id is None:
                async with transaction(self._engine) as connection:
                    cluster_id = self._cluster_id = await read_cluster_id(connection)
            return cluster_id  # the kept one may have been forgotten just now

    async def report(self, beat: ReportHeartbeat, whole: Callable[[], HostReport], *, cluster_id: str) -> float:
        """Take a report. Returns for how many seconds the host is now held for known.

        ``whole`` is asked for only where ``beat`` alone is not enough. A report for another cluster is not
        taken: its host means nothing here, and the answer's cluster id says so.

        Raises:
            NotFound: the host is not enrolled.
            Invalid: it reports more workers than there is room for.
        """
        is_ours = cluster_id == await self.cluster_id()
        if is_ours and not await self._line.beat(beat):
            report = whole()
            await self._room.require(report.host_id, len(report.workers))
            if not await self._line.report(report, beat):
                log.info("ignored late report host_id=%s sequence=%d", beat.host_id, beat.sequence)
        return HOST_LEASE_S

    async def certified(self, host_id: str, *, ends_at_s: float | None) -> None:
        """Note when the certificate ends with which the host calls, if that has changed; ``None``: without one."""
        if self._certificate_ends_s.get(host_id) == ends_at_s:
            return
        if len(self._certificate_ends_s) >= KNOWN_MAX:
            self._certificate_ends_s.clear()
        async with self._statements, transaction(self._engine) as connection:
            await note_certificate(connection, host_id, ends_at_s=ends_at_s)
        self._certificate_ends_s[host_id] = ends_at_s

    async def poll(
        self, having: AppliedAssignment, *, wait_s: float, recheck: Callable[[], Awaitable[None]] | None = None
    ) -> HostAssignments:
        """What the host is to run, as soon as that is newer than what it has, else the same again after ``wait_s``.

        For a host of another cluster that is nothing, at once. ``recheck`` is asked before each wait, and raises where
        the caller may no longer receive it.

        Raises:
            NotFound: the host is not enrolled.
            Overloaded: too many polls of the host are held.
        """
        if having.cluster_id != await self.cluster_id():
            return HostAssignments(epoch=0, revision=0)
        asked_at_s = asyncio.get_running_loop().time()
        wait_s = min(max(wait_s, 0.0), POLL_WAIT_MAX_S)
        is_noted = False
        with self._hold(having.host_id) as held:
            while True:
                changed = held.changed  # taken before reading: what changes from here on ends the wait
                if recheck is not None:
                    await recheck()
                if not self._is_newest(having):
                    standing = await self._standing(having.host_id, held)
                    if (standing.epoch, standing.revision) > (having.epoch, having.revision) or standing.kills:
                        return standing
                    if (standing.epoch, standing.revision) < (having.epoch, having.revision) and not is_noted:
                        await self._note_ahead(having)
                        is_noted = True
                        continue
                try:
                    async with asyncio.timeout_at(asked_at_s + self._patience_s(having.host_id, wait_s=wait_s)):
                        await changed.wait()
                except TimeoutError:
                    return await self._standing(having.host_id, held)

    def _is_newest(self, having: AppliedAssignment) -> bool:
        known = self._known.get(having.host_id)
        return known is not None and (known.epoch, known.revision) == (having.epoch, having.revision)

    def _patience_s(self, host_id: str, *, wait_s: float) -> float:
        known = self._known.get(host_id)
        return min(wait_s, AGENT_HINTED_WAIT_S) if known is not None and known.is_hinted else wait_s

    async def _standing(self, host_id: str, held: "_HeldPoll") -> HostAssignments:
        """What the host is to run, by Postgres; remembered unless it has changed since it was read."""
        changed = held.changed
        standing = await self._standings.ask(host_id, host_id)
        if standing is None:
            raise unknown(host_id)
        if changed is held.changed:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            has_just_changed = host_id not in self._known and bool(standing.assignments)
            self._known[host_id] = _Known(
                epoch=standing.epoch,
                revision=standing.revision,
                is_hinted=bool(standing.hints) or has_just_changed,
            )
        return standing

    async def _read(self, host_ids: Mapping[str, str]) -> Mapping[str, HostAssignments | None]:
        async with transaction(self._engine) as connection:
            known = await read_standings(connection, host_ids)
        return {host_id: known.get(host_id) for host_id in host_ids}

    async def _note_ahead(self, having: AppliedAssignment) -> None:
        log.warning(
            "host_id=%s acts on epoch=%d revision=%d, which this database does not know: it was restored",
            *(having.host_id, having.epoch, having.revision),
        )
        async with self._statements, transaction(self._engine) as connection:
            await note_ahead(connection, having.host_id, epoch=having.epoch, revision=having.revision)

    @contextmanager
    def _hold(self, host_id: str) -> Iterator["_HeldPoll"]:
        """What the polls of the host wait for, kept while there is one."""
        held = self._held.setdefault(host_id, _HeldPoll())
        if held.polls >= AGENT_POLLS_PER_HOST_MAX:
            raise Overloaded(f"{held.polls} polls of host_id={host_id} are held already: wait for one of them")
        held.polls += 1
        self.hang_ups.called(host_id)
        try:
            yield held
        except asyncio.CancelledError:
            if held.polls == 1:
                self.hang_ups.ended(host_id)
            raise
        else:
            if held.polls == 1:
                self.hang_ups.answered(host_id)
        finally:
            held.polls -= 1
            if held.polls == 0:
                del self._held[host_id]


class _HeldPoll:
    """The polls of one host. Each change has an event of its own, so that no poll can take it from another."""

    def __init__(self) -> None:
        self.polls = 0
        self.changed = asyncio.Event()

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()
