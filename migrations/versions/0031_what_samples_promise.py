"""What a sample says beside depths: what is reserved, how exact its age is, which events its source reports.

Revision ID: 0031
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("reserved_jobs", sa.BigInteger(), nullable=True))
    op.add_column("queue_samples", sa.Column("oldest_age_max_s", sa.Double(), nullable=True))
    op.add_column("queue_samples", sa.Column("reports_arrivals", sa.Boolean(), nullable=True))
    op.add_column("queue_samples", sa.Column("reports_starts", sa.Boolean(), nullable=True))
    op.add_column("queue_samples", sa.Column("reports_ends", sa.Boolean(), nullable=True))
