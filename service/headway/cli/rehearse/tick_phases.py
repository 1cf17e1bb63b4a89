"""Rehearsals at several tick phases, one after the other or in processes beside each other, with how far they are."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from headway.cli.rehearse.rehearsal import Case
from headway.cli.rehearse.scenario_run import ScenarioRehearsal
from headway.scaling.strategy import Strategy
from headway.simulate.report.rows import Row
from headway.simulate.studies.phases import middle
from headway.simulate.studies.single_pool import Setting

PHASE_JOB_S = 5e-6  # what a job and an evaluation cost, roughly: enough to decide whether processes pay
POLL_S = 3e-5
BESIDE_FROM_S = 2.0
STEPS_SHOWN = 200
ASK_EVERY_S = 0.2
PARENT_ASKED_EVERY_S = 1.0

AnyCase = Case | ScenarioRehearsal
OnProgress = Callable[[float], object]
"""Receives how much of everything is done, 0 to 1."""
Done = Iterator[tuple[AnyCase, tuple[Row, ...]]]
"""Each case, when all its phases are done."""


def combined(phases: Sequence[tuple[Row, ...]], settings: Sequence[Setting]) -> tuple[Row, ...]:
    """One row for all phases, of each pool of a case."""
    return tuple(
        replace(rows[0], result=middle([row.result for row in rows], settings)) for rows in zip(*phases, strict=True)
    )


def expected_s(cases: Sequence[AnyCase], settings: Sequence[Setting]) -> float:
    """About how long all of it takes one core."""
    each = sum(PHASE_JOB_S * case.jobs + POLL_S * case.pools * case.length_s / settings[0].tick_s for case in cases)
    return each * len(settings)


def _in_order(
    cases: Sequence[AnyCase], settings: Sequence[Setting], known: Mapping[str, Strategy], on_progress: OnProgress
) -> Done:
    """One rehearsal after the other, in this process."""
    total_s = len(settings) * sum(case.length_s for case in cases) or 1.0
    before_s = 0.0
    for case in cases:
        done = []
        for setting in settings:
            on_tick = _progress_of(on_progress, before_s=before_s, case=case, total_s=total_s)
            done.append(case.rows(setting, strategies=known, on_tick=on_tick))
            before_s += case.length_s
        yield case, combined(done, settings)


def _beside(
    cases: Sequence[AnyCase], settings: Sequence[Setting], pool: Any, progress: Any, on_progress: OnProgress
) -> Done:
    """Rehearsals beside each other, in the processes of ``pool``, which note in ``progress`` how far they are."""
    phases = len(settings)
    total_s = phases * sum(case.length_s for case in cases) or 1.0
    tasks = [(number, phase) for number in range(len(cases)) for phase in range(phases)]
    left = pool.imap_unordered(_rehearse_one, tasks)
    done: dict[int, dict[int, tuple[Row, ...]]] = {number: {} for number in range(len(cases))}
    while tasks:
        try:
            number, phase, rows = left.next(timeout=ASK_EVERY_S)
        except multiprocessing.TimeoutError:
            on_progress(min(1.0, sum(progress) / total_s))
            continue
        tasks.remove((number, phase))
        done[number][phase] = rows
        if len(done[number]) == phases:
            yield cases[number], combined([done[number][each] for each in range(phases)], settings)


@contextmanager
def bench(
    cases: Sequence[AnyCase], settings: Sequence[Setting], known: Mapping[str, Strategy]
) -> Iterator[Callable[[OnProgress], Done]]:
    """What rehearses ``cases``: in processes beside each other where there are cores and it takes a while.

    To be entered before anything else is started that has threads: processes begin as copies of this one.
    """
    tasks = len(cases) * len(settings)
    processes = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, tasks)
    if processes < 2 or expected_s(cases, settings) < BESIDE_FROM_S:
        yield partial(_in_order, cases, settings, known)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    progress = context.Array("d", tasks)
    given = (os.getpid(), tuple(cases), tuple(settings), dict(known), progress)
    with context.Pool(processes, _begin, given) as pool:
        yield partial(_beside, cases, settings, pool, progress)
        pool.close()
        pool.join()


_given: dict[str, Any] = {}
"""In a process of the bench: what it was begun with."""


def _begin(
    parent: int,
    cases: Sequence[AnyCase],
    settings: Sequence[Setting],
    known: Mapping[str, Strategy],
    progress: Any,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits, which ends this one
    # with SIGTERM: a handler that this copy has of its parent would swallow it, and the parent would wait for ever
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _given.update(cases=cases, settings=settings, known=known, progress=progress)


def _end_with(parent: int) -> None:
    """End this process when ``parent`` is gone, also by ``kill -9``: nobody would read what it works out.

    The pool's pipes do not say so, as each process of the bench holds the ends of those before it.
    """
    while os.getppid() == parent:
        time.sleep(PARENT_ASKED_EVERY_S)
    os._exit(1)


def _rehearse_one(task: tuple[int, int]) -> tuple[int, int, tuple[Row, ...]]:
    number, phase = task
    case, settings, progress = _given["cases"][number], _given["settings"], _given["progress"]
    place = number * len(settings) + phase

    def on_progress(done_s: float) -> None:
        progress[place] = done_s

    on_tick = _progress_of(on_progress, before_s=0.0, case=case, total_s=1.0)
    rows = case.rows(settings[phase], strategies=_given["known"], on_tick=on_tick)
    progress[place] = case.length_s
    return number, phase, rows


def _progress_of(on_progress: OnProgress, *, before_s: float, case: AnyCase, total_s: float) -> Callable[[float], None]:
    """Passes on how far a rehearsal is, some two hundred times."""
    step_s = case.length_s / STEPS_SHOWN
    next_s = 0.0

    def on_tick(now_s: float) -> None:
        nonlocal next_s
        if now_s >= next_s:
            next_s = now_s + step_s
            on_progress((before_s + min(now_s, case.length_s)) / total_s)

    return on_tick
