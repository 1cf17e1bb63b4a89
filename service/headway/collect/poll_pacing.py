"""How often a source is polled: as asked, and less often where polls would take too much processor. Pure."""

LONGEST_S = 5.0  # one metric bucket: what is read less often looks like a broker that is away
STEP_S = 0.1
WEIGHT = 0.2  # of the newest turn: about five in a row decide


class PollPacing:
    """The pause from one poll of a source to the next, by what polls have taken of late."""

    def __init__(self, every_s: float, *, processor_share: float) -> None:
        """``every_s`` is what is asked for, ``processor_share`` the part of one core that turns may take."""
        self._every_s = every_s
        self._processor_share = processor_share
        self._turn_s: float | None = None

    def took(self, processor_s: float) -> None:
        """Note what a turn took of the processor that was not one to catch up."""
        before_s = processor_s if self._turn_s is None else self._turn_s
        self._turn_s = before_s + WEIGHT * (processor_s - before_s)

    @property
    def interval_s(self) -> float:
        """From one poll to the next, in steps of ``STEP_S`` where that is more than was asked for."""
        if self._turn_s is None:
            return self._every_s
        needed_s = self._turn_s / self._processor_share
        if needed_s <= self._every_s:
            return self._every_s
        steps = -(-needed_s // STEP_S)
        return max(self._every_s, min(LONGEST_S, round(steps * STEP_S, 1)))
