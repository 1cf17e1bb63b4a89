"""What waits for a control plane: the newest events, in their order, within bounds of number and of memory."""

import json
import random
from collections import deque
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.emit import kept_events
from headway.emit.kept_events import BATCH_BYTES_MAX, BATCH_EVENTS_MAX, BLOCK_EVENTS, KEPT_BYTES_MAX, KeptEvents


def ordinary(number: int, chance: random.Random) -> bytes:
    job_id, at_s = str(UUID(int=chance.getrandbits(128))), 1_795_440_000.0 + number / 1_500 + chance.random() / 1e3
    values = {"kind": "started", "queue": "shop/mail", "job_id": job_id, "at_s": at_s, "enqueued_at_s": at_s - 0.1}
    return json.dumps({**values, "attempt": 1, "job_class": "shop.mail.send"}, separators=(",", ":")).encode()


def longest(chance: random.Random) -> bytes:
    return b'"%s"' % chance.randbytes(6_000).hex().encode()


@given(st.lists(st.integers(min_value=1, max_value=30) | st.none(), max_size=40))
def test_events_come_out_in_their_order_and_only_the_oldest_are_dropped(turns: list[int | None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"KEPT_EVENTS_MAX": 50, "BLOCK_EVENTS": 7, "BATCH_EVENTS_MAX": 10}.items():
            patch.setattr(kept_events, name, value)
        kept, model, number = KeptEvents(), deque[bytes](), 0
        for turn in turns:
            for _ in range(turn or 0):
                number += 1
                model.append(b"%d" % number)
                dropped = kept.keep(model[-1])
                assert dropped == max(0, len(model) - 50)
                for _ in range(dropped):
                    model.popleft()
            if turn is None:
                assert kept.next_batch() == [model.popleft() for _ in range(min(10, len(model)))]
            assert len(kept) == len(model)
        rest = []
        while batch := kept.next_batch():
            rest += batch
        assert rest == list(model)
        assert kept.held_bytes == 0


def test_twenty_thousand_ordinary_events_are_kept_in_a_third_of_their_bytes() -> None:
    chance, kept, bytes_in_all = random.Random(1), KeptEvents(), 0
    for number in range(20_000):
        event = ordinary(number, chance)
        bytes_in_all += len(event)
        assert kept.keep(event) == 0
    assert len(kept) == 20_000
    assert kept.held_bytes < min(bytes_in_all / 3, KEPT_BYTES_MAX)


def test_events_with_the_longest_of_names_are_kept_up_to_a_number_of_bytes() -> None:
    chance, kept, dropped = random.Random(1), KeptEvents(), 0
    events = [longest(chance) for _ in range(1_000)]
    for event in events:
        dropped += kept.keep(event)
        assert kept.held_bytes <= KEPT_BYTES_MAX
    assert dropped + len(kept) == 1_000
    assert kept.held_bytes > KEPT_BYTES_MAX - kept_events.BLOCK_BYTES - len(events[0])
    first = kept.next_batch()
    assert first == events[dropped : dropped + len(first)]
    assert sum(map(len, first)) < BATCH_BYTES_MAX + len(events[0])


def test_one_event_is_kept_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_events, "KEPT_BYTES_MAX", 10)
    kept = KeptEvents()
    assert kept.keep(b"x" * 100) == 0
    assert kept.keep(b"y" * 100) == 1
    assert kept.next_batch() == [b"y" * 100]
    assert kept.next_batch() == []


def test_a_batch_carries_events_of_several_blocks() -> None:
    chance, kept = random.Random(1), KeptEvents()
    events = [ordinary(number, chance) for number in range(3 * BLOCK_EVENTS + 1)]
    for event in events:
        kept.keep(event)
    assert kept.next_batch() == events[:BATCH_EVENTS_MAX]
