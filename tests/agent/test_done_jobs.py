"""Jobs that workers of a crash loop have done since it failed last count in its favour; those of older ones do not."""

from dataclasses import replace

from headway.agent.model import Activity
from headway.agent.reporting.report_lines import JobReport, Outcome, ReportKind
from headway.agent.workers.ends.done_jobs import DONE_KEPT_S, DoneJobs
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from support.workers import record

FAILED_AT_S = 500.0


def started(worker_id: str, at_s: float) -> Record:
    return record(worker_id, pid=1, started_ticks=int(at_s * procfs.TICKS_PER_S))


OLD, NEW = started("old", 100.0), started("new", 510.0)
DONE = JobReport(kind=ReportKind.ENDED, job_id="a", queue="mail", at_s=0.0, outcome=Outcome.FINISHED)


def counted(jobs: int) -> Activity:
    return Activity(is_busy=None, ended_jobs=jobs)


def test_only_a_worker_that_was_started_since_shows_that_such_workers_do_jobs() -> None:
    done = DoneJobs()
    for each in (OLD, NEW):
        done.note_start(each)
    done.note_reports("old", [DONE], now_s=520.0)
    done.note_reports("unheard of", [DONE], now_s=520.0)
    assert done.last_s(OLD.kind, started_after_s=FAILED_AT_S) is None
    done.note_reports("new", [replace(DONE, is_cut=True)], now_s=521.0)  # what its end has cut was not done
    assert done.last_s(OLD.kind, started_after_s=FAILED_AT_S) is None
    done.note_reports("new", [DONE], now_s=522.0)
    assert done.last_s(OLD.kind, started_after_s=FAILED_AT_S) == 522.0
    assert done.last_s(("other", ""), started_after_s=FAILED_AT_S) is None


def test_the_brokers_count_shows_it_too_also_of_workers_of_an_agent_before() -> None:
    done = DoneJobs()
    done.note_counts([(OLD, counted(3)), (NEW, counted(0))], now_s=515.0)
    assert done.last_s(OLD.kind, started_after_s=FAILED_AT_S) is None
    done.note_counts([(OLD, counted(4)), (NEW, counted(1))], now_s=520.0)
    done.note_counts([(OLD, counted(5)), (NEW, counted(1))], now_s=525.0)
    assert done.last_s(OLD.kind, started_after_s=FAILED_AT_S) == 520.0


def test_a_worker_that_is_gone_is_remembered_for_the_longest_pause_and_no_longer() -> None:
    done = DoneJobs()
    done.note_counts([(NEW, counted(1))], now_s=520.0)
    done.note_counts([], now_s=520.0 + DONE_KEPT_S)
    assert done.last_s(NEW.kind, started_after_s=FAILED_AT_S) == 520.0
    done.note_counts([], now_s=520.1 + DONE_KEPT_S)
    assert done.last_s(NEW.kind, started_after_s=FAILED_AT_S) is None
