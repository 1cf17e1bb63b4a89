"""What shows whether workers acknowledge a job before they run it, or afterwards."""

import pytest

from headway.collect.celery.acknowledgements import SHOWN_AFTER_S, Acknowledgements, HeldAndRunning


def seen(held: int, running: int, begun: int = 9, waiting: int = 0) -> HeldAndRunning:
    return HeldAndRunning(waiting_jobs=waiting, held_jobs=held, running_jobs=running, begun_jobs=begun)


def learned(*states: HeldAndRunning, each_s: float = SHOWN_AFTER_S + 2.0) -> tuple[bool, bool]:
    """Early, late: after each of ``states`` has been seen once a second for ``each_s``."""
    acknowledgements, at_s = Acknowledgements(), 0.0
    for state in states:
        until_s = at_s + each_s
        while at_s < until_s:
            acknowledgements.see(state, at_s=at_s)
            at_s += 1.0
    return acknowledgements.is_early, acknowledgements.is_late


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        ((seen(8, 2),), (False, False)),  # eight reserved, or six and the two that run
        ((seen(0, 2),), (True, False)),  # what runs is not held
        ((seen(2, 2), seen(1, 1)), (False, True)),  # one ended, and is held no more
        ((seen(4, 2), seen(2, 0)), (False, True)),
        ((seen(2, 2), seen(1, 2, begun=10)), (True, False)),  # a reserved one was begun in its place
        ((seen(3, 2), seen(2, 2, begun=10)), (False, False)),
        ((seen(2, 2), seen(2, 1)), (False, False)),  # one ended, and what is held is reserved
        ((seen(2, 2), seen(1, 1, begun=10)), (False, False)),  # others began meanwhile
        ((seen(2, 2, waiting=1), seen(1, 1)), (False, False)),  # others were taken meanwhile
        ((seen(2, 2), seen(1, 1), seen(0, 1)), (True, False)),  # some do, some do not: the more that run, count
    ],
)
def test_how_workers_acknowledge_shows_in_what_is_held(
    states: tuple[HeldAndRunning, ...], shown: tuple[bool, bool]
) -> None:
    assert learned(*states) == shown


def test_what_lasts_for_a_moment_shows_nothing() -> None:
    """A heartbeat is up to 2 s old."""
    assert learned(seen(0, 2), seen(2, 2), seen(1, 1), each_s=SHOWN_AFTER_S - 1.0) == (False, False)
