"""Refusals wait: those of one caller one after another, and never for long."""

import asyncio

import pytest

from headway.control import refusal_throttle
from headway.control.refusal_throttle import HELD_MAX, REFUSAL_HELD_MAX_S, UNMEASURED_S, RefusalThrottle

REFUSED = {"port": "grpc", "status": "UNAUTHENTICATED"}


class Time:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept_s: list[float] = []

    async def sleep(self, pause_s: float) -> None:
        self.slept_s.append(pause_s)
        self.now_s += pause_s


async def test_whoever_asks_one_by_one_gets_a_fifth_of_the_time() -> None:
    time = Time()
    paced = RefusalThrottle(clock=lambda: time.now_s, sleep=time.sleep)
    for _ in range(100):
        time.now_s += 0.01  # of work
        await paced.hold("a", took_s=0.01 - UNMEASURED_S["grpc"], **REFUSED)
    assert time.now_s == pytest.approx(100 * 0.01 * 5)
    assert paced.refusals == {("grpc", "UNAUTHENTICATED"): 100}


@pytest.mark.parametrize("port", ["http", "grpc"])
async def test_a_refusal_that_was_decided_in_no_time_waits_for_what_its_port_does(port: str) -> None:
    time = Time()
    paced = RefusalThrottle(clock=lambda: time.now_s, sleep=time.sleep)
    for _ in range(1_000):
        await paced.hold("a", took_s=0.0, port=port, status="refused")
    assert time.now_s >= 1_000 * 0.0015


async def test_whoever_asks_often_at_once_gets_no_more_and_nobody_else_waits_for_it() -> None:
    now_s, slept_s = 10.0, []

    async def sleep(pause_s: float) -> None:
        slept_s.append(pause_s)

    paced = RefusalThrottle(clock=lambda: now_s, sleep=sleep)
    await asyncio.gather(*(paced.hold("a", took_s=0.1, **REFUSED) for _ in range(4)))
    await paced.hold("b", took_s=0.1, **REFUSED)
    assert slept_s == pytest.approx([0.4, 0.8, 1.2, 1.6, 0.4], rel=0.01)
    for _ in range(10):
        await paced.hold("a", took_s=0.1, **REFUSED)
    assert max(slept_s) == REFUSAL_HELD_MAX_S


async def test_no_more_than_so_many_wait_and_no_more_than_so_many_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_throttle, "KNOWN_MAX", 100)
    goes_on = asyncio.Event()
    paced = RefusalThrottle(clock=lambda: 0.0, sleep=lambda _: goes_on.wait())
    waiting = [asyncio.create_task(paced.hold(f"address {n}", took_s=1.0, **REFUSED)) for n in range(HELD_MAX["grpc"])]
    await asyncio.sleep(0)
    async with asyncio.timeout(30.0):
        await paced.hold("one more", took_s=1.0, **REFUSED)
    other = asyncio.create_task(paced.hold("one more", took_s=1.0, port="http", status="401"))
    await asyncio.sleep(0)
    assert not other.done()  # each port has its own
    assert not any(task.done() for task in waiting)
    assert len(paced._free_at_s) == 100
    waiting[0].cancel()
    goes_on.set()
    await asyncio.gather(*waiting, other, return_exceptions=True)
    assert not any(paced._held.values())
