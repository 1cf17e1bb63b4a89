"""The workers that brokers list, and how many there were when.

Revision ID: 0038
"""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("listed_workers", sa.BigInteger(), nullable=True))
    op.add_column("queue_samples", sa.Column("listed_since_s", sa.Double(), nullable=True))
    op.create_table(
        "listed_workers",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("from_s", sa.Double(), nullable=False),
        sa.Column("until_s", sa.Double(), nullable=False),
        sa.Column("workers", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "from_s", name="pk_listed_workers"),
    )
    op.create_index("ix_listed_workers_until_s", "listed_workers", ["until_s"])
