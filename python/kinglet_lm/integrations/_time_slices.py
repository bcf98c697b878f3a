"""Long time slices for processes that share few processors.

After a switch of processes the model is no longer in the processor's own cache. On Linux a time
slice lasts about 1.5 ms, and reading the model again takes a fifth of it when 16 workers share two
processors. From Linux 6.12 on a thread may request longer slices, and then waits longer for each.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Iterator

_LONG = 100_000_000  # nanoseconds, the most that the kernel grants
_SHARED = (0, 3)  # SCHED_OTHER and SCHED_BATCH; other policies are not changed
# The system calls sched_setattr and sched_getattr; older C libraries have no functions for them.
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}.get(platform.machine())


class _Attributes(ctypes.Structure):
    """struct sched_attr of Linux, its first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def _attributes() -> _Attributes | None:
    """The attributes of the calling thread; None if the system has none."""
    if _CALLS is None or sys.platform != "linux":
        return None
    found = _Attributes()
    size = ctypes.sizeof(found)
    refused = _system.syscall(_CALLS[1], 0, ctypes.byref(found), size, 0)
    return None if refused else found


def _set(wanted: _Attributes) -> None:
    if _CALLS is not None:
        _system.syscall(_CALLS[0], 0, ctypes.byref(wanted), 0)


def granted() -> int:
    """The calling thread's time slice in nanoseconds; 0 if the system does not report it."""
    found = _attributes()
    return 0 if found is None else int(found.runtime)


@contextlib.contextmanager
def long_time_slices() -> Iterator[None]:
    """Requests long time slices for the calling thread, then resets them. Never fails."""
    before = _attributes()
    if before is None or before.policy not in _SHARED:
        yield
        return
    wanted = _Attributes.from_buffer_copy(before)
    wanted.runtime = _LONG
    process = os.getpid()
    _set(wanted)
    try:
        yield
    finally:
        if os.getpid() == process:
            _set(before)


_system = ctypes.CDLL(None)

__all__ = ["granted", "long_time_slices"]
