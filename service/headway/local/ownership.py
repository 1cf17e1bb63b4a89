"""Who decides what a file or a folder holds."""

import os
import stat


def why_foreign(found: os.stat_result) -> str | None:
    """How somebody else decides what is in it, and the cure; ``None`` where only this process' user and root do."""
    if found.st_uid not in {0, os.geteuid()}:
        return (
            f"belongs to uid {found.st_uid}, which is neither root nor the user of this process (uid {os.geteuid()}): "
            "give it to one of the two with chown"
        )
    # Where everybody has a group of their own, files of theirs are often open to that group.
    is_groups = found.st_mode & 0o020 and os.geteuid() == 0 and found.st_gid != 0
    if found.st_mode & 0o002 or is_groups:
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o}): take that away with `chmod go-w`"
    return None
