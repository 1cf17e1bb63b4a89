"""Another user of a host, and a program with which it takes an agent's name."""

NOBODY = 65534

TAKES_THE_NAME = """
import hashlib, os, socket, sys, time
os.setgid(int(sys.argv[4]))
os.setuid(int(sys.argv[4]))
name = hashlib.sha256(f"{sys.argv[1]}\\n{sys.argv[2]}".encode()).hexdigest()[:32]
taken = socket.socket(socket.AF_UNIX)
taken.bind(f"\\0headway-agent-{name}")
if sys.argv[3] == "listens":
    taken.listen(1)
print("taken", flush=True)
time.sleep(600)
"""
