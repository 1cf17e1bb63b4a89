"""What happens to pools, for the receivers that ask for it."""

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("pool_states", sa.Column("breach_predicted_at_s", sa.Double()))
    op.create_table(
        "pool_events",
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False, server_default=sa.func.gen_random_uuid()),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("at_s", sa.Double(), nullable=False),
        sa.Column("from_workers", sa.Integer(), nullable=False),
        sa.Column("to_workers", sa.Integer(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Uuid()),
        sa.Column("state", sa.Text(), nullable=False, server_default="waiting"),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("next_at_s", sa.Double(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("receiver", "pool", "number", name="pk_pool_events"),
    )
    op.create_index(
        "ix_pool_events_waiting",
        "pool_events",
        ["receiver", "pool", "number"],
        postgresql_where=sa.text("state = 'waiting'"),
    )
