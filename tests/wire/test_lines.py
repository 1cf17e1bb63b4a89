"""How long a line that gives no answer is borne with, where there is no other."""

import grpc

from headway.wire.lines import LINE_UNANSWERED_MAX, UNANSWERED_MAX_AT_MOST, Lines


class Late(grpc.RpcError):
    """What a call fails with that got no answer in time."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.DEADLINE_EXCEEDED

    def details(self) -> str:
        return "no answer in time"


def failures_until_left(lines: Lines[object]) -> int:
    line, failures = lines.now, 0
    while lines.now is line:
        lines.failed(line, Late())
        failures += 1
    return failures


def test_the_only_control_plane_is_called_anew_less_and_less_often_while_it_is_flooded() -> None:
    lines = Lines(["127.0.0.1:1"], stub=lambda _channel: object(), options=(), tls=lambda: None)
    try:
        needed = [failures_until_left(lines) for _ in range(6)]
        assert needed == [2, 4, 8, 16, 16, 16]
        assert (needed[0], needed[-1]) == (LINE_UNANSWERED_MAX, UNANSWERED_MAX_AT_MOST)
        lines.answered(lines.now)
        assert failures_until_left(lines) == LINE_UNANSWERED_MAX
    finally:
        lines.close()


def test_of_two_the_next_is_called_at_once() -> None:
    lines = Lines(["127.0.0.1:1", "127.0.0.1:2"], stub=lambda _channel: object(), options=(), tls=lambda: None)
    try:
        assert [failures_until_left(lines) for _ in range(4)] == [1, 1, 1, 1]
    finally:
        lines.close()
