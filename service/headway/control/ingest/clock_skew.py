"""What other machines' clocks are worth: their offsets, and times brought into the span that the stream accepts."""

from collections import OrderedDict

from headway.scaling.conditions.installation_facts import WRONG_SHOWN_S

LATENESS_S = 600.0  # the stream waits this long for an event; a later one would be dropped there in silence
CLOCK_AHEAD_S = 1.0  # a time further in the future would move the stream's watermark for everybody
CLOCK_OFFSET_TRUSTED_S = 2.0  # below, a difference is the way through the network, not a clock
CLOCK_WRONG_S = 5.0  # no way through a network takes so long, batch after batch
_SMOOTHING = 0.2
_PRODUCERS_MAX = 10_000  # the least recent are forgotten


class Offsets:
    """How far each producer's clock is behind ours, in seconds; negative when it is ahead."""

    def __init__(self) -> None:
        self._offset_s: OrderedDict[str, float] = OrderedDict()
        self._received_at_s: dict[str, float] = {}

    def observe(self, producer: str, *, sent_at_s: float, received_at_s: float) -> float:
        """The offset of ``producer``, whose batch says it was sent at ``sent_at_s`` by its own clock.

        Smoothed, because some batches take longer on their way. A jump is believed at once: somebody set the clock.
        """
        seen_s = received_at_s - sent_at_s
        known_s = self._offset_s.get(producer, seen_s)
        if abs(seen_s - known_s) > CLOCK_OFFSET_TRUSTED_S:
            known_s = seen_s
        self._offset_s[producer] = known_s + _SMOOTHING * (seen_s - known_s)
        self._offset_s.move_to_end(producer)
        self._received_at_s[producer] = received_at_s
        if len(self._offset_s) > _PRODUCERS_MAX:
            oldest, _ = self._offset_s.popitem(last=False)
            del self._received_at_s[oldest]
        return self._offset_s[producer]

    def wrong_s(self, *, now_s: float) -> list[float]:
        """The offsets of senders of the last minute whose clocks are wrong, the farthest first."""
        found = []
        for producer in reversed(self._offset_s):
            if self._received_at_s[producer] < now_s - WRONG_SHOWN_S:
                break  # the others sent before
            if abs(self._offset_s[producer]) > CLOCK_WRONG_S:
                found.append(self._offset_s[producer])
        return sorted(found, key=abs, reverse=True)


def corrected(at_s: float, *, received_at_s: float, offset_s: float) -> float:
    """``at_s`` unchanged where the stream accepts it, else moved by its source's offset, and at last to the span's end.

    The result is within [received_at_s - LATENESS_S, received_at_s + CLOCK_AHEAD_S].
    """
    earliest_s, latest_s = received_at_s - LATENESS_S, received_at_s + CLOCK_AHEAD_S
    if earliest_s <= at_s <= latest_s:
        return at_s
    moved_s = at_s + offset_s if abs(offset_s) > CLOCK_OFFSET_TRUSTED_S else at_s
    return min(max(moved_s, earliest_s), latest_s)


def corrected_enqueued(enqueued_at_s: float, *, at_s: float, moved_s: float, received_at_s: float) -> float:
    """When a job was enqueued, given that its event's ``at_s`` was moved by ``moved_s``.

    Another machine may have stamped it, with a clock that is right. It moves along where only the wrong clock explains
    it: a clock behind ours gave both times in their order, or a clock ahead gave a time that is still to come.
    """
    is_same_clock = enqueued_at_s <= at_s if moved_s > 0 else enqueued_at_s > received_at_s
    return enqueued_at_s + moved_s if is_same_clock else enqueued_at_s
