"""A standalone Spark cluster on one machine, made of the installed pyspark, and a driver that uses it.

    test
      ├── master                    spark-class …Master     127.0.0.1
      ├── worker-2, worker-3, …     spark-class …Worker     127.0.0.2, 127.0.0.3, … one core and one executor each
      └── driver-1, …               driver.py               127.0.0.1

The wheel of pyspark has no start-master.sh, but the classes that it would start. Every worker has an address of its
own on the loopback, so that executors meet as they do on two machines: shuffled rows are fetched, not read from a
neighbour's disk, and Spark's own reports tell the workers apart. Ports are chosen by the system and read from the logs.

Invariant: a test begins with two living workers and at most one driver, which is idle.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any

from cluster.processes import Family, wait_for

HERE = Path(__file__).parent
WORKERS = 2

# Many JVMs share few cores for a minute: the optimising compiler and parallel collectors cost more than they give.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


class Cluster:
    """A master, two workers, and one driver at a time."""

    def __init__(self, folder: Path, java: Path) -> None:
        import pyspark

        self._folder = folder
        self._home = Path(pyspark.__path__[0])
        self._java = java
        self._started = {"worker": 1, "driver": 0}  # the last number given
        self._workers: dict[str, Family] = {}  # by address
        self._driver: Driver | None = None
        self.master = self._start("master", "master.Master", "127.0.0.1", "--port", "0")
        self.url = f"spark://127.0.0.1:{self._port('sparkMaster')}"
        self._ui = f"http://127.0.0.1:{self._port('MasterUI')}"

    def mend(self) -> None:
        """Two living workers, whatever happened before."""
        if self._driver is not None and not (self._driver.family.running and self._driver.idle):
            self.end_driver()
        self._workers = {address: worker for address, worker in self._workers.items() if worker.running}
        while len(self._workers) < WORKERS:
            number = self._next("worker")
            name, address = f"worker-{number}", f"127.0.0.{number}"
            settings = ["--cores", "1", "--memory", "640m", "--work-dir", str(self._folder / f"{name}-work")]
            self._workers[address] = self._start(name, "worker.Worker", address, *settings, self.url)
        wait_for(lambda: len(self._alive()) == WORKERS, 120, f"two workers to join {self._ui}")

    def worker(self, address: str) -> Family:
        """The worker at an address, as Spark's reports name it."""
        return self._workers[address]

    def driver(self) -> Driver:
        """The driver that is there, or a new one."""
        if self._driver is None or not self._driver.family.running:
            name = f"driver-{self._next('driver')}"
            environment = self._environment("127.0.0.1", self._folder / f"{name}-local")
            self._driver = Driver(self.url, self._folder / name, environment)
        return self._driver

    def end_driver(self) -> None:
        """End the driver that is there, and wait until its executors are gone."""
        if self._driver is not None:
            self._driver.family.kill()
            self._driver = None
        wait_for(lambda: not any(worker["coresused"] for worker in self._alive()), 120, "the end of all executors")

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.family.kill()
        for family in [*self._workers.values(), self.master]:
            family.kill()

    def _start(self, name: str, role: str, address: str, *arguments: str) -> Family:
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
        command += ["--host", address, "--webui-port", "0", *arguments]
        return Family(name, command, self._folder, self._environment(address, self._folder / f"{name}-local"))

    def _environment(self, address: str, scratch: Path) -> dict[str, str]:
        scratch.mkdir(exist_ok=True)
        return {
            "SPARK_HOME": str(self._home),
            "JAVA_HOME": str(self._java),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": address,
            # What the killed leave behind goes with the test's own folder.
            "SPARK_LOCAL_DIRS": str(scratch),
            "TMPDIR": str(scratch),
            "JAVA_TOOL_OPTIONS": f"{JVM} -Djava.io.tmpdir={scratch}",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-Dspark.worker.timeout=10",
        }

    def _next(self, kind: str) -> int:
        self._started[kind] += 1
        return self._started[kind]

    def _port(self, service: str) -> int:
        line = re.compile(rf"started service '{service}' on port (\d+)")

        def look() -> re.Match[str] | None:
            assert self.master.running, self.master.tail()
            return line.search(self.master.log.read_text(errors="replace"))

        return int(wait_for(look, 120, f"the port of {service}")[1])

    def _alive(self) -> list[dict[str, Any]]:
        return [worker for worker in read_json(f"{self._ui}/json/")["workers"] if worker["state"] == "ALIVE"]


class Driver:
    """A Spark application in a process of its own; it runs the programs that it is asked for, one at a time."""

    def __init__(self, master: str, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.family = Family(
            folder.name, [sys.executable, str(HERE / "driver.py"), master, str(folder)], folder, environment
        )
        self._done: Path | None = None  # what the program that was asked for last will write at its end

    def begin(self, program: str, folder: Path, **settings: Any) -> None:
        """Run a program; its end is seen by `finish`."""
        assert self.idle
        self._done = folder / f"{program}.done"
        self._done.unlink(missing_ok=True)
        self.family.send(json.dumps({"program": program, "folder": str(folder), **settings}))

    def finish(self, seconds: float = 300) -> None:
        """Wait for the end of the program, and fail with its words if it failed."""
        wait_for(lambda: not self.busy(), seconds, f"the end of a program; {self.family.log} has the driver's words")
        if self._done is not None:
            error = json.loads(self._done.read_text())["error"]
            assert not error, f"{error}{self.family.tail()}"

    def run(self, program: str, folder: Path, **settings: Any) -> None:
        self.begin(program, folder, **settings)
        self.finish()

    @property
    def idle(self) -> bool:
        return self._done is None or self._done.exists()

    def busy(self) -> bool:
        """Whether a program runs; an error, with its last words, where the driver itself has ended."""
        if self.idle:
            return False
        assert self.family.running, f"the driver has ended{self.family.tail()}"
        return True

    def application(self) -> str:
        """The address of Spark's report on this application, once there is one."""
        running = self.folder / "running.json"

        def look() -> bool:
            assert self.family.running, f"the driver has ended{self.family.tail()}"
            return running.exists()

        wait_for(look, 180, "a session")
        found = json.loads(running.read_text())
        return f"{found['ui']}/api/v1/applications/{found['application']}"

    def events(self) -> list[dict[str, Any]]:
        """Spark's own record of all that has happened. What is being written now may lack its end."""
        lines = (line for log in (self.folder / "spark-events").iterdir() for line in log.read_text().splitlines(True))
        return [json.loads(line) for line in lines if line.endswith("}\n")]


def read_json(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)
