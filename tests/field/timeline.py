"""A recording as text: what each witness saw, in the order of time. Printed where a case fails."""

from collections.abc import Iterable, Iterator, Sequence

from field.recording import Kind, Recording

ID_CHARS = 6  # of a worker's id; there are a dozen workers


def timeline(recording: Recording) -> list[str]:
    """A line per event of the log, per decision, and per change of an answer or of the list of processes."""
    starts = [event.at_s for event in recording.events if event.kind is Kind.START]
    begin_s = min(starts, default=0.0)
    rows = [(event.at_s, f"log {event.kind} {_short(event.worker_id)} {event.job_id}") for event in recording.events]
    rows += _changes(
        (answer.at_s, [f"{_short(each.worker_id)} {each.state} {_activity(each.is_busy)}" for each in answer.workers])
        for answer in recording.answers
    )
    rows += _changes(
        (processes.at_s, [f"{_short(worker_id)} lives" for worker_id in processes.worker_ids])
        for processes in recording.processes
    )
    rows += [(each.at_s, f"decided {each.text}") for each in recording.decisions]
    return [f"{at_s - begin_s:7.1f} {text}" for at_s, text in sorted(rows)]


def _changes(rows: Iterable[tuple[float, Sequence[str]]]) -> Iterator[tuple[float, str]]:
    before = None
    for at_s, parts in rows:
        if (text := "; ".join(sorted(parts)) or "no worker") != before:
            yield at_s, text
            before = text


def _short(worker_id: str) -> str:
    return worker_id[:ID_CHARS]


def _activity(is_busy: bool | None) -> str:
    return "unknown" if is_busy is None else "busy" if is_busy else "idle"
