"""What people set beside a profile: an override and a pause.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("profiles", sa.Column("override", JSONB(), nullable=True))
    op.add_column("profiles", sa.Column("pause", sa.Text(), nullable=True))
