"""When the certificate ends that a host shows, so that a host which can call no more is known to lack another.

Revision ID: 0028
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("hosts", sa.Column("certificate_ends_at", sa.DateTime(timezone=True), nullable=True))
