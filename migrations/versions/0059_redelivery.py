"""What becomes of a job whose worker died, by the word of who reads its queue; until when attainment is counted."""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("redelivery", sa.Text(), nullable=True))
    op.add_column("rollup_progress", sa.Column("attained_until_s", sa.Double(), nullable=False, server_default="0"))
