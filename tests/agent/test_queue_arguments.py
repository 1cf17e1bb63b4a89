"""How the names of queues come into a command line: in the library's own form, and no others than host.toml allows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.commands.queue_arguments import (
    ARGUMENTS_BYTES_MAX,
    Form,
    allowed_queues,
    is_queue_argument,
    queue_form,
    with_queues,
)
from headway.agent.config.host_file import load
from headway.agent.config.templates import Ready, Stop, Template
from headway.agent.desired_state import DesiredState
from headway.agent.workers import lifecycle, worker_record
from headway.agent.workers.lifecycle import Life
from headway.agent.workers.starts.queue_lists import QueueLists
from headway.agent.workers.worker_record import Ledger, Record, queues_hash
from headway.errors import Invalid
from headway.scaling.model import Assignment, WorkerState

PLACE = "$(HEADWAY_QUEUES)"


@pytest.mark.parametrize(
    ("argv", "filled"),
    [
        ("rq worker @", "rq worker high low"),
        ("rq worker --url redis://b @ last", "rq worker --url redis://b high low last"),
        ("python manage.py rqworker @", "python manage.py rqworker high low"),
        ("celery -A shop worker -Q @ -c 1", "celery -A shop worker -Q high,low -c 1"),
        ("celery -A shop worker --queues=@", "celery -A shop worker --queues=high,low"),
        ("dramatiq shop --queues @ --threads 1", "dramatiq shop --queues high low --threads 1"),
        ("procrastinate worker --queues @", "procrastinate worker --queues high,low"),
        ("php artisan queue:work redis --queue=@", "php artisan queue:work redis --queue=high,low"),
        ("bundle exec sidekiq -q @ -c 5", "bundle exec sidekiq -q high -q low -c 5"),
        ("sidekiq --queue=@", "sidekiq --queue=high --queue=low"),
        ("our-worker @", "our-worker high low"),
        ("our-worker --from @", "our-worker --from high,low"),
        ("rq worker mail", "rq worker mail"),
    ],
)
def test_names_stand_in_the_form_of_their_library(argv: str, filled: str) -> None:
    assert with_queues(argv.replace("@", PLACE).split(), ["high", "low"]) == filled.split()


def test_a_library_of_one_name_has_no_list() -> None:
    assert queue_form(["our-worker", "--from", PLACE]) is Form.LISTED
    assert with_queues(["our-worker", "--from", PLACE], ["high"]) == ["our-worker", "--from", "high"]


def test_a_name_with_the_form_of_a_variable_is_left_as_it_is() -> None:
    assert with_queues(["rq", "worker", PLACE], [PLACE, "$(HEADWAY_WORKER_ID)"])[2:] == [PLACE, "$(HEADWAY_WORKER_ID)"]


@pytest.mark.parametrize(
    "name",
    ["", "-Q", "--burst", "a,b", "a b", "a\tb", "a\nb", "a\0b", "a\x1b[2J", "a\u2028b", "a\ud800", "é" * 201],
)
def test_a_name_that_could_be_more_than_one_name_is_none(name: str) -> None:
    assert not is_queue_argument(name)
    assert allowed_queues([f"r/{name}"], ["*"]) == ()


def test_names_keep_their_order_and_lose_their_connection() -> None:
    queues = ["r/tenant-b", "r/mail", "r/tenant-a", "s/tenant-a", "r/tenant-x/y"]
    assert allowed_queues(queues, ["tenant-*"]) == ("tenant-b", "tenant-a", "tenant-x/y")


def test_no_more_names_are_taken_than_one_word_holds() -> None:
    names = allowed_queues([f"r/{'a' * 190}{number:05d}" for number in range(1_000)], ["*"])
    assert len(",".join(names)) <= ARGUMENTS_BYTES_MAX < len(",".join(names)) + 200


def breaches(folder: Path, keys: str, *, name: str = "mail") -> list[str]:
    (folder / "host.toml").write_text(f'[templates."{name}"]\n{keys}\n')
    try:
        load(folder / "host.toml")
    except Invalid as refused:
        return [breach.partition("template ")[2].partition(": ")[2] for breach in refused.breaches]
    return []


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            f'argv = ["sleep", "{PLACE}"]',
            (
                f"argv has {PLACE}, and queues_allowed does not say which queues may stand there: write patterns, as "
                "in queues_allowed = ['tenant-*']"
            ),
        ),
        (
            'argv = ["sleep", "1"]\nqueues_allowed = ["a"]',
            f"queues_allowed has no use: argv has no {PLACE}, where names of queues would stand",
        ),
        (
            f'argv = ["sleep", "{PLACE}", "{PLACE}"]\nqueues_allowed = ["a"]',
            f"argv has {PLACE} more than once",
        ),
        (
            f'argv = ["sh", "-c", "exec rq worker {PLACE}"]\nqueues_allowed = ["a"]',
            f"argv: {PLACE} must be a word of its own, or stand behind an option, as in --queue=exec rq worker {PLACE}",
        ),
        (
            f'argv = ["sh", "-c", "{PLACE}"]\nqueues_allowed = ["a"]',
            f"argv: {PLACE} may not reach a shell or code: write the program and its words into argv",
        ),
        (
            f'argv = ["nice", "bash", "-c", "exec rq worker $@", "bash", "{PLACE}"]\nqueues_allowed = ["a"]',
            f"argv: {PLACE} may not reach a shell or code: write the program and its words into argv",
        ),
        (
            f'argv = ["env", "-c", "{PLACE}"]\nqueues_allowed = ["a"]',
            f"argv: {PLACE} may not reach a shell or code: write the program and its words into argv",
        ),
        (
            f'argv = ["sleep", "1"]\nburst_arguments = ["{PLACE}"]',
            f"burst_arguments: {PLACE} stands in argv alone, where a burst worker has it, too",
        ),
        (
            f'argv = ["sleep", "{PLACE}"]\nqueues_allowed = ["-Q"]',
            (
                "queues_allowed: '-Q' must have 1 to 200 printable characters, no comma, no space, no '-' at its "
                "beginning, and at most 8 '*'"
            ),
        ),
    ],
)
def test_a_place_or_a_pattern_that_is_not_safe_is_refused(tmp_path: Path, keys: str, sentence: str) -> None:
    assert breaches(tmp_path, keys) == [sentence]


def test_a_program_that_queues_would_start_is_refused(tmp_path: Path) -> None:
    found = breaches(tmp_path, f'argv = ["{PLACE}"]\nqueues_allowed = ["*"]')
    assert f"argv: {PLACE} must be a word of its own, or stand behind an option, as in --queue={PLACE}" in found


def test_a_template_whose_name_is_a_pattern_is_refused(tmp_path: Path) -> None:
    assert breaches(tmp_path, 'argv = ["sleep", "1"]', name="rq-*") == [
        "its name 'rq-*' is a pattern, and a template has one name"
    ]


def test_a_sound_template_is_taken(tmp_path: Path) -> None:
    assert breaches(tmp_path, f'argv = ["sleep", "{PLACE}"]\nqueues_allowed = ["tenant-*", "default"]') == []


# --- which workers have an older list --------------------------------------------------------------------------------

TEMPLATE = Template(
    name="rq", argv=("rq", "worker", PLACE), working_directory="/", environment={}, queues_allowed=("tenant-*",)
)


def record(worker_id: str, *names: str, at_s: float = 0.0, state: WorkerState = WorkerState.RUNNING) -> Record:
    life = lifecycle.spawned(now_s=at_s, is_burst=False)
    return Record(
        worker_id=worker_id,
        pool="mail",
        template="rq",
        template_hash=TEMPLATE.content_hash,
        restart_generation=0,
        ready=Ready(),
        stop=Stop(),
        life=replace(life, state=state),
        queues_hash=queues_hash(names),
    )


def outdated(wanted: list[str], *records: Record, template: Template = TEMPLATE) -> set[str]:
    lists = QueueLists()
    lists.take({"mail": tuple(f"r/{name}" for name in wanted)})
    return set(lists.outdated(records, {"rq": template}))


def test_workers_with_another_list_are_outdated() -> None:
    with_both, with_one = record("1", "tenant-a", "tenant-b"), record("2", "tenant-a")
    assert outdated(["tenant-a", "tenant-b"], with_both, with_one) == {"2"}


def test_what_the_template_does_not_take_changes_no_list() -> None:
    assert outdated(["tenant-a", "mail"], record("1", "tenant-a")) == set()


def test_the_order_of_queues_is_part_of_a_list() -> None:
    assert outdated(["tenant-b", "tenant-a"], record("1", "tenant-a", "tenant-b")) == {"1"}


def test_a_worker_that_starts_keeps_its_list_until_it_runs() -> None:
    """Else, with a new queue each second, none would ever be ready."""
    assert outdated(["tenant-a"], record("1", "tenant-b", state=WorkerState.STARTING)) == set()


def test_while_queues_keep_coming_the_newest_list_that_runs_leaves_last() -> None:
    old = [record(str(number), "tenant-a") for number in range(3)]
    newer = record("newer", "tenant-a", "tenant-b", at_s=9.0)
    wanted = ["tenant-a", "tenant-b", "tenant-c"]
    assert outdated(wanted, *old, newer) == {"0", "1", "2"}
    assert outdated(wanted, newer) == {"newer"}
    newest = record("newest", *wanted, at_s=20.0)
    assert outdated(wanted, *old, newer, newest) == {"0", "1", "2", "newer"}


def test_without_a_queue_that_the_template_takes_nothing_is_replaced() -> None:
    assert outdated(["mail"], record("1", "tenant-a")) == set()


def test_a_template_without_a_place_for_queues_has_no_older_list() -> None:
    plain = replace(TEMPLATE, argv=("rq", "worker", "mail"), queues_allowed=())
    assert outdated(["tenant-a"], record("1"), template=plain) == set()


def test_a_changed_host_file_changes_what_is_taken() -> None:
    lists = QueueLists()
    lists.take({"mail": ("r/tenant-a", "r/mail")})
    assert lists.names("mail", TEMPLATE) == ("tenant-a",)
    assert lists.names("mail", replace(TEMPLATE, queues_allowed=("*",))) == ("tenant-a", "mail")
    assert lists.names("other", TEMPLATE) == ()


# --- what the next agent reads ---------------------------------------------------------------------------------------


def test_the_lists_of_queues_and_of_workers_are_there_for_the_next_agent() -> None:
    orders = DesiredState(
        cluster_id="c",
        epoch=1,
        revision=2,
        assignments=(Assignment(pool="mail", host_id="h", template="rq", base_workers=1),),
        queues={"mail": ("r/tenant-a", "r/tenant-b")},
    )
    ledger = Ledger(orders=orders, spent={}, pauses={}, records=[replace(record("a" * 32, "tenant-a"), pid=5)])
    body = json.loads(json.dumps(worker_record.to_json(ledger, boot_id="boot")))
    read = worker_record.from_json(body, boot_id="boot")
    assert read.orders == orders
    assert read.records[0].queues_hash == queues_hash(["tenant-a"])


def test_an_earlier_agent_finds_no_key_that_it_does_not_know() -> None:
    """One that finds an unknown key in orders or records leaves them out, and its workers with them."""
    ledger = Ledger(
        orders=DesiredState(queues={"mail": ("r/a",)}),
        spent={},
        pauses={},
        records=[replace(record("a" * 32), queues_hash="")],
    )
    body = worker_record.to_json(ledger, boot_id="boot")
    assert "queues" not in body["orders"]
    assert "queues_hash" not in body["workers"][0]
    assert isinstance(ledger.records[0].life, Life)
