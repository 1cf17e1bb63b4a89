"""What a check says: that something is wrong, with its cure; that nothing is; or that the check was not made."""

from dataclasses import dataclass
from enum import StrEnum

from headway.errors import HeadwayError, Invalid


class Level(StrEnum):
    """How much a finding asks of whoever reads it."""

    FAULT = "fault"
    """Something does not work."""
    WARNING = "warning"
    """Something will not work, or works less well than it could."""
    REMARK = "remark"
    """Nothing is wrong; a person has set something on purpose that may have been forgotten."""
    OK = "ok"
    """The check found nothing."""
    SKIPPED = "skipped"
    """The check was not made, which says nothing of what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence about one thing."""

    check: str
    """What was checked, a word or two."""
    level: Level
    text: str
    cure: str = ""
    """What to do; never empty of what is wrong."""

    def __post_init__(self) -> None:
        assert self.cure or not self.is_wrong, self.text

    @property
    def is_wrong(self) -> bool:
        """Whether somebody has to do something."""
        return self.level in {Level.FAULT, Level.WARNING}


def fault(check: str, text: str, *, cure: str) -> Finding:
    """Something does not work."""
    return Finding(check=check, level=Level.FAULT, text=text, cure=cure)


def faults(check: str, error: HeadwayError, *, cure: str) -> list[Finding]:
    """One for each sentence of ``error``."""
    sentences = error.breaches if isinstance(error, Invalid) else (str(error),)
    return [fault(check, each, cure=cure) for each in sentences]


def warning(check: str, text: str, *, cure: str) -> Finding:
    """Something will not work, or works less well than it could."""
    return Finding(check=check, level=Level.WARNING, text=text, cure=cure)


def remark(check: str, text: str) -> Finding:
    """What a person has set on purpose."""
    return Finding(check=check, level=Level.REMARK, text=text)


def fine(check: str, text: str) -> Finding:
    """A check that found nothing."""
    return Finding(check=check, level=Level.OK, text=text)


def skipped(check: str, text: str) -> Finding:
    """A check that was not made, and why."""
    return Finding(check=check, level=Level.SKIPPED, text=text)
