"""When a host that was cordoned or drained by hand serves again by itself.

Revision ID: 0043
"""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("hosts", sa.Column("cordoned_until_s", sa.Double()))
