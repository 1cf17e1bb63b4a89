"""The pipeline for spark-submit: `spark-submit sparkjobs/submit.py --database-url … --event-log …`."""

import sys

from headway.cli.pipeline import main

sys.exit(main(["pipeline", *sys.argv[1:]]))
