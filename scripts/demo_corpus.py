"""Speaks a small Mandarin and English corpus with eSpeak NG, so that the whole road can be walked without recordings.

    python scripts/demo_corpus.py FOLDER

writes FOLDER/wavs/*.wav and FOLDER/metadata.csv (`path|text|speaker`). Needs the extra `demo`. eSpeak NG is GPL-3: it is
used here as a program that speaks, and nothing of Voxloom depends on it.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import espeakng_loader
import numpy as np
import soundfile

SPEAKERS = {"anna": "f2", "boris": "m3", "chen": "f4"}
"""Speakers and the eSpeak voice variants that stand for them."""

MANDARIN = (
    """
你好世界。|今天天气很好。|我们去公园散步吧。|他喜欢喝茶，不喜欢喝咖啡。|这本书很有意思。|请问，火车站怎么走？|我的朋友在北京工作。
明天早上八点见。|妈妈做的饭真好吃！|你会说中文吗？|他每天早上跑步。|图书馆里非常安静。|我想买一张去上海的票。|春天来了，花都开了。
孩子们在院子里玩。|这个问题很难回答。|她唱歌唱得很好听。|外面下雨了，带上伞。|我们一起学习吧。|时间过得真快。|电话响了，请接一下。
老师正在给学生上课。|桌子上有三个苹果。|他是一位有名的医生。|我昨天晚上没睡好。|那座山很高，也很美。|请把窗户打开。|世界很大，我想去看看。
我家有五口人。|他们坐飞机去广州。|小狗在门口等着主人。|你今天吃早饭了吗？|这条河的水很清。|我们应该保护环境。|你好，很高兴认识你。
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

ENGLISH = (
    """
Hello world.|The weather is lovely today.|Please open the window.|She reads a book every night.|How do I get to the station?
We are going to the park.|My brother works in a hospital.|The train leaves at seven.|I would like a cup of tea.|He runs every morning.
The children are playing outside.|This is a difficult question.|It is raining, take an umbrella.|Time goes by so quickly.|Can you hear me now?
The library is very quiet.|There are three apples on the table.|Her voice is clear and bright.|Spring has come at last.|We should learn together.
The mountain is high and beautiful.|I did not sleep well last night.|The little dog waits at the door.|What did you have for breakfast?
Nice to meet you.|The river runs down to the sea.|They live in a small house.|The doctor will see you soon.|Thank you very much.|Good morning, everyone.
The world is wide.|Say hello to your mother.|The sun is shining on the water.|A quick brown fox jumps over the lazy dog.|Hello, hello, is anyone there?
""".replace("\n", "|")
    .strip("|")
    .split("|")
)

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
        self._chunks: list[np.ndarray] = []
        self._callback = _CALLBACK(self._take)  # kept: the library calls it as long as it lives
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_SetParameter(_RATE_PARAMETER, _WORDS_A_MINUTE, 0)

    def _take(self, samples: object, number: int, _events: object) -> int:
        if samples and number > 0:
            self._chunks.append(np.ctypeslib.as_array(samples, shape=(number,)).copy())  # type: ignore[call-overload]
        return 0

    def say(self, text: str, voice: str) -> np.ndarray:
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
        for language, sentences in (("cmn", MANDARIN), ("en-us", ENGLISH)):
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
