"""Which assignments are of pools whose workers may never overlap.

Revision ID: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("assignments", sa.Column("is_exclusive", sa.Boolean(), nullable=False, server_default="false"))
