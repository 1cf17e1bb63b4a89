"""How long the agent waits before it asks again."""

import pytest

from headway.agent.controlplane import client, rpc, session
from headway.agent.controlplane import retry as talk
from headway.agent.controlplane.retry import PAUSE, REFUSED_RETRY_S, UNANSWERED_RETRY_S, RetryState, Unanswered
from headway.errors import Forbidden, HeadwayError, NotFound, Unavailable
from headway.store.hosts.host_lease import HOST_LEASE_S


@pytest.mark.parametrize(
    ("error", "longest_s"),
    [
        (Unavailable("cut off"), PAUSE.longest_s),
        (NotFound("no such host"), PAUSE.longest_s),
        (Unanswered("late"), UNANSWERED_RETRY_S),
        (Forbidden("no"), REFUSED_RETRY_S * 1.2),
    ],
)
def test_pauses_are_spread_from_none_to_the_longest(error: HeadwayError, longest_s: float) -> None:
    talk = RetryState("report")
    pauses_s = [talk.failed(error) for _ in range(2_000)][10:]
    assert longest_s * 0.95 < max(pauses_s) <= longest_s
    assert isinstance(error, Forbidden) or min(pauses_s) < longest_s * 0.05


def test_in_a_flood_a_host_asks_no_more_often_than_when_all_is_well() -> None:
    mean_s = rpc.CALL_TIMEOUT_S + talk.UNANSWERED_RETRY_S / 2
    assert mean_s >= session.REPORT_EVERY_S * (1 - session.REPORT_JITTER)


def test_a_report_that_got_no_answer_is_tried_again_within_the_lease() -> None:
    due_s = session.REPORT_EVERY_S * (1 + session.REPORT_JITTER)
    assert due_s + rpc.CALL_TIMEOUT_S + talk.UNANSWERED_RETRY_S < HOST_LEASE_S
    assert client.POLL_WAIT_S < client.POLL_TIMEOUT_S
