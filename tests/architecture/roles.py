"""Which role reads which setting."""

from collections.abc import Mapping

from headway import environment, settings

ROLES = {
    "control": settings.ControlSettings,
    "pipeline": settings.PipelineSettings,
    "agent": settings.AgentSettings,
    "collect": settings.CollectSettings,
    "client": environment.ClientSettings,
}

NEEDED = {"HEADWAY_DATABASE_URL": "postgresql://h/d", "HEADWAY_BROKERS": "redis=redis://127.0.0.1:6379/0"}


class Environment(dict[str, str]):
    """Remembers which variables a role asked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.asked.add(name)
        return super().get(name, default)


def read_by() -> dict[str, set[str]]:
    """Variable -> the roles that read it."""
    readers: dict[str, set[str]] = {}
    for role, kind in ROLES.items():
        environment = Environment(NEEDED)
        kind.from_env(environment)
        for name in environment.asked:
            readers.setdefault(name, set()).add(role)
    return readers
