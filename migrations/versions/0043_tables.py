"""The oldest tables that are upgraded. A new database gets today's at once, from ``store/migrate.py``."""

from alembic import op

revision = "0043"
down_revision = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
