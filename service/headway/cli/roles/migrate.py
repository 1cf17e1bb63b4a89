"""`headway migrate`: bring the database to this version's tables."""

import os

from headway.cli.argparse_base import Arguments
from headway.cli.terminal.printing import say
from headway.errors import Misconfigured
from headway.settings import database_url_of
from headway.store import migrate
from headway.store.engine import named


def main(words: list[str]) -> int:
    """Upgrade the database, or with ``--check`` only check. Returns the exit status."""
    parser = Arguments(prog="headway migrate", description=__doc__)
    parser.add_argument("--database-url", help="where Postgres is, postgresql://…; else HEADWAY_DATABASE_URL")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail unless the tables are this version's"
    )
    flags = parser.parse_args(words[1:])
    database_url = flags.database_url or database_url_of(os.environ)
    if not database_url:
        raise Misconfigured("HEADWAY_DATABASE_URL is not set: it says where Postgres is, as postgresql://…")
    if flags.check:
        migrate.check(database_url)
    else:
        migrate.upgrade(database_url)
    say(f"the database {named(database_url)} has this version's tables")
    return 0
