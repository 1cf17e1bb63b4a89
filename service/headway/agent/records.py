"""What the agent writes down, so that the next one goes on where it ended: orders, pauses, and every worker.

A worker's record says all that is needed to end it, whatever ``host.toml`` says by then.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import uuid4

from headway.agent import processes, procfs
from headway.agent.backoff import Pause
from headway.agent.orders import Orders
from headway.agent.states import Life
from headway.agent.templates import Ready, Stop, Template
from headway.scaling.model import Assignment, WorkerState
from headway.scaling.reconcile import Start

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One worker. Its process is not known while it is being started, and has none while it backs off."""

    worker_id: str
    pool: str
    template: str
    template_hash: str
    restart_generation: int
    ready: Ready
    stop: Stop
    life: Life
    pid: int = 0
    started_ticks: int = 0
    gpus: tuple[int, ...] = ()
    """The numbers of those that it has to itself."""

    @property
    def kind(self) -> tuple[str, str]:
        """What backs off together."""
        return self.pool, self.template


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """One process that outlived its worker."""

    worker_id: str
    pid: int
    started_ticks: int
    ends_by_s: float
    """When it is ended unless it has ended by itself."""
    pool: str = ""
    template: str = ""
    gpus: tuple[int, ...] = ()
    """The numbers of those that its worker had to itself."""


def placed(start: Start, template: Template | None, *, life: Life, own_gpus: Sequence[int]) -> Record:
    """A new worker of ``template``, with as many as it needs of the GPUs that no other has."""
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
    )


def marks_of(record: Record, *, agent_id: str) -> dict[str, str]:
    """What the environment of a worker tells the next agent, should no file do: whose it is, and as what it started."""
    started_as = {
        "template": record.template,
        "template_hash": record.template_hash,
        "restart_generation": record.restart_generation,
        "is_burst": record.life.is_burst,
        "stop": asdict(record.stop),
    }
    return processes.marks_of(
        worker_id=record.worker_id,
        pool=record.pool,
        agent_id=agent_id,
        started_as=json.dumps(started_as, separators=(",", ":")),
        own_gpus=record.gpus,
    )


def unrecorded(worker_id: str, *, pid: int, started_ticks: int, pool: str, started_as: str = "") -> Record:
    """A worker that only its marks tell of, as one that runs.

    Where they do not say as what it was started, it has no template's name: it is replaced once its pool has workers.
    """
    started_at_s = started_ticks / procfs.TICKS_PER_S
    life = Life(state=WorkerState.RUNNING, started_at_s=started_at_s, since_s=started_at_s)
    record = Record(
        worker_id=worker_id,
        pool=pool,
        template="",
        template_hash="",
        restart_generation=0,
        ready=Ready(),
        stop=Stop(),
        life=life,
        pid=pid,
        started_ticks=started_ticks,
    )
    try:
        told = json.loads(started_as)
        return replace(
            record,
            template=str(told["template"]),
            template_hash=str(told["template_hash"]),
            restart_generation=int(told["restart_generation"]),
            stop=Stop(**told["stop"]),
            life=replace(life, is_burst=bool(told["is_burst"])),
        )
    except (ValueError, TypeError, KeyError):
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything that is written down together."""

    orders: Orders
    spent: Mapping[str, int]
    """Pool -> burst workers that ended by themselves under these orders."""
    pauses: Mapping[tuple[str, str], Pause]
    records: Sequence[Record]
    remains: Sequence[Left] = ()
    """What workers have left that ended."""
    ended: Sequence[str] = ()
    """The ids of workers that ended of late: what bears one of them is no worker."""


EMPTY = Ledger(orders=Orders(), spent={}, pauses={}, records=())


def to_json(ledger: Ledger, *, boot_id: str) -> dict[str, Any]:
    """The ledger as it is written."""
    return {
        "version": VERSION,
        "boot_id": boot_id,
        "orders": asdict(ledger.orders),
        "spent": dict(ledger.spent),
        "pauses": [[*kind, pause.failures, pause.until_s] for kind, pause in ledger.pauses.items()],
        "workers": [asdict(record) for record in ledger.records],
        "remains": [asdict(left) for left in ledger.remains],
        "ended": list(ledger.ended),
    }


def from_json(body: Mapping[str, Any], *, boot_id: str) -> Ledger:
    """The ledger that was written. Of an earlier boot the orders are left: its processes and its seconds are no more.

    Raises:
        ValueError: another version wrote it.
    """
    if body.get("version") != VERSION:
        raise ValueError(f"version {body.get('version')!r} is not {VERSION}")
    try:
        orders = _orders(body["orders"])
        if body["boot_id"] != boot_id:
            return Ledger(orders=orders, spent=body["spent"], pauses={}, records=())
        return Ledger(
            orders=orders,
            spent=body["spent"],
            pauses={
                (pool, template): Pause(failures=failures, until_s=until_s)
                for pool, template, failures, until_s in body["pauses"]
            },
            records=tuple(_record(each) for each in body["workers"]),
            remains=tuple(_left(each) for each in body.get("remains", ())),
            ended=tuple(body.get("ended", ())),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"it is not as this version writes it: {error}") from error


def _orders(body: Mapping[str, Any]) -> Orders:
    rows = body["assignments"]
    return Orders(**{**body, "assignments": None if rows is None else tuple(Assignment(**row) for row in rows)})


def _left(body: Mapping[str, Any]) -> Left:
    return Left(**{**body, "gpus": tuple(body.get("gpus", ()))})


def _record(body: Mapping[str, Any]) -> Record:
    life = {**body["life"], "state": WorkerState(body["life"]["state"])}
    return Record(
        **{
            **body,
            "ready": Ready(**body["ready"]),
            "stop": Stop(**body["stop"]),
            "life": Life(**life),
            "gpus": tuple(body.get("gpus", ())),
        }
    )
