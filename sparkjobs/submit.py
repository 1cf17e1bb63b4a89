"""The pipeline for spark-submit: `spark-submit sparkjobs/submit.py --database-url … --event-log …`."""

import sys

from headway.cli.roles.pipeline import main

if __name__ == "__main__":  # in the wheel this is a module of headway_spark, and importing one starts nothing
    sys.exit(main(["pipeline", *sys.argv[1:]]))
