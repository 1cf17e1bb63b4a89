"""How often a queue is read, as its newest sample says.

Revision ID: 0035
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("poll_interval_s", sa.Double(), nullable=True))
