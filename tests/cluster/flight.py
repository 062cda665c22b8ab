"""Killing in the middle, with proof that it was the middle.

    look      Spark's report shows a stage with a finished and a running task on one worker
    freeze    that worker, with its executor and Python workers, stops where it stands
    look      what the report still shows as running there is in flight now; nothing: thaw, and look on
    write     these tasks, into a file beside the program's outcome
    kill      SIGKILL to all of them
    prove     afterwards, by Spark's event log: one of these tasks was lost with its executor, and ran again

Without the freeze a task could end between the look and the kill, and the kill would prove nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

from cluster.cluster import Cluster, Driver, read_json
from cluster.processes import wait_for

Stage = dict[str, Any]
Task = dict[str, Any]

# What an executor sent before it was frozen is on its way to the driver's report for no longer than this.
_SETTLE = 1.0
_ATTEMPTS = 3


class Flight:
    """The tasks that ran on a worker when it was killed."""

    def __init__(self, stage: Stage, tasks: list[Task], worker: str) -> None:
        self.stage = stage
        self.finished = sum(task["status"] == "SUCCESS" for task in tasks)
        self.worker = worker
        self.tasks = [task for task in tasks if task["host"] == worker and task["status"] == "RUNNING"]

    def write(self, file: Path) -> None:
        stage = _about(self.stage) | {"finished": self.finished}
        record = {"worker": self.worker, "stage": stage, "in flight": _shown(self.tasks)}
        file.write_text(json.dumps(record, indent=1))

    def prove(self, driver: Driver) -> None:
        """Fail unless a task in flight was lost with its executor, and its part of the work was done again.

        The record is flushed when a job ends, so this is for after the program.
        """
        ends = [event for event in driver.events() if event["Event"] == "SparkListenerTaskEnd"]
        flying = {task["taskId"] for task in self.tasks}
        lost = {
            _part(end)
            for end in ends
            if end["Task Info"]["Task ID"] in flying and end["Task End Reason"]["Reason"] == "ExecutorLostFailure"
        }
        again = {
            _part(end)
            for end in ends
            if end["Task Info"]["Task ID"] not in flying and end["Task End Reason"]["Reason"] == "Success"
        }
        assert lost, f"none of the tasks in flight was lost: {self.tasks}"
        assert lost <= again, f"lost and not done again: {lost - again}"


class MissedError(AssertionError):
    """The program ended before anything was in flight."""


def disturb(cluster: Cluster, program: str, folder: Path, where: Callable[[Stage], bool], **settings: Any) -> Path:
    """Run a program that loses a worker in the middle; where it wrote its outcome, beside the proof, `<target>.json`.

    On a fast machine the middle may be over before it is seen: then the program runs again, under another name.
    """
    driver = cluster.driver()
    for attempt in range(_ATTEMPTS):
        target = folder / f"disturbed-{attempt}"
        driver.begin(program, folder, target=target.name, **settings)
        try:
            flight = kill_worker(cluster, driver, where, folder / f"{target.name}.json")
        except MissedError:
            continue
        driver.finish()
        flight.prove(driver)
        return target
    raise MissedError(f"{program} ended {_ATTEMPTS} times before anything was in flight")


def kill_worker(cluster: Cluster, driver: Driver, where: Callable[[Stage], bool], record: Path) -> Flight:
    """Kill a worker in the middle of a stage, with a task finished and another one running on it."""
    application = driver.application()

    def strike() -> Flight | None:
        _refuse_end(driver)
        for stage in filter(where, _active_stages(application)):
            tasks = _tasks(application, stage)
            for host in sorted(_hosts(tasks, "SUCCESS") & _hosts(tasks, "RUNNING")):
                worker = cluster.worker(host)
                with worker.frozen():
                    time.sleep(_SETTLE)
                    flight = Flight(stage, _tasks(application, stage), host)
                    if flight.tasks:
                        flight.write(record)
                        worker.kill()
                        return flight
        return None

    return wait_for(strike, 300, "a stage with a finished and a running task on one worker", every=0.02)


def kill_driver(driver: Driver, checkpoint: Path, first: int, record: Path) -> int:
    """Kill the driver of a stream in the middle of a batch, number `first` or later; the batch that it was.

    The middle: tasks have finished, others run, the batch's offsets are written and its commit is not.
    """
    application = driver.application()

    def strike() -> list[int]:
        _refuse_end(driver)
        for stage in _active_stages(application):
            tasks = _tasks(application, stage)
            if not (_hosts(tasks, "SUCCESS") and _hosts(tasks, "RUNNING")):
                continue
            with driver.family.frozen():
                begun = _open_batches(checkpoint)
                if not begun or begun[0] < first or f"batch = {begun[0]}" not in stage.get("description", ""):
                    continue
                driver.family.kill()
            # Looked at once more when nobody can change it: this is what the next driver finds.
            opened = _open_batches(checkpoint)
            flight = {"batches without a commit": opened, "stage": _about(stage), "tasks": _shown(tasks)}
            record.write_text(json.dumps(flight, indent=1))
            assert opened == begun
            return opened
        return []

    (batch,) = wait_for(strike, 300, f"a finished and a running task in batch {first} or later", every=0.02)
    return batch


def kill_driver_after_writing(driver: Driver, checkpoint: Path, batch: Path, record: Path) -> None:
    """Kill the driver of a stream that lingers between writing a batch, into this folder, and Spark's commit of it."""
    number = int(batch.name.removeprefix("batch="))

    def written() -> bool:
        _refuse_end(driver)
        return batch.exists()

    wait_for(written, 300, f"{batch}")
    driver.family.kill()
    opened = _open_batches(checkpoint)
    files = sorted(file.name for file in batch.glob("*.parquet"))
    record.write_text(json.dumps({"batches without a commit": opened, "written": files}, indent=1))
    assert opened == [number]
    assert files


def described(*words: str, tasks: int | None = None) -> Callable[[Stage], bool]:
    """Stages of a job whose description has all these words; with so many tasks, if that is given."""
    return lambda stage: (
        all(word in stage.get("description", "") for word in words) and tasks in (None, stage["numTasks"])
    )


def _refuse_end(driver: Driver) -> None:
    if not driver.busy():
        driver.finish()  # says what went wrong, if something did
        raise MissedError("the program ended before anything was in flight")


def _hosts(tasks: list[Task], status: str) -> set[str]:
    return {task["host"] for task in tasks if task["status"] == status}


def _active_stages(application: str) -> list[Stage]:
    return _read(f"{application}/stages?status=active")


def _tasks(application: str, stage: Stage) -> list[Task]:
    return _read(f"{application}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=1000")


def _read(address: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = read_json(address)
    except (OSError, HTTPException):  # not there yet, or just gone
        return []
    return found


def _part(end: dict[str, Any]) -> tuple[int, int]:
    """The part of the work that a task did: its index would count anew in each attempt of a stage."""
    return end["Stage ID"], end["Task Info"]["Partition ID"]


def _about(stage: Stage) -> Stage:
    return {key: stage.get(key) for key in ("stageId", "attemptId", "name", "description", "numTasks")}


def _shown(tasks: list[Task]) -> list[Task]:
    keys = ("taskId", "index", "attempt", "launchTime", "executorId", "host", "status")
    return [{key: task[key] for key in keys} for task in tasks]


def _open_batches(checkpoint: Path) -> list[int]:
    """Batches whose offsets are written and whose commit is not."""
    begun, ended = (
        {int(file.name) for file in (checkpoint / log).glob("*") if file.name.isdigit()}
        for log in ("offsets", "commits")
    )
    return sorted(begun - ended)
