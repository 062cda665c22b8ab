"""What a fork must not tear apart.

A forked child has a copy of all memory and of one thread. A lock that another thread held stays locked in it for ever,
and what that thread was changing stays half changed. So a thread that forks first waits, for every lock that is
registered here, until it is free, and then holds it: at the moment of the fork nothing is under way. Parent and child
go on with locks that are free.

    before the fork    take every lock, in the order of `rank`; give up on those that are not free within PATIENCE.
                       Begin again if a thread has made another meanwhile; then block the making of more. Wait for
                       modules that other threads are importing, which Python locks as well
    in the parent      release them
    in the child       begin anew: there are no other threads. A lock that was not free in time is `lost`

A thread that adds rules out of a slow iterator holds its lock for long. The fork does not wait for it: the child can
match, and an attempt to change the rules there is an error that says so.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from eligo.errors import EligoError

PATIENCE = 5.0  # seconds that a fork waits for all locks together
_COMPILING = 60.0  # seconds that it waits for a kernel that is being compiled
_IMPORTED = frozenset(("eligo", "numba", "llvmlite", "numpy", "pyarrow"))

OUTER, RULES, INNER, GATE = 0, 1, 2, 3  # ranks: a thread that holds a lock may wait for one of a higher rank


class Forked(ABC):
    """An object that has to be in order when a process forks."""

    rank: int

    def register(self) -> None:
        with _registering:
            _everyone.add(self)

    @abstractmethod
    def before_fork(self, deadline: float) -> None:
        """Waits until it is in order, and keeps it so; no longer than to the deadline, a time of `time.monotonic`."""

    @abstractmethod
    def after_fork_in_parent(self) -> None:
        """Lets other threads go on."""

    @abstractmethod
    def after_fork_in_child(self) -> None:
        """Forgets the threads that do not exist here."""


def fork_lock(owner: Any, name: str, rank: int, lost: str = "") -> threading.RLock:
    """Returns a reentrant lock for an attribute of an object. In forked children the attribute has another one, which
    is free.

    It is one of the standard library, because `with` takes such a one without a moment for Ctrl-C in between. If
    another thread holds it for longer than a fork waits, then what it protects may be half changed in the child. There,
    taking it is an error with the words `lost`; without such words half a change does no harm.
    """
    owner.__dict__.setdefault("_fork_locks", []).append(_ForkLock(owner, name, rank, lost))
    return threading.RLock()


class _ForkLock(Forked):
    """Watches over the lock that an attribute of an object holds."""

    def __init__(self, owner: Any, name: str, rank: int, lost: str) -> None:
        self.rank = rank
        self._owner, self._name, self._words = weakref.ref(owner), name, lost
        self._taken: Any = None
        self.register()

    def before_fork(self, deadline: float) -> None:
        lock = getattr(self._owner(), self._name, None)
        if lock is not None and lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._taken = lock

    def after_fork_in_parent(self) -> None:
        lock, self._taken = self._taken, None
        if lock is not None:
            lock.release()

    def after_fork_in_child(self) -> None:
        if self._taken is not None:
            # Held by the thread that forked, which is the one that goes on; perhaps it held the lock already.
            self.after_fork_in_parent()
        elif (owner := self._owner()) is not None:
            setattr(owner, self._name, LostLock(self._words) if self._words else threading.RLock())


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801, it is what its name says
        """That of the standard library, which up to Python 3.11 holds a lock while a value is made, for all objects
        together: a child that was forked meanwhile would wait for it for ever. Without it two threads may make a value
        at a time, as they do since Python 3.12.
        """

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            self.lock = nullcontext()


class LostLock:
    """The lock of what a thread that does not exist here was changing. Waiting for it raises an error."""

    def __init__(self, words: str) -> None:
        self._words = words

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:
            raise EligoError(self._words)
        return False

    def release(self) -> None:
        raise RuntimeError("cannot release a lock that was not taken")

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


_everyone: weakref.WeakSet[Forked] = weakref.WeakSet()
_registering = threading.RLock()
_held: list[Forked] = []
_compiler_lock: Any = None


def _before() -> None:
    global _compiler_lock
    deadline = time.monotonic() + PATIENCE
    _wait_for_imports(deadline)
    while True:
        _take_all(deadline)
        _registering.acquire()
        late = set(_everyone).difference(_held)
        if not late or time.monotonic() > deadline:
            break
        _registering.release()
        _give_back()
    _held.extend(late)
    from numba.core.compiler_lock import global_compiler_lock

    lock = global_compiler_lock._lock
    _compiler_lock = lock if lock.acquire(timeout=_COMPILING) else None
    _wait_for_imports(deadline)  # of what was begun meanwhile


def _wait_for_imports(deadline: float) -> None:
    """Waits until no other thread is importing what is used here, most of which is imported when it is needed."""
    import _frozen_importlib

    me, locks = threading.get_ident(), getattr(_frozen_importlib, "_module_locks", {})
    while time.monotonic() < deadline:
        under_way = [ref() for name, ref in list(locks.items()) if name.partition(".")[0] in _IMPORTED]
        if all(lock is None or getattr(lock, "owner", None) in (None, me) for lock in under_way):
            return
        del under_way
        time.sleep(0.001)


def _take_all(deadline: float) -> None:
    with _registering:
        _held[:] = sorted(_everyone, key=lambda one: one.rank)
    for one in _held:
        one.before_fork(deadline)


def _give_back() -> None:
    for one in reversed(_held):
        one.after_fork_in_parent()
    _held.clear()


def _let_go() -> None:
    global _compiler_lock
    lock, _compiler_lock = _compiler_lock, None
    if lock is not None:
        lock.release()


def _in_parent() -> None:
    _let_go()
    _give_back()
    _registering.release()


def _in_child() -> None:
    _let_go()
    for one in reversed(_held):
        one.after_fork_in_child()
    _held.clear()
    _registering.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
