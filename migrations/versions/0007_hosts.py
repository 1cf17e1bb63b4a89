"""What hosts say of themselves, what people say of hosts, restarts, and the hosts that are wanted.

Revision ID: 0007
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("hosts", sa.Column("labels", JSONB(), nullable=False, server_default="{}"))
    op.add_column("hosts", sa.Column("gpus", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("hosts", sa.Column("cpu_pressure", sa.Double()))
    op.add_column("hosts", sa.Column("memory_pressure", sa.Double()))
    op.add_column("hosts", sa.Column("failing", JSONB(), nullable=False, server_default="{}"))
    op.add_column("hosts", sa.Column("state", sa.Text(), nullable=False, server_default="serving"))
    op.add_column("hosts", sa.Column("cordoned_at", sa.DateTime(timezone=True)))
    op.add_column("hosts", sa.Column("cordoned_by", sa.Text()))
    op.add_column("hosts", sa.Column("cordon_reason", sa.Text()))
    op.add_column("workers", sa.Column("template_hash", sa.Text(), nullable=False, server_default=""))
    op.add_column("workers", sa.Column("memory_bytes", sa.BigInteger()))
    op.add_column("profiles", sa.Column("restart_generation", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "hosts_wanted",
        sa.Column("key", sa.Text()),
        sa.Column("body", JSONB(), nullable=False),
        sa.Column("since_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_hosts_wanted")),
    )
