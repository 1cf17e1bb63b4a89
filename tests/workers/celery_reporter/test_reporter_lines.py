"""The lines that the reporter writes: their length, their texts, and how a long state is divided."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from celery import Celery
from celery.app.task import Context
from hypothesis import given
from hypothesis import strategies as st
from kombu import Exchange, Queue, binding
from kombu.transport.native_delayed_delivery import calculate_routing_key

from headway.local.topic_pattern import topic_matches
from workers.celery_reporter.reporting import FOLDER, LINE_BYTES_MAX, Line

MODULE = FOLDER / "headway_celery_reporter.py"
IMPORTED_OF_CELERY = {"celery"}
LONGEST_STATE = (
    f'"begun":{10**15},"ended":{10**15},"slots":{10**6},"slots_max":{10**6},"pool":"{"x" * 20}",'
    f'"order":"by_arrival","connected":false,"stopping":false,"loop":{10**15},"lost":{10**15},"at_s":1795844766031779123e-9'
)
texts = st.text(max_size=2000) | st.text(st.characters(categories=["Cs", "Cc", "So"]), max_size=300)


@pytest.fixture(scope="module")
def reporter() -> ModuleType:
    """The module, as a program imports it that no agent has started."""
    spec = importlib.util.spec_from_file_location("headway_celery_reporter_of_test", MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pipe(reporter: ModuleType, tmp_path: Path) -> Iterator[int]:
    """The reading end of the pipe that the module writes into."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    before = reporter._pipe
    reporter._pipe = reporter._Pipe(str(path))
    yield file
    reporter._pipe = before
    os.close(file)


def keys_of_job(reporter: ModuleType, job_id: str, queue: str, job_class: str) -> str:
    """What each line of a job says of it, at its longest."""
    app = Celery("shop")
    app.conf.task_default_queue = queue
    message = {"delivery_info": {"routing_key": queue}, "retries": reporter.ATTEMPTS_MAX - 1}
    return str(reporter._job(SimpleNamespace(name=job_class, app=app), job_id, message))


def work() -> None:
    """What a task does."""


def whole(lines: list[str]) -> Line:
    """What a reader makes of the parts of one beat."""
    parts = [json.loads(line) for line in lines]
    assert [part["part"] for part in parts] == list(range(len(parts)))
    assert {part["parts"] for part in parts} == {len(parts)}
    assert len({json.dumps({**part, "part": 0, "running": [], "queues": []}) for part in parts}) == 1
    return {**parts[0], **{key: [item for part in parts for item in part[key]] for key in ("running", "queues")}}


@pytest.mark.parametrize(
    ("jobs", "queues", "parts_max"),
    [
        (0, 0, 1),
        (4, 2, 1),
        (30, 2, 1),
        (2_000, 3, 60),  # 2,000 × 77 bytes + 60 × 512
        (10_000, 300, 300),
    ],
)
def test_a_beat_has_every_job_and_queue_in_lines_that_a_pipe_takes_whole(
    reporter: ModuleType, jobs: int, queues: int, parts_max: int
) -> None:
    running = [[f"{number:036}", "celery", "shop.mail", 1, 1795844766.25] for number in range(jobs)]
    names = [f"queue {number}" for number in range(queues)]
    lines = reporter.beat_lines(
        7, LONGEST_STATE, [json.dumps(job) for job in running], [json.dumps(name) for name in names]
    )
    assert len(lines) <= parts_max
    assert all(len(line) <= LINE_BYTES_MAX and line.endswith("}\n") for line in lines)
    beat = whole(lines)
    assert (beat["running"], beat["queues"], beat["n"]) == (running, names, 7)


@given(jobs=st.lists(st.tuples(texts, texts, texts), max_size=8), queues=st.lists(texts, max_size=4))
def test_whatever_jobs_are_called_each_line_is_short_and_can_be_read(
    reporter: ModuleType, jobs: list[tuple[str, str, str]], queues: list[str]
) -> None:
    running = [reporter._running(keys_of_job(reporter, *job), 10**19) for job in jobs]
    lines = reporter.beat_lines(10**15, LONGEST_STATE, running, [reporter.json_text(queue) for queue in queues])
    assert all(len(line) <= LINE_BYTES_MAX for line in lines)
    beat = whole(lines)
    assert [[json.dumps(text) for text in items[:3]] for items in beat["running"]] == [
        [json.dumps(json.loads(reporter.json_text(text))) for text in job] for job in jobs
    ]
    assert len(beat["queues"]) == len(queues)


@pytest.mark.parametrize("name", ['","queue":"', ',"class":', '\\","attempt":1', "\\"])
def test_a_running_job_is_named_as_in_its_own_lines(reporter: ModuleType, name: str) -> None:
    job = keys_of_job(reporter, name, name, name)
    items = json.loads(reporter._running(job, 1795844766031779123))
    assert items == [*json.loads(f"{{{job}}}").values(), 1795844766.0317791]
    assert items[:3] == [name, name, name]


@given(job=st.tuples(texts, texts, texts))
def test_every_line_of_a_job_is_short(reporter: ModuleType, job: tuple[str, str, str]) -> None:
    written: list[str] = []
    before, reporter._pipe = reporter._pipe, SimpleNamespace(write=written.append, end=',"lost":1000000000000000}\n')
    try:
        message = {"headway_enqueued_at_s": 1e10, "eta": datetime(9999, 1, 1, tzinfo=UTC)}
        reporter._write_taken("received", keys_of_job(reporter, *job), 10**19, message)
        reporter._write_end(keys_of_job(reporter, *job), "rejected", 10**19, reporter.REQUEUED)
    finally:
        reporter._pipe = before
    assert len(written) == 2
    for line in written:
        assert len(line) <= LINE_BYTES_MAX
        assert json.loads(line)["lost"] == 10**15


@pytest.mark.parametrize(("error", "outcome"), [(None, "finished"), (ValueError("no"), "failed")])
def test_a_batch_is_one_job_with_an_id_of_its_own(
    reporter: ModuleType, pipe: int, error: Exception | None, outcome: str
) -> None:
    """celery-batches runs messages together: their task has a request without an id, and the signals have one."""
    app = Celery("shop")
    task = app.task(name="batched")(work)
    messages = [SimpleNamespace(id=each, delivery_info={"exchange": "", "routing_key": "mail"}) for each in ("a", "b")]
    state = "FAILURE" if error else "SUCCESS"
    for batch_id in ("first batch", "second batch"):
        task.request_stack.push(Context(loglevel=0, logfile=None))
        reporter._begins(sender=task, task_id=batch_id, task=task, args=(messages,), kwargs={})
        reporter._ends(sender=task, task_id=batch_id, task=task, args=(messages,), kwargs={}, retval=error, state=state)
        task.request_stack.pop()
    lines = [json.loads(line) for line in os.read(pipe, LINE_BYTES_MAX).splitlines()]
    assert [(each["t"], each["id"], each["queue"]) for each in lines] == [
        (kind, batch_id, "mail") for batch_id in ("first batch", "second batch") for kind in ("begun", "ended")
    ]
    assert {each.get("outcome") for each in lines} == {None, outcome}
    assert {each["class"] for each in lines} == {"batched"}


def test_a_job_without_an_id_and_without_messages_writes_no_line(reporter: ModuleType, pipe: int) -> None:
    task = Celery("shop").task(name="odd")(work)
    task.request_stack.push(Context())
    reporter._begins(sender=task, task_id="x", task=task, args=(), kwargs={})
    reporter._ends(sender=task, task_id="x", task=task, args=(), kwargs={}, retval=None, state="SUCCESS")
    task.request_stack.pop()
    with pytest.raises(BlockingIOError):
        os.read(pipe, LINE_BYTES_MAX)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001"),
        ("später 🙂", "später 🙂"),
        ('a "quoted"\nname', 'a "quoted"\nname'),
        ("half \ud83d", "half ?"),
        (17, "17"),
        ("x" * 998, "x" * 998),
        ("", ""),
    ],
)
def test_a_text_is_said_as_it_is(reporter: ModuleType, text: object, said: str) -> None:
    assert json.loads(reporter.json_text(text)) == said


def test_a_long_text_keeps_its_beginning_and_differs_from_others(reporter: ModuleType) -> None:
    one, other = (json.loads(reporter.json_text("x" * 5000 + last)) for last in "ab")
    assert one[:81] == other[:81] == "x" * 80 + "~"
    assert one != other
    assert json.loads(reporter.json_text("x" * 5000 + "a")) == one


@pytest.mark.parametrize(
    ("exchange", "routing_key", "queue"),
    [
        ("feeds", "feed.import", "feeds"),
        ("feeds", "feed", "feeds"),  # "#" is no word, too
        ("feeds", "news.today.now", "news"),
        ("media", "large", "pictures"),
        ("of others", "large", "large"),
        ("", "mail", "mail"),
        ("", "", "celery"),
    ],
)
def test_a_job_is_of_the_queue_that_its_route_leads_to(
    reporter: ModuleType, exchange: str, routing_key: str, queue: str
) -> None:
    feeds, media = Exchange("feeds", type="topic"), Exchange("media")
    pictures = [binding(media, routing_key="small"), binding(media, routing_key="large")]
    app = Celery("shop")
    app.conf.task_queues = [
        Queue("feeds", feeds, routing_key="feed.#"),
        Queue("news", feeds, routing_key="news.*.now"),
        Queue("pictures", bindings=pictures),
    ]
    assert reporter.queue_of(app, exchange, routing_key) == queue


@pytest.mark.parametrize(
    ("routing_key", "queue"),
    [
        ("feed.import", "feeds"),
        ("urgent", "mail"),
        ("unknown", "unknown"),  # of a queue that is named as its key
        ("small", "small"),  # a direct exchange: Celery delivers nothing there
    ],
)
def test_a_delayed_job_is_of_the_queue_that_its_route_led_to_before_its_delay(
    reporter: ModuleType, routing_key: str, queue: str
) -> None:
    app = Celery("shop")
    app.conf.task_queues = [
        Queue("feeds", Exchange("feeds", type="topic"), routing_key="feed.#"),
        Queue("mail", Exchange("mail", type="topic"), routing_key="urgent"),
        Queue("pictures", Exchange("media"), routing_key="small"),
    ]
    for delay_s in (1, 60, 2**28 - 1):
        key = calculate_routing_key(delay_s, routing_key)
        assert reporter.queue_of(app, "celery_delayed_1", key) == queue
    assert reporter.queue_of(app, "of others", "0.1.small") == "0.1.small"  # a key of the application's own


def test_a_job_of_an_exchange_that_the_application_does_not_know_is_of_the_only_queue(reporter: ModuleType) -> None:
    app = Celery("shop")
    app.amqp.queues.select(["mail"])
    assert reporter.queue_of(app, "of others", "some.key") == "mail"


@given(
    pattern=st.lists(st.sampled_from(["a", "b", "*", "#"]), max_size=5),
    key=st.lists(st.sampled_from(["a", "b", "c"]), max_size=5),
)
def test_bindings_match_as_headways_own(reporter: ModuleType, pattern: list[str], key: list[str]) -> None:
    assert reporter.topic_matches(pattern, key) == topic_matches(pattern, key)


@pytest.mark.parametrize(
    ("headers", "retries", "eta", "said"),
    [
        ({"headway_enqueued_at_s": 12.5}, 0, None, {"entered_at_s": 12.5}),
        ({"headers": {"headway_enqueued_at_s": 12.5}}, None, None, {"entered_at_s": 12.5}),
        ({"timestamp_in_ms": 12500}, 0, None, {"entered_at_s": 12.5}),
        ({"headers": {"timestamp_in_ms": 12500}}, 0, None, {"entered_at_s": 12.5}),
        ({"timestamp": 12}, 0, None, {}),  # whole seconds
        ({}, 0, None, {}),
        ({"headway_enqueued_at_s": 12.5}, 1, None, {}),  # a retry has the header of the first attempt
        ({"headway_enqueued_at_s": 12.5}, 1, "1970-01-01T00:00:20.5+00:00", {"eta_s": 20.5}),
        ({}, 0, "1970-01-01T00:00:20.5", {"eta_s": 20.5}),
        ({}, 0, datetime(1970, 1, 1, 0, 0, 20, tzinfo=UTC), {"eta_s": 20.0}),
        ({"headway_enqueued_at_s": "soon"}, 0, "later", {}),  # an application's own
        ({"headway_enqueued_at_s": float("nan"), "timestamp_in_ms": []}, 0, None, {}),
        ({"headway_enqueued_at_s": float("inf")}, 0, None, {}),
    ],
)
def test_a_job_entered_its_queue_and_is_due_when_its_message_says(
    reporter: ModuleType, headers: dict[str, object], retries: int | None, eta: object, said: dict[str, float]
) -> None:
    message = {**headers, "retries": retries, "eta": eta}
    assert json.loads("{" + reporter._times(message).removeprefix(",") + "}") == said


@pytest.mark.parametrize(
    ("retries", "attempt"), [(None, 1), (0, 1), (2, 3), (-1, 1), ("2", 1), (2**40, 1), (True, 2), ([], 1)]
)
def test_an_attempt_is_a_small_number(reporter: ModuleType, retries: object, attempt: int) -> None:
    task = SimpleNamespace(name="send", app=Celery("shop"))
    job = reporter._job(task, "id", {"delivery_info": {"routing_key": "mail"}, "retries": retries})
    assert json.loads(f"{{{job}}}") == {"id": "id", "queue": "mail", "class": "send", "attempt": attempt}


def test_a_line_that_finds_no_room_is_counted_and_the_next_one_is_whole(reporter: ModuleType, pipe: int) -> None:
    line = "x" * 4000 + "\n"
    for _ in range(1000):
        reporter._pipe.write(line)
    lost = reporter._pipe.lost_lines
    assert 0 < lost < 1000
    assert json.loads('{"v":1' + reporter._pipe.end) == {"v": 1, "lost": lost}
    taken = b""
    while len(taken) < (1000 - lost) * len(line):
        taken += os.read(pipe, 1 << 20)
    assert taken.decode() == line * (1000 - lost)
    reporter._pipe.write("again\n")
    assert os.read(pipe, 100) == b"again\n"
    assert reporter._pipe.lost_lines == lost


def test_a_job_waits_for_few_steps_of_its_reporter(reporter: ModuleType, pipe: int) -> None:
    """Each call of a function takes a part of a microsecond after a pause, of the 20 µs that a job may wait in all."""
    message = {"id": "a", "task": "send", "delivery_info": {"exchange": "", "routing_key": "mail"}, "retries": 0}
    context = SimpleNamespace(**message, is_eager=False)
    task = SimpleNamespace(name="send", app=Celery("shop"), request=context)
    calls: list[str] = []

    def report() -> None:
        reporter._received(request=SimpleNamespace(id="a", task=task, request_dict=message))
        reporter._begins(task=task)
        reporter._ends(task=task, state="SUCCESS")

    report()  # the queue of the route is known from here on
    sys.setprofile(lambda frame, event, _value: calls.append(frame.f_code.co_name) if event == "call" else None)
    report()
    sys.setprofile(None)
    lines = [json.loads(line) for line in os.read(pipe, 1 << 16).splitlines()]
    assert [line["t"] for line in lines] == 2 * ["received", "begun", "ended"]
    assert len(calls) <= len(["report"]) + 4 + 4 + 3, calls


def test_a_pipe_is_not_left_to_programs_that_a_job_starts(reporter: ModuleType, pipe: int) -> None:
    reporter._pipe.write("\n")
    assert not os.get_inheritable(reporter._pipe._file)


def test_it_loads_on_python_3_8_and_needs_only_celery() -> None:
    tree = ast.parse(MODULE.read_text(), feature_version=(3, 8))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    assert imported - sys.stdlib_module_names == IMPORTED_OF_CELERY


def test_the_folder_makes_nothing_else_importable() -> None:
    assert [path.name for path in FOLDER.iterdir() if path.name != "__pycache__"] == [MODULE.name]


def test_receivers_of_the_application_are_called_whenever_they_connect(tmp_path: Path) -> None:
    """Celery keeps the receivers of a signal until these change, so that no job waits while it finds them."""
    code = """
import headway_celery_reporter
from celery import signals
heard = []
class Shop:
    def hear(self, **_):
        heard.append(self)
for signal in (signals.task_received, signals.task_prerun, signals.task_postrun):
    def send(sender):
        signal.send(sender=sender, request=None, task=None)
    assert signal.receivers and signal.use_caching
    send(None)
    shop, other = Shop(), Shop()
    signal.connect(shop.hear)
    signal.connect(other.hear, sender="another")
    send(None)
    send(None)
    assert heard == [shop, shop], heard
    send("another")
    assert heard[2:] == [shop, other], heard
    signal.disconnect(other.hear, sender="another")
    heard.clear()
    del shop
    send(None)
    send("another")
    assert heard == [], heard
"""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "HEADWAY_REPORTER_PIPE": str(tmp_path / "none")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_without_a_pipe_it_listens_to_nothing() -> None:
    code = """
import headway_celery_reporter
from celery import signals
from celery.worker.request import Request
assert not signals.task_prerun.receivers and not signals.worker_init.receivers
assert not hasattr(Request.on_failure, "__wrapped__")
"""
    environment = {name: value for name, value in os.environ.items() if name != "HEADWAY_REPORTER_PIPE"}
    environment["PYTHONPATH"] = str(FOLDER)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
