"""The judge finds each fault in a recording that has it, and none in one that is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from field.judge import FALL_S, GAP_S_MAX, Rules, verdict
from field.recording import Answer, Event, Kind, Processes, Recording, Shown, events_of

RULES = Rules(floor=0, slots=1, has_reporter=True, is_idle_known=True, is_busy_known=True)
UNTIL_S = 200

# Three workers; the first two have a long job; the third is idle, is asked to leave and goes. Each says so itself.
RIGHT = """
0 ready w1
0 ready w2
0 ready w3
10 start w1 long-0
10 start w2 long-1
20 asked w3
80 end w1 long-0
82 end w2 long-1
86 asked w1
86 asked w2
"""
LIVES = {"w1": (0, 90), "w2": (0, 91), "w3": (0, 22)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A recording by what happened: the API shows the truth each 2 s, but for what ``shown`` says."""

    log: str = RIGHT
    lives: Mapping[str, tuple[float, float]] = field(default_factory=lambda: LIVES)
    shown: Mapping[tuple[str, int], bool | None] = field(default_factory=dict)
    """Worker and second -> whether it is shown as busy."""
    sent: Sequence[str] = ("long-0", "long-1")
    unanswered: range = range(0)

    def recording(self) -> Recording:
        events = events_in(self.log)
        return Recording(
            sent=dict.fromkeys(self.sent, 10.0),
            events=events,
            answers=tuple(
                Answer(at_s=at_s, workers=tuple(self._shown(name, at_s, events) for name in self._alive(at_s)))
                for at_s in range(0, UNTIL_S, 2)
                if at_s not in self.unanswered
            ),
            processes=tuple(Processes(at_s=at_s, worker_ids=frozenset(self._alive(at_s))) for at_s in range(UNTIL_S)),
        )

    def faults(self, rules: Rules = RULES) -> list[str]:
        return verdict(self.recording(), rules).faults

    def _alive(self, at_s: float) -> list[str]:
        return [name for name, (begin_s, end_s) in self.lives.items() if begin_s <= at_s < end_s]

    def _shown(self, name: str, at_s: int, events: Sequence[Event]) -> Shown:
        past = [event for event in events if event.worker_id == name and event.at_s <= at_s]
        jobs = {each.job_id for each in past if each.kind is Kind.START}
        jobs -= {each.job_id for each in past if each.kind is Kind.END}
        is_asked = any(each.kind is Kind.ASKED for each in past)
        is_busy = self.shown.get((name, at_s), bool(jobs))
        return Shown(worker_id=name, state="draining" if is_asked else "running", is_busy=is_busy)


def events_in(log: str) -> tuple[Event, ...]:
    rows = (line.split() for line in log.strip().splitlines())
    return tuple(
        Event(at_s=float(at_s), kind=Kind(kind), worker_id=name, job_id=job[0] if job else "")
        for at_s, kind, name, *job in rows
    )


def without(*lines: str) -> str:
    assert all(f"{line}\n" in RIGHT for line in lines)
    return "\n".join(line for line in RIGHT.splitlines() if line not in lines)


def test_a_right_recording_has_no_fault() -> None:
    found = verdict(Story().recording(), RULES)
    assert found.faults == []
    assert found.figures["jobs"] == 2
    assert found.figures["workers"] == 3
    assert found.figures["asked_with_a_job"] == 0
    assert found.figures["fell_in_s"] == 9.0  # the last end is at 82, the last process ends at 91


def test_a_job_without_an_end_was_cut() -> None:
    log = without("80 end w1 long-0", "86 asked w1")
    assert Story(log=log, lives={**LIVES, "w1": (0, 60)}).faults() == ["long-0 was cut on w1"]


def test_a_job_that_was_cut_and_done_by_another_worker_was_cut_and_begun_twice() -> None:
    log = without("80 end w1 long-0", "86 asked w1") + "\n83 start w2 long-0\n84 end w2 long-0\n"
    faults = Story(log=_sorted(log), lives={**LIVES, "w1": (0, 60)}).faults()
    assert faults == ["long-0 was cut on w1", "long-0 began 2 times"]


def test_a_job_that_two_workers_did_was_begun_twice() -> None:
    log = RIGHT + "83 start w1 long-1\n84 end w1 long-1"
    assert Story(log=log).faults() == ["long-1 began 2 times"]


def test_a_job_that_no_worker_began_is_missing() -> None:
    assert Story(sent=("long-0", "long-1", "lost")).faults() == ["lost was never begun"]


def test_a_busy_worker_is_not_asked_beside_an_idle_one() -> None:
    log = without("20 asked w3", "86 asked w1") + "\n20 asked w1\n86 asked w3"
    faults = Story(log=log, lives={**LIVES, "w3": (0, 90)}).faults()
    assert faults == ["w1 was asked to stop with long-0 while w3 was idle"]


def test_where_nobody_knows_who_is_idle_only_headways_own_word_counts() -> None:
    log = without("20 asked w3", "86 asked w1") + "\n20 asked w1\n86 asked w3"
    story = Story(log=log, lives={**LIVES, "w3": (0, 90)})
    rules = replace(RULES, is_idle_known=False)
    assert story.faults(rules) == ["w1 was asked to stop with long-0 while w3 was idle"]
    blind = replace(story, shown={("w3", at_s): None for at_s in range(UNTIL_S)})
    assert blind.faults(rules) == []
    assert verdict(blind.recording(), rules).figures["asked_with_a_job"] == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("16 start w3 short", "it has a job"),
        ("18 end w3 short", "it had one a moment ago"),
        ("22.5 start w3 short", "it gets one in the same moment"),
        ("19 asked w3", "it was asked before"),
        ("20.5 asked w3", "it is asked in the same pass"),
    ],
)
def test_a_worker_is_no_idle_one_that_could_have_left(line: str, why: str) -> None:
    more = {"18 end w3 short": "15 start w3 short\n"}.get(line, "") + line
    more += {"16 start w3 short": "\n40 end w3 short", "22.5 start w3 short": "\n40 end w3 short"}.get(line, "")
    log = without("20 asked w3", "86 asked w1") + f"\n20 asked w1\n{more}\n"
    sent = ("long-0", "long-1", *(["short"] if "short" in line else []))
    faults = Story(log=_sorted(log), lives={**LIVES, "w3": (0, 60)}, sent=sent).faults(replace(RULES, slots=4))
    assert faults == [], why


def _sorted(log: str) -> str:
    return "\n".join(sorted(filter(None, log.splitlines()), key=lambda line: float(line.split()[0])))


def test_a_job_that_began_a_moment_before_the_request_could_not_be_known() -> None:
    log = without("20 asked w3", "86 asked w1", "10 start w1 long-0") + "\n18 start w1 long-0\n20 asked w1\n86 asked w3"
    assert Story(log=_sorted(log), lives={**LIVES, "w3": (0, 90)}).faults() == []


def test_as_many_workers_stay_as_the_jobs_that_run_need() -> None:
    log = without("86 asked w1") + "\n21 asked w1"
    assert Story(log=_sorted(log)).faults() == ["w1 was asked to stop: 2 jobs run, and 1 workers stay"]
    assert Story(log=_sorted(log)).faults(replace(RULES, slots=2)) == []  # one worker has room for both jobs
    assert Story(log=_sorted(log)).faults(replace(RULES, is_busy_known=False)) == []


def test_requests_that_no_log_has_are_taken_from_the_api() -> None:
    log = without("20 asked w3", "86 asked w1", "86 asked w2")
    recording = Story(log=log, lives={**LIVES, "w3": (0, 90)}).recording()
    draining = tuple(
        replace(
            answer,
            workers=tuple(
                replace(worker, state="draining" if worker.worker_id == "w2" and answer.at_s >= 30 else "running")
                for worker in answer.workers
            ),
        )
        for answer in recording.answers
    )
    faults = verdict(replace(recording, answers=draining), RULES).faults
    assert "w2 was asked to stop with long-1 while w3 was idle" in faults


def test_a_worker_with_a_job_is_not_shown_as_idle() -> None:
    assert Story(shown={("w1", 14): False, ("w1", 16): False}).faults() == ["w1 was shown idle 4 s into long-0"]


def test_a_worker_may_be_shown_as_idle_just_after_a_start_and_as_unknown_at_any_time() -> None:
    assert Story(shown={("w1", 12): False, ("w2", 40): None}).faults() == []


def test_a_pool_comes_down_to_its_floor_in_time() -> None:
    late_s = 82 + FALL_S + 2
    assert Story(lives={**LIVES, "w2": (0, late_s)}).faults() == [
        "2 workers came down to 0 32 s after its last job, not within 30 s"
    ]
    assert Story(lives={**LIVES, "w2": (0, UNTIL_S)}).faults() == ["2 workers came down to 0 never, not within 30 s"]
    assert Story(lives={**LIVES, "w2": (0, UNTIL_S)}).faults(replace(RULES, floor=1)) == []


def test_a_cut_job_keeps_the_pool_up_until_its_worker_is_gone() -> None:
    log = without("82 end w2 long-1", "86 asked w2")
    assert Story(log=log, lives={**LIVES, "w2": (0, 125)}).faults() == ["long-1 was cut on w2"]


def test_without_reporters_each_worker_has_time_to_leave() -> None:
    rules = replace(RULES, has_reporter=False)
    four = {**LIVES, "w3": (0, 122), "w4": (0, 125)}  # 43 s after the last end, and four of them may take 60 s
    assert Story(lives=four).faults(rules) == []
    assert Story(lives={**LIVES, "w2": (0, 122)}).faults(rules) == [
        "2 workers came down to 0 40 s after its last job, not within 30 s"
    ]


def test_what_is_left_behind_counts_as_a_worker() -> None:
    """Its wrapper has gone, and its own process still lives: the API does not list it, and the process list does."""
    story = Story(lives={**LIVES, "w1": (0, UNTIL_S)})
    recording = story.recording()
    unlisted = tuple(
        replace(answer, workers=tuple(each for each in answer.workers if each.worker_id != "w1" or answer.at_s < 88))
        for answer in recording.answers
    )
    assert verdict(replace(recording, answers=unlisted), RULES).faults == [
        "2 workers came down to 0 never, not within 30 s"
    ]


def test_a_recording_that_saw_nothing_is_not_right() -> None:
    assert Story(unanswered=range(30, 31 + int(GAP_S_MAX))).faults() == ["no answer for 24 s while jobs ran"]
    assert verdict(replace(Story().recording(), processes=()), RULES).faults == [
        "no list of processes for 72 s while jobs ran"
    ]
    assert Story(log="0 ready w1", sent=()).faults() == ["no job was seen"]


def test_the_applications_log_is_read_by_its_times() -> None:
    lines = [
        '{"at_s": 2.0, "kind": "end", "worker_id": "w", "pid": 7, "job_id": "a"}',
        '{"at_s": 1.0, "kind": "start", "worker_id": "w", "pid": 7, "job_id": "a"}',
    ]
    assert [event.kind for event in events_of(lines)] == [Kind.START, Kind.END]
