"""Each real file of the format and damage collections, against facts that ffprobe and libsndfile state."""

import librosa
import numpy as np
import pytest

from dataprep.audio import decode_mono, find_speech
from schemas.errors import AudioError
from tests.helpers.recordings import DATA, catalog, files_below, needs_data

pytestmark = [pytest.mark.data, needs_data]

HEADERLESS = {"g722_16k_vm-goodbye.g722", "raw_pcm_16k_headerless.pcm"}
SOUND_IN_SPITE_OF_ALL = {
    "made_UPPER.WAV": 2.429,
    "made_data_size_ffffffff_stream.wav": 2.429,
    "made_data_size_zero_stream.wav": 2.429,
    "made_digital_silence_2s.wav": 2.0,
    "made_m4a_named.wav": 2.66,
    "made_odd_byte_tail.wav": 2.429,
    "made_one_sample.wav": 0.0,
    "made_trailing_garbage.wav": 2.429,
    "made_wav_named.mp3": 2.429,
    "pydub_wrong_extension.aac": 9.66,
    "scipy_test-8000Hz-le-3ch-5S-24bit-inconsistent.wav": 0.0006,
    "tinytag_riff_extra_zero.wav": 0.116,
}


@pytest.mark.parametrize("path", files_below("formats"), ids=lambda path: path.name)
def test_formats_agree_with_the_catalog(path):
    if path.name in HEADERLESS:
        with pytest.raises(AudioError, match="no sound format") as caught:
            decode_mono(path.read_bytes(), path.name)
        assert "convert it to WAV" in caught.value.hint
        return
    facts = catalog()[f"formats/{path.name}"]
    waveform = decode_mono(path.read_bytes(), path.name)
    assert waveform.sample_rate == int(facts["sample_rate"])
    # Lossy codecs pad to whole blocks, and players differ in what they cut off again.
    assert abs(len(waveform.samples) / waveform.sample_rate - float(facts["duration_s"])) < 0.02
    if facts["channels"] == "1" and facts["peak"] and not path.name.endswith((".mp3", ".opus")):
        assert abs(np.abs(waveform.samples).max() - float(facts["peak"])) < 1e-3


@pytest.mark.parametrize("path", files_below("broken"), ids=lambda path: path.name)
def test_broken_files_are_refused_or_whole(path):
    content = path.read_bytes()
    if path.name not in SOUND_IN_SPITE_OF_ALL:
        with pytest.raises(AudioError) as caught:
            decode_mono(content, path.name)
        assert str(caught.value).startswith(path.name)
        assert caught.value.hint
        return
    waveform = decode_mono(content, path.name)
    assert abs(len(waveform.samples) / waveform.sample_rate - SOUND_IN_SPITE_OF_ALL[path.name]) < 0.01


@pytest.mark.parametrize("corpus", ["en_ljspeech", "zh_aishell3_44k", "en_multispeaker", "multi_tuxpaint_ogg"])
def test_trimming_equals_librosa(corpus):
    for path in files_below(f"corpora/{corpus}/wavs")[::3]:
        waveform = decode_mono(path.read_bytes(), path.name)
        for top_db in (20.0, 40.0):
            _, expected = librosa.effects.trim(waveform.samples, top_db=top_db)
            assert find_speech(waveform.samples, waveform.sample_rate, top_db, 0.0) == tuple(expected), path.name


def test_no_real_speech_counts_as_silent():
    quiet = [DATA / "corpora/en_digits_fsdd_8k/wavs" / f"{name}.wav" for name in ("6_theo_3", "6_theo_6", "0_theo_6")]
    for path in quiet:
        waveform = decode_mono(path.read_bytes(), path.name)
        start, end = find_speech(waveform.samples, waveform.sample_rate, 40.0, 0.05)
        assert end - start > 0.1 * waveform.sample_rate
