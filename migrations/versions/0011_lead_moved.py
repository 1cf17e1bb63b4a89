"""When a host last made the lead change hands.

Revision ID: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("hosts", sa.Column("lead_moved_at", sa.DateTime(timezone=True)))
