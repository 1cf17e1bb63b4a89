"""Brings a database to this program's tables, and reports when it is not there.

A new database gets the tables of ``tables.py`` as they are. Migrations change those of an older one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import sqlalchemy
from sqlalchemy import Connection, insert, text

from headway.errors import Misconfigured, Unavailable
from headway.store.decision_partitions import TODAY, partitions_from
from headway.store.engine import connect_parameters, first_line, refuse_unusable, unreachable
from headway.store.tables import metadata

UPGRADE_LOCK = 0x6865_6164_7761_7900  # an advisory lock's number, ours alone: "headway" in ASCII
UPGRADE_WAIT_S = 120  # how long another process's upgrade is waited for

_LIMIT_WAIT = text("select set_config('lock_timeout', :wait, false)")
_TAKE_LOCK = text("select pg_advisory_lock(:number)")
_HAS_TABLES = text("select to_regclass('alembic_version') is not null")
_REVISION = text("select version_num from alembic_version")


def upgrade(database_url: str) -> None:
    """Make the tables of a new database, or run every migration that an older one has not seen.

    Processes that upgrade at once do it one after another.

    Raises:
        Misconfigured: the database cannot be used as it is set up, or another Headway's migrations have made it.
        Unavailable: no server answers, or another upgrade does not end.
    """
    with _connected(database_url) as connection:
        connection.execute(_LIMIT_WAIT, {"wait": f"{UPGRADE_WAIT_S}s"})
        connection.execute(_TAKE_LOCK, {"number": UPGRADE_LOCK})
        # The lock is the session's: it ends with this connection, whatever becomes of the migrations.
        connection.commit()
        problem = _difference(connection)
        if problem is None:
            return
        if problem[0] == "foreign":
            raise Misconfigured(problem[1])
        if problem[0] == "new":
            _make_tables(connection)
            return
        # Loaded where there is something to do: it takes a quarter of a second of a processor.
        from alembic import command
        from alembic.config import Config

        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        command.upgrade(config, "head")


def check(database_url: str) -> None:
    """Return when the database has exactly this program's tables.

    Raises:
        Misconfigured: it is older or newer than this program, or cannot be used as it is set up.
        Unavailable: no server answers.
    """
    with _connected(database_url) as connection:
        problem = _difference(connection)
    if problem is not None:
        raise Misconfigured(problem[1])


def revisions() -> list[str]:
    """Those of this program's migrations, the oldest first: the names of their files begin with them."""
    return sorted(file.name.partition("_")[0] for file in (migrations_folder() / "versions").glob("*.py"))


def is_too_old(revision: str) -> bool:
    """Whether tables at ``revision`` are older than those from which this program's migrations lead on."""
    return revision < revisions()[0]


def migrations_folder() -> Path:
    """Where the migrations are: beside this module in a wheel, at the root in a source tree."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "migrations", here.parents[3] / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise Misconfigured("this installation of Headway has no migrations folder: install it again")


@contextmanager
def _connected(database_url: str) -> Iterator[Connection]:
    parameters = connect_parameters(database_url)
    # A migration may take longer than a statement of the running program; what it may not is wait for locks.
    parameters["options"] += " -c statement_timeout=0 -c idle_in_transaction_session_timeout=0"

    def connect() -> psycopg.Connection:
        # Before SQLAlchemy asks anything, which ends with a trace where text comes as bytes, as of SQL_ASCII.
        made = psycopg.connect(**parameters)
        try:
            refuse_unusable(made.info, parameters)
        except Misconfigured:
            made.close()
            raise
        return made

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=sqlalchemy.NullPool, hide_parameters=True
    )
    try:
        connection = engine.connect()
    except sqlalchemy.exc.OperationalError as error:
        raise unreachable(error.orig or error, parameters) from error
    with connection:
        try:
            yield connection
        except sqlalchemy.exc.OperationalError as error:
            raise Unavailable(f"the database could not be upgraded now, try again: {first_line(error)}") from error


def _make_tables(connection: Connection) -> None:
    """Make all tables, their single rows, and partitions of decisions for today and a week ahead; all or nothing."""
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    metadata.create_all(connection, checkfirst=False)
    for table in metadata.sorted_tables:
        if "is_only" in table.c:
            connection.execute(insert(table))
    for create in partitions_from(connection.execute(TODAY).scalar_one()).values():
        connection.exec_driver_sql(create.as_string())
    MigrationContext.configure(connection).stamp(ScriptDirectory(str(migrations_folder())), "head")
    connection.commit()


def _difference(connection: Connection) -> tuple[str, str] | None:
    """How the database differs from this program: new, older, or foreign, and the message for a person.

    ``None`` if they agree.
    """
    has_tables = connection.scalar(_HAS_TABLES)
    current = connection.scalar(_REVISION) if has_tables else None
    connection.rollback()
    known = revisions()
    head = known[-1]
    if current == head:
        return None
    if current is None:
        return "new", "the database has no tables of Headway yet: run `headway migrate`"
    if current in known:
        return "older", f"the database is at migration {current}, this Headway needs {head}: run `headway migrate`"
    if is_too_old(current):
        return "foreign", (
            f"the database is at migration {current}, and this Headway upgrades from {known[0]} on: migrate it to that "
            "with an earlier version, or begin with an empty database (`headway up` makes one in another --data-dir)"
        )
    return "foreign", (
        f"the database is at migration {current}, which this Headway does not know (its newest is {head}): "
        "a newer Headway has migrated it; install that version here"
    )
