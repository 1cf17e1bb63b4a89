"""What keeps an agent from its work, in words."""

import os

from headway.scaling.model import Host, HostProblem, HostProblemKind


def problem_text(problem: HostProblem) -> str:
    """What follows the name of the agent."""
    why = os.strerror(problem.error_number)
    match problem.kind:
        case HostProblemKind.STATE_FOLDER:
            return f"cannot write to its state folder ({why}), so no worker is started there"
        case HostProblemKind.LOG_FOLDER:
            return f"cannot write to its log folder ({why}), so what workers print there is lost"
        case HostProblemKind.HOST_FILE:
            return "goes by the host file from before: the changed one has mistakes, which the agent's log names"


def problems_of(host: Host) -> list[str]:
    """A sentence for each thing that keeps the agent of ``host`` from its work, as it last reported."""
    return [f"its agent {problem_text(each)}" for each in host.problems]
