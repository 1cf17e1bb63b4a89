"""When workers received jobs: each job that begins carries it, and the control plane counts each of them once."""

from collections.abc import Sequence
from typing import Any

import pytest

from headway.agent.reporting import receptions as module
from headway.agent.reporting.job_events import queues_of
from headway.agent.reporting.receptions import RECEPTIONS_EVERY_S, SOLO, Consumer, Receptions
from headway.agent.reporting.report_lines import JobReport, Outcome, ReportKind
from headway.scaling.model import PoolQueues, QueueReceptions

BEGAN_S = 1_000.0
QUEUES = queues_of([PoolQueues(pool="mail", queues=("shop/mail", "shop/news"))])
WORKER = Consumer(pool="mail", queues=("mail",), execution="prefork")


def line(kind: ReportKind, job: str, *, at_s: float, attempt: int = 1, **more: Any) -> JobReport:
    return JobReport(kind=kind, job_id=job, queue="mail", at_s=at_s, attempt=attempt, **more)


def received(*times_s: float, **more: Any) -> list[JobReport]:
    return [line(ReportKind.RECEIVED, f"j{at_s}", at_s=at_s, **more) for at_s in times_s]


def sent(
    receptions: Receptions,
    until_s: float,
    *,
    consumers: Sequence[Consumer] = (WORKER,),
    lost_lines: int = 0,
    has_news: bool = True,
) -> tuple[QueueReceptions, ...]:
    return receptions.due(consumers, QUEUES, until_s=until_s, lost_lines=lost_lines, has_news=has_news)


def test_a_job_that_begins_carries_when_it_was_received() -> None:
    receptions = Receptions(since_s=BEGAN_S)
    reports = [
        line(ReportKind.RECEIVED, "a", at_s=1_001.0),
        line(ReportKind.RECEIVED, "a", at_s=1_002.0, attempt=2),
        line(ReportKind.RECEIVED, "again", at_s=1_003.0, is_redelivered=True),
        line(ReportKind.BEGUN, "a", at_s=1_010.0),
        line(ReportKind.BEGUN, "a", at_s=1_011.0, attempt=2),
        line(ReportKind.BEGUN, "again", at_s=1_012.0),
        line(ReportKind.BEGUN, "unheard", at_s=1_013.0),
    ]
    found = receptions.joined(reports)
    begun = [(each.received_at_s, bool(each.is_redelivered)) for each in found if each.kind is ReportKind.BEGUN]
    assert begun == [(1_001.0, False), (1_002.0, False), (1_003.0, True), (None, False)]


def test_a_job_that_is_put_back_before_it_begins_was_received_when_it_was_first() -> None:
    receptions = Receptions(since_s=BEGAN_S)
    receptions.joined([line(ReportKind.RECEIVED, "a", at_s=1_001.0)])
    again = line(ReportKind.RECEIVED, "a", at_s=1_005.0, is_redelivered=True)
    begun = line(ReportKind.BEGUN, "a", at_s=1_010.0)
    (_, first), (_, second) = (receptions.joined([again, begun]) for _ in range(2))
    assert (first.received_at_s, bool(first.is_redelivered)) == (1_001.0, False)
    assert (second.received_at_s, second.is_redelivered) == (1_005.0, True), "it began before it was put back"


def test_a_job_that_ended_before_it_began_may_be_sent_again_under_its_id() -> None:
    receptions = Receptions(since_s=BEGAN_S)
    receptions.joined([line(ReportKind.RECEIVED, "a", at_s=1_001.0)])
    receptions.joined([line(ReportKind.ENDED, "a", at_s=1_011.0, outcome=Outcome.REVOKED)])
    assert receptions.joined([line(ReportKind.BEGUN, "a", at_s=1_012.0)])[0].received_at_s is None


def test_each_message_goes_on_where_the_one_before_ended() -> None:
    receptions = Receptions(since_s=BEGAN_S)
    receptions.note("mail", received(1_001.0, 1_002.0), QUEUES)
    assert sent(receptions, 1_003.0) == (
        QueueReceptions(
            queue="shop/mail",
            since_s=BEGAN_S,
            until_s=1_003.0,
            received_at_s=(1_001.0, 1_002.0),
            workers=1,
            is_prompt=True,
            is_whole=True,
        ),
    )
    (second,) = sent(receptions, 1_004.0)
    assert (second.since_s, second.until_s, second.received_at_s) == (1_003.0, 1_004.0, ())


def test_without_news_a_message_comes_every_few_seconds_as_long_as_workers_consume() -> None:
    receptions = Receptions(since_s=BEGAN_S)
    assert sent(receptions, BEGAN_S + 0.5, has_news=False) == ()
    (first,) = sent(receptions, BEGAN_S + RECEPTIONS_EVERY_S, has_news=False)
    assert first.workers == 1
    (last,) = sent(receptions, BEGAN_S + 2 * RECEPTIONS_EVERY_S, consumers=(), has_news=False)
    assert last.workers == 0
    assert sent(receptions, BEGAN_S + 3 * RECEPTIONS_EVERY_S, consumers=(), has_news=False) == ()
    (back,) = sent(receptions, BEGAN_S + 9 * RECEPTIONS_EVERY_S)
    assert back.since_s == last.until_s, "nobody here received anything meanwhile"


def test_what_is_read_in_part_waits_for_the_rest() -> None:
    """The control plane ignores what ends no later than the message before."""
    receptions = Receptions(since_s=BEGAN_S)
    assert len(sent(receptions, 1_003.0)) == 1
    receptions.note("mail", received(1_004.0), QUEUES)
    assert sent(receptions, 1_003.0) == ()
    (later,) = sent(receptions, 1_005.0)
    assert later.received_at_s == (1_004.0,)


@pytest.mark.parametrize(
    ("consumers", "is_prompt"),
    [
        ((WORKER, WORKER), True),
        ((WORKER, Consumer(pool="mail", queues=("mail",), execution=SOLO)), False),  # it reads on after its job
        ((Consumer(pool="mail", queues=("mail",)),), False),
    ],
)
def test_a_worker_that_reads_no_message_while_it_runs_a_job_is_not_prompt(
    consumers: tuple[Consumer, ...], is_prompt: bool
) -> None:
    (said,) = sent(Receptions(since_s=BEGAN_S), 1_001.0, consumers=consumers)
    assert (said.workers, said.is_prompt) == (len(consumers), is_prompt)


def test_a_lost_line_or_a_redelivery_makes_one_message_not_whole() -> None:
    receptions = Receptions(since_s=BEGAN_S)
    assert [sent(receptions, 1_001.0 + lost, lost_lines=lost)[0].is_whole for lost in (0, 1)] == [True, False]
    assert sent(receptions, 1_003.0, lost_lines=1)[0].is_whole
    receptions.note("mail", received(1_004.0, is_redelivered=True), QUEUES)
    assert [sent(receptions, 1_005.0 + more, lost_lines=1)[0].is_whole for more in (0, 1)] == [False, True]


def test_more_receptions_than_a_message_holds_are_not_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMES_MAX", 2)
    receptions = Receptions(since_s=BEGAN_S)
    receptions.note("mail", received(1_001.0, 1_002.0, 1_003.0), QUEUES)
    (said,) = sent(receptions, 1_004.0)
    assert (said.received_at_s, said.is_whole) == ((1_002.0, 1_003.0), False)


def test_receptions_before_the_queues_of_a_pool_are_known_are_in_no_message() -> None:
    """The first message of such a queue begins after them."""
    receptions = Receptions(since_s=BEGAN_S)
    receptions.note("mail", received(1_001.0), {})
    (said,) = sent(receptions, 1_002.0)
    assert (said.since_s, said.received_at_s) == (1_001.0, ())


def test_queues_of_other_pools_are_not_reported() -> None:
    receptions = Receptions(since_s=BEGAN_S)
    receptions.note("bulk", received(1_001.0), QUEUES)
    assert sent(receptions, 1_002.0, consumers=(Consumer(pool="bulk", queues=("mail",), execution="prefork"),)) == ()
