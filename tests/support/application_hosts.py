"""Host files of applications that are not installed here."""

import json
import re
from pathlib import Path


def with_stand_ins(text: str, folder: Path) -> str:
    """The host.toml ``text`` with ``folder`` in place of its folders, and programs that do nothing in place of its own.

    The programs keep their names, by which Headway knows the queue library.
    """
    for program in set(re.findall(r'^argv = \["([^"]+)"', text, flags=re.MULTILINE)):
        stand_in = folder / Path(program).name
        stand_in.write_text("#!/bin/sh\n")
        stand_in.chmod(0o755)
        text = text.replace(f'argv = ["{program}"', f"argv = [{json.dumps(str(stand_in))}")
    return re.sub(
        "^working_directory = .*$", f"working_directory = {json.dumps(str(folder))}", text, flags=re.MULTILINE
    )
