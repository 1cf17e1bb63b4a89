"""A short seed of the soak in a program of its own, which may run in a time namespace: ``python -m lab.near_boot``.

Its arguments are the seed, how many faults there are to be, and the folder that gets the logs. It prints its ledger as
JSON on the last line. The last round is one of boot clocks alone.
"""

import json
import random
import sys
from pathlib import Path

from headway.local import procfs
from lab.faults import BOOT_SKEWED
from lab.installation import installation
from lab.soak import Soak


def main(seed: int, faults: int, logs: Path) -> None:
    booted_s_ago = round(procfs.since_boot_s())
    rng = random.Random(seed)
    with installation(logs, rng=rng) as lab:
        soak = Soak(lab, rng)
        soak.begin()
        while soak.faults < faults:
            soak.round()
        soak.only = {BOOT_SKEWED}
        soak.round()
        found = soak.end()
    sys.stdout.write(f"\n{json.dumps({'booted_s_ago': booted_s_ago, **found})}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
