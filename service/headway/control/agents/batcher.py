"""Questions that come together are answered together: one statement for many, and no wait for the first."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Batcher(Generic[Key, Question, Answer]):
    """Asks ``answer`` for many at a time: for all that came while it was busy with those before.

    The first question is asked at once and alone, so that who has the line for himself waits for nobody; under load the
    number asked together grows by itself. After each asking a line rests, so that what need not be known at once comes
    together. One key is asked once at a time, in the order it came.
    """

    def __init__(
        self,
        answer: Callable[[Mapping[Key, Question]], Awaitable[Mapping[Key, Answer]]],
        *,
        lines: int,
        questions_max: int,
        rest_s: float = 0.0,
    ) -> None:
        self._answer = answer
        self._lines = lines
        self._questions_max = questions_max
        self._rest_s = rest_s
        self._waiting: list[tuple[Key, Question, asyncio.Future[Answer]]] = []
        self._asked: set[Key] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, key: Key, question: Question) -> Answer:
        """The answer for ``key``. An error of ``answer`` is raised to all whom it asked for."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, question, answered))
        if len(self._tasks) < self._lines:
            task = asyncio.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answered

    async def _work(self) -> None:
        while batch := self._take():
            try:
                answers = await self._answer({key: question for key, question, _ in batch})
                for key, _, answered in batch:
                    if not answered.done():  # whoever asked may have gone
                        answered.set_result(answers[key])
            except BaseException as error:
                for _, _, answered in batch:
                    if not answered.done():
                        answered.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            finally:
                self._asked.difference_update(key for key, _, _ in batch)
            if self._rest_s:
                await asyncio.sleep(self._rest_s)

    def _take(self) -> list[tuple[Key, Question, asyncio.Future[Answer]]]:
        """The next to ask for. Of those who wait for a key that is asked for already, none."""
        taken: list[tuple[Key, Question, asyncio.Future[Answer]]] = []
        left: list[tuple[Key, Question, asyncio.Future[Answer]]] = []
        for each in self._waiting:
            key, _, answered = each
            if answered.done():
                continue
            if key in self._asked or len(taken) == self._questions_max:
                left.append(each)
            else:
                self._asked.add(key)
                taken.append(each)
        self._waiting = left
        return taken
