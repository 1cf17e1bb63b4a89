"""Many pools under many candidates, added up: what each candidate would come to if every pool ran under it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from headway.simulate.report.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """One candidate over all pools that were rehearsed under every candidate."""

    candidate: str
    pools: int
    kept_pools: int
    """Of these the objective was met."""
    jobs: int
    in_time_percent: float
    """Of all pools' jobs together."""
    worker_hours: float
    work_hours: float
    spawns: int
    kills: int
    flips: int
    by_phase: tuple["Total", ...] = ()
    """The same at each tick phase, where there are several."""

    @property
    def work_multiple(self) -> float | None:
        """Worker-hours for each hour of work; ``None`` without work."""
        return self.worker_hours / self.work_hours if self.work_hours else None


def totals(pools: Mapping[str, Sequence[Row]]) -> tuple[Total, ...]:
    """What every candidate comes to, in the candidates' order.

    Pools that some candidate is missing of would favour it; they are left out.
    """
    candidates = tuple(dict.fromkeys(row.strategy for rows in pools.values() for row in rows))
    whole = [rows for rows in pools.values() if {row.strategy for row in rows} == set(candidates)]
    return tuple(_total(name, [row for rows in whole for row in rows if row.strategy == name]) for name in candidates)


def _total(name: str, rows: Sequence[Row]) -> Total:
    phases = min((len(row.result.phases) for row in rows), default=0)
    at_phases = tuple(_sum(name, [_at_phase(row, number) for row in rows]) for number in range(phases))
    return replace(_sum(name, rows), by_phase=at_phases)


def _at_phase(row: Row, number: int) -> Row:
    phase = row.result.phases[number]
    figures = {each.name: getattr(phase, each.name) for each in fields(phase) if each.name != "tick_phase_s"}
    return replace(row, result=replace(row.result, **figures))


def _sum(name: str, rows: Sequence[Row]) -> Total:
    results = [row.result for row in rows]
    jobs = sum(result.jobs for result in results)
    in_time = sum(result.attainment_percent * result.jobs for result in results)
    return Total(
        candidate=name,
        pools=len(rows),
        kept_pools=sum(row.is_kept for row in rows),
        jobs=jobs,
        in_time_percent=in_time / jobs if jobs else 100.0,
        **{name: sum(getattr(result, name) for result in results) for name in _SUMMED},
    )


_SUMMED = ("worker_hours", "work_hours", "spawns", "kills", "flips")
