"""What the emitter lets out, the control plane takes: one event that it refused would cost the whole batch."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.control.bounds import TEXT_CHARS_MAX as TEXT_TAKEN_MAX
from headway.control.http.middleware import TELEMETRY_BYTES_MAX
from headway.control.http.schemas.requests import REQUEST_ATTEMPT_MAX, TEXT_LENGTH_MAX, EventBody, TelemetryBody
from headway.control.ingest import batch_validation
from headway.control.ingest.batch_validation import BATCH_ITEMS_MAX, check
from headway.emit import frames, kept_events
from headway.emit.emitter import Emitter
from headway.emit.frames import KINDS, NAMES, TEXT_CHARS_MAX, json_of, packed, unpacked
from headway.emit.kept_events import BATCH_EVENTS_MAX
from headway.errors import Invalid
from support.http_control import HttpControl, serving

GOOD = {"kind": "started", "queue": "shop/mail", "job_id": "job 1", "at_s": 1_795_440_000.0}
WHATEVER = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(sorted(KINDS))
    | st.sampled_from([0, 1, 1.0, 2**32, 1e11, "", "x" * 500, "x" * 501, "\0", "\ud800", b"1", (1,)])
)  # fmt: skip


def let_out(**values: Any) -> bytes:
    """The event as it leaves the program."""
    read = unpacked(packed((0, *({**GOOD, **values}.get(name) for name in NAMES))))  # type: ignore[arg-type]
    (event,), *nothing_else = read
    assert nothing_else == [0, b""]
    return json_of(event)


def is_let_out(**values: Any) -> bool:
    try:
        let_out(**values)
    except (ValueError, TypeError):
        return False
    return True


def is_taken(body: bytes) -> bool:
    head = b'{"producer":"app","sequence":1,"sent_at_s":1795440000.0,"events":[%s]}'
    try:
        check(TelemetryBody.model_validate_json(head % body).value())
    except (ValueError, Invalid):
        return False
    return True


@given(st.dictionaries(st.sampled_from(NAMES), WHATEVER, max_size=3))
def test_what_is_let_out_is_taken(values: dict[str, Any]) -> None:
    if is_let_out(**values):
        assert is_taken(let_out(**values))


@pytest.mark.parametrize(
    ("name", "most", "more"),
    [
        ("queue", "x" * 500, "x" * 501),
        ("job_id", "x" * 500, "x" * 501),
        ("job_class", "x" * 500, "x" * 501),
        ("attempt", 2**32 - 1, 2**32),
        ("attempt", 1, 0),
        ("at_s", 99_999_999_999.0, 1e11),
        ("started_at_s", 0.001, 0.0),
    ],
)
def test_bounds_are_the_same_on_both_sides(name: str, most: Any, more: Any) -> None:
    assert is_taken(let_out(**{name: most}))
    assert not is_let_out(**{name: more})


def test_bounds_that_are_written_down_twice_are_equal() -> None:
    assert min(TEXT_TAKEN_MAX, TEXT_LENGTH_MAX) == TEXT_CHARS_MAX
    assert frames.ATTEMPT_MAX == REQUEST_ATTEMPT_MAX
    assert frames.TIME_MAX_S == batch_validation._TIME_MAX_S
    assert set(NAMES) == set(EventBody.model_fields)
    assert {name for name, field in EventBody.model_fields.items() if field.is_required()} == frames.NEEDED
    assert BATCH_EVENTS_MAX <= BATCH_ITEMS_MAX


def test_a_batch_of_the_longest_events_is_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line has 4,096 bytes, which are 1,023 signs of four; JSON writes each of those with twelve."""
    longest_bytes = len(let_out(queue="\U0001f600" * 500, job_id="\U0001f600" * 500))
    assert BATCH_EVENTS_MAX * longest_bytes > TELEMETRY_BYTES_MAX > kept_events.BATCH_BYTES_MAX + longest_bytes
    monkeypatch.setattr(kept_events, "BATCH_BYTES_MAX", 5 * longest_bytes)
    with serving(HttpControl()) as control:
        emitter = Emitter.from_environment({"HEADWAY_URL": control.url})
        for number in range(100):
            emitter.report("started", "\U0001f600" * 500, f"{number:02}" + "\U0001f600" * 490)
        control.until(100)
        emitter.close(within_s=30.0)
    assert max(len(batch["events"]) for batch in control.batches) <= 6
