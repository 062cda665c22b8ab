"""A gate before what changes in place: many readers inside, or one writer, never both.

    inside     the threads that are reading, and WRITER while a writer is at work or waits to be
    shut       a writer is at work, or waits for the readers inside to leave
    outside    readers that were turned away and wait to enter

A reader enters by adding its thread to `inside` and reading `shut`, which takes less than half a microsecond. A writer
sets `shut` and then adds WRITER. The set's own lock orders the two additions, also where the interpreter has no global
lock: either the reader's came first, and the writer sees it and waits; or the writer's did, and the reader sees that
the gate is shut.

Ctrl-C is put off while the gate is closed: a change of several steps must not be left between two of them. A thread
that forks the process is inside as a reader meanwhile, so that the child gets nothing half changed. No other threads
exist in the child, so they are removed there.

Fairness: a shut gate blocks new readers, so a writer waits only for those inside; and before it shuts the gate, it lets
in all readers that the writer before it turned away.
"""

from __future__ import annotations

import threading
import time
from threading import get_ident

from eligo.forking import GATE, Forked
from eligo.interrupts import uninterrupted

WRITER = 0  # no thread has this identifier
_LOOK = 0.001  # seconds after which a waiting thread looks again, even if it was not woken


class Gate(Forked):
    """Lets readers `enter` and leave, and a writer change things `with gate:`. There is one writer at a time."""

    rank = GATE

    def __init__(self) -> None:
        self.inside: set[int] = set()
        self.shut = False
        self._outside: set[int] = set()
        self._opened, self._emptied, self._entered = threading.Event(), threading.Event(), threading.Event()
        self._writer = WRITER
        self._depth = 0
        self._interrupts = uninterrupted()
        self._forking = False
        self.register()

    def before_fork(self, deadline: float) -> None:
        """Enters as a reader, unless this thread is inside already, so that the child gets a consistent state."""
        me = get_ident()
        self._forking = self.is_outside(me)
        if self._forking:
            self.enter(me)

    def after_fork_in_parent(self) -> None:
        """Leaves again, if `before_fork` entered."""
        if self._forking:
            self._forking = False
            self.inside.discard(get_ident())
            self.left()

    def after_fork_in_child(self) -> None:
        """Removes all other threads, because only the forking one exists in the child."""
        me = get_ident()
        self.inside &= {me, WRITER} if self._writer == me else set() if self._forking else {me}
        self.shut, self._forking = self._writer == me, False
        self._outside.clear()
        self._opened, self._emptied, self._entered = threading.Event(), threading.Event(), threading.Event()

    # -- readers

    def is_outside(self, me: int) -> bool:
        """Tests whether a thread is neither reading nor writing, so that it has to `enter` before it reads."""
        return me not in self.inside and self._writer != me

    def enter(self, me: int) -> None:
        """Enters the gate for a thread that is outside, and waits while a writer has it shut.

        The thread leaves by `inside.discard(me)`, as the first step of a `finally`. This is one step that Ctrl-C cannot
        divide. A waiting writer notices it within a millisecond, or at once if `left` is called.
        """
        self.inside.add(me)
        if self.shut:
            self._wait_outside(me)

    def left(self) -> None:
        """Wakes a waiting writer, after a reader has left."""
        if self.shut:
            self._emptied.set()

    def _wait_outside(self, me: int) -> None:
        self._outside.add(me)
        try:
            while self.shut:
                self.inside.discard(me)
                self._emptied.set()
                self._opened.wait(_LOOK)
                self.inside.add(me)
        except BaseException:
            self.inside.discard(me)
            self._emptied.set()
            raise
        finally:
            self._outside.discard(me)
            self._entered.set()

    # -- writers

    def __enter__(self) -> None:
        """Closes the gate, and puts off Ctrl-C. The thread that has closed it may do so again."""
        if self._writer != get_ident():
            self._interrupts.__enter__()
            try:
                self.close(None)
            except BaseException:
                self._interrupts.__exit__()
                raise
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.open()
            self._interrupts.__exit__()

    def close(self, patience: float | None) -> bool:
        """Closes the gate for this thread, if all readers leave within `patience` seconds, or at any time if it is
        None.

        Returns whether it is closed; the caller then has to `open` it. Raises RuntimeError if this thread is reading.
        """
        me = get_ident()
        if me in self.inside:
            raise RuntimeError("rules cannot be changed from within a match of the same matcher")
        while self._outside:
            self._entered.clear()
            if self._outside:
                self._entered.wait(_LOOK)
        self._opened.clear()
        self.shut = True
        self.inside.add(WRITER)
        if len(self.inside) > 1 and not self._emptied_within(patience):
            self.open()
            return False
        self._writer = me
        return True

    def _emptied_within(self, patience: float | None) -> bool:
        """Waits until only the writer is inside. Returns False if that takes more than `patience` seconds."""
        end = None if patience is None else time.monotonic() + patience
        try:
            while True:
                self._emptied.clear()
                if len(self.inside) == 1:
                    return True
                if end is not None and time.monotonic() > end:
                    return False
                self._emptied.wait(_LOOK)
        except BaseException:
            self.open()
            raise

    def open(self) -> None:
        """Opens the gate, and wakes the readers that wait outside."""
        self._writer = WRITER
        self.shut = False
        self.inside.discard(WRITER)
        self._opened.set()
