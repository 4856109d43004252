"""Fetches files in the background."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from schemas.dataset import FileInfo


class BackgroundFetcher:
    """Threads that fetch one file after the other; they start when there is something to do, and end when there is not.

    For one process. The threads end with it.

    Args:
        fetch: fetches a file; raises nothing that anybody should know of.
        num_threads: files fetched at once.
    """

    def __init__(self, fetch: Callable[[FileInfo], None], num_threads: int) -> None:
        self._fetch, self._num_threads = fetch, num_threads
        self._lock = threading.Lock()
        self._waiting: deque[FileInfo] = deque()
        self._names: set[str] = set()  # waiting or being fetched
        self._num_running = 0

    def replace(self, infos: Sequence[FileInfo]) -> None:
        """Fetches these, in this order; what still waited is forgotten."""
        with self._lock:
            self._names.difference_update(info.name for info in self._waiting)
            self._waiting.clear()
        for info in infos:
            self.add(info)

    def add(self, info: FileInfo) -> None:
        """Fetches this one too, after the others."""
        with self._lock:
            if info.name in self._names:
                return
            self._names.add(info.name)
            self._waiting.append(info)
            if self._num_running >= self._num_threads:
                return
            self._num_running += 1
        threading.Thread(target=self._work, name="shards ahead", daemon=True).start()

    def is_idle(self) -> bool:
        """Whether nothing waits or is being fetched."""
        with self._lock:
            return not self._num_running

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._num_running -= 1
                    return
                info = self._waiting.popleft()
            try:
                self._fetch(info)
            except BaseException:
                with self._lock:
                    self._num_running -= 1
                raise
            finally:
                with self._lock:
                    self._names.discard(info.name)
