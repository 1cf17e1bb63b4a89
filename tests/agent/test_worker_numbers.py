"""Numbers of workers: the lowest free one of the template, over starts, stops, crashes and restarts of the agent."""

import os
import signal
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headway.agent.config.commands.references import filled, unknown_references
from headway.agent.config.templates import REFERENCES, WORKER_NUMBER, Ready, Stop, Template
from headway.agent.workers.manager import WorkerManager
from headway.agent.workers.worker_numbers import lowest_free, number_in
from headway.agent.workers.worker_record import OrphanRecord, Unrecorded
from headway.local import procfs
from headway.scaling.model import Assignment, WorkerState
from headway.scaling.reconcile import Drain, reconcile
from support.waiting import eventually
from support.workers import PRINTS_READY, SLEEP, Stage, printed, reconcile_until, start, states, template

# It stays when it is asked to stop, as one that finishes a long job.
STAYS = ("sh", "-c", "trap '' TERM; exec sleep 600", "$(HEADWAY_WORKER_NUMBER)")


def staying(name: str = "py", argv: tuple[str, ...] = STAYS) -> Template:
    """A template whose workers do not end when they are asked to."""
    return Template(name=name, argv=argv, working_directory="/", environment={}, ready=Ready(after_s=0.0), stop=Stop())


def numbers(fleet: WorkerManager, template: str = "py") -> list[int | None]:
    """Of the workers with a process."""
    return sorted(each.number for each in fleet.running() if each.template == template)


def leave(fleet: WorkerManager, number: int, template: str = "py") -> None:
    """End the worker by force, and wait for that."""
    (record,) = (each for each in fleet.running() if (each.number, each.template) == (number, template))
    os.kill(record.pid, signal.SIGKILL)
    reconcile_until(fleet, lambda: record.worker_id not in {each.worker_id for each in fleet.running()})


def test_known_references_are_replaced_and_others_stay() -> None:
    values = {"HEADWAY_WORKER_ID": "a", "HEADWAY_WORKER_NUMBER": "3"}
    text = "w-$(HEADWAY_WORKER_NUMBER)-$(HEADWAY_WORKER_ID)@$(HOME) $(HEADWAY_OTHER) $HEADWAY_WORKER_ID $(nproc)"
    assert filled(text, values) == "w-3-a@$(HOME) $(HEADWAY_OTHER) $HEADWAY_WORKER_ID $(nproc)"
    assert filled(
        "$(HEADWAY_WORKER_ID)",
        {
            "HEADWAY_WORKER_ID": "$(HEADWAY_WORKER_NUMBER)",
        },
    ) == ("$(HEADWAY_WORKER_NUMBER)")  # once: a value is no text of the template's
    assert unknown_references([text, "$(HEADWAY_WORKER_NUM)"], REFERENCES) == [
        "$(HEADWAY_OTHER)",
        "$(HEADWAY_WORKER_NUM)",
    ]


def test_a_worker_is_started_with_its_number_in_arguments_and_variables(stage: Stage) -> None:
    code = (
        f"import os, sys\nprint('ready', sys.argv[1], os.environ['SHARD'], os.environ[{WORKER_NUMBER!r}], flush=True)\n"
    )
    made = template(code + SLEEP, ready=PRINTS_READY, environment={"SHARD": "s$(HEADWAY_WORKER_NUMBER)"})
    with stage.fleet(replace(made, argv=(*made.argv, "--shard=$(HEADWAY_WORKER_NUMBER)"))) as fleet:
        fleet.act([start()] * 3)
        reconcile_until(fleet, lambda: states(fleet) == 3 * [WorkerState.RUNNING])
        said = sorted(printed(stage, each.worker_id).strip() for each in fleet.workers())
    assert said == [f"ready --shard={number} s{number} {number}" for number in range(3)]


def test_the_lowest_free_number_is_given_again_once_its_worker_is_gone(stage: Stage) -> None:
    with stage.fleet(staying(), staying("other")) as fleet:
        fleet.act([start()] * 3 + [start(pool="news")] + [start(template="other")])
        assert numbers(fleet) == [0, 1, 2, 3]  # by template, whichever pool it serves
        assert numbers(fleet, "other") == [0]
        stage.clock.ahead_s += 11.0  # they have stayed: an end is no failure
        reconcile_until(fleet, lambda: set(states(fleet)) == {WorkerState.RUNNING})
        leave(fleet, 1)
        assert numbers(fleet) == [0, 2, 3]
        fleet.act([start()])
        assert numbers(fleet) == [0, 1, 2, 3]


def test_a_worker_that_drains_keeps_its_number_over_a_restart_of_the_agent(stage: Stage) -> None:
    with stage.fleet(staying()) as fleet:
        fleet.act([start()] * 2)
        first = next(each for each in fleet.running() if each.number == 0)
        fleet.act([Drain(worker_id=first.worker_id)])
        fleet.act([start()])
        assert numbers(fleet) == [0, 1, 2]
    with stage.fleet(staying()) as fleet:
        fleet.act([start()])
        assert numbers(fleet) == [0, 1, 2, 3]
        leave(fleet, 0)
        fleet.act([start()])
        assert numbers(fleet) == [0, 1, 2, 3]


def test_a_worker_of_an_earlier_version_has_no_number_and_takes_none(stage: Stage) -> None:
    with stage.fleet(staying()) as fleet:
        fleet.act([start()])
    for name in ("workers.json", "starts.jsonl"):
        path = stage.folder.root / name
        path.write_text(path.read_text().replace(',"number":0', ""))
    with stage.fleet(staying()) as fleet:
        fleet.act([start()])
        assert [each.number for each in fleet.running()] == [None, 0]


def test_a_process_of_no_record_keeps_the_number_in_its_environment(stage: Stage) -> None:
    with stage.fleet(staying()) as fleet:
        fleet.act([start()])
        pid = fleet.running()[0].pid
    for name in ("workers.json", "starts.jsonl"):
        (stage.folder.root / name).write_text("{")
    with stage.fleet(staying()) as fleet:
        assert [(each.pid, each.number) for each in fleet.unrecorded.found] == [(pid, 0)]
        fleet.act([start()])
        assert numbers(fleet) == [1]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def unrecorded(template: str = "py", **values: object) -> Unrecorded:
    return Unrecorded(worker_id="0" * 32, pid=1, started_ticks=1, template=template, **values)  # type: ignore[arg-type]


def test_what_may_have_any_number_leaves_none_free(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A process that overwrote its environment, as those do that set their title, and of which records were lost."""
    assert lowest_free("py", (), [unrecorded(number=0), unrecorded("other", may_have_any_number=True)]) == 1
    assert lowest_free("py", (), [unrecorded("", number=0)]) == 1  # it may be of this template
    for template_name in ("py", ""):
        assert lowest_free("py", (), [unrecorded(template_name, may_have_any_number=True)]) is None
    with stage.fleet(staying(), staying("plain", ("sleep", "600"))) as fleet:
        fleet.unrecorded.found = [unrecorded("", may_have_any_number=True)]
        fleet.act([start(), start(template="plain")])
        found = {each.template: each.state for each in fleet.workers()}
        assert found == {"py": WorkerState.BACKING_OFF, "plain": WorkerState.STARTING}
        assert "whose number is not known" in caplog.text


def test_what_a_worker_has_left_keeps_its_number() -> None:
    left = OrphanRecord(worker_id="0" * 32, pid=1, started_ticks=1, ends_by_s=None, template="py", number=0)
    assert lowest_free("py", [left], ()) == 1
    assert lowest_free("other", [left], ()) == 0


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("17", 17), ("", None), ("-1", None), ("9" * 7, None), ("²", None)]
)
def test_a_number_is_read_off_a_mark(text: str, number: int | None) -> None:
    assert number_in(text) == number


def test_workers_of_an_exclusive_pool_have_their_numbers_again_after_a_rollout(stage: Stage) -> None:
    """There no more than assigned ever exist: no shard is served twice, and none that is not there is."""
    rows = [
        Assignment(host_id="h", pool="mail", template="py", base_workers=3, restart_generation=1, is_exclusive=True)
    ]
    made = staying(argv=("sh", "-c", "exec sleep 600", "$(HEADWAY_WORKER_NUMBER)"))
    with stage.fleet(made) as fleet:
        fleet.act([start()] * 3)
        reconcile_until(fleet, lambda: states(fleet) == 3 * [WorkerState.RUNNING])

        def is_over() -> bool:
            stage.clock.ahead_s += 11.0  # the first replacement shows that it stays
            fleet.act(reconcile(fleet.workers(), rows))
            assert set(numbers(fleet)) <= {0, 1, 2}
            assert len(set(numbers(fleet))) == len(fleet.running())
            renewed = [each for each in fleet.running() if each.restart_generation == 1]
            return len(renewed) == 3 == len(fleet.workers())

        reconcile_until(fleet, is_over)
        assert numbers(fleet) == [0, 1, 2]


class Numbering(RuleBasedStateMachine):
    """Workers of two templates that start, drain, end and outlive agents, some of which lose their records."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="headway-numbers-")
        self.stage = Stage(Path(self.folder) / "state")
        self.templates = (staying("a"), staying("b"))
        self.open = ExitStack()
        self.fleet = self.open.enter_context(self.stage.fleet(*self.templates))

    @rule(template=st.sampled_from("ab"), pool=st.sampled_from(["mail", "news"]), count=st.integers(1, 3))
    def starts(self, template: str, pool: str, count: int) -> None:
        """Each gets the lowest number that no live process of the template has, once no kind backs off."""
        self.stage.clock.ahead_s += 400.0
        # A process that the kernel has just ended is the agent's until it has seen that.
        self.settle(lambda: self.fleet.free_number(template) == self.lowest_free(template))
        expected = sorted(number for number, _ in self.live(template))
        for _ in range(count):
            expected.append(next(number for number in range(100) if number not in expected))
        self.fleet.act([start(pool=pool, template=template)] * count)
        found = eventually(lambda: (found := self.live(template)) and len(found) == len(expected) and found)
        assert sorted(number for number, _ in found) == sorted(expected)

    @rule(data=st.data())
    def drains(self, data: st.DataObject) -> None:
        staying = [each for each in self.fleet.workers() if each.state is not WorkerState.DRAINING]
        if staying:
            self.fleet.act([Drain(worker_id=data.draw(st.sampled_from(staying)).worker_id)])

    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        """By force, whether the agent knows it or not."""
        live = self.live("a") + self.live("b")
        if live:
            _, pid = data.draw(st.sampled_from(live))
            os.kill(pid, signal.SIGKILL)
            self.settle(lambda: pid not in {each for _, each in self.live("a") + self.live("b")})

    @rule(loses=st.sampled_from(["nothing", "workers.json", "starts.jsonl", "both"]))
    def another_agent_takes_over(self, loses: str) -> None:
        self.open.close()
        for name in ("workers.json", "starts.jsonl"):
            if loses in {name, "both"}:
                (self.stage.folder.root / name).write_text("{")
        self.fleet = self.open.enter_context(self.stage.fleet(*self.templates))

    @invariant()
    def no_two_have_one(self) -> None:
        for name in "ab":
            found = [number for number, _ in self.live(name)]
            assert len(set(found)) == len(found), found

    def live(self, template: str) -> list[tuple[int, int]]:
        """The numbers and pids of all processes of the template, by what the kernel shows."""
        found = []
        agent_id = self.stage.folder.identity().agent_id
        for child in procfs.descendants(os.getpid()):
            environment = {} if child.is_over else procfs.environment(child.pid, having=agent_id)
            if f'"template":"{template}"' in environment.get("HEADWAY_STARTED_AS", ""):
                found.append((int(environment[WORKER_NUMBER]), child.pid))
        return found

    def lowest_free(self, template: str) -> int:
        """The lowest number that no process of the template has, by what the kernel shows."""
        taken = {number for number, _ in self.live(template)}
        return next(number for number in range(100) if number not in taken)

    def settle(self, is_so: Callable[[], bool]) -> None:
        eventually(lambda: (self.fleet.scan(), is_so())[1])

    def teardown(self) -> None:
        for _, pid in self.live("a") + self.live("b"):
            os.kill(pid, signal.SIGKILL)
        self.settle(lambda: not self.fleet.running() and not self.live("a") + self.live("b"))
        self.open.close()


TestNumbering = Numbering.TestCase
TestNumbering.settings = settings(
    max_examples=10, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
