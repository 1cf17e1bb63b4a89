"""Every strategy that is installed, other autoscalers' included, and ``decide`` with all of them."""

from functools import partial
from typing import Any

from headway.scaling import decide as deciding
from headway.scaling.model import Decision, Memory
from headway.scaling.view import PoolView
from headway.strategies import load_strategies
from support.pools import NOW_S, profile, queue, view

INSTALLED = load_strategies()
decide = partial(deciding.decide, strategies=INSTALLED)


def pool(name: str, metrics: dict[str, Any] | None = None, **values: Any) -> PoolView:
    """A pool sized by the strategy ``name`` whose queue is quiet but for ``metrics``; its objective is 10 s."""
    member = queue(**(metrics or {}))
    profiled = {key: values.pop(key) for key in ("workers_min", "workers_max", "strategy_options") if key in values}
    return view(member, profile=profile(strategy=name, **profiled), **values)


def decided(seen: PoolView, memory: Memory | None = None, *, now_s: float = NOW_S) -> Decision:
    return decide(seen, memory or Memory(target_workers=seen.assigned_workers), now_s=now_s)[0]
