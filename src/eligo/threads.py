"""Work for several threads: items of it, with results in order, or steps that all of a team take together."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from threading import Lock
from typing import TypeVar

from eligo.arguments import whole_number

T = TypeVar("T")
R = TypeVar("R")


def thread_count(threads: int | None) -> int:
    """Returns as many threads as were asked for or, for None, one for each processor that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number("threads", threads, least=1)


class Team:
    """Threads that do one work together, step by step; or several works, each with that many threads. They are started
    when they are first needed.
    """

    def __init__(self, threads: int, works: int = 1) -> None:
        self.threads = threads
        self._others = works * (threads - 1)
        self._starting = Lock()
        self._pool: ThreadPoolExecutor | None = None

    def each(self, work: Callable[[int], object]) -> None:
        """Calls work(i) for each of the threads, the first of which is the calling one. Returns when all are done; if
        one has failed, raises its error then.
        """
        if self.threads == 1:
            work(0)
            return
        with self._starting:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._others, "eligo-team")
            pool = self._pool
        others = [_begun(pool, work, i) for i in range(1, self.threads)]
        try:
            work(0)
        finally:
            wait(others)
        for other in others:
            other.result()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


ALONE = Team(1)


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yields work(item) for each item, in the order of the items, of which few are taken in advance. The calling thread
    does the work itself if there is one item, or one thread.

    An error of the work is raised where its result would come; before that, what was begun is waited for.
    """
    items = iter(items)
    some = list(islice(items, 1 if threads == 1 else 2))
    if len(some) < 2:
        yield from map(work, chain(some, items))
        return
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, "eligo-batch") as pool:
        try:
            for item in chain(some, items):
                waiting.append(_begun(pool, work, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


def _begun(pool: ThreadPoolExecutor, work: Callable[[T], R], item: T) -> Future[R]:
    """Has a thread of the pool do work(item). Where no more threads can be started, because the process has too many or
    its main thread has ended, the calling thread does it now.
    """
    done: Future[R] = Future()
    tickets = [item]  # a pool that could not start a thread keeps the work, and may do it later

    def run() -> None:
        try:
            tickets.pop()
        except IndexError:
            return
        if not done.set_running_or_notify_cancel():
            return
        try:
            result = work(item)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    try:
        pool.submit(run)
    except RuntimeError:
        run()
    return done
