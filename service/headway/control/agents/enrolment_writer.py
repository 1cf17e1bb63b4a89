"""The line on which hosts are let in: those that come together share a transaction.

A transaction of its own for each keeps a disk busy for minutes where thousands of hosts start at once.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from headway.control.agents.batcher import Batcher
from headway.errors import HeadwayError, Refused
from headway.store.engine import Connection, Engine, transaction

LINES = 2
ENROLMENTS_TOGETHER_MAX = 50  # their rows, and the join token's, are locked until the last of them is in

Answer = TypeVar("Answer")
Asked = Callable[[Connection], Awaitable[Answer]]


class EnrolmentWriter(Generic[Answer]):
    """Lets hosts in, several in one transaction; of those one that is refused takes nobody's place with it."""

    def __init__(self, *, engine: Engine) -> None:
        self._engine = engine
        self._line: Batcher[str, Asked[Answer], Answer | HeadwayError] = Batcher(
            self._let_in, lines=LINES, questions_max=ENROLMENTS_TOGETHER_MAX
        )

    async def let_in(self, name: str, asked: Asked[Answer]) -> Answer:
        """What ``asked`` returns for the host ``name``, within a transaction. Its ``Refused`` is raised."""
        answer = await self._line.ask(name, asked)
        if isinstance(answer, HeadwayError):
            raise answer
        return answer

    async def _let_in(self, asked: Mapping[str, Asked[Answer]]) -> Mapping[str, Answer | HeadwayError]:
        try:
            async with transaction(self._engine) as conn:
                # By name: two control planes that let the same hosts in must not wait for each other.
                return {name: await asked[name](conn) for name in sorted(asked)}
        except Refused as error:
            if len(asked) == 1:
                return dict.fromkeys(asked, error)
        # Nothing of it was written. Who was refused finds out alone, as all others do now.
        answers: dict[str, Answer | HeadwayError] = {}
        for name, one in asked.items():
            try:
                answers |= await self._let_in({name: one})
            except HeadwayError as error:
                answers[name] = error
        return answers
