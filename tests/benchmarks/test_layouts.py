"""The layouts of applications that a page describes are ones that Headway runs, and that a benchmark can measure."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.simulate.replay import RecordedJob
from support.application_hosts import with_stand_ins

NAMES = ("frappe", "mastodon", "redash")


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_a_layout_have_no_mistake(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from public_layouts.described import described
    from public_layouts.loads import ORIGINALS

    layout = described(ORIGINALS[name])
    profiles, host = tmp_path / "profiles.yaml", tmp_path / "host.toml"
    profiles.write_text(layout.profiles_text)
    host.write_text(with_stand_ins(layout.host_text, tmp_path))
    assert main(["validate", str(profiles)]) == 0
    said = capsys.readouterr()
    warnings = [line for line in (said.out + said.err).splitlines() if line.startswith("warning:")]
    assert [line for line in warnings if "Sidekiq gives back jobs" not in line] == []  # which the page explains
    assert main(["agent", "check", "--offline", "--host-file", str(host), "--state-dir", str(tmp_path / "state")]) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_load_keeps_two_fifths_of_the_original_busy_and_bursts_by_half_a_minute_of_it(name: str) -> None:
    from public_layouts.loads import ORIGINALS

    original = ORIGINALS[name]
    assert original.busy_fraction == pytest.approx(0.4, abs=0.02)
    burst_s = sum(load.burst_jobs * load.service_s for load in original.loads.values())
    assert burst_s == 30 * len(original.slots)


@pytest.mark.parametrize("name", NAMES)
def test_the_stand_ins_take_the_queues_of_the_original_in_its_order(name: str) -> None:
    from public_layouts.described import described
    from public_layouts.loads import ORIGINALS

    original = ORIGINALS[name]
    layout = described(original)
    written = {tuple(map(layout.queue, slot)) for slot in original.slots}
    assert written <= set(layout.templates.values())
    assert all(
        name in {queue for queues in layout.templates.values() for queue in queues}
        for name in map(layout.queue, original.loads)
    )


@pytest.mark.parametrize(
    ("slots", "waits_s"),
    [
        ([["a", "b"]], {"a": (0.0, 8.0), "b": (12.0,)}),  # busy until 10 s and 14 s; a before b, though b came first
        ([["a", "b"], ["b"]], {"a": (0.0, 8.0), "b": (0.0,)}),  # b has a slot of its own
    ],
)
def test_a_fixed_slot_takes_from_its_first_queue_that_has_jobs(
    slots: Sequence[Sequence[str]], waits_s: dict[str, tuple[float, ...]]
) -> None:
    from public_layouts.fixed import fixed_waits_s

    jobs = {
        "a": [RecordedJob(at_s=0.0, service_s=10.0), RecordedJob(at_s=2.0, service_s=4.0)],
        "b": [RecordedJob(at_s=2.0, service_s=1.0)],
    }
    assert fixed_waits_s(jobs, slots) == waits_s


def test_slots_are_added_where_a_queue_misses_its_objective() -> None:
    from public_layouts.fixed import enough_slots

    jobs = {
        "a": [RecordedJob(at_s=0.0, service_s=10.0), RecordedJob(at_s=0.0, service_s=10.0)],
        "b": [RecordedJob(at_s=0.0, service_s=10.0)],
    }
    in_time = {"a": (5.0, 1.0), "b": (5.0, 1.0)}
    assert enough_slots(jobs, [["a"], ["b", "a"]], in_time) == ([*"a"], ["b", "a"], [*"a"])
    assert enough_slots(jobs, [["a"], ["b"]], {"a": (10.0, 1.0), "b": (5.0, 1.0)}) == [["a"], ["b"]]
