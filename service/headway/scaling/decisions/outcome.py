"""What a pool's evaluation came to: its decision, and what it was decided on."""

from dataclasses import dataclass

from headway.scaling.model import Decision, Memory
from headway.scaling.view import PoolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one pool that was decided."""

    view: PoolView
    before: Memory
    """What was remembered when it was decided."""
    decision: Decision
    memory: Memory
