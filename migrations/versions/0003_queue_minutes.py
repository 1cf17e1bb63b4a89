"""Arrivals by queue and minute, kept for the same minute of later days.

Revision ID: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_table(
        "queue_minutes",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("arrived_jobs", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "minute", name=op.f("pk_queue_minutes")),
    )
    op.create_index("ix_queue_minutes_minute", "queue_minutes", ["minute"], postgresql_using="brin")
