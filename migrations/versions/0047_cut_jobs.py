"""Jobs that ends of workers have cut, workers that people want to be killed, and what workers leave behind."""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("workers", sa.Column("is_left_behind", sa.Boolean(), nullable=False, server_default="false"))
    op.add_column("workers", sa.Column("inability", sa.Text()))
    op.add_column("workers", sa.Column("goes_to_background", sa.Boolean(), nullable=False, server_default="false"))
    op.create_table(
        "job_cuts",
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("cut_id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("is_certain", sa.Boolean(), nullable=False),
        sa.Column("job_id", sa.Text()),
        sa.Column("queue", sa.Text()),
        sa.Column("job_class", sa.Text()),
        sa.Column("attempt", sa.BigInteger()),
        sa.Column("job_started_at_s", sa.Double()),
        sa.Column("cut_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("host_id", "cut_id", name="pk_job_cuts"),
    )
    op.create_index("ix_job_cuts_recorded_at", "job_cuts", ["recorded_at"])
    op.create_table(
        "kill_orders",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("worker_id", name="pk_kill_orders"),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["workers.worker_id"], name="fk_kill_orders_worker_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_kill_orders_host_id", "kill_orders", ["host_id"])
