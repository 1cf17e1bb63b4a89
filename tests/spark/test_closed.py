"""What others reach of the pipeline's JVM: nothing from another machine, and nothing without its secret."""

import os
import socket
import stat
import struct
from ipaddress import ip_address
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from headway_spark.stream.pipeline import Stream
from spark.events import publish, table
from spark.streams import Kept, jobs
from support.processes import javas_below

RPC_REQUEST, ANSWER_S = 3, 60.0


def is_loopback(address: str) -> bool:
    found = ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    return {each.laddr for each in process.net_connections(kind="inet") if each.status == psutil.CONN_LISTEN}


def test_every_port_of_the_jvm_and_of_its_python_is_on_loopback(spark: SparkSession) -> None:
    spark.range(10).count()  # whatever is bound on demand is bound by now
    (jvm,) = javas_below(os.getpid())
    found = listening(jvm)
    assert found
    assert [address for address, _ in found | listening(psutil.Process()) if not is_loopback(address)] == []
    assert spark.sparkContext.uiWebUrl is None


def test_who_speaks_to_a_port_of_spark_without_its_secret_is_refused(spark: SparkSession) -> None:
    """On loopback every user of the machine can: the driver's port takes messages that run code, the other blocks."""
    (jvm,) = javas_below(os.getpid())
    gateway = spark.sparkContext._gateway.gateway_parameters.port  # asks for a token of its own
    ports = sorted(port for _, port in listening(jvm) if port != gateway)
    assert ports
    body = b"not a challenge"
    message = struct.pack(">qbqi", 8 + 1 + 8 + 4 + len(body), RPC_REQUEST, 1, len(body)) + body
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), ANSWER_S) as connection:
            connection.sendall(message)
            said = connection.recv(65_536)
        assert b"Sasl" in said, (port, said[:300])


def test_the_secret_is_the_jvms_own_and_is_in_no_word_no_environment_and_no_setting(spark: SparkSession) -> None:
    settings = dict(spark.sparkContext.getConf().getAll())
    assert settings["spark.authenticate"] == "true"
    assert not [name for name in settings if name.startswith("spark.authenticate.secret")]
    (jvm,) = javas_below(os.getpid())
    for process in (jvm, psutil.Process()):
        assert "authenticate.secret" not in " ".join(process.cmdline())
        assert "_SPARK_AUTH_SECRET" not in process.environ()


@pytest.mark.parametrize("was", [None, 0o755, 0o777])
def test_the_checkpoint_is_its_users_alone(spark: SparkSession, tmp_path: Path, was: int | None) -> None:
    checkpoint = tmp_path / "checkpoint"
    if was is not None:
        checkpoint.mkdir()
        checkpoint.chmod(was)
    publish(tmp_path / "log", "a.parquet", table(jobs(0, 3)))
    stream = Stream(spark, log_dir=tmp_path / "log", checkpoint=checkpoint, sink=Kept())
    stream.start()
    stream.stop()
    assert stat.S_IMODE(checkpoint.stat().st_mode) == 0o700
    assert (checkpoint / "offsets").is_dir()
