"""Arrivals by minute are in rollup_minutes since 0004: nothing writes or reads queue_minutes any more.

Revision ID: 0014
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.drop_table("queue_minutes")
