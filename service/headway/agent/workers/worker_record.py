"""What the agent writes down, so that the next one goes on where it ended: orders, pauses, and every worker.

A worker's record holds all that is needed to end it, whatever ``host.toml`` holds by then.
"""

import hashlib
import logging
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, TypeVar
from uuid import uuid4

from headway.agent.config.templates import Ready, Stop, Template, uid_of
from headway.agent.desired_state import DesiredState
from headway.agent.state.rows_file import read_row
from headway.agent.workers.crash_backoff import Pause
from headway.agent.workers.lifecycle import BootSeconds, Life
from headway.agent.workers.main_process import MainProcess, Pid
from headway.errors import Invalid
from headway.local import procfs
from headway.scaling.keys import Form, Range
from headway.scaling.reconcile import Start

VERSION = 1
FORMER_DRAIN_TIMEOUT_S = 60.0  # what earlier versions wrote where nobody had set a deadline
DEADLINES = "has_set_deadlines_only"
"""The key by which this version says that each deadline in a record was set by a person."""

log = logging.getLogger(__name__)

_Row = TypeVar("_Row")


def is_worker_id(value: Any) -> bool:
    """Whether ``value`` has the form of the ids that agents give: it may name a file."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{32}", value) is not None


def _worker_id(value: Any) -> str:
    if not is_worker_id(value):
        raise TypeError("it is none that an agent gives")
    return str(value)


Whole = Annotated[int, Range(0, float("inf"))]
WorkerId = Annotated[str, Form(read=_worker_id)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One worker. Its process is not known while it is being started, and has none while it backs off."""

    worker_id: WorkerId
    pool: str
    template: str
    template_hash: str
    restart_generation: Whole
    ready: Ready
    stop: Stop
    life: Life
    pid: Pid = 0
    started_ticks: int = 0
    """By the boot clock of the agent: below 0 where its time namespace was booted later."""
    gpus: tuple[Whole, ...] = ()
    """The numbers of those that it has to itself."""
    uid: Whole | None = None
    """Who it was started as, or is about to be; ``None`` in records of earlier versions."""
    number: Whole | None = None
    """Its number among the workers of its template; ``None``: an earlier version started it, without one."""
    mains: tuple[MainProcess, ...] = ()
    """The main processes of its library when they were last searched for: what to ask where a wrapper leaves one."""
    queues_hash: str = ""
    """Of the names of queues that stand in its command line; empty: its template has no place for them."""

    @property
    def kind(self) -> tuple[str, str]:
        """What backs off together."""
        return self.pool, self.template

    @property
    def known_pid(self) -> int:
        """The process by which its broker knows it: the main one, also behind a wrapper; of several their parent."""
        return self.mains[0].pid if len(self.mains) == 1 else self.pid

    def has_other_main(self) -> bool:
        """Whether a main process of its library is still there beside the one that was started."""
        return any(procfs.is_there(each.pid, each.started_ticks) for each in self.mains if each.pid != self.pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanRecord:
    """One process that outlived its worker."""

    worker_id: WorkerId
    pid: Pid
    started_ticks: int
    ends_by_s: BootSeconds | None
    """When it is ended unless it has ended by itself; ``None``: never, for nobody has set a deadline."""
    pool: str = ""
    template: str = ""
    gpus: tuple[Whole, ...] = ()
    """The numbers of those that its worker had to itself."""
    number: Whole | None = None
    """Its worker's."""
    is_burst: bool = False
    stop_signal: Annotated[int, Range(1, procfs.SIGNALS_MAX)] = signal.SIGTERM
    must_be_asked: bool = False
    """It is the main process of a library, and nobody has asked it to stop."""
    keeps_place: bool = False
    """Its worker ended without having been asked: no other is started in its place before this one has ended."""
    is_background: bool = False
    """Its worker ended well as soon as it was started: it goes to the background, as each further one would."""


def placed(
    start: Start,
    template: Template | None,
    *,
    life: Life,
    own_gpus: Sequence[int],
    number: int | None = None,
    queues: Sequence[str] = (),
) -> Record:
    """A new worker of ``template`` for ``queues``, its number, and as many GPUs as it needs that no other has."""
    return Record(
        worker_id=uuid4().hex,
        pool=start.pool,
        template=start.template,
        template_hash=template.content_hash if template else "",
        restart_generation=start.restart_generation,
        ready=template.ready if template else Ready(),
        stop=template.stop if template else Stop(),
        life=life,
        gpus=tuple(own_gpus[: template.gpus]) if template else (),
        uid=uid_of(template) if template else None,
        number=number,
        queues_hash=queues_hash(queues) if template and template.fills_queues else "",
    )


def queues_hash(names: Iterable[str]) -> str:
    """The same for the same names in the same order: two thousand of them in each record would be too long."""
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """A process whose marks name a worker of this agent, without a record that the agent started it.

    It takes a place, and nothing else is done about it: it is not asked to stop, and nothing that it names is opened.
    """

    worker_id: WorkerId
    pid: Pid
    started_ticks: int
    pool: str = ""
    """Empty where that is not known: it may be any."""
    template: str = ""
    is_burst: bool = False
    gpus: tuple[Whole, ...] = ()
    number: Whole | None = None
    may_have_any_number: bool = False
    """Its environment cannot be read, so that nobody knows its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything that is written down together."""

    orders: DesiredState
    spent: Mapping[str, int]
    """Pool -> burst workers that ended by themselves under these orders."""
    pauses: Mapping[tuple[str, str], Pause]
    records: Sequence[Record]
    remains: Sequence[OrphanRecord] = ()
    """What workers have left that ended."""
    ended: Sequence[str] = ()
    """The ids of workers that ended of late: what bears one of them is no worker."""
    unrecorded: Sequence[Unrecorded] = ()
    """What may be workers, and has no record but this."""
    processes_id: str = ""
    """Names the processes among which they run; empty: not known."""
    is_ending: bool = False
    """The agent was asked to end with its workers, and has not ended yet."""
    before_boot: Sequence[Record] = ()
    """Workers that ran before the host booted: they are gone."""


EMPTY = Ledger(orders=DesiredState(), spent={}, pauses={}, records=())


def to_json(ledger: Ledger, *, boot_id: str) -> dict[str, Any]:
    """The ledger as it is written."""
    return {
        "version": VERSION,
        DEADLINES: True,
        "boot_id": boot_id,
        "orders": {key: value for key, value in asdict(ledger.orders).items() if key != "queues"},
        "queues": dict(ledger.orders.queues),  # beside the orders, where earlier versions leave it unread
        "spent": dict(ledger.spent),
        "pauses": [[*kind, pause.failures, pause.until_s] for kind, pause in ledger.pauses.items()],
        "workers": [row_of(record) for record in ledger.records],
        "remains": [asdict(left) for left in ledger.remains],
        "ended": list(ledger.ended),
        "unrecorded": [asdict(each) for each in ledger.unrecorded],
        "processes_id": ledger.processes_id,
        "is_ending": ledger.is_ending,
    }


def from_json(body: Mapping[str, Any], *, boot_id: str) -> Ledger:
    """The ledger that was written. Of an earlier boot the orders are left: its processes and its seconds are no more.

    Of the same boot by another clock, as in a time namespace, all times are moved.

    Raises:
        ValueError: another version wrote it.
    """
    if body.get("version") != VERSION:
        raise ValueError(f"version {body.get('version')!r} is not {VERSION}")
    try:
        queues = {str(pool): tuple(map(str, names)) for pool, names in body.get("queues", {}).items()}
        orders = replace(read_row(DesiredState, body["orders"]), queues=queues)
        moved_s = procfs.moved_s(body["boot_id"], boot_id)
        if moved_s is None:
            before = tuple(each for each in _sound(partial(record_of, body), body["workers"]) if each.pid)
            return Ledger(orders=orders, spent=body["spent"], pauses={}, records=(), before_boot=before)
        return Ledger(
            orders=orders,
            spent=body["spent"],
            pauses={
                (pool, template): Pause(failures=failures, until_s=until_s + moved_s)
                for pool, template, failures, until_s in body["pauses"]
            },
            records=tuple(moved(each, moved_s) for each in _sound(partial(record_of, body), body["workers"])),
            remains=tuple(
                replace(
                    each,
                    started_ticks=_ticks(each, moved_s),
                    ends_by_s=None if each.ends_by_s is None else each.ends_by_s + moved_s,
                )
                for each in _sound(partial(read_row, OrphanRecord), body.get("remains", ()))
            ),
            ended=tuple(body.get("ended", ())),
            unrecorded=tuple(
                replace(each, started_ticks=_ticks(each, moved_s))
                for each in _sound(partial(read_row, Unrecorded), body.get("unrecorded", ()))
            ),
            processes_id=str(body.get("processes_id", "")),
            is_ending=body.get("is_ending") is True,
        )
    except (AttributeError, KeyError, TypeError, Invalid) as error:
        raise ValueError(f"it is not as this version writes it: {error}") from error


def _sound(read: Callable[[Mapping[str, Any]], _Row], rows: Iterable[Mapping[str, Any]]) -> Iterator[_Row]:
    """The rows that are as an agent writes them. Earlier versions also wrote processes known by marks."""
    for row in rows:
        try:
            yield read(row)
        except Invalid as error:
            log.warning("left out of the record of workers: %.200r (%s)", row, error)


def row_of(record: Record) -> dict[str, Any]:
    """The record as it is written. An earlier version leaves out a record with a key that it does not know."""
    row = asdict(record)
    if not record.queues_hash:
        del row["queues_hash"]
    return row


def record_of(document: Mapping[str, Any], body: Any) -> Record:
    """The record that ``row_of`` wrote, without the deadline that an earlier version gave to every worker.

    ``document`` is the ledger or the line that holds it. Raises ``Invalid`` for what no agent writes.
    """
    record = read_row(Record, body)
    if DEADLINES in document or record.stop.drain_timeout_s != FORMER_DRAIN_TIMEOUT_S:
        return record
    return replace(record, stop=replace(record.stop, drain_timeout_s=None))


def moved(record: Record, seconds: float) -> Record:
    """The record as a clock counts that is ahead by so many seconds of the one it was written by.

    Times are below 0 where a time namespace was booted after them.
    """
    life = record.life
    life = replace(life, started_at_s=life.started_at_s + seconds, since_s=life.since_s + seconds)
    mains = tuple(replace(each, started_ticks=_ticks(each, seconds)) for each in record.mains)
    return replace(record, started_ticks=_ticks(record, seconds), life=life, mains=mains)


def _ticks(row: Record | OrphanRecord | Unrecorded | MainProcess, moved_s: float) -> int:
    # Earlier versions have written starts as the kernel prints them.
    return procfs.signed_ticks(row.started_ticks) + round(moved_s * procfs.TICKS_PER_S) if row.pid else 0


def may_run_as(started_as: int | None, uid: int | None) -> bool:
    """Whether a process of the user ``uid`` can be one that was started as the other: who is root becomes anybody."""
    return started_as in {None, 0, uid}
