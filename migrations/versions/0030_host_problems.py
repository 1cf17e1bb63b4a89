"""What keeps the agent of a host from its work, as a state folder that takes no record.

Revision ID: 0030
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("hosts", sa.Column("problems", JSONB, nullable=False, server_default="{}"))
