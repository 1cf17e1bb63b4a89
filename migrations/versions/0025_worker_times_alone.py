"""What starts and ends of workers would take with a core of their own.

Revision ID: 0025
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    for table in ("template_start_ups", "template_exits"):
        op.add_column(table, sa.Column("recent_alone_s", ARRAY(sa.Double()), nullable=False, server_default="{}"))
    op.add_column("template_exits", sa.Column("exit_cpu_s", sa.Double(), nullable=True))
