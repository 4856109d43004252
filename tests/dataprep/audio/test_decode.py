"""Decoding: exact where the encoding is exact, one channel whatever came, content before name."""

import io

import av
import numpy as np
import pytest
import soundfile

from dataprep.audio import decode_mono, resample
from schemas.errors import AudioError
from tests.helpers.sounds import as_file, pitch_hz, tone

RNG = np.random.default_rng


@pytest.mark.parametrize("container", ["WAV", "FLAC", "AIFF", "AU", "CAF", "RF64", "W64"])
@pytest.mark.parametrize(("subtype", "bits"), [("PCM_16", 16), ("PCM_24", 24)])
def test_whole_numbers_come_back_exactly(container, subtype, bits):
    full = 1 << (bits - 1)
    whole = RNG(1).integers(-full, full, 3000)
    whole[:2] = -full, full - 1
    waveform = decode_mono(as_file((whole << (32 - bits)).astype(np.int32), 22050, container, subtype), "x")
    assert waveform.samples.dtype == np.float32
    assert waveform.sample_rate == 22050
    np.testing.assert_array_equal(waveform.samples, whole / full)


@pytest.mark.parametrize(("container", "subtype"), [("WAV", "PCM_U8"), ("AIFF", "PCM_S8"), ("AU", "PCM_S8")])
def test_eight_bits_come_back_exactly(container, subtype):
    whole = np.arange(-128, 128)
    content = as_file((whole << 24).astype(np.int32), 16000, container, subtype)
    np.testing.assert_array_equal(decode_mono(content, "x").samples, whole / 128)


def test_32_bits_come_back_to_the_precision_of_float32():
    whole = RNG(2).integers(-(1 << 31), 1 << 31, 3000)
    content = as_file(whole.astype(np.int32), 48000, "WAV", "PCM_32")
    np.testing.assert_array_equal(decode_mono(content, "x").samples, (whole / 2**31).astype(np.float32))


@pytest.mark.parametrize("subtype", ["FLOAT", "DOUBLE"])
def test_floats_come_back_exactly_even_beyond_full_scale(subtype):
    samples = (3 * RNG(3).standard_normal(2000)).astype(np.float32)
    waveform = decode_mono(as_file(samples, 24000, "WAV", subtype), "x")
    np.testing.assert_array_equal(waveform.samples, samples)
    assert waveform.clipped_share == np.mean(np.abs(samples) >= 32767 / 32768)


@pytest.mark.parametrize("subtype", ["ULAW", "ALAW"])
def test_companded_encodings_equal_libsndfile(subtype):
    content = as_file(tone(300, 0.2, 8000), 8000, "WAV", subtype)
    expected, _ = soundfile.read(io.BytesIO(content), dtype="float32")
    np.testing.assert_array_equal(decode_mono(content, "x").samples, expected)


@pytest.mark.parametrize("num_channels", [2, 3, 6])
@pytest.mark.parametrize(("subtype", "tolerance"), [("PCM_16", 6e-8), ("FLOAT", 2e-7)])
def test_channels_are_averaged(num_channels, subtype, tolerance):
    samples = RNG(4).uniform(-1, 1, (300_000, num_channels)).astype(np.float32)
    content = as_file(samples, 44100, "WAV", subtype)
    stored, _ = soundfile.read(io.BytesIO(content), dtype="float64")
    waveform = decode_mono(content, "x")
    np.testing.assert_allclose(waveform.samples, stored.mean(axis=1), rtol=0, atol=tolerance)


def test_clipped_samples_are_counted_over_all_channels():
    whole = np.zeros((1000, 2), np.int16)
    whole[:30, 0], whole[:10, 1] = 32767, -32768
    assert decode_mono(as_file(whole, 16000), "x").clipped_share == 40 / 2000
    assert decode_mono(as_file(np.full(100, 32766, np.int16), 16000), "x").clipped_share == 0


@pytest.mark.parametrize(("from_hz", "to_hz"), [(8000, 22050), (44100, 22050), (48000, 22050), (24000, 16000)])
def test_a_tone_keeps_its_pitch_length_and_level(from_hz, to_hz):
    stereo = np.repeat(tone(440, 1.5, from_hz)[:, None], 2, axis=1)
    waveform = decode_mono(as_file(stereo, from_hz), "x")
    samples = resample(waveform.samples, waveform.sample_rate, to_hz)
    assert len(samples) == 1.5 * to_hz
    assert abs(pitch_hz(samples, to_hz) - 440) < 0.05
    assert abs(np.abs(samples[to_hz // 2 : to_hz]).max() - 0.5) < 1e-3


@pytest.mark.parametrize(
    ("container", "codec", "sample_format"),
    [("mp4", "aac", "fltp"), ("webm", "libopus", "flt"), ("adts", "aac", "fltp"), ("mp4", "alac", "s16p")],
)
def test_what_libsndfile_cannot_open_is_decoded(container, codec, sample_format):
    content = _encode_with_av(tone(440, 2.0, 48000), 48000, container, codec, sample_format)
    waveform = decode_mono(content, "named.wav")
    assert waveform.sample_rate == 48000
    assert abs(len(waveform.samples) / 48000 - 2.0) < 0.06  # a lossy codec pads to whole blocks
    assert abs(pitch_hz(waveform.samples[4800:86400], 48000) - 440) < 0.1


def test_a_title_that_is_not_utf8_does_not_matter():
    content = _encode_with_av(tone(440, 0.5, 48000), 48000, "mp4", "aac", "fltp", title="title")
    place = content.index(b"title")
    latin = content[:place] + "t\u00eftle".encode("latin-1") + content[place + 5 :]
    np.testing.assert_array_equal(decode_mono(latin, "x").samples, decode_mono(content, "x").samples)


def test_the_name_decides_nothing():
    content = as_file(tone(200, 0.1, 16000), 16000, "FLAC")
    expected = decode_mono(content, "a.flac").samples
    for name in ("a.wav", "a.mp3", "a.m4a", "a", "a.raw"):
        np.testing.assert_array_equal(decode_mono(content, name).samples, expected)


def test_a_play_list_is_never_followed(tmp_path):
    secret = tmp_path / "other.wav"
    secret.write_bytes(as_file(tone(200, 0.1, 16000), 16000))
    for script in (
        f"ffconcat version 1.0\nfile {secret.name}\n",
        f"#EXTM3U\n#EXTINF:1,\nfile://{secret}\n#EXT-X-ENDLIST",
    ):
        with pytest.raises(AudioError, match="text that begins"):
            decode_mono(script.encode(), "list.wav")


def _encode_with_av(samples, sample_rate, container, codec, sample_format, title=""):
    buffer = io.BytesIO()
    with av.open(buffer, mode="w", format=container) as output:
        if title:
            output.metadata["title"] = title
        stream = output.add_stream(codec, rate=sample_rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None, :], format="fltp", layout="mono")
        frame.sample_rate = sample_rate
        size = stream.codec_context.frame_size or 1024
        resampler = av.AudioResampler(format=sample_format, layout="mono", rate=sample_rate, frame_size=size)
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            output.mux(stream.encode(piece))
        output.mux(stream.encode(None))
    return buffer.getvalue()
