"""Who says whether a worker is busy, how old that was when its host reported it, and which jobs it named."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("workers", sa.Column("activity_source", sa.Text()))
    op.add_column("workers", sa.Column("activity_age_s", sa.Double()))
    op.add_column("workers", sa.Column("running_jobs", sa.BigInteger()))
    op.add_column("workers", sa.Column("running", JSONB(), nullable=False, server_default="[]"))
