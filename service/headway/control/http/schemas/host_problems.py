"""What keeps an agent from its work, in words."""

import os
from collections.abc import Mapping

from headway.scaling.model import Host, HostProblem, HostProblemKind

FOLDERS: Mapping[HostProblemKind, tuple[str, str]] = {
    HostProblemKind.STATE_FOLDER: ("state folder", "so no worker is started there"),
    HostProblemKind.LOG_FOLDER: ("log folder", "so what workers print there is lost"),
}
"""Kind -> the folder that takes nothing, and what follows."""


def problem_text(problem: HostProblem) -> str:
    """What follows the name of the agent."""
    folder, then = FOLDERS[problem.kind]
    return f"cannot write to its {folder} ({os.strerror(problem.error_number)}), {then}"


def problems_of(host: Host) -> list[str]:
    """A sentence for each thing that keeps the agent of ``host`` from its work, as it last reported."""
    return [f"its agent {problem_text(each)}" for each in host.problems]
