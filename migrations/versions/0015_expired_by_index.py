"""What has expired is found by an index, however much is kept.

The BRIN indexes of the rollups served only while rows lay in the order of their times: new ones fill the room of those
that were deleted, and their ranges never narrow again. While an index is built, whoever writes the table waits.

Revision ID: 0015
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    for table in ("rollup_minutes", "rollup_hours"):
        name = f"ix_{table}_bucket_s"
        op.execute(f"alter index {name} rename to {name}_brin")
        op.create_index(name, table, ["bucket_s"])
        op.execute(f"drop index {name}_brin")
    op.create_index("ix_event_files_recorded_at", "event_files", ["recorded_at"])
