"""The agent is installed beside other people's programs: it loads nothing that they may have in another version."""

import json
import subprocess
import sys

HEAVY = [
    *("alembic", "apscheduler", "fastapi", "httpx", "numpy", "pandas", "psycopg", "pyarrow", "pydantic", "pyspark"),
    *("redis", "rich", "rq", "sqlalchemy", "starlette", "typer", "uvicorn", "uvloop", "yaml"),
]


def test_the_agent_and_its_command_load_nothing_heavy() -> None:
    code = "import json, sys, headway.agent.loop, headway.cli.roles.agent; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(answer.stdout))
    assert {"grpc", "psutil", "headway.agent.loop"} - loaded <= {"psutil"}
    assert sorted(loaded.intersection(HEAVY)) == []
