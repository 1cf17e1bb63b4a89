"""The worker layouts of Frappe, Mastodon and Redash under Headway, beside the counts that their public files fix.

    python benchmarks/layouts.py [--only frappe] [--seconds 240] [--ledger FILE]

The profiles are those of docs/how-to/application-layouts.md. Each layout runs under `headway up` on loopback, with a
Valkey and a Postgres of its own. Workers of RQ take the queues of each template in its order; their jobs sleep.
Mastodon's jobs are Sidekiq's: there, too, the stand-ins are workers of RQ, five in each process.

Printed per queue: the jobs, the part that started within the objective, the same with the original's fixed counts, and
the longest time for which jobs waited and no worker listened. Printed per layout: the greatest use of each group's cap
in any sample, and the slot-seconds of Headway, of the original's slots, and of the fewest that would keep every
objective, were they always there. The waits of fixed slots are calculated, with no start-up and no time between two
jobs. ``public_layouts/loads.py`` has the load. Each run is a line of the ledger.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench import machine
from code_revision import code_revision
from exit_statuses import GOAL_MISSED
from live_runs.jobs import LiveJobs
from live_runs.system import System, installation_of
from options import positive_count
from public_layouts.described import Described, described
from public_layouts.fixed import enough_slots, fixed_waits_s
from public_layouts.loads import ORIGINALS
from public_layouts.samples import Samples

LEDGER = Path(__file__).parent / "results" / "layouts.jsonl"
FUNCTION = "time.sleep"
SETTLED_WITHIN_S = 90.0
DONE_WITHIN_S = 180.0
LEAD_S = 1.0
ASK_S = 0.5

Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(ORIGINALS), action="append", help="a layout (all)")
    parser.add_argument("--seconds", type=positive_count, default=240, help="for how long jobs are sent (240)")
    parser.add_argument("--ledger", type=Path, default=LEDGER, help=f"where runs are kept ({LEDGER.name})")
    options = parser.parse_args()
    print(machine(), flush=True)
    rows = []
    for name in options.only or ORIGINALS:
        row = _run(name, for_s=float(options.seconds))
        with options.ledger.open("a") as ledger:
            ledger.write(json.dumps(row) + "\n")
        print(_text(row), flush=True)
        rows.append(row)
    return 0 if all(_is_good(row) for row in rows) else GOAL_MISSED


def _run(name: str, *, for_s: float) -> Row:
    layout = described(ORIGINALS[name])
    with tempfile.TemporaryDirectory(prefix="headway-bench-layouts-") as folder:
        Path(folder).chmod(0o711)  # for root, whose Postgres runs as nobody
        place = Path(folder) / name
        with installation_of(place, host_file=layout.host_file, profiles=layout.profiles) as system:
            return {
                "layout": name,
                "commit": code_revision(),
                "machine": machine(),
                "began_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "seconds": for_s,
                **_figures(layout, system, name, for_s=for_s),
                "load_1m_after": round(os.getloadavg()[0], 2),
            }


def _figures(layout: Described, system: System, name: str, *, for_s: float) -> Row:
    original = layout.original
    jobs = {word: load.jobs(for_s=for_s, seed=f"{name} {word}") for word, load in original.loads.items()}
    queues = {word: LiveJobs(system.broker_url, layout.queue(word), function=FUNCTION) for word in jobs}
    _until(lambda: _is_settled(layout, system), within_s=SETTLED_WITHIN_S, what="the least of each pool")
    samples = Samples(system.agent_pid, system.broker_url, layout.templates)
    samples.start()
    began_s = time.time()
    try:
        for word, queue in queues.items():
            queue.send(jobs[word], at_s=began_s + LEAD_S)
        _until(
            lambda: all(each.are_sent for each in queues.values()), within_s=for_s + 60, what="the last job to be sent"
        )
        _until(
            lambda: all(each.are_done for each in queues.values()), within_s=DONE_WITHIN_S, what="the last job to end"
        )
    finally:
        samples.close()
    took_s = time.time() - began_s
    fixed_s = fixed_waits_s(jobs, original.slots)
    if lost := {word for word, queue in queues.items() if len(queue.records()) != len(jobs[word])}:
        raise SystemExit(f"not all jobs of {', '.join(sorted(lost))} were sent")
    rows = {word: _queue(layout, word, queues[word], fixed_s[word], samples) for word in jobs}
    for queue in queues.values():
        queue.close()
    return {
        "took_s": round(took_s, 1),
        "queues": rows,
        "groups": _groups(layout, samples.counts),
        "slot_s": round(sum(each * _slots(layout, template) for template, each in samples.worker_s.items())),
        "original_slots": len(original.slots),
        "original_slot_s": round(len(original.slots) * took_s),
        "enough_slots": len(enough := enough_slots(jobs, original.slots, {word: layout.target(word) for word in jobs})),
        "enough_slot_s": round(len(enough) * took_s),
    }


def _queue(layout: Described, word: str, queue: LiveJobs, fixed_s: Iterable[float], samples: Samples) -> Row:
    target_s, fraction = layout.target(word)
    runs = queue.records()
    waits_s = [float("inf") if run.started_at_s is None else run.started_at_s - run.enqueued_at_s for run in runs]
    return {
        "jobs": len(runs),
        "unfinished": sum(run.status != "finished" for run in runs),
        "target_s": target_s,
        "objective": fraction,
        "in_time": _in_time(waits_s, target_s),
        "longest_wait_s": round(max(waits_s, default=0.0), 1),
        "original_in_time": _in_time(fixed_s, target_s),
        "unserved_s": round(samples.unserved_s[layout.queue(word)], 1),
    }


def _in_time(waits_s: Iterable[float], target_s: float) -> float | None:
    """The part of the jobs that waited no longer; ``None`` without jobs."""
    known = list(waits_s)
    return round(sum(wait_s <= target_s for wait_s in known) / len(known), 4) if known else None


def _groups(layout: Described, counts: Iterable[Counter[str]]) -> Row:
    """Each group's cap and the greatest use of it, in workers or slots as the cap is."""
    templates = {pool: profile["template"] for pool, profile in layout.file["pools"].items()}
    found = {}
    for name, group in layout.file["groups"].items():
        unit = "slots_max" if "slots_max" in group else "workers_max"
        each = {
            templates[pool]: _slots(layout, templates[pool]) if unit == "slots_max" else 1 for pool in group["pools"]
        }
        used = max((sum(count[template] * size for template, size in each.items()) for count in counts), default=0)
        found[name] = {"unit": unit, "cap": group[unit], "used_max": used}
    return found


def _slots(layout: Described, template: str) -> int:
    return layout.original.slots_per_worker.get(template, 1)


def _is_settled(layout: Described, system: System) -> bool:
    """Whether each pool runs what it has without a job."""
    counts = Counter(pool for pool, state in system.workers() if state == "running")
    least = {name: pool.get("pinned", pool.get("workers_min", 0)) for name, pool in layout.file["pools"].items()}
    return all(counts[pool] >= workers for pool, workers in least.items())


def _until(is_so: Callable[[], bool], *, within_s: float, what: str) -> None:
    ends_s = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > ends_s:
            raise SystemExit(f"waited for {what} for {within_s:g} s")
        time.sleep(ASK_S)


def _is_good(row: Row) -> bool:
    return all(_is_met(each) for each in row["queues"].values()) and all(
        group["used_max"] <= group["cap"] for group in row["groups"].values()
    )


def _is_met(queue: Row) -> bool:
    is_kept = queue["in_time"] is None or queue["in_time"] >= queue["objective"]
    return is_kept and not queue["unfinished"] and queue["unserved_s"] <= queue["target_s"]


def _text(row: Row) -> str:
    lines = [f"\n{row['layout']}: {row['took_s']} s, load {row['load_1m_after']}"]
    lines.append(
        f"  {'queue':18} {'jobs':>5} {'objective':>14} {'in time':>9} {'original':>9} {'longest':>8} {'unserved':>8}"
    )
    for word, each in row["queues"].items():
        objective = f"{each['objective']:.0%} in {each['target_s']:g} s"
        mark = "" if _is_met(each) else "  MISSED"
        lines.append(
            f"  {word:18} {each['jobs']:5} {objective:>14} {_percent(each['in_time']):>9} "
            f"{_percent(each['original_in_time']):>9} {each['longest_wait_s']:6.1f} s {each['unserved_s']:6.1f} s{mark}"
        )
    for name, group in row["groups"].items():
        lines.append(f"  group {name}: at most {group['used_max']} of {group['unit']} {group['cap']}")
    lines.append(
        f"  slot-seconds: {row['slot_s']}; the original's {row['original_slots']} slots {row['original_slot_s']}; "
        f"{row['enough_slots']} that keep every objective {row['enough_slot_s']}"
    )
    return "\n".join(lines)


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
