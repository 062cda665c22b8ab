"""Work for several threads, its results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

from eligo.arguments import whole_number

T = TypeVar("T")
R = TypeVar("R")


def thread_count(threads: int | None) -> int:
    """So many threads as were asked for; without a number, one for each processor that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number("threads", threads, least=1)


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """work(item) for each item, in the order of the items, of which this thread takes few in advance. The work of one
    that is alone it does itself.

    What the work raises is raised where its result would come; what was begun is waited for.
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
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()
