"""The oldest tables that are upgraded. A new database gets today's at once, from ``store/migrate.py``.

Revision ID: 0043
"""

from alembic import op

revision = "0043"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
