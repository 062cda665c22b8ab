"""A gate before what changes in place: many readers inside, or one writer, never both.

    inside     the threads that read just now, and WRITER while one is at work or waits to be
    shut       a writer is at work, or waits for the readers inside to come out
    outside    readers that were turned away and wait to come in

A reader goes in by writing its name into `inside` and looking at `shut`: less than half a microsecond. A writer shuts
the gate and then writes its own name. Both writings go by the set's own lock, also where the interpreter has none for
all: either the reader's came first, and the writer sees the name and waits; or the writer's did, and the reader, coming
later, sees that the gate is shut.

Ctrl-C is put off while the gate is closed: what changes in several steps would be left between two of them. Whoever
forks the process is inside meanwhile, as a reader, so that the child gets nothing that is half changed; there are no
other threads there, so their names are forgotten.

Nobody starves: while the gate is shut nobody comes in, so a writer waits only for those that are inside; and before it
shuts the gate it lets in everybody whom the writer before had turned away.
"""

from __future__ import annotations

import threading
import time
from threading import get_ident

from eligo.forking import GATE, Forked
from eligo.interrupts import uninterrupted

WRITER = 0  # the name of no thread
_LOOK = 0.001  # seconds after which one who waits looks again, whatever he was told


class Gate(Forked):
    """Readers `enter` and leave; a writer changes things `with gate:`. There is one writer at a time."""

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
        me = get_ident()
        self._forking = self.is_outside(me)
        if self._forking:
            self.enter(me)

    def after_fork_in_parent(self) -> None:
        if self._forking:
            self._forking = False
            self.inside.discard(get_ident())
            self.left()

    def after_fork_in_child(self) -> None:
        """Nobody but this thread is there."""
        me = get_ident()
        self.inside &= {me, WRITER} if self._writer == me else set() if self._forking else {me}
        self.shut, self._forking = self._writer == me, False
        self._outside.clear()
        self._opened, self._emptied, self._entered = threading.Event(), threading.Event(), threading.Event()

    # -- readers

    def is_outside(self, me: int) -> bool:
        """Whether a thread is neither reading nor writing, so that it has to `enter` before it reads."""
        return me not in self.inside and self._writer != me

    def enter(self, me: int) -> None:
        """Let a thread that is outside come in.

        It goes out by `inside.discard(me)`, which wherever Ctrl-C comes is done whole or, first thing in a `finally`,
        done in any case. A writer who waits sees it within a millisecond, or at once by `left`.
        """
        self.inside.add(me)
        if self.shut:
            self._wait_outside(me)

    def left(self) -> None:
        """Tell a writer who waits that a reader has gone."""
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
        """Close it. Who has closed it may do so again."""
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
        """Close it, unless readers are inside for longer than so many seconds; whether it is closed, and to be opened.

        None: wait for them.
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
        self._writer = WRITER
        self.shut = False
        self.inside.discard(WRITER)
        self._opened.set()
