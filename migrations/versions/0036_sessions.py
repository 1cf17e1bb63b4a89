"""Sessions: sign-ins of browsers, beside the tokens that they were signed in with.

Revision ID: 0036
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("credentials", sa.Column("session_of", sa.Text(), nullable=True))
