"""What a join token allows the hosts that it lets in to say of themselves.

Revision ID: 0024
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("credentials", sa.Column("allowed", JSONB(none_as_null=True), nullable=True))
    op.add_column("hosts", sa.Column("allowed", JSONB(none_as_null=True), nullable=True))
    op.add_column("hosts", sa.Column("refused", JSONB(), nullable=False, server_default="[]"))
