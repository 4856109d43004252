"""Speaks a small Mandarin and English corpus with eSpeak NG, so that the whole road can be walked without recordings.

    python scripts/demo_corpus.py FOLDER

writes FOLDER/wavs/*.wav and FOLDER/metadata.csv (`path|text|speaker`). Needs the extra `demo`. eSpeak NG is GPL-3:
it is used here as a program that speaks, and nothing of Voxloom depends on it.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import espeakng_loader
import numpy as np
import soundfile
from numpy.typing import NDArray

SPEAKERS = {"anna": "f2", "boris": "m3", "chen": "f4"}
"""Speakers and the eSpeak voice variants that stand for them."""

SENTENCES = {"cmn": "zh.txt", "en-us": "en.txt"}
"""eSpeak's languages, and the sentences they speak: a file in `corpus/` beside this script, a sentence a line."""

_AUDIO_OUTPUT_SYNCHRONOUS, _CHARS_UTF8, _RATE_PARAMETER, _WORDS_A_MINUTE = 2, 1, 1, 150
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Espeak:
    """eSpeak NG in this process, speaking into memory."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        data = str(espeakng_loader.get_data_path()).encode()
        self.sample_rate = int(self._library.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, data, 0))
        if self.sample_rate <= 0:
            raise SystemExit("error: eSpeak NG does not start; reinstall the extra: pip install 'voxloom[demo]'")
        self._chunks: list[NDArray[np.int16]] = []
        self._callback = _CALLBACK(self._take)  # kept: the library calls it as long as it lives
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_SetParameter(_RATE_PARAMETER, _WORDS_A_MINUTE, 0)

    def _take(self, samples: object, number: int, _events: object) -> int:
        if samples and number > 0:
            self._chunks.append(np.ctypeslib.as_array(samples, shape=(number,)).copy())
        return 0

    def say(self, text: str, voice: str) -> NDArray[np.int16]:
        """Speech, int16 `[num_samples]` at `sample_rate`."""
        self._chunks = []
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise SystemExit(f"error: eSpeak NG has no voice {voice!r}")
        content = text.encode() + b"\0"
        self._library.espeak_Synth(content, ctypes.c_size_t(len(content)), 0, 0, 0, _CHARS_UTF8, None, None)
        self._library.espeak_Synchronize()
        return np.concatenate(self._chunks) if self._chunks else np.zeros(0, np.int16)


def main(folder: Path) -> None:
    """Writes the corpus."""
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    espeak, rows = Espeak(), []
    for speaker, variant in SPEAKERS.items():
        for language, file in SENTENCES.items():
            sentences = (Path(__file__).parent / "corpus" / file).read_text(encoding="utf-8").splitlines()
            for number, text in enumerate(sentences):
                name = f"wavs/{speaker}-{language}-{number:02d}.wav"
                soundfile.write(folder / name, espeak.say(text, f"{language}+{variant}"), espeak.sample_rate)
                rows.append(f"{name}|{text}|{speaker}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(f"{len(rows)} recordings by {len(SPEAKERS)} speakers in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
