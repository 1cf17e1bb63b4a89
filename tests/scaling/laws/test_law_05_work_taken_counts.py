"""Law 5. Work already taken but not finished (prefetched, reserved, unacknowledged, running) counts as work."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import Memory
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, by, views
from support.pools import NOW_S

FRESH_AGO_S = st.floats(0, 20)


@LAW
@given(view=views(sampled_ago_s=FRESH_AGO_S), memory=MEMORIES, more=st.integers(0, 200))
def test_more_work_in_flight_never_lowers_a_demand(view: PoolView, memory: Memory, more: int) -> None:
    """Of the slots that there are, so that a job in work makes an idle slot a busy one. Where nothing is known of it,
    every slot is taken to be busy: that is no fewer jobs in work, but more.
    """
    known = tuple(replace(queue, in_flight_jobs=queue.in_flight_jobs or 0) for queue in view.queues)
    view = replace(view, queues=known, direct=())
    slots = sum(queue.in_flight_jobs or 0 for queue in view.queues) + more
    seen = by("hybrid", replace(view, running_workers=max(view.running_workers, -(-slots // view.slots_per_worker))))
    first, *others = seen.queues
    # Not known is not none: it counts as all that run, and learning that there are few may well lower a demand.
    known, fuller = (replace(first, in_flight_jobs=(first.in_flight_jobs or 0) + jobs) for jobs in (0, more))
    views_of_both = (replace(seen, queues=(each, *others)) for each in (known, fuller))
    before, after = (decide(each, memory, now_s=NOW_S)[0] for each in views_of_both)
    slots_before = max(demand.slots for demand in before.demands)
    assert max(demand.slots for demand in after.demands) >= slots_before * (1 - 1e-9) - 1e-9


@LAW
@given(view=views(sampled_ago_s=FRESH_AGO_S), memory=MEMORIES)
def test_every_job_in_flight_has_a_slot_in_the_demand(view: PoolView, memory: Memory) -> None:
    """A quiet queue with jobs in work is not an empty one: whoever works on is wanted."""
    decision, _ = decide(by("hybrid", view), memory, now_s=NOW_S)
    in_flight = sum(queue.in_flight_jobs or 0 for queue in decision.metrics)
    assert max(demand.slots for demand in decision.demands) >= in_flight - 1e-9


@LAW
@given(view=views(sampled_ago_s=FRESH_AGO_S), memory=MEMORIES, taken=st.integers(1, 200))
def test_a_prediction_waits_for_work_in_flight_too(view: PoolView, memory: Memory, taken: int) -> None:
    known = tuple(replace(queue, in_flight_jobs=queue.in_flight_jobs or 0) for queue in view.queues)
    # Nobody stays for being busy: the target is the same.
    seen = replace(by("hybrid", view), assigned_workers=0, queues=known)
    first, *others = seen.queues
    fuller = replace(seen, queues=(replace(first, in_flight_jobs=(first.in_flight_jobs or 0) + taken), *others))
    fixed = replace(memory, target_workers=30)
    before, after = (decide(by("fixed", each), fixed, now_s=NOW_S)[0].predicted_pickup_s for each in (seen, fuller))
    if before is not None:
        assert after is not None
        assert after >= before
