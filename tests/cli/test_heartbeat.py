"""The heartbeat of a process: it stops with what it asks, and not with the row that it writes."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from headway.cli.process.heartbeat import Heartbeat
from support.waiting import eventually


def beats(file: Path, number: int) -> Callable[[], bool]:
    """Whether ``file`` has been touched so many times since now, seen from outside."""
    seen: set[int] = set()

    def has_polled() -> bool:
        if file.exists():
            seen.add(file.stat().st_mtime_ns)
        return len(seen) > number

    return has_polled


def test_a_heart_beats_until_what_it_asks_does_not_answer(tmp_path: Path) -> None:
    file, is_hung, is_asked = tmp_path / "heartbeat", threading.Event(), threading.Event()
    written_s: list[float] = []
    heart = Heartbeat(file, write_row=lambda: written_s.append(time.monotonic()), every_s=0.01)
    heart.start()
    try:
        eventually(beats(file, 3))

        def ask() -> None:
            is_asked.set()
            is_hung.wait(60)

        heart.asks(ask)
        assert is_asked.wait(30)
        stood = file.stat().st_mtime_ns
        time.sleep(0.1)
        assert file.stat().st_mtime_ns == stood
        is_hung.set()
        eventually(lambda: file.stat().st_mtime_ns != stood)
    finally:
        is_hung.set()
        heart.end()
    assert written_s


def test_a_question_that_fails_is_no_beat(tmp_path: Path) -> None:
    file, asked = tmp_path / "heartbeat", threading.Semaphore(0)

    def ask() -> None:
        asked.release()
        raise OSError("the JVM has hung up")

    heart = Heartbeat(file, write_row=lambda: None, every_s=0.01)
    heart.asks(ask)
    heart.start()
    try:
        for _ in range(3):
            assert asked.acquire(timeout=30)
        assert not file.exists()
    finally:
        heart.end()


def test_a_database_that_hangs_stops_no_heart(tmp_path: Path) -> None:
    file, is_hung = tmp_path / "heartbeat", threading.Event()
    heart = Heartbeat(file, write_row=lambda: is_hung.wait(60), every_s=0.01)
    heart.start()
    try:
        eventually(beats(file, 5))
    finally:
        is_hung.set()
        heart.end()
