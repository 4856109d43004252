"""Says what bytes that no decoder wants seem to be, so that a person knows where the recording went."""

from __future__ import annotations

from dataclasses import dataclass

HTML_MARKS = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<body")
AUDIO_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"RIFF", "a WAV file"),
    (b"RIFX", "a WAV file"),
    (b"RF64", "a WAV file"),
    (b"fLaC", "a FLAC file"),
    (b"OggS", "an Ogg file"),
    (b"FORM", "an AIFF file"),
    (b"ID3", "an MP3 file"),
    (b"\x1aE\xdf\xa3", "a WebM or Matroska file"),
    (b"wvpk", "a WavPack file"),
)
OTHER_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
)
FETCH_AGAIN = "fetch or export the recording again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the bytes seem to be, as the end of the sentence "is ...", and what to do next."""

    what: str
    hint: str


def recognise(content: bytes) -> Finding:
    """What `content` seems to be, where it is not sound that can be decoded."""
    if not content:
        return Finding(what="an empty file", hint=FETCH_AGAIN)
    head = content[:512]
    if head.startswith(b"version https://git-lfs"):
        return Finding(what="a Git LFS pointer, not the recording itself", hint="run `git lfs pull` in its repository")
    if head.lstrip().lower().startswith(HTML_MARKS):
        return Finding(what="a web page, not a recording", hint="the download failed or needs a login: fetch it again")
    for mark, what in OTHER_MARKS:
        if head.startswith(mark):
            return Finding(what=what, hint="unpack it, or name the recording itself")
    for mark, what in AUDIO_MARKS:
        if head.startswith(mark):
            return Finding(what=f"{what} whose header is damaged or cut off ({len(content)} bytes)", hint=FETCH_AGAIN)
    if head[4:8] == b"ftyp":
        return Finding(what=f"an MP4 file that is damaged or cut off ({len(content)} bytes)", hint=FETCH_AGAIN)
    return _text(head, len(content)) or Finding(
        what=f"no sound format that is known here ({len(content)} bytes, beginning {head[:8].hex(' ')})",
        hint="sound without a header cannot be told by its content: convert it to WAV or FLAC first",
    )


def _text(head: bytes, num_bytes: int) -> Finding | None:
    try:
        text = head.decode("utf-8") if num_bytes <= len(head) else head[:-4].decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not all(character.isprintable() or character in "\t\r\n" for character in text):
        return None
    shown = text.strip()[:40]
    if "/" in shown and "\n" not in text.strip() and num_bytes < 512:
        return Finding(
            what=f"the text {shown!r}, as a symbolic link becomes where links are not supported",
            hint="check the repository out with links (git config core.symlinks true), or copy the recording there",
        )
    return Finding(what=f"text that begins {shown!r}, not a recording", hint=FETCH_AGAIN)
