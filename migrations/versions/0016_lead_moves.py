"""Until when the moves of the lead that a host has made count, in place of when it made the last one.

Revision ID: 0016
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    # What is there was of the past, and so counts no more.
    op.alter_column("hosts", "lead_moved_at", new_column_name="lead_moves_count_until")
