"""Law 11. The same ``decide`` serves the live loop, the simulator, the back-test and ``explain``.

The stored decision is the only story: its explanation, and what goes on from it, needs nothing that was not stored.
"""

import json
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.fair_share import urgency
from headway.scaling.decisions.worst_wait import worst_wait
from headway.scaling.explain import explained
from headway.scaling.mapping import from_mapping
from headway.scaling.model import DayPaid, Decision, HoldCosts, LastMove, Memory, Wanted
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, by_every_strategy, views
from support.installed import decide
from support.pools import NOW_S


@LAW
@given(view=views(), memory=MEMORIES)
def test_a_stored_decision_gives_the_same_explanation(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        stored = from_mapping(Decision, json.loads(json.dumps(asdict(decision))))
        assert stored == decision
        assert explained(stored) == explained(decision)
        assert worst_wait(stored, seen.profile) == worst_wait(decision, seen.profile)
        assert urgency(stored, seen.profile) == urgency(decision, seen.profile)


@LAW
@given(view=views(), memory=MEMORIES)
def test_the_story_adds_up(view: PoolView, memory: Memory) -> None:
    """It begins with the greatest demand, ends with the target, and the binding reason is the last that moved it."""
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        first, last = decision.steps[0], decision.steps[-1]
        greatest = max(demand.slots for demand in decision.demands)
        assert first.name == "wanted"
        assert (first.workers - 1) * seen.slots_per_worker < greatest + 1e-6
        assert first.workers * seen.slots_per_worker >= greatest - 1e-6
        assert last.workers == decision.target_workers
        movers = [after.name for before, after in pairwise(decision.steps) if after.workers != before.workers]
        named = {"idle", *(demand.name for demand in decision.demands)}
        assert decision.binding == movers[-1] if movers else decision.binding in named


def stored(memory: Memory) -> Memory:
    """``memory`` as it comes back from where it was stored."""
    body = json.loads(json.dumps(asdict(memory)))
    return Memory(
        version=body["version"],
        target_workers=body["target_workers"],
        paused_workers=body["paused_workers"],
        wanted=tuple(Wanted(**wanted) for wanted in body["wanted"]),
        lows=tuple(Wanted(**wanted) for wanted in body["lows"]),
        last_move=LastMove(**body["last_move"]) if body["last_move"] else None,
        hold_costs=_hold_costs(body["hold_costs"]) if body["hold_costs"] else None,
        missed_evaluations=body["missed_evaluations"],
        held_since_s=body["held_since_s"],
        day_paid=DayPaid(**body["day_paid"]) if body["day_paid"] else None,
        strategy_state=body["strategy_state"],
    )


def _hold_costs(body: dict[str, Any]) -> HoldCosts:
    bands = tuple(tuple(costs) for costs in body["bands"])
    return HoldCosts(began_at_s=body["began_at_s"], at_s=body["at_s"], levels=tuple(body["levels"]), bands=bands)


@LAW
@given(view=views(), memory=MEMORIES, ticks=st.integers(1, 4))
def test_a_restart_between_two_evaluations_changes_nothing(view: PoolView, memory: Memory, ticks: int) -> None:
    """All that deciding remembers survives being stored as JSON."""
    for seen in by_every_strategy(view):
        running = restarted = memory
        for tick in range(ticks):
            decision, running = decide(seen, running, now_s=NOW_S + 5.0 * tick)
            again, restarted = decide(seen, stored(restarted), now_s=NOW_S + 5.0 * tick)
            assert again == decision, seen.profile.strategy
