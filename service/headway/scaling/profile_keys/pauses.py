"""What a pause keeps. The count is that of the moment at which the pause began; lost hosts do not change it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headway.errors import Invalid
from headway.scaling.keys import Text
from headway.scaling.model import Mode
from headway.scaling.profile_keys.schedule import Moment, text_of

PAUSES = frozenset({Mode.PAUSE, Mode.PAUSE_UP, Mode.PAUSE_DOWN})
NEVER_DOWN = frozenset({Mode.PAUSE, Mode.PAUSE_DOWN})
WORDS: Mapping[Mode, str] = MappingProxyType(
    {
        Mode.RECOMMEND: "advice only",
        Mode.PAUSE: "paused",
        Mode.PAUSE_UP: "paused upwards",
        Mode.PAUSE_DOWN: "paused downwards",
    }
)
"""Each mode for people, but for the one in which Headway acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause that an operator has set: in which direction, why, and until when. After it the pool acts again."""

    mode: Mode = Mode.PAUSE
    reason: Text | None = None
    until_s: Moment | None = None
    """``None``: until somebody ends it."""

    def __post_init__(self) -> None:
        breaches = []
        if self.mode not in PAUSES:
            known = ", ".join(mode for mode in Mode if mode in PAUSES)
            breaches.append(f"pause.mode={self.mode.value!r}: expected one of {known}")
        if self.reason is not None and not self.reason.strip():
            breaches.append("reason is empty: leave it out, or say why for those who read the decision")
        if breaches:
            raise Invalid(*breaches)

    def is_over(self, now_s: float) -> bool:
        """Whether the pool acts again."""
        return self.until_s is not None and now_s >= self.until_s

    @property
    def text(self) -> str:
        """For people."""
        until = "" if self.until_s is None else f" until {text_of(self.until_s)}"
        return f"{WORDS[self.mode]}{until}{f': {self.reason}' if self.reason else ''}"


def begun(count: int, *, last_workers: int, existing_workers: int) -> int:
    """The count that a pause keeps which begins now.

    That is the last target. While hosts are unreachable the target is perhaps only what the others can hold: what may
    run on the unreachable ones counts as well, as far as ``count`` still asks for it.
    """
    return max(last_workers, min(count, existing_workers))


def kept(mode: Mode, count: int, *, paused_workers: int, busy_workers: int) -> int:
    """What a pause makes of ``count``. A pause asks no busy worker to leave, whatever its own count."""
    if mode is Mode.PAUSE:
        return max(paused_workers, busy_workers)
    if mode is Mode.PAUSE_DOWN:
        return max(count, paused_workers, busy_workers)
    if mode is Mode.PAUSE_UP:
        return min(count, max(paused_workers, busy_workers))
    return count


def after(mode: Mode, *, paused_workers: int, asked_workers: int, target_workers: int) -> int | None:
    """The count that the pause keeps from now on; ``None`` where nothing is paused.

    A pause of one direction goes along with moves in the other: up with the target, down with what demand, people and
    the clock ask for (``asked_workers``). What ceilings and lost hosts take away is no such move.
    """
    if mode is Mode.PAUSE:
        return paused_workers
    if mode is Mode.PAUSE_DOWN:
        return max(paused_workers, target_workers)
    if mode is Mode.PAUSE_UP:
        return min(paused_workers, asked_workers)
    return None
