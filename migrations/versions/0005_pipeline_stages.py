"""What a pipeline is at, and how old its newest events were when their rows were there.

Revision ID: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("pipeline_health", sa.Column("stage", sa.Text(), nullable=False, server_default="starting"))
    op.add_column("pipeline_health", sa.Column("rows_lag_s", sa.Double()))
    op.execute("update pipeline_health set stage = 'ready' where is_ready")
