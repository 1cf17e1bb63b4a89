"""`headway pipeline`: Spark computes metrics from the event log into Postgres.

`headway pipeline rebuild` makes the stream's checkpoint and the newest metrics anew from the log, and ends.
`headway pipeline prepare` archives Spark's classes (190 MB), so that each start takes a third less time, and ends.
"""

import os
import sys

from headway.cli.argparse_base import Arguments
from headway.cli.process.loading import loading
from headway.cli.process.log_setup import log_to_stderr
from headway.cli.process.process_privacy import keep_private
from headway.cli.process.role_options import add_data_flags, laid_over
from headway.cli.process.shutdown import service_status
from headway.cli.terminal.printing import say
from headway.settings import PipelineSettings


def main(words: list[str]) -> int:
    """Run the pipeline until it is asked to stop. Returns the exit status."""
    parser = Arguments(prog="headway pipeline", description=__doc__)
    parser.add_argument(
        "action",
        nargs="?",
        choices=("run", "rebuild", "prepare"),
        default="run",
        help="run (the default); rebuild and end; or prepare and end",
    )
    add_data_flags(parser)
    parser.add_argument("--checkpoint", dest="HEADWAY_CHECKPOINT", help="folder of the stream's checkpoint, or its URI")
    parser.add_argument("--state-dir", dest="HEADWAY_STATE_DIR", help="folder for Spark's own files")
    given = parser.parse_args(words[1:])
    if given.action == "prepare":
        from headway.cli.roles.pipeline_prepare import prepare

        say("archiving Spark's classes, which takes some 20 s")
        say(f"pipelines of this installation start with {prepare()} from now on")
        return 0
    is_rebuild = given.action == "rebuild"
    settings = PipelineSettings.from_env(laid_over(os.environ, given))
    # Spark takes seconds to import on a slow core: not for a word of help, nor for one about a setting.
    with loading():
        from headway.cli.roles import pipeline_run

    log_to_stderr()
    keep_private()  # before the JVM, which gets this environment, is started
    return service_status(pipeline_run.run(settings, is_rebuild=is_rebuild))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
