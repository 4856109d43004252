"""Damaged recordings: an AudioError that says what was found and what to do, never half a recording."""

import contextlib
import io
import pickle
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.audio import decode_mono
from schemas.errors import AudioError, NonFiniteError
from tests.helpers.sounds import as_file, tone

WAV = as_file(tone(300, 1.0, 16000), 16000)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "a web page"),
        (b"\n  <html>gone</html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "a Git LFS pointer"),
        (b"../elsewhere/clip.wav", "symbolic link"),
        ("你好世界。\n".encode() * 200, "text that begins"),
        (b"PK\x03\x04" + bytes(40), "a ZIP archive"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "a PNG image"),
        (WAV[:30], "a WAV file whose header is damaged"),
        (WAV[:44], "no samples|cut short"),
        (bytes(1000), "no sound format that is known"),
    ],
)
def test_the_message_says_what_it_seems_to_be(content, found):
    with pytest.raises(AudioError, match=found) as caught:
        decode_mono(content, "clip.wav")
    assert caught.value.path == "clip.wav"
    assert caught.value.hint


@pytest.mark.parametrize(
    "container", ["WAV", "WAVEX", "AIFF", "AU", "RF64", "W64", "NIST", "FLAC", "OGG", "CAF", "OPUS", "MP3"]
)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.85])
def test_a_cut_file_is_refused(container, share):
    subtype = {"OGG": "VORBIS", "OPUS": "OPUS", "MP3": "MPEG_LAYER_III"}.get(container, "PCM_16")
    noise = 0.3 * np.random.default_rng(1).standard_normal(32000)
    content = as_file(noise, 16000, "OGG" if container == "OPUS" else container, subtype)
    assert len(decode_mono(content, "x").samples) == 32000
    with pytest.raises(AudioError, match=r"cut short|damaged"):
        decode_mono(content[: int(len(content) * share)], "x")


@pytest.mark.parametrize("stated_bytes", [0, 0xFFFFFFFF, 0x7FFFFFFF - 36])
def test_a_stream_that_states_no_length_is_whole(stated_bytes):
    place = WAV.index(b"data") + 4
    content = WAV[:place] + struct.pack("<I", stated_bytes) + WAV[place + 4 :]
    np.testing.assert_array_equal(decode_mono(content, "x").samples, decode_mono(WAV, "x").samples)


def test_bytes_after_the_samples_do_not_matter():
    for tail in (b"\0", b"junk at the end", bytes(999)):
        np.testing.assert_array_equal(decode_mono(WAV + tail, "x").samples, decode_mono(WAV, "x").samples)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_finite_are_refused(value):
    samples = tone(300, 0.5, 16000)
    samples[7] = value
    with pytest.raises(NonFiniteError, match="1 of 8000 samples"):
        decode_mono(as_file(samples, 16000, subtype="FLOAT"), "x")


def test_integers_stored_as_floats_are_refused():
    with pytest.raises(AudioError, match="times full scale"):
        decode_mono(as_file(tone(300, 0.5, 16000) * 32768, 16000, subtype="FLOAT"), "x")


@pytest.mark.parametrize(("sample_rate", "is_good"), [(3999, False), (4000, True), (384000, True), (384001, False)])
def test_the_sample_rate_must_be_plausible(sample_rate, is_good):
    content = as_file(tone(100, 0.1, 8000), sample_rate)
    if is_good:
        assert decode_mono(content, "x").sample_rate == sample_rate
    else:
        with pytest.raises(AudioError, match=f"states {sample_rate} samples per second; 4000 to 384000"):
            decode_mono(content, "x")


def test_a_header_that_promises_hours_is_refused_at_once():
    # STREAMINFO's 36-bit count of samples, set to its largest value.
    content = bytearray(as_file(tone(300, 0.5, 16000), 16000, "FLAC"))
    content[8 + 13] |= 0x0F
    content[8 + 14 : 8 + 18] = b"\xff" * 4
    assert soundfile.info(io.BytesIO(bytes(content))).frames > 1 << 35
    with pytest.raises(AudioError, match="at most 134217728 are read"):
        decode_mono(bytes(content), "x")


def test_the_error_survives_the_way_from_a_worker():
    with pytest.raises(AudioError) as caught:
        decode_mono(b"", "clip.wav")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.hint, again.path) == (str(caught.value), caught.value.hint, "clip.wav")


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, 60), value=st.integers(0, 255), cut=st.integers(40, len(WAV)))
def test_a_flipped_byte_or_a_cut_never_crashes(place, value, cut):
    content = bytearray(WAV)
    content[place] = value
    with contextlib.suppress(AudioError):
        assert 0 < len(decode_mono(bytes(content[:cut]), "x").samples) <= 32000


@pytest.mark.filterwarnings("error")
def test_overflow_in_a_channel_mix_is_only_a_refusal():
    stereo = np.full((1000, 2), np.float32(3e38))
    for samples in (stereo, np.array([[np.inf, -np.inf]] * 1000, np.float32)):
        with pytest.raises(AudioError):
            decode_mono(as_file(samples, 16000, subtype="FLOAT"), "x")
