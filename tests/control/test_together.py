import asyncio
from collections.abc import Mapping

import pytest

from headway.control.agents.batcher import Batcher


class Line:
    """Answers with the question's double when the test lets it, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, int]] = []
        self.is_open = asyncio.Event()
        self.fails = False

    async def answer(self, questions: Mapping[str, int]) -> Mapping[str, int]:
        self.asked.append(dict(questions))
        await self.is_open.wait()
        if self.fails:
            raise ValueError("no line")
        return {key: 2 * question for key, question in questions.items()}


async def asking(together: Batcher, **questions: int) -> list[asyncio.Task]:
    tasks = [asyncio.create_task(together.ask(key, question)) for key, question in questions.items()]
    await turn()
    return tasks


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_is_asked_at_once_and_those_that_come_meanwhile_together() -> None:
    line = Line()
    together = Batcher(line.answer, lines=1, questions_max=10)
    first = await asking(together, a=1)
    later = await asking(together, b=2, c=3)
    assert line.asked == [{"a": 1}]
    line.is_open.set()
    assert await asyncio.gather(*first, *later) == [2, 4, 6]
    assert line.asked == [{"a": 1}, {"b": 2, "c": 3}]


async def test_no_more_are_asked_together_than_allowed_and_none_is_forgotten() -> None:
    line = Line()
    line.is_open.set()
    together = Batcher(line.answer, lines=2, questions_max=3)
    asked = {f"k{n}": n for n in range(20)}
    assert await asyncio.gather(*await asking(together, **asked)) == [2 * n for n in range(20)]
    assert sorted(key for each in line.asked for key in each) == sorted(asked)
    assert max(map(len, line.asked)) <= 3


async def test_one_key_is_asked_once_at_a_time_in_the_order_it_came() -> None:
    line = Line()
    together = Batcher(line.answer, lines=2, questions_max=10)
    tasks = [task for question in (1, 2, 3) for task in await asking(together, a=question)]
    assert line.asked == [{"a": 1}]
    line.is_open.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6]
    assert line.asked == [{"a": 1}, {"a": 2}, {"a": 3}]


async def test_an_error_is_raised_to_those_whom_it_concerns_only() -> None:
    line = Line()
    line.fails = True
    together = Batcher(line.answer, lines=1, questions_max=10)
    tasks = await asking(together, a=1)
    tasks += await asking(together, b=2, c=3)
    line.is_open.set()
    for task in tasks:
        with pytest.raises(ValueError, match="no line"):
            await task
    line.fails = False
    assert await together.ask("a", 4) == 8


async def test_who_goes_before_his_turn_is_not_asked_for() -> None:
    line = Line()
    together = Batcher(line.answer, lines=1, questions_max=10)
    (first,) = await asking(together, a=1)
    (gone,) = await asking(together, b=2)
    (last,) = await asking(together, c=3)
    gone.cancel()
    await turn()
    line.is_open.set()
    assert await first == 2
    assert await last == 6
    assert line.asked == [{"a": 1}, {"c": 3}]


async def test_a_line_rests_after_each_asking_so_that_more_come_together() -> None:
    line = Line()
    line.is_open.set()
    together = Batcher(line.answer, lines=1, questions_max=10, rest_s=0.05)
    first = await asking(together, a=1)
    await asyncio.gather(*first)
    later = [await asking(together, **{key: 1}) for key in ("b", "c", "d")]
    await asyncio.gather(*(task for tasks in later for task in tasks))
    assert line.asked == [{"a": 1}, {"b": 1, "c": 1, "d": 1}]
