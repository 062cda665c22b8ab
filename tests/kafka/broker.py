"""A Kafka broker of one process, from jars that Maven has fetched.

fetch(folder, version)    the broker and Spark's connector of that version, as pom.xml lists them
running(jars, folder)     a broker with files in `folder`; its address while the block runs
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eligo.spark import require_java

# Named with its version, so that a Maven of any age does the same.
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_CONNECTOR = ("spark-sql-kafka-", "spark-token-provider-kafka-", "kafka-clients-", "commons-pool2-")

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/log
num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class UnavailableError(Exception):
    """There is no broker to be had here, and why."""


def fetch(folder: Path, version: str) -> Path:
    """The folder of jars, filled once."""
    jars = folder / f"kafka-jars-{version}"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("there is no Maven (mvn) to fetch Kafka with")
    part = folder / f"kafka-jars-{version}.part"
    shutil.rmtree(part, ignore_errors=True)
    command = [maven, "--batch-mode", "--quiet", "--file", str(Path(__file__).with_name("pom.xml")), _COPY]
    command += [f"-Dspark={version}", f"-DoutputDirectory={part}", "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        reasons = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise UnavailableError(
            f"Maven could not fetch Kafka and the connector of Spark {version}: {(reasons or ['?'])[0]}"
        )
    part.rename(jars)
    return jars


def connector(jars: Path) -> str:
    """What Spark needs of them, for `spark.jars`."""
    return ",".join(str(jar) for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(_CONNECTOR))


@contextmanager
def running(jars: Path, folder: Path) -> Iterator[str]:
    """Host and port of a broker."""
    port, control = _free_ports(2)
    settings = folder / "server.properties"
    settings.write_text(_SETTINGS.format(port=port, control=control, folder=folder))
    cluster = "e" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
    java = [str(require_java().home / "bin" / "java"), "-Xmx384m", "-cp", f"{jars}/*"]
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
    done = subprocess.run(formatting, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(folder / "broker.log", "wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log, cwd=folder)
    try:
        _wait(process, port, folder / "broker.log")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(240):
        assert process.poll() is None, log.read_text()[-2_000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise AssertionError(f"the broker did not start: {log.read_text()[-2_000:]}")
