"""Events that wait until a control plane takes them, in little memory: most of them lie in packed blocks."""

import zlib
from collections import deque

KEPT_EVENTS_MAX = 20_000  # beyond, the oldest are dropped
KEPT_BYTES_MAX = 3 * 1024 * 1024  # as they lie here; 20,000 events with ordinary names take 1 to 2 MB
BLOCK_EVENTS = 500
BLOCK_BYTES = 128 * 1024
BATCH_EVENTS_MAX = 2_000  # 0.5 MB
BATCH_BYTES_MAX = 1024 * 1024  # of events with the longest of names; the control plane takes eight times as much
FASTEST = 1  # the level of zlib: what is left of an event then is little more than its job's id
BETWEEN = b"\n"  # which no JSON on one line contains


class KeptEvents:
    """The newest events, each one JSON on one line, the oldest first. Used by one thread."""

    def __init__(self) -> None:
        self._oldest: deque[bytes] = deque()
        """Those of a block that was opened."""
        self._blocks: deque[bytes] = deque()
        self._newest: list[bytes] = []
        self._newest_bytes = 0
        self._events = 0
        self.held_bytes = 0
        """What all of them take."""

    def __len__(self) -> int:
        return self._events

    def keep(self, event: bytes) -> int:
        """Take one more. Returns how many of the oldest were dropped for it."""
        self._newest.append(event)
        self._newest_bytes += len(event)
        self._events += 1
        self.held_bytes += len(event)
        if len(self._newest) >= BLOCK_EVENTS or self._newest_bytes >= BLOCK_BYTES:
            packed = zlib.compress(BETWEEN.join(self._newest), FASTEST)
            self._blocks.append(packed)
            self.held_bytes += len(packed) - self._newest_bytes
            self._newest, self._newest_bytes = [], 0
        dropped = 0
        while self._events > KEPT_EVENTS_MAX or (self.held_bytes > KEPT_BYTES_MAX and self._events > 1):
            self._take()
            dropped += 1
        return dropped

    def next_batch(self) -> list[bytes]:
        """Take away as many as one batch carries, at least one of what is kept."""
        batch: list[bytes] = []
        room_bytes = BATCH_BYTES_MAX
        while self._events and len(batch) < BATCH_EVENTS_MAX and room_bytes > 0:
            batch.append(self._take())
            room_bytes -= len(batch[-1])
        return batch

    def _take(self) -> bytes:
        if not self._oldest and self._blocks:  # go on with the oldest block
            packed = self._blocks.popleft()
            self._oldest.extend(zlib.decompress(packed).split(BETWEEN))
            self.held_bytes += sum(map(len, self._oldest)) - len(packed)
        elif not self._oldest:  # or with what is in none yet
            self._oldest.extend(self._newest)
            self._newest, self._newest_bytes = [], 0
        event = self._oldest.popleft()
        self._events -= 1
        self.held_bytes -= len(event)
        return event
