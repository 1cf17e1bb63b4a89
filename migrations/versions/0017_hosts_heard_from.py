"""Since when hosts must have reported before this database's word of them counts.

Revision ID: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    moment = sa.DateTime(timezone=True)
    op.add_column("leader_epoch", sa.Column("hosts_heard_from", moment, nullable=False, server_default="-infinity"))
