"""Short ways to write claims, rows and hosts that run them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headway.scaling.allocation.fair_share import Claim, shared
from headway.scaling.allocation.grants import Allotment, allotted
from headway.scaling.model import Assignment, Host
from scaling.floors import host, target_of, template, worker

SIZES = tuple(template(name, cores) for name, cores in [("one", 1), ("two", 2), ("three", 3), ("four", 4), ("five", 5)])


def claim(pool: str, size: str, workers: int, floor: int = 0, **values: Any) -> Claim:
    return Claim(pool=pool, template=size, workers=workers, guaranteed_workers=floor, **values)


def share(claims: Iterable[Claim], hosts: Sequence[Host], **rows: Iterable[Assignment]) -> dict[str, int]:
    """Pool -> workers, as ``shared`` grants them."""
    return dict(shared(claims, hosts, **rows).granted)


def row(pool: str, host_id: str, workers: int, size: str = "one") -> Assignment:
    return Assignment(pool=pool, host_id=host_id, template=size, base_workers=workers)


def fleet(cores: Mapping[str, float], rows: Sequence[Assignment], busy: Mapping[tuple[str, str], int]) -> list[Host]:
    """Hosts that run ``rows``; of a pool on a host so many workers are ``busy``, the others idle."""
    return [
        replace(
            host(host_id, size, templates=SIZES),
            workers=tuple(
                worker(each, is_busy=number < busy.get((each.pool, host_id), 0))
                for each in rows
                if each.host_id == host_id
                for number in range(each.workers)
            ),
        )
        for host_id, size in cores.items()
    ]


def allot(claims: Sequence[Claim], hosts: Sequence[Host], rows: Sequence[Assignment]) -> Allotment:
    return allotted([target_of(each) for each in claims], hosts, rows, claims=lambda: claims)
