"""Lines as a worker's reporter writes them."""

import json
from typing import Any


def line(kind: str, *, at_s: float, **more: Any) -> bytes:
    """One line of the protocol, of these keys."""
    return json.dumps({"v": 1, "t": kind, "at_s": at_s, **more}).encode() + b"\n"


def running(job_id: str, *, started_at_s: float = 0.0, queue: str = "mail") -> list[Any]:
    """A running job, as a beat has it."""
    return [job_id, queue, "shop.send", 1, started_at_s]


def beat(*jobs: str, at_s: float, loop: int | None = None, **more: Any) -> bytes:
    """A beat of one part that lists these jobs as running. Its loop has turned since any earlier moment."""
    return line(
        "beat",
        at_s=at_s,
        **{
            "n": int(at_s * 10),
            "part": 0,
            "parts": 1,
            "running": [running(job) for job in jobs],
            "queues": ["mail"],
            "begun": 0,
            "ended": 0,
            "slots": 4,
            "stopping": False,
            "loop": int(at_s * 10) if loop is None else loop,
            "lost": 0,
            **more,
        },
    )


def job(kind: str, job_id: str, *, at_s: float, **more: Any) -> bytes:
    """That something happened to a job."""
    taken = {"id": job_id, "queue": "mail", "class": "shop.send", "attempt": 1}
    return line(kind, at_s=at_s, **{**taken, **({"outcome": "finished"} if kind == "ended" else {}), **more})
