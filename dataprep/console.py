"""How a command ends: errors we foresee are two lines and an exit status, never a traceback. Imports nothing heavy."""

from __future__ import annotations

import errno
import functools
import io
import re
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

from schemas.errors import VoxloomError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_INTERRUPTED = 130
_TEMPORARY, _FINAL = re.compile(r"\.([^/]+)\.[^/.]+\.tmp$"), r"\1"
"""A temporary file of ours in a message is called by the name that it would have got."""
_MACHINE_HINTS = {
    errno.ENOSPC: "free some space and run the same command again: it continues",
    errno.EDQUOT: "free some of your quota and run the same command again: it continues",
    errno.EACCES: "check the permissions, or write to another place",
    errno.EROFS: "write to another place: this file system is read-only",
}


def reporting_errors(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorates a command: VoxloomError and OSError become `error: ...`, `next: ...` and the error's exit status."""

    @functools.wraps(command)
    def reported(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # Chinese text on an ASCII terminal is no reason to fail
        try:
            return command(*args, **kwargs)
        except VoxloomError as error:
            end(str(error), error.hint, error.exit_status)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone, as `| head` does
            raise SystemExit(0) from None
        except OSError as error:
            name = error.filename2 or error.filename
            where = f"{_TEMPORARY.sub(_FINAL, str(name))}: " if name else ""
            hint = _MACHINE_HINTS.get(error.errno or 0, "see the message; the same command continues where it was")
            end(f"{where}{error.strerror or error}", hint, 1)
        except KeyboardInterrupt:
            end("interrupted", "run the same command again: it continues", _INTERRUPTED)

    return reported


def end(message: str, hint: str, exit_status: int) -> NoReturn:
    """Prints the two lines on standard error and ends the process. Raises SystemExit."""
    sys.stderr.write(f"error: {message}\n" + (f"next: {hint}\n" if hint else ""))
    raise SystemExit(exit_status)
