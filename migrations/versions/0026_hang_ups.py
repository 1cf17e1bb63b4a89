"""When a host's connection ended, so that its silence is seen before its next report is due.

Revision ID: 0026
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("hosts", sa.Column("hung_up_at", sa.DateTime(timezone=True), nullable=True))
