"""Metrics by the minute and by the hour, of queues and of their job classes.

Arrivals by minute move into them from queue_minutes, which stays for a version that still writes it.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    for name in ("rollup_minutes", "rollup_hours"):
        _create_rollup(name)
    op.create_table(
        "rollup_progress",
        sa.Column("is_only", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("minutes_until_s", sa.Double(), server_default="0", nullable=False),
        sa.Column("hours_until_s", sa.Double(), server_default="0", nullable=False),
        sa.CheckConstraint("is_only", name=op.f("ck_rollup_progress_one_row")),
        sa.PrimaryKeyConstraint("is_only", name=op.f("pk_rollup_progress")),
    )
    op.execute("insert into rollup_progress default values")
    op.execute(
        "insert into rollup_minutes (queue, bucket_s, arrived_jobs) "
        "select queue, minute * 60.0, arrived_jobs from queue_minutes"
    )


def _create_rollup(name: str) -> None:
    op.create_table(
        name,
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("job_class", sa.Text(), server_default="", nullable=False),
        sa.Column("bucket_s", sa.Double(), nullable=False),
        sa.Column("arrived_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("started_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("finished_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failed_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("retried_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("service_sum_s", sa.Double(), server_default="0", nullable=False),
        sa.Column("pickup_max_s", sa.Double(), nullable=True),
        sa.Column("service_sketch", JSONB(), server_default="{}", nullable=False),
        sa.Column("pickup_sketch", JSONB(), server_default="{}", nullable=False),
        sa.Column("sampled_at_s", sa.Double(), nullable=True),
        sa.Column("waiting_jobs", sa.BigInteger(), nullable=True),
        sa.Column("in_flight_jobs", sa.BigInteger(), nullable=True),
        sa.Column("delayed_jobs", sa.BigInteger(), nullable=True),
        sa.Column("oldest_age_s", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("queue", "job_class", "bucket_s", name=op.f(f"pk_{name}")),
    )
    # Rows come in the order of their times: a few kilobytes find those that have expired.
    op.create_index(f"ix_{name}_bucket_s", name, ["bucket_s"], postgresql_using="brin")
