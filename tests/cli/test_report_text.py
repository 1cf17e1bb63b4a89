"""What people read of a demo: at the terminal, and on its page. Both say the same."""

import io
import re

import pytest
from rich.console import Console

from headway.cli.demo.comparison import Terms, comparison, fixed_pool
from headway.cli.demo.demo_report import report_of
from headway.cli.demo.report_page import report_page
from headway.cli.demo.report_text import facts, fault_text, headline, heads, lines, notes, report_shown, report_text
from headway.simulate.report.svg import Tick
from support.demo_runs import MAIL, REPORTS, job, life, run

JOBS = [*[job(0, 1, 11)] * 4, job(0, 40, 41), job(0, 0, 20, queue="reports"), job(0, 20, 40, queue="reports")]
LIVES = [life(0, 12)] * 4 + [life(0, 42)]
WORKLOAD = {
    "title": "a recorded day, 400 times as fast: 216 s, from 05:00",
    "queues": {"mail": "departures", "reports": "tweets"},
    "times_faster": 400.0,
}
MEANS = {
    "peak_name": "hour",
    "peak_window_s": 9.0,
    "start_up_s": 1.25,
    "start_up_is_measured": True,
    "workers_max": 10,
}
MADE_WITH = {
    "machine": {"system": "Linux", "cores": 2},
    "library": "rq",
    "versions": {"headway": "0.1.0", "rq": "2"},
}
KILLED = {"what": "the host's agent", "at_s": 97.2, "back_after_s": 2.2, "workers": 11, "workers_kept": 11}


def report(jobs=JOBS, lives=LIVES, *, faults=(), **more):
    ran = run(jobs, lives, goals=(MAIL, REPORTS), **more)
    rows = comparison(ran, Terms(peak_window_s=9, start_up_s=1.25))
    figures = {"workload": WORKLOAD, "terms": MEANS, "comparison": rows, "fixed_pool": fixed_pool(rows)}
    return {**report_of(ran), **figures, "faults": list(faults), **MADE_WITH}


def shown(figures, *, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(report_text(figures))
    return console.file.getvalue()


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_the_dashboard_gets_the_same_as_texts():
    figures = report()
    assert report_shown(figures) == {
        "title": WORKLOAD["title"],
        "headline": headline(figures),
        "facts": facts(figures),
        "heads": heads(figures),
        "lines": lines(figures),
    }
    assert report_shown(report([], []))["headline"] == "0 sent, 0 done, 0 lost, 0 begun more than once"


def test_each_way_is_named_for_what_it_is():
    names = [line[0] for line in lines(report())]
    assert names[0] == "Headway, this run"
    assert re.fullmatch(r"pool sized for the peak, as teams run today \(\d+ \+ \d+\)", names[1])
    assert names[2] == "5 jobs a worker, as a KEDA rule"
    assert re.fullmatch(
        r"best fixed pool \(\d+ \+ \d+\): the smallest that does as well, knows all jobs in advance", names[3]
    )


def test_a_missed_objective_is_marked():
    # 4 of 5 jobs of `mail` in time are less than 95 %; both of `reports` are
    assert lines(report())[0][1:3] == ["✗ 80.0 %", "100.0 %"]


def test_a_saving_that_missed_an_objective_says_so():
    assert headline(report()).endswith("but missed the objective of mail.")
    assert headline(report(jobs=[*[job(0, 1, 11)] * 4, job(0, 0, 20, queue="reports")])).endswith("best fixed pool.")


def test_what_is_dearer_with_headway_is_shown_as_it_is():
    """Ten workers that wait for an hour are no saving, and the report says so."""
    wasteful = report(lives=[life(0, 3600)] * 10)
    assert float(lines(wasteful)[3][4]) < 1
    assert re.search(r"Headway took \d{4} % of .* of the best fixed pool", headline(wasteful))


@pytest.mark.parametrize(
    ("jobs", "sentence"),
    [
        (JOBS, "attainment 80.0 %, objective missed"),
        ([job(0, 1, 2)], "attainment 100.0 %, objective met"),
        ([], "unknown"),
    ],
)
def test_attainment_and_whether_the_objective_was_met_are_said_of_each_queue(jobs, sentence):
    assert dict(facts(report(jobs=jobs)))["mail: pickup time"].endswith(sentence)


def test_a_hundred_per_cent_is_said_only_of_all():
    many = [job(0, 1, 2)] * 4000 + [job(0, 11, 12)]
    assert lines(report(jobs=many))[0][1] == "99.9 %"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_terminal_shows_every_figure_at_any_width(width):
    text = flat(shown(report(), width=width))
    for line in lines(report()):
        for cell in line[1:]:
            assert cell in text
    assert "7 sent, 7 done, 0 lost, 0 begun more than once" in text
    assert "✗ objective missed" in text


def test_how_the_figures_were_made_names_trace_compression_and_every_constant():
    text = " ".join(notes(report()))
    for sentence in (
        "400 times as fast",
        "departures",
        "tweets",
        "hour",
        "9 s here",
        "1.2",
        "/ 5",
        "15 s",
        "300 s",
        "1.25 s",
    ):
        assert sentence in text
    guessed = {**report(), "terms": {**MEANS, "start_up_is_measured": False}}
    assert "a guess" in " ".join(notes(guessed))


def test_a_run_without_an_ended_job_claims_nothing():
    empty = report(jobs=[job(0, status="queued")], lives=(), interrupted=True)
    text = flat(shown(empty))
    assert headline(empty) is None
    assert "1 sent, 0 done, 0 lost, 0 begun more than once, 1 still in the queue, 0 interrupted" in text
    assert "KEDA rule: the jobs" not in text
    assert "unknown" in text


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({**KILLED, "workers_adopted": 11}, "back after 2.2 s; 11 of 11 workers went on, 11 adopted"),
        ({**KILLED, "workers_adopted": None}, "back after 2.2 s; 11 of 11 workers went on"),
        ({**KILLED, "workers": None, "workers_adopted": None}, "back after 2.2 s"),
        (
            {**KILLED, "back_after_s": None, "workers_adopted": None, "workers_kept": 9},
            "not back before the end; 9 of 11 workers went on",
        ),
    ],
)
def test_what_became_of_a_kill(fault, sentence):
    assert fault_text(fault) == sentence


def test_the_page_says_what_the_terminal_says_and_loads_nothing():
    figures = report(faults=[{**KILLED, "workers_adopted": 11}])
    ran = run(JOBS, LIVES, goals=(MAIL, REPORTS))
    page = report_page(figures, ran, moments=[Tick(value=0, label="05:00"), Tick(value=27, label="08:00")])
    text = flat(re.sub(r"<[^>]+>", " ", page)).replace("&#x27;", "'")
    for sentence in [headline(figures), *notes(figures), *(value for _, value in facts(figures))]:
        assert flat(sentence) in text
    assert "08:00" in text
    assert '<td class="missed">80.0 %</td>' in page
    assert "killed the host's agent" in text
    assert "11 adopted" in text
    assert not re.search(r'(src|href)="|url\(|@import', page)
    assert page.count("<svg") == 3, "workers, and the waits of each queue"


def test_a_page_of_a_run_without_jobs_can_be_made():
    empty = report(jobs=[], lives=())
    assert "<svg" in report_page(empty, run([], (), goals=(MAIL, REPORTS), ended=0), moments=[])


def test_names_are_no_markup_on_the_page():
    figures = report()
    figures["workload"] = {**WORKLOAD, "title": "<script>alert(1)</script>"}
    assert "<script>" not in report_page(figures, run(JOBS, LIVES, goals=(MAIL, REPORTS)), moments=[])
