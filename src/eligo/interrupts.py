"""Ctrl-C at moments when it does no harm.

Python raises KeyboardInterrupt between any two steps of the main thread: between the two halves of a change, or in the
middle of a call of a kernel, where Numba makes a SystemError of it. So a change is made `with uninterrupted():`. What
comes meanwhile is noted, and raised

    when the change is done                           the end of the outermost `with`
    where a change that takes long can be undone      checkpoint()
    at once, where others' code runs within it        allow() … defer()

There is one state for the process, because Ctrl-C comes to the main thread alone; for other threads nothing happens.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from types import FrameType
from typing import Any, ParamSpec, TypeVar

# What `signal` itself calls. It makes enumerations of numbers besides, which takes long compared with adding a rule.
try:
    from _signal import getsignal as _getsignal  # type: ignore[import-not-found]
    from _signal import signal as _signal
except ImportError:
    from signal import getsignal as _getsignal
    from signal import signal as _signal

_SIGINT = int(signal.SIGINT)
_P = ParamSpec("_P")
_R = TypeVar("_R")


class _State:
    """How Ctrl-C is treated in the main thread at the moment."""

    handler: Any = None  # what Ctrl-C does otherwise; None: it is not put off
    came: tuple[int, FrameType | None] | None = None
    allowed = False
    outer: list[bool]  # whether it was allowed, for every `with` that has been entered


_state = _State()
_state.outer = []


class Uninterrupted:
    """A context that puts Ctrl-C off; it may be entered again."""

    def __enter__(self) -> None:
        if get_ident() != threading.main_thread().ident:
            return
        if not _state.outer:
            handler = _getsignal(_SIGINT)
            _state.came = None
            _state.handler = handler if callable(handler) else None
            if _state.handler is not None:
                _signal(_SIGINT, _note)
        _state.outer.append(_state.allowed)
        _state.allowed = False

    def __exit__(self, *_: object) -> None:
        if get_ident() != threading.main_thread().ident:
            return
        _state.allowed = _state.outer.pop()
        if _state.outer:
            if _state.allowed:
                checkpoint()
            return
        handler, _state.handler = _state.handler, None
        if handler is None:
            return
        _signal(_SIGINT, handler)
        came, _state.came = _state.came, None
        if came is not None:
            handler(*came)


_uninterrupted = Uninterrupted()


def uninterrupted() -> Uninterrupted:
    """Returns a context in which Ctrl-C is put off."""
    return _uninterrupted


def checkpoint() -> None:
    """Does now what a Ctrl-C that was put off is to do, if there was one: mostly, raises a KeyboardInterrupt."""
    if _state.came is not None and get_ident() == threading.main_thread().ident:
        came, _state.came = _state.came, None
        if _state.handler is not None:
            _state.handler(*came)


def allow() -> None:
    """Lets Ctrl-C through, though it is put off, until `defer`."""
    if _state.outer and get_ident() == threading.main_thread().ident:
        _state.allowed = True
        checkpoint()


def defer() -> None:
    """Puts Ctrl-C off again."""
    if _state.outer and get_ident() == threading.main_thread().ident:
        _state.allowed = False


def _note(number: int, frame: FrameType | None) -> None:
    if _state.allowed:
        _state.handler(number, frame)
    else:
        _state.came = number, frame


def interrupt_within(error: SystemError) -> BaseException:
    """Returns the KeyboardInterrupt that Numba made a SystemError of or, if it was something else, the error itself."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return KeyboardInterrupt()
        cause = cause.__cause__ or cause.__context__
    return error


def interruptible(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Returns the same function, in which Ctrl-C in the middle of a call of a kernel raises a KeyboardInterrupt."""

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except SystemError as error:
            raise interrupt_within(error) from None

    return called
