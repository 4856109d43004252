"""Folders of recordings for tests of finding them: what a recording holds does not matter there."""

from pathlib import Path


def make_files(root: Path, files: dict[str, str | bytes]) -> Path:
    """Writes `files` (content by path below `root`; str as UTF-8, line ends as they are) and returns `root`."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def recordings(*paths: str) -> dict[str, bytes]:
    """Files that look like recordings from outside."""
    return dict.fromkeys(paths, b"sound")
