"""SIGINT at any moment of a command: exit code 130 and no traceback.

The rule: an import may turn a `KeyboardInterrupt` into any other error, or swallow it, and so may
the end of the interpreter. So the signal ends the process, except while a command runs: there it
raises `KeyboardInterrupt`, so that the command can delete what it has staged. It is remembered, as
the error that arrives may be another one. A second signal, or one whose error could not be raised,
ends the process. Killing klog at any moment is safe: what was not committed is not there.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from klog.interrupt_exit import INTERRUPTED, end_process

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


class Interrupt:
    """The SIGINT of a command."""

    def __init__(self) -> None:
        """Begin without a signal."""
        self.is_received = False

    def receive(self, *_: object) -> None:
        """Raise `KeyboardInterrupt` as the handler of SIGINT; the second time, end the process."""
        if self.is_received:
            end_process()
        self.is_received = True
        raise KeyboardInterrupt

    def end_if_lost(self, unraisable: UnraisableHookArgs) -> None:
        """End the process for a `KeyboardInterrupt` that Python drops, as in a finalizer."""
        if unraisable.exc_type is KeyboardInterrupt:
            end_process()
        sys.__unraisablehook__(unraisable)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End the process on SIGINT while the block runs, unless the process ignores SIGINT.

    Only the main thread gets signals. In another thread the block changes nothing.
    """
    with _handler_restored() as is_handled:
        if is_handled:
            signal.signal(signal.SIGINT, end_process)
        yield


def run_interruptible(work: Callable[[Interrupt], int]) -> int:
    """Run the work of a command, in which the first SIGINT raises `KeyboardInterrupt`.

    If the process ignores SIGINT, it still does.

    Args:
        work: The work; it gets the interrupt, to tell its own errors from those that follow one.

    Returns:
        The exit code of the work, or `INTERRUPTED`.
    """
    interrupt = Interrupt()
    with _handler_restored() as is_handled:
        hook = sys.unraisablehook
        if is_handled:
            signal.signal(signal.SIGINT, interrupt.receive)
            sys.unraisablehook = interrupt.end_if_lost
        try:
            code = work(interrupt)
        except BaseException as exc:
            if not (interrupt.is_received or isinstance(exc, KeyboardInterrupt)):
                raise
            code = INTERRUPTED
        finally:
            sys.unraisablehook = hook
    return INTERRUPTED if interrupt.is_received else code


@contextmanager
def _handler_restored() -> Iterator[bool]:
    """Restore the handler of SIGINT after the block; yield whether this thread may set one."""
    is_handled = _is_handled()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield is_handled
    finally:
        if is_handled:
            signal.signal(signal.SIGINT, handler)


def _is_handled() -> bool:
    """Return whether this thread gets SIGINT, and the process does not ignore it."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and callable(signal.getsignal(signal.SIGINT))
