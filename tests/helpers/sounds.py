"""Made sounds and the files that hold them, in memory."""

import io

import numpy as np
import soundfile


def tone(hz, seconds, sample_rate, amplitude=0.5):
    """A sine, float32 [num_samples]."""
    times = np.arange(round(seconds * sample_rate)) / sample_rate
    return (amplitude * np.sin(2 * np.pi * hz * times)).astype(np.float32)


def as_file(samples, sample_rate, container="WAV", subtype="PCM_16"):
    """The bytes of a file that holds `samples` ([num_samples] or [num_samples, channels])."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, sample_rate, format=container, subtype=subtype)
    return buffer.getvalue()


def pitch_hz(samples, sample_rate):
    """Frequency of the strongest bin of the spectrum, refined by a parabola through its neighbours."""
    spectrum = np.log(np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) + 1e-12)
    peak = int(spectrum[1:-1].argmax()) + 1
    left, middle, right = spectrum[peak - 1 : peak + 2]
    shift = 0.5 * (left - right) / (left - 2 * middle + right)
    return (peak + shift) * sample_rate / len(samples)
