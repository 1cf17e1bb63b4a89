"""The page of the ablation study: what each term is worth in all, by group of workloads and where it shows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from closed_loop.ablated import Outcome, Without, Workload, acting_terms
from closed_loop.elimination import FALL_MAX_POINTS, RISE_MAX, Change, Row, Step, change, cost
from closed_loop.terms import Term

SHOWN_POINTS = 0.05  # a workload is listed if its attainment moves by so much,
SHOWN_COST = 0.01  # or its cost by so great a part
NOTES = Path(__file__).with_name("ablation_notes.md")
INTRODUCTION = f"""\
# What each term of hybrid is worth

Written by `python benchmarks/ablation.py --traces DIR --page`; do not edit. Each row is `hybrid` without one term, on
the recorded traces in the five scenarios of the [targets](targets.md) and on the [named
loads](../how-to/rehearse.md#choose-the-workload) with start-up times of 2 s and 8 s.

- *In time* is the share of jobs that start within the objective, in %. *Cost* is worker-hours ÷ worker-hours of the
  whole strategy, *starts* are starts of workers ÷ those of the whole strategy. A total is the mean of attainment and
  the geometric mean of both others: each workload counts once. Worker-hours pay a worker while it starts, and nothing
  for the processor time that its start takes from the jobs of others.
- A term that can go costs at most {FALL_MAX_POINTS:g} points of the mean and {RISE_MAX * 100:g} % of cost, in all. A
  verdict on some of the workloads holds *so far*. A term that acts in no workload that was run is *not measured*.
- Some terms act only in *exposed* pools: a worker that is requested at the next evaluation is late for arriving jobs.
  With an objective of 10 s these are the pools whose workers take 8 s to start. Recall acts from the second day on, and
  weeks are recalled after two. A workload in which a term cannot act is not run again: it has the figures of the whole
  strategy.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What was run, and how to find it."""

    workloads: Sequence[Workload]
    terms: Sequence[Term]
    row_of: Callable[[Without], Row]
    traces: Path
    steps: Sequence[Step] = ()

    def alone(self, term: Term) -> Row:
        """The row without ``term``."""
        return self.row_of(frozenset({term.name}))

    @property
    def nothing(self) -> Row:
        """The row of the whole strategy."""
        return self.row_of(frozenset())

    def acted_in(self, term: str) -> int:
        """In how many workloads that were run ``term`` can act."""
        without = frozenset({term})
        return sum(bool(acting_terms(without, workload, self.traces)) for workload in self.row_of(without))


def page(study: Study) -> Iterator[str]:
    """The lines of the page."""
    yield INTRODUCTION.rstrip()
    if NOTES.exists():
        yield from ("", NOTES.read_text().rstrip())
    for heading, lines in (
        ("In all", _in_all(study)),
        ("By group", _by_group(study)),
        ("Left out together", _together(study)),
        ("Where it shows", _where(study)),
        ("The whole strategy", _whole(study)),
        ("Not run", _not_run(study)),
    ):
        found = [*lines]
        if found:
            yield from ("", f"## {heading}", "", *found)


def _in_all(study: Study) -> Iterator[str]:
    yield "| without | kind | instead | in time | points | cost | starts | can go | most lost | dearest | run, acts |"
    yield "|---|---|---|--:|--:|--:|--:|---|---|---|--:|"
    nothing = study.nothing
    for term in study.terms:
        row = study.alone(term)
        found = change(row, nothing)
        if found is None:
            yield f"| {term.name} | {term.kind} | {term.instead} | · | · | · | · | · | · | · | 0 |"
            continue
        both = [workload for workload in nothing if workload in row]
        worst = max(both, key=lambda each: nothing[each].percent - row[each].percent)
        dearest = max(both, key=lambda each: cost(row[each], nothing[each]))
        lost_points = nothing[worst].percent - row[worst].percent
        most_cost = cost(row[dearest], nothing[dearest])
        yield (
            f"| {term.name} | {term.kind} | {term.instead} | {found.percent:.3f} | {_with_sign(-found.fall_points)} | "
            f"{found.cost:.4f} | {found.starts:.3f} | {_verdict(study, term, found)} | "
            f"{f'{lost_points:.2f}: {_place(worst)}' if lost_points > 0 else ''} | "
            f"{f'{most_cost:.3f}: {_place(dearest)}' if most_cost > 1 else ''} | "
            f"{found.workloads} of {len(study.workloads)}, {study.acted_in(term.name)} of them |"
        )


def _verdict(study: Study, term: Term, found: Change) -> str:
    if not study.acted_in(term.name):
        return "not measured"
    so_far = ", so far" if found.workloads < len(study.workloads) else ""
    return f"{'yes' if found.is_affordable else 'no'}{so_far}"


def _by_group(study: Study) -> Iterator[str]:
    groups = [*dict.fromkeys(workload.label for workload in study.workloads)]
    yield "Points of attainment / cost, over the workloads of each group that were run."
    yield ""
    yield f"| without | {' | '.join(groups)} |"
    yield f"|---|{'--:|' * len(groups)}"
    for term in study.terms:
        row = study.alone(term)
        columns = [_of_group(row, study.nothing, group) for group in groups]
        yield f"| {term.name} | {' | '.join(columns)} |"


def _of_group(row: Row, nothing: Row, group: str) -> str:
    found = change({each: row[each] for each in row if each.label == group}, nothing)
    return "·" if found is None else f"{_with_sign(-found.fall_points)} / {found.cost:.4f}"


def _together(study: Study) -> Iterator[str]:
    if not study.steps:
        return
    yield (
        "The terms are left out one after another, first the term that alone loses least. A term whose step exceeds "
        "what may be lost in all stays in. A term that acts in no workload that was run is not tried."
    )
    yield ""
    yield "| also without | in time | points | cost | starts | workloads | |"
    yield "|---|--:|--:|--:|--:|--:|---|"
    for step in study.steps:
        found = step.change
        yield (
            f"| {step.term} | {found.percent:.3f} | {_with_sign(-found.fall_points)} | {found.cost:.4f} | "
            f"{found.starts:.3f} | {found.workloads} | {'out' if found.is_affordable else 'stays'} |"
        )


def _where(study: Study) -> Iterator[str]:
    yield (
        f"Workloads whose attainment moves by {SHOWN_POINTS:g} points or more, or whose cost moves by "
        f"{SHOWN_COST * 100:g} % or more."
    )
    yield ""
    yield "| without | group | workload | in time | with it | points | cost | starts | with it |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for term in study.terms:
        row = study.alone(term)
        for workload, whole in study.nothing.items():
            found = row.get(workload)
            if found is None or not _is_moved(found, whole):
                continue
            yield (
                f"| {term.name} | {workload.label} | {workload.name} | {found.percent:.2f} | {whole.percent:.2f} | "
                f"{_with_sign(found.percent - whole.percent)} | {cost(found, whole):.3f} | {found.starts:,} | "
                f"{whole.starts:,} |"
            )


def _is_moved(found: Outcome, whole: Outcome) -> bool:
    return abs(found.percent - whole.percent) >= SHOWN_POINTS or abs(cost(found, whole) - 1) >= SHOWN_COST


def _whole(study: Study) -> Iterator[str]:
    yield "| group | workload | in time | worker-hours | starts | 5 min below 95 % |"
    yield "|---|---|--:|--:|--:|--:|"
    for workload, found in study.nothing.items():
        yield (
            f"| {workload.label} | {workload.name} | {found.percent:.3f} | {found.worker_hours:.3f} | "
            f"{found.starts:,} | {found.bad_windows} |"
        )


def _not_run(study: Study) -> Iterator[str]:
    """Which workloads have no figures, and in which rows."""
    rows = {"nothing": study.nothing, **{term.name: study.alone(term) for term in study.terms}}
    missing: dict[tuple[str, ...], list[str]] = {}
    for name, row in rows.items():
        missing.setdefault(tuple(_place(each) for each in study.workloads if each not in row), []).append(name)
    for left, names in missing.items():
        if left:
            yield f"- without {', '.join(names)}: {', '.join(left)}"


def _place(workload: Workload) -> str:
    return f"{workload.label}/{workload.name}"


def _with_sign(points: float) -> str:
    return f"{points:+.3f}".replace("-0.000", "0").replace("+0.000", "0")
