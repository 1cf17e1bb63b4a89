"""The queue through which reports reach Postgres: in batches, and those that change little as a few numbers.

Between two changes of its workers a host reports the same again and again. A digest of its last report is known here,
and then only measurements and the lease are written. Another control plane may have written a later report meanwhile:
Postgres finds that the stored report is another one, and the whole of it is written.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from headway.control.agents.batcher import Batcher
from headway.errors import HeadwayError, Invalid, Unavailable
from headway.scaling.fields import taken_from
from headway.scaling.model import HostCapacity
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_assignments import unknown
from headway.store.hosts.host_reports import HostReport, Outcome, Pulse, record_reports

REPORT_WRITERS = 1  # two could wait for each other's hosts
REPORT_WRITER_REST_S = 0.1  # a transaction costs as much as a dozen reports in it; an evaluation reads each 5 s
TOGETHER_MAX = 500
REPORT_LONG_ROWS = 200  # of one report: more than most hosts have workers
REPORT_WRITER_TRIES_MAX = 50  # rests: longer than any transaction of a tick
HOSTS_MAX = 100_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportHeartbeat:
    """The part of every report: who, how often, what is measured; and the digest of all else."""

    host_id: str
    boot_id: str
    sequence: int
    epoch_seen: int
    capacity: HostCapacity
    content: bytes
    """Empty where the report holds events: then it is needed whole."""


class ReportWriter:
    """Writes down what hosts report."""

    def __init__(self, *, engine: Engine) -> None:
        self._engine = engine
        self._written: dict[str, tuple[str, int, bytes]] = {}
        """Host -> boot, sequence and content of the newest report that was written from here."""
        self._line = Batcher(
            self._record, lines=REPORT_WRITERS, questions_max=TOGETHER_MAX, rest_s=REPORT_WRITER_REST_S
        )
        # A long report of one host must not delay others: it has a queue, and a transaction, of its own.
        self._long = Batcher(self._record, lines=REPORT_WRITERS, questions_max=1, rest_s=REPORT_WRITER_REST_S)

    async def beat(self, beat: ReportHeartbeat) -> bool:
        """Hold the host for known for another lease. Returns whether that was enough, or a whole report is needed.

        Raises:
            Unavailable: its row is locked for long.
        """
        boot_id, follows, content = self._written.get(beat.host_id, ("", 0, b""))
        is_as_before = bool(content) and (boot_id, content) == (beat.boot_id, beat.content)
        if not is_as_before or beat.sequence <= follows:
            return False
        if await self._ask(taken_from(Pulse, beat, follows=follows)) is not Outcome.TAKEN:
            return False
        self._remember(beat)
        return True

    async def report(self, report: HostReport, beat: ReportHeartbeat) -> bool:
        """Write a whole report. Returns whether it was taken: an older one of the same boot is not.

        Raises:
            NotFound: nobody knows the host.
            Invalid: Postgres does not take its contents.
            Unavailable: its row is locked for long.
        """
        outcome = await self._ask(report)
        if outcome is None:
            raise Invalid(f"what host_id={report.host_id} reports cannot be written: see the control plane's log")
        if outcome is Outcome.UNKNOWN:
            raise unknown(report.host_id)
        if outcome is Outcome.TAKEN:
            self._remember(beat)
        return outcome is Outcome.TAKEN

    def _remember(self, beat: ReportHeartbeat) -> None:
        if len(self._written) >= HOSTS_MAX:
            self._written.clear()
        self._written[beat.host_id] = (beat.boot_id, beat.sequence, beat.content)

    async def _ask(self, reports: HostReport | Pulse) -> Outcome | None:
        line = self._long if isinstance(reports, HostReport) and _rows(reports) > REPORT_LONG_ROWS else self._line
        for _ in range(REPORT_WRITER_TRIES_MAX):
            outcome = await line.ask(reports.host_id, reports)
            if outcome is not Outcome.LOCKED:
                return outcome
        raise Unavailable(f"what is known of host_id={reports.host_id} is being written for long: try again")

    async def _record(self, reports: Mapping[str, HostReport | Pulse]) -> Mapping[str, Outcome | None]:
        """What became of ``reports``, by host; ``None`` of one that Postgres does not take."""
        try:
            async with transaction(self._engine) as connection:
                return await record_reports(connection, list(reports.values()))
        except HeadwayError:
            raise  # Postgres is away, or gave up: no report is to blame
        except Exception:
            if len(reports) > 1:
                return await self._record_apart(reports)
            log.exception("a report cannot be written host_id=%s", next(iter(reports)))
            return dict.fromkeys(reports)

    async def _record_apart(self, reports: Mapping[str, HostReport | Pulse]) -> Mapping[str, Outcome | None]:
        """Write ``reports`` in halves, until what spoils it is alone: one host must not silence the others."""
        hosts = list(reports)
        outcomes: dict[str, Outcome | None] = {}
        for half in (hosts[: len(hosts) // 2], hosts[len(hosts) // 2 :]):
            outcomes.update(await self._record({host_id: reports[host_id] for host_id in half}))
        return outcomes


def _rows(report: HostReport) -> int:
    return len(report.workers) + len(report.templates) + len(report.start_ups) + len(report.exits)
