"""Sound in and out: plain functions on float32 arrays `[num_samples]`, 1.0 = full scale."""

from dataprep.audio.decode import decode_mono
from dataprep.audio.flac import decode_flac, encode_flac
from dataprep.audio.measure import measure
from dataprep.audio.resample import resample
from dataprep.audio.trim import find_speech
from dataprep.audio.waveform import Waveform

__all__ = ["Waveform", "decode_flac", "decode_mono", "encode_flac", "find_speech", "measure", "resample"]
