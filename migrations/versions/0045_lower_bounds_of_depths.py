"""Lower bounds of waiting jobs and of jobs in flight, where the exact numbers are not known."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.alter_column("queue_samples", "waiting_jobs", nullable=True)
    op.add_column("queue_samples", sa.Column("waiting_min_jobs", sa.BigInteger()))
    op.add_column("queue_samples", sa.Column("in_flight_min_jobs", sa.BigInteger()))
