"""What the agent writes down, so that the next one goes on where it ended: orders, pauses, and every worker.

A worker's record says all that is needed to end it, whatever ``host.toml`` says by then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headway.agent.backoff import Pause
from headway.agent.orders import Orders
from headway.agent.states import Life
from headway.agent.templates import Ready, Stop
from headway.scaling.model import Assignment, WorkerState

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

    @property
    def kind(self) -> tuple[str, str]:
        """What backs off together."""
        return self.pool, self.template


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything that is written down together."""

    orders: Orders
    spent: Mapping[str, int]
    """Pool -> burst workers that ended by themselves under these orders."""
    pauses: Mapping[tuple[str, str], Pause]
    records: Sequence[Record]


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
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"it is not as this version writes it: {error}") from error


def _orders(body: Mapping[str, Any]) -> Orders:
    rows = body["assignments"]
    return Orders(**{**body, "assignments": None if rows is None else tuple(Assignment(**row) for row in rows)})


def _record(body: Mapping[str, Any]) -> Record:
    life = {**body["life"], "state": WorkerState(body["life"]["state"])}
    return Record(**{**body, "ready": Ready(**body["ready"]), "stop": Stop(**body["stop"]), "life": Life(**life)})
