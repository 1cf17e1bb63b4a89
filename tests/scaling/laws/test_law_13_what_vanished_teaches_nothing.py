"""Law 13. What jobs did, teaches; what vanished without a start (expired, purged), and what piled up while a person or
the library paused, does not.

The other half is in ``tests/scaling/test_suspensions.py``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import Decision, Memory, Objective, QueueMetrics
from headway.scaling.reading.vanished_jobs import LEARNED
from scaling.laws.drawn import LAW
from support.pools import NOW_S, profile, queue, view

TICK_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Story:
    """A pool that has some jobs, then a backlog of which a worker begins a few, and then nothing."""

    before: tuple[int, ...]
    """Jobs that came, and were begun, by evaluation."""
    backlog_jobs: int
    begun_jobs: int
    """Of the backlog, those that workers begin as all others vanish."""
    backlog_ticks: int
    are_events_reported: bool
    running_workers: int
    start_up_s: float
    target_s: float


STORIES = st.builds(
    lambda begun, **values: Story(begun_jobs=int(begun * values["backlog_jobs"]), **values),
    st.floats(0.0, 0.3),
    before=st.lists(st.integers(0, 5), max_size=6).map(tuple),
    backlog_jobs=st.integers(200, 5_000),
    backlog_ticks=st.integers(1, 9),
    are_events_reported=st.booleans(),
    running_workers=st.integers(0, 20),
    start_up_s=st.floats(0.5, 30.0),
    target_s=st.floats(2.0, 60.0),
)


def evaluations(story: Story, *, has_backlog: bool) -> Iterator[tuple[Decision, Memory]]:
    """Each evaluation of the story, until rates show nothing of it any more; without its backlog nothing comes then."""
    came = [*story.before, story.backlog_jobs if has_backlog else 0, *[0] * (story.backlog_ticks + 16)]
    began, vanishes = len(story.before), len(story.before) + story.backlog_ticks
    memory, starts = Memory(), [*story.before, *[0] * (story.backlog_ticks + 17)]
    if has_backlog:
        starts[vanishes] = story.begun_jobs
    for number in range(len(came)):
        now_s = NOW_S + number * TICK_S
        waiting_jobs = story.backlog_jobs if has_backlog and began <= number < vanishes else 0
        metrics = queue(
            sampled_at_s=now_s - 0.5,
            waiting_jobs=waiting_jobs,
            oldest_age_s=(number - began) * TICK_S if waiting_jobs else 0.0,
            **_events(story, came, starts, number, now_s=now_s),
        )
        seen = view(
            metrics,
            profile=profile(objective=Objective(target_s=story.target_s)),
            running_workers=story.running_workers,
            assigned_workers=story.running_workers,
            start_up_s=story.start_up_s,
            do_workers_report=True,
        )
        decision, memory = decide(seen, memory, now_s=now_s)
        yield decision, memory


def _events(story: Story, came: list[int], starts: list[int], number: int, *, now_s: float) -> dict[str, Any]:
    if not story.are_events_reported:
        rates = [name for name in QueueMetrics.__slots__ if name.endswith(("rate_per_s", "trend_per_s2"))]
        return {"has_unknown_rates": True, "service_time_s": None, **dict.fromkeys(rates)}
    recent = slice(max(0, number - 11), number + 1)
    is_any = any(came[recent]) or any(starts[recent])
    return {
        "arrived_jobs": came[number],
        "arrived_until_s": now_s if is_any else None,
        "arrival_rate_per_s": sum(came[recent]) / 60.0,
        "start_rate_per_s": sum(starts[recent]) / 60.0,
        "completion_rate_per_s": sum(starts[recent]) / 60.0,
    }


@LAW
@given(story=STORIES)
def test_a_backlog_that_vanishes_leaves_the_demands_that_there_would_be_without_it(story: Story) -> None:
    *_, (quiet, _) = evaluations(story, has_backlog=False)
    *_, (after, memory) = evaluations(story, has_backlog=True)
    least = {each.name: each.slots for each in quiet.demands}
    assert {each.name: each.slots for each in after.demands if each.slots > least[each.name]} == {}
    assert memory.backlog is None


@LAW
@given(story=STORIES)
def test_what_was_learned_before_it_is_what_is_known_after_it(story: Story) -> None:
    found = list(evaluations(story, has_backlog=True))
    began = len(story.before)
    (vanished,) = [index for index, (_, memory) in enumerate(found) if memory.backlog and memory.backlog.vanished_jobs]
    assert vanished > began
    before = found[began - 1][1] if began else Memory()
    kept = found[began][1].backlog
    assert kept is not None
    assert kept.learned == {name: before.strategy_state[name] for name in LEARNED if name in before.strategy_state}
    begun_jobs = story.begun_jobs if story.are_events_reported else 0  # else nobody began one: workers would report it
    after, lost_jobs = found[vanished][1], story.backlog_jobs - begun_jobs
    assert after.backlog is not None
    # Each start of the last minute may have been of one of them.
    assert lost_jobs - sum(story.before) <= after.backlog.vanished_jobs <= lost_jobs
    assert f"{after.backlog.vanished_jobs} jobs left without having been started" in " ".join(found[vanished][0].notes)
