"""What Headway stands on, asked from here: brokers and Postgres."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

from headway.cli.doctor.finding import Finding, fault, faults, fine, skipped, warning
from headway.cli.doctor.this_machine import Place
from headway.cli.profiles_file import ProfilesFile, load_profiles_file
from headway.collect.broker_errors import LoginRefused, RightMissing, Untrusted
from headway.collect.discovery import discover
from headway.collect.libraries import Libraries, Uninstalled
from headway.connections import Connection
from headway.errors import HeadwayError, Invalid, Misconfigured
from headway.scaling.mapping import near
from headway.scaling.profile_keys.queue_patterns import is_pattern
from headway.settings import CollectSettings, database_url_of

ASKED_AT_ONCE = 8


def profiles_findings(place: Place) -> tuple[list[Finding], ProfilesFile | None]:
    """The mistakes in ``profiles.yaml``, and what it says where it has none."""
    if not place.profiles.exists():
        return [skipped("profiles", f"{place.profiles} is not here; --profiles names another")], None
    try:
        file = load_profiles_file(place.profiles)
    except HeadwayError as error:
        cure = "correct the file; docs/reference/profile.md lists its keys, `headway validate` checks it"
        return faults("profiles", error, cure=cure), None
    return [fine("profiles", f"{place.profiles} has {len(file.profiles)} pools and no mistake")], file


def broker_findings(place: Place, file: ProfilesFile | None) -> list[Finding]:
    """Whether each broker that is named here answers, lets this login read, and has the queues of the profiles."""
    libraries = Libraries()
    try:
        connections = _connections(place, file, libraries)
    except HeadwayError as error:
        cure = "correct it as docs/reference/connections.md shows"
        return faults("broker", error, cure=cure)
    if not connections:
        return [skipped("broker", "no broker is named here, in HEADWAY_BROKERS or profiles.yaml")]
    with ThreadPoolExecutor(ASKED_AT_ONCE) as threads:
        found = list(threads.map(lambda each: _asked(each, libraries), connections))
    seen = {queue for queues, _ in found for queue in queues}
    findings = [finding for _, finding in found]
    return [*findings, *_misspelt(file, seen)]


def _connections(place: Place, file: ProfilesFile | None, libraries: Libraries) -> tuple[Connection, ...]:
    if place.env.get("HEADWAY_BROKERS") or place.env.get("HEADWAY_BROKERS_FILE"):
        return CollectSettings.from_env(place.env, check=libraries.breaches).connections
    connections = () if file is None else file.brokers
    breaches = libraries.breaches(connections)
    if breaches:
        raise Invalid(*breaches)
    return connections


def _asked(connection: Connection, libraries: Libraries) -> tuple[list[str], Finding]:
    try:
        queues = [connection.queue(each.name) for each in discover(connection, libraries).queues]
    except Uninstalled as error:
        return [], skipped("broker", f"connection {connection.name}: {error}")
    except Misconfigured as error:
        return [], fault("broker", str(error), cure="correct it as docs/reference/connections.md shows")
    except HeadwayError as error:
        return [], fault("broker", f"connection {connection.name}: {error}", cure=_cure(error))
    return queues, fine("broker", f"{connection.shown_url} answers: {len(queues)} queues")


def _cure(error: HeadwayError) -> str:
    if isinstance(error, LoginRefused):
        return "correct the user and password of the URL, or of the file that it names"
    if isinstance(error, RightMissing):
        return "give that login the rights that docs/how-to/collect-rq.md or collect-celery.md lists"
    if isinstance(error, Untrusted):
        return "name in ca_file the CA that signed the broker's certificate"
    return "start the broker, or correct its URL: docs/reference/connections.md"


def _misspelt(file: ProfilesFile | None, seen: set[str]) -> Iterator[Finding]:
    """Queues of profiles that no broker has and that look like one that no profile serves."""
    served = {queue for profile in (file.profiles if file else ()) for queue in profile.queues}
    for queue in sorted(each for each in served - seen if not is_pattern(each)):
        if meant := near(queue, seen - served):
            text = f"queue {queue} is in no broker;{meant}"
            yield warning("queue", text, cure="correct the name in profiles.yaml and `headway apply` it")


def database_findings(place: Place) -> Iterator[Finding]:
    """Whether Postgres answers and has the tables of this version."""
    try:
        url = database_url_of(place.env)
    except HeadwayError as error:
        yield fault("database", str(error), cure="correct the setting that the sentence names")
        return
    if url is None:
        yield skipped("database", "HEADWAY_DATABASE_URL is not set here")
        return
    if find_spec("alembic") is None or find_spec("psycopg") is None:
        yield skipped("database", "the extra control is not installed here")
        return
    from headway.store import migrate

    try:
        migrate.check(url)
    except Misconfigured as error:
        cure = "run `headway migrate` with this version, or install the version that migrated the database"
        yield fault("database", str(error), cure=cure)
    except HeadwayError as error:
        yield fault("database", str(error), cure="start Postgres, or correct HEADWAY_DATABASE_URL")
    else:
        yield fine("database", "Postgres answers and has this version's tables")
