"""Since when workers are in their state, how long the last starts took, and how long idle workers take to end.

Revision ID: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    durations = sa.ARRAY(sa.Double())
    op.add_column("workers", sa.Column("state_since", sa.DateTime(timezone=True)))
    op.add_column("template_start_ups", sa.Column("start_up_p95_s", sa.Double()))
    op.add_column("template_start_ups", sa.Column("start_up_cpu_s", sa.Double()))
    op.add_column("template_start_ups", sa.Column("recent_s", durations, nullable=False, server_default="{}"))
    op.create_table(
        "template_exits",
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("exit_s", sa.Double(), nullable=False),
        sa.Column("exits", sa.BigInteger(), nullable=False),
        sa.Column("recent_s", durations, nullable=False, server_default="{}"),
        sa.PrimaryKeyConstraint("host_id", "template", name=op.f("pk_template_exits")),
        sa.ForeignKeyConstraint(
            ["host_id"], ["hosts.host_id"], name=op.f("fk_template_exits_host_id"), ondelete="CASCADE"
        ),
    )
