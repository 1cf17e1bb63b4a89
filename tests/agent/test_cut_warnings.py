"""Bounds that cut jobs are named where the file is read: a library's own, and deadlines that come before them."""

from dataclasses import replace

import pytest

from headway.agent.config.commands.worker_commands import leaves_due_jobs
from headway.agent.config.cut_warnings import cut_warnings, stop_hazards
from headway.agent.config.own_limits import own_limits
from headway.agent.config.slots_check import slots_doubt
from headway.agent.config.templates import Stop
from headway.scaling.planning.early_cuts import early_cuts
from support.workers import template


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("celery -A shop worker --time-limit 300", [("--time-limit", 300.0)]),
        (
            "celery -A shop worker --time-limit=300 --soft-time-limit 60",
            [("--soft-time-limit", 60.0), ("--time-limit", 300.0)],
        ),
        ("celery -A shop worker --time-limit 0", []),
        ("python -m celery -A shop worker --time-limit 5", [("--time-limit", 5.0)]),
        ("celery -A shop worker", []),
        ("dramatiq shop", [("--worker-shutdown-timeout", 600.0)]),
        ("dramatiq shop --worker-shutdown-timeout 30000", [("--worker-shutdown-timeout", 30.0)]),
        ("bundle exec sidekiq -q mail", [("--timeout", 25.0)]),
        ("bundle exec sidekiq -t 90", [("--timeout", 90.0)]),
        ("sidekiq --timeout 8", [("--timeout", 8.0)]),
        ("php artisan queue:work redis", [("--timeout", 60.0)]),
        ("php artisan queue:work redis --timeout=0", []),
        ("php artisan queue:work redis --timeout=900", [("--timeout", 900.0)]),
        ("procrastinate --app shop worker", []),
        ("procrastinate --app shop worker --shutdown-graceful-timeout 20", [("--shutdown-graceful-timeout", 20.0)]),
        ("taskiq worker shop:broker --wait-tasks-timeout 7.5", [("--wait-tasks-timeout", 7.5)]),
        ("rq worker mail", []),
        ("sh -c celery", []),
        ("celery -A shop worker --time-limit soon", []),
        ("celery -A shop worker --time-limit", []),
    ],
)
def test_the_bounds_of_a_library_are_read_off_the_command_line(line: str, limits: list[tuple[str, float]]) -> None:
    assert [(each.option, each.after_s) for each in own_limits(line.split())] == limits


def test_each_bound_is_a_warning_and_a_deadline_before_it_is_another() -> None:
    mail = replace(template(name="mail"), argv=("celery", "worker", "--time-limit", "300"))
    cut = (
        "template mail: Celery kills a task that runs for longer than 300 s, whether its worker stops or not "
        "(--time-limit)"
    )
    assert cut_warnings([mail, template()]) == [cut]
    hasty = replace(mail, stop=Stop(drain_timeout_s=60.0))
    early = "drain_timeout_s = 60 kills a worker before the 300 s of --time-limit are over"
    assert cut_warnings([hasty]) == [cut, f"template mail: {early}: make it longer, or leave it out"]
    assert cut_warnings([replace(mail, stop=Stop(drain_timeout_s=300.0))]) == [cut]


CELERY = ("celery", "-A", "shop", "worker")


@pytest.mark.parametrize(
    ("argv", "environment", "inherited", "named"),
    [
        (CELERY, {}, {}, []),
        (CELERY, {"REMAP_SIGTERM": "SIGQUIT"}, {}, ["REMAP_SIGTERM"]),
        (CELERY, {}, {"REMAP_SIGTERM": "SIGQUIT"}, ["REMAP_SIGTERM"]),
        (CELERY, {"REMAP_SIGTERM": ""}, {"REMAP_SIGTERM": "SIGQUIT"}, []),
        (("nice", *CELERY), {"REMAP_SIGTERM": "SIGQUIT"}, {}, ["REMAP_SIGTERM"]),
        (("rq", "worker", "mail"), {"REMAP_SIGTERM": "SIGQUIT"}, {}, ["--with-scheduler"]),
        (("rq", "worker", "--with-scheduler", "mail"), {}, {}, []),
        (("python", "manage.py", "rqworker", "mail", "-s"), {}, {}, []),
        (("rq", "worker", "-s", "--burst", "mail"), {}, {}, ["remove --burst: each worker ends"]),
        (("rq", "worker", "-s", "--max-idle-time=5", "mail"), {}, {}, ["remove --max-idle-time"]),
        (("nice", "-n", "5", "rq", "worker", "-s", "--burst", "mail"), {}, {}, ["remove --burst"]),
        (("env", "A=b", "rq", "worker", "mail"), {}, {}, ["--with-scheduler"]),
        (("rq", "worker", "-s", "--max-jobs", "5", "mail"), {}, {}, []),
        (("php", "artisan", "queue:work", "--stop-when-empty"), {}, {}, ["remove --stop-when-empty"]),
        (("timeout", "3000", *CELERY), {}, {}, ["timeout"]),
        (("/usr/bin/timeout", "3000", "rq", "worker"), {}, {}, ["timeout"]),
        (("timeout", "--foreground", "3000", *CELERY), {}, {}, []),
        (("dumb-init", *CELERY), {}, {}, ["dumb-init"]),
        (("dumb-init", "--single-child", *CELERY), {}, {}, []),
        (("dumb-init", "rq", "worker", "-s", "mail"), {}, {}, []),  # each job runs in a group of its own
        (("dumb-init", "rq", "worker-pool", "mail"), {}, {}, ["dumb-init"]),
        (("dumb-init", "rq", "worker", "-s", "--worker-class=rq.SimpleWorker"), {}, {}, ["dumb-init"]),
        (("dumb-init", *CELERY, "-Q", "rq"), {}, {}, ["dumb-init"]),  # a queue of that name
        (("timeout", "3000", "rq", "worker", "-s"), {}, {}, ["timeout"]),  # which sends it twice to the worker itself
        (("tini", "--", *CELERY), {}, {}, []),
        (("tini", "-g", "--", *CELERY), {}, {}, ["leave out its -g"]),
        (("/usr/bin/tini", "-p", "TERM", "-vg", *CELERY), {}, {}, ["leave out its -g"]),
        (("tini", "-g", "--", "rq", "worker", "-s"), {}, {}, []),
        (("tini", *CELERY, "-g"), {}, {}, []),  # an option of the worker
        (("/usr/bin/supervisord", "-n"), {}, {}, ["starts several workers"]),
        (("honcho", "start"), {}, {}, ["starts several workers"]),
        (("honcho", "run", *CELERY), {}, {}, []),
        (("foreman", "start", "worker"), {}, {}, ["starts several workers"]),
        (("circusd", "circus.ini"), {}, {}, ["starts several workers"]),
        (("su", "shop", "-c", "rq worker"), {}, {}, ["give the template a `user`"]),
        (("runuser", "-u", "shop", "--", *CELERY), {}, {}, ["give the template a `user`"]),
        ((*CELERY, "-B"), {}, {}, ["--beat"]),
        (("python", "-m", "celery", "worker", "--beat"), {}, {}, ["--beat"]),
        (("rq", "worker", "-B"), {}, {}, ["--with-scheduler"]),
        ((*CELERY, "--detach"), {}, {}, ["--detach"]),
        (("celery", "multi", "start", "w1"), {}, {}, ["celery multi"]),
        ((*CELERY, "-D", "-B", "-c", "2"), {}, {}, ["--beat", "--detach"]),
        ((*CELERY, "--autoscale=6,2"), {}, {}, ["--autoscale"]),
        ((*CELERY, "--without-heartbeat", "--purge"), {}, {}, ["--purge", "--without-heartbeat"]),
        ((*CELERY, "--pool=solo"), {}, {}, ["--pool solo"]),
        ((*CELERY, "-P", "threads"), {}, {}, []),
        ((*CELERY, "-Q", "-B"), {}, {}, []),  # a queue of that name
        (("celery", "-A", "shop", "beat", "--detach"), {}, {}, []),
        (("sh", "-c", "exec celery -A shop worker"), {}, {}, []),
        (("sh", "-c", "cd /srv && exec celery -A shop worker -B | cat"), {}, {}, ["--beat"]),
        (("/bin/bash", "-lc", "celery -A shop worker -B; echo -D"), {}, {}, ["`bash -c`", "--beat"]),
        (("sh", "-c", "celery 'worker"), {}, {}, ["`sh -c`"]),
        (("sh", "run-worker.sh"), {}, {}, []),
        (("sh", "-c", "while true; do sleep 1; done"), {}, {}, []),  # a shell that is the worker
        (("npm", "run", "worker"), {}, {}, ["npm"]),
        (("sudo", "-u", "shop", "rq", "worker"), {}, {}, ["sudo"]),
        (("docker", "exec", "shop", *CELERY), {}, {}, ["docker"]),
        (("watchmedo", "auto-restart", "--", *CELERY), {}, {}, ["watchmedo"]),
        (("nice", "env", "A=b", *CELERY), {}, {}, []),
        ((), {}, {}, []),
    ],
)
def test_what_cuts_jobs_at_the_signal_to_stop_or_runs_them_twice_is_named(
    argv: tuple[str, ...], environment: dict[str, str], inherited: dict[str, str], named: list[str]
) -> None:
    found = list(stop_hazards(replace(template(), argv=argv, environment=environment), inherited=inherited))
    assert [name for name, sentence in zip(named, found, strict=True) if name in sentence] == named


@pytest.mark.parametrize(
    ("line", "slots", "named"),
    [
        ("celery -A shop worker -c 4", 4, None),
        ("celery -A shop worker -c 4", 1, "4 jobs at once"),
        ("celery -A shop worker --concurrency=4", 4, None),
        ("celery -A shop worker", 8, None),  # as many as there are cores
        ("celery -A shop worker", 1, "8 here"),
        ("celery -A shop worker -P solo", 1, None),
        ("celery -A shop worker --pool=solo -c 4", 4, "1 jobs at once"),
        ("celery -A shop worker --autoscale=6,2", 6, None),
        ("celery -A shop worker --autoscale 6,2", 2, "6 jobs at once"),
        ("celery -A shop worker -c 4 --autoscale 6,2", 6, None),
        ("celery -A shop worker -Psolo", 2, "1 jobs at once"),
        ("celery -A shop worker -Q solo -c 4", 4, None),  # a queue of that name
        ("celery -A shop worker -c 0", 8, None),
        ("nice python -m celery -A shop worker -c 4", 1, "4 jobs at once"),
        ("celery -A shop beat", 1, None),
        ("rq worker mail", 1, None),
    ],
)
def test_slots_that_are_not_those_of_the_command_line_are_named(line: str, slots: int, named: str | None) -> None:
    doubt = slots_doubt(replace(template(slots=slots), argv=tuple(line.split())), cores=8)
    assert doubt is None if named is None else doubt is not None and named in doubt


def test_the_shortest_bound_of_the_library_is_reported() -> None:
    words = ("celery", "worker", "--time-limit", "300", "--soft-time-limit", "240")
    reported = replace(template(), argv=words).reported()
    assert (reported.job_limit_s, reported.job_limit) == (240.0, "--soft-time-limit")
    assert (template().reported().job_limit_s, template().reported().job_limit) == (None, "")


@pytest.mark.parametrize(
    ("service_p99_s", "drain_timeout_s", "job_limit_s", "named"),
    [
        (None, 60.0, 60.0, []),  # nobody knows how long jobs take
        (50.0, 60.0, 60.0, []),
        (50.0, None, None, []),
        (90.0, 60.0, None, ["drain_timeout_s"]),
        (90.0, None, 60.0, ["--time-limit"]),
        (90.0, 60.0, 60.0, ["drain_timeout_s", "--time-limit"]),
    ],
)
def test_bounds_below_what_jobs_take_are_named(
    service_p99_s: float | None, drain_timeout_s: float | None, job_limit_s: float | None, named: list[str]
) -> None:
    found = early_cuts(
        "mail",
        service_p99_s=service_p99_s,
        drain_timeout_s=drain_timeout_s,
        job_limit_s=job_limit_s,
        job_limit="--time-limit",
    )
    assert [name for name, sentence in zip(named, found, strict=True) if f"({name})" in sentence] == named
    assert all("one job in a hundred takes longer than 90 s" in sentence for sentence in found)


@pytest.mark.parametrize(
    ("line", "are_left"),
    [
        ("rq worker mail", True),
        ("rq worker-pool mail", True),
        ("rq worker --with-scheduler mail", False),
        ("python manage.py rqworker mail", True),
        ("python manage.py rqworker --with-scheduler mail", False),
        ("celery -A shop worker", False),
        ("/srv/run-workers mail", False),
    ],
)
def test_a_host_reports_whether_workers_of_a_template_leave_due_jobs(line: str, are_left: bool) -> None:
    assert leaves_due_jobs(line.split()) is are_left
    assert replace(template(), argv=tuple(line.split())).reported().leaves_due_jobs is are_left


def test_a_reference_with_the_prefix_of_the_agents_that_is_not_replaced_is_named() -> None:
    given = replace(
        template(environment={"A": "$(HEADWAY_WORKER_NUM)"}), argv=("sh", "$(nproc)", "$(HEADWAY_WORKER_ID)")
    )
    (warning,) = cut_warnings([given])
    assert warning == (
        "template py: $(HEADWAY_WORKER_NUM) stays as it is: the agent replaces $(HEADWAY_WORKER_ID) and "
        "$(HEADWAY_WORKER_NUMBER)"
    )
