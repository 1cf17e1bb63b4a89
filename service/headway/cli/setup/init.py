"""`headway init`: write profiles.yaml and host.toml for the application of this folder, its brokers and its workers."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from headway.cli.argparse_base import Arguments
from headway.cli.setup import dotenv_file
from headway.cli.setup.application import Application, application_above, application_in, as_imported, declare
from headway.cli.setup.broker_candidates import (
    LOOPBACK_URLS,
    URL_VARIABLES,
    VARIABLES_OF,
    Candidate,
    candidate,
    each_once,
    managed_at,
    written,
)
from headway.cli.setup.broker_survey import ASKED_WITHIN_S, SURVEY_WITHIN_S, FoundBroker, Survey, survey
from headway.cli.setup.dotenv_file import Dotenv
from headway.cli.setup.found_connections import FoundConnection, connections, give_names
from headway.cli.setup.init_report import Findings, others_lines, report
from headway.cli.setup.ownership import MachineWorkers, workers_of_machine
from headway.cli.setup.pool_drafts import as_one_library, draft, example
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.scaffold import host_text, profiles_text
from headway.cli.setup.source.celery_apps import CeleryApp
from headway.cli.setup.worker_environment import is_secret
from headway.cli.setup.worker_templates import Templates
from headway.cli.terminal.printing import say
from headway.collect.libraries import Libraries
from headway.errors import Conflict, Invalid, Misconfigured

PROFILES, HOST = "profiles.yaml", "host.toml"
DOTENV = ".env"


def main(words: list[str]) -> int:
    """Find brokers, queues and workers, and write both files. Returns the exit status."""
    options = _options(words)
    if options.name is not None and (not options.name or set(options.name) & set("/=,@:")):
        raise Invalid(
            f"--name {options.name!r}: a connection's name is not empty and has no '/', '=', ',', '@' and ':'"
        )
    folder: Path = options.dir
    there = [str(folder / name) for name in (PROFILES, HOST) if (folder / name).exists()]
    if there and not options.force:
        raise Conflict(f"{' and '.join(there)} would be overwritten: add --force to replace, or choose another --dir")
    libraries, here = Libraries(), Path.cwd()
    dotenv = dotenv_file.read(here / DOTENV)
    variables = {**dotenv.variables, **os.environ}
    machine = workers_of_machine(here=here, files_folder=folder.absolute(), takes_all=options.all)
    application = application_in(here)
    if options.import_app is not None:
        application = as_imported(application, options.import_app, here=here, workers=machine.own, variables=variables)
    candidates = _candidates(options, dotenv, application, machine.own, variables)
    result = survey(candidates, libraries, within_s=ASKED_WITHIN_S if options.broker else SURVEY_WITHIN_S)
    found, strays = _connections(options, result, application, machine)
    if options.broker:
        machine = machine.reading({worker.pid for each in found for worker in each.strangers})
    remarks = [*result.unseen, *application.problems, *declare(application, found, variables)]
    used = [each for each in found if each.is_own]
    give_names(used, name=options.name)
    others = [each for each in found if each.others_queues]
    templates = Templates(
        source_folder=here,
        folder=folder,
        env=os.environ,
        dotenv=dotenv.variables,
        apps=application.apps,
        queues_of={name: each.queues for name, each in application.declared.items()},
        dramatiq_modules=application.dramatiq_modules,
    )
    if used:
        made = draft(used, templates, libraries)
    else:
        broker = _first(result, others, machine, application)
        made = example(broker, templates, libraries, name=options.name, is_celery=application.has_celery)
    _write(folder, {PROFILES: profiles_text(made), HOST: host_text(made)}, is_private=made.has_password)
    findings = Findings(
        connections=used,
        draft=made,
        strays=[] if options.broker else [each for each in strays if not each.is_headways],
        machine=machine,
        others=[] if options.broker else [each for each in machine.own if each.command.library not in VARIABLES_OF],
        others_queues=others,
        unseen=[*remarks, *([] if options.broker else _unseen(dotenv))],
        left_out=[
            (worker.pid, remark)
            for each in used
            for worker in each.workers
            for remark in templates.remarks(worker, each.broker.candidate)
        ],
        files=(folder / PROFILES, folder / HOST),
    )
    for line in report(findings):
        say(line)
    flags = "" if folder == Path() else f" --profiles {folder / PROFILES} --host-file {folder / HOST}"
    say("next: check both files, then type")
    say(f"  headway up{flags}")
    return 0


def _connections(
    options: argparse.Namespace, result: Survey, application: Application, machine: MachineWorkers
) -> tuple[list[FoundConnection], list[RunningWorker]]:
    """The brokers that answered with their workers, and the workers of this folder that read another broker."""
    served = [each for each in machine.own if each.command.library in VARIABLES_OF]
    has_celery = application.has_celery or any(each.command.library == "celery" for each in served)
    brokers = as_one_library(result.brokers, is_celery=has_celery)
    readers = [each.worker for each in machine.strangers if each.worker.command.library in VARIABLES_OF]
    found, strays = connections(brokers, served, strangers=readers)
    for each in found:
        each.is_declared_only = each.broker.candidate.is_guess and not options.all
    return found, strays


def _candidates(
    options: argparse.Namespace,
    dotenv: Dotenv,
    application: Application,
    workers: Sequence[RunningWorker],
    variables: Mapping[str, str],
) -> list[Candidate]:
    """Where brokers of this folder's application may be, each once."""
    if options.broker:
        found = [candidate(url, source="--broker") for url in options.broker]
    else:
        apps_of_workers = [each.app for each in workers if each.app]
        found = [*written(os.environ, dotenv), *_of_workers(workers), *_of_apps(application.apps, variables)]
        in_source = [application.factory_url(variables), *application.rq_urls(variables)]
        found += [candidate(url, source="the source of this folder") for url in in_source if url]
        found += _of_apps(apps_of_workers, {})
        found += [candidate(url, source="this machine", is_guess=True) for url in LOOPBACK_URLS]
    found = each_once(found)
    return found if options.management_url is None else managed_at(options.management_url, found)


def _options(words: list[str]) -> argparse.Namespace:
    parser = Arguments(prog="headway init", description=__doc__)
    parser.add_argument(
        "--broker",
        metavar="URL",
        action="append",
        help="a broker to read instead of those that are found: redis://HOST:PORT/DB, rediss://…, "
        "unix:///PATH?db=DB or amqp://USER@HOST:PORT/VHOST; may be repeated. Without it: "
        f"{', '.join(URL_VARIABLES)}, in the environment or in {DOTENV}; this machine's usual ports; and those of "
        "the workers and the Celery applications that are here",
    )
    parser.add_argument(
        "--management-url",
        metavar="URL",
        help="where the management API of the RabbitMQ is, http://HOST:PORT (port 15672 of the broker's host)",
    )
    parser.add_argument("--name", help="what the connection is called in Headway (redis, celery or rabbitmq)")
    parser.add_argument("--dir", metavar="FOLDER", type=Path, default=Path(), help="where to write (here)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also take the workers and queues of other folders, of other users and of other Headways",
    )
    parser.add_argument(
        "--import-app",
        metavar="MODULE:NAME",
        nargs="?",
        const="",
        help="import the Celery applications of this folder, or this one, with their own Python, and ask them for "
        "their queues; without it, the source is read and not run",
    )
    parser.add_argument("--force", action="store_true", help="replace files that are there already")
    return parser.parse_args(words[1:])


def _of_workers(workers: Sequence[RunningWorker]) -> Iterator[Candidate]:
    """The URLs that workers name, where everybody on this machine may read them, or they hold no secret."""
    for worker in workers:
        variables = VARIABLES_OF.get(worker.command.library, ())
        in_environment = [worker.environment.get(name, "") for name in variables]
        for url in (worker.command.broker or "", *(each for each in in_environment if not is_secret(each))):
            if "://" in url:
                yield candidate(url, source=f"process {worker.pid}")


def _of_apps(apps: Sequence[CeleryApp], variables: Mapping[str, str]) -> Iterator[Candidate]:
    """The URLs that the source of applications names: in a variable that is set, else written out."""
    for app in apps:
        url = app.broker_url(variables)
        if "://" in url:
            is_written_out = url == app.broker
            yield candidate(url, source=str(app.file) if is_written_out else f"{app.broker_variable}, of {app.file}")


def _first(
    found: Survey, others: Sequence[FoundConnection], machine: MachineWorkers, application: Application
) -> FoundBroker:
    """The broker that an example is for.

    Raises:
        Misconfigured: there is none, or what there is belongs to others.
    """
    is_named = any(not each.candidate.is_guess for each in found.brokers) or bool(found.unseen)
    if not is_named and (others or machine.strangers or machine.unread_strangers):
        for line in others_lines(machine, others):
            say(line)
        if application.title:
            asks = ", or add --import-app, which asks the application" if application.apps else ""
            for problem in application.problems:
                say(problem)
            raise Misconfigured(
                f"nothing was written: {application.title} was found, and the URL of its broker was not, and what runs "
                f"here is somebody else's: name it with --broker URL{asks}",
            )
        above = application_above(Path.cwd())
        raise Misconfigured(
            "nothing was written: no broker, application or worker of this folder was found, and what runs here is "
            f"somebody else's: type `headway init` in {above or 'the folder of your application'}, name its broker "
            "with --broker URL, or take everything with --all"
        )
    if not found.brokers:
        if found.unseen:
            raise Invalid(*found.unseen)
        if (above := application_above(Path.cwd())) is not None:
            raise Misconfigured(f"no application was found in this folder: type `headway init` in {above}")
        ports = " or ".join(urlsplit(url).netloc.rpartition("@")[2] for url in LOOPBACK_URLS)
        raise Misconfigured(
            f"no broker was found: neither the environment nor {DOTENV} has {', '.join(URL_VARIABLES)}, nobody "
            f"answers at {ports}, and no worker or application here names one: say which with --broker URL"
        )
    first = found.brokers[0].candidate
    choices = [each for each in found.brokers if each.candidate is first]
    has_celery = application.has_celery and first.variable != "RQ_REDIS_URL"
    means_celery = has_celery or first.variable == "CELERY_BROKER_URL"
    liked = [each for each in choices if (each.library.name == "celery") == means_celery]
    return next(iter(liked or choices))


def _unseen(dotenv: Dotenv) -> Iterator[str]:
    """What of ``.env`` was not read and may matter, a sentence each."""
    if dotenv.problem:
        yield f"{DOTENV} was not read: {dotenv.problem}"
    for name in URL_VARIABLES:
        if name in dotenv.expanding:
            yield f"{name} in {DOTENV} is made of other variables, which only a shell puts in: export it and repeat"


def _write(folder: Path, texts: dict[str, str], *, is_private: bool) -> None:
    """Write every file whole before the first takes its place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            new = folder / f".{name}.new"
            new.unlink(missing_ok=True)
            mode = 0o600 if is_private else 0o666  # less what the umask takes
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
        for name in texts:
            (folder / f".{name}.new").replace(folder / name)
    except OSError as error:
        raise Misconfigured(f"{error.filename} cannot be written: {error.strerror}; choose another --dir") from error
