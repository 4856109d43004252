"""A checkpoint that speaks: found, read, refused by name."""

import io
import os
import pickle
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from dataprep import text as front_end
from schemas.checkpoint import VoiceHeader
from schemas.errors import FormatError, IdentityError, UsageError
from schemas.features import HIFIGAN_22K, MelStatistics
from schemas.symbols import SymbolTable
from trainer.model.acoustic import AcousticModel
from trainer.model.config import ModelConfig
from trainer.model.ema import ExponentialAverage
from trainer.synth.checkpoint import find_checkpoint, read_checkpoint
from trainer.synth.voice import Voice

SYMBOLS = SymbolTable(version=1, symbols=("_", "a", "b", "c"))
SPEAKERS = ("george", "jackson", "theo")
CONFIG = ModelConfig(encoder_channels=8, encoder_blocks=1, decoder_channels=8, decoder_blocks=1, duration_channels=8)


@pytest.fixture(autouse=True)
def letters_for_a_front_end(monkeypatch):
    """Every letter is its own symbol."""
    monkeypatch.setattr(front_end, "SYMBOLS", SYMBOLS, raising=False)
    monkeypatch.setattr(
        front_end, "phonemize", lambda text: SimpleNamespace(ids=tuple(SYMBOLS.encode(text))), raising=False
    )


def make_content(speakers=SPEAKERS, symbols=SYMBOLS):
    torch.manual_seed(0)
    model = AcousticModel(CONFIG, len(symbols.symbols), len(speakers), HIFIGAN_22K.num_mels)
    model.set_mel_statistics([-5.0] * 80, [2.0] * 80)
    average = ExponentialAverage(model, 0.9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1.0
    header = VoiceHeader(
        format="voxloom-voice",
        version=1,
        feature_spec=HIFIGAN_22K,
        symbols=symbols,
        text_frontend="1",
        speakers=speakers,
        languages=("en",),
        mel_statistics=MelStatistics(mean=(-5.0,) * 80, std=(2.0,) * 80),
        index_sha256="0" * 64,
    )
    return {
        "voxloom": header.model_dump(mode="json"),
        "hyper_parameters": {"model": CONFIG.to_dict()},
        "state_dict": {f"model.{name}": value for name, value in model.state_dict().items()},
        "ema": average.state_dict(),
    }


def save(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return path


@pytest.fixture
def checkpoint(tmp_path):
    return save(tmp_path / "run" / "checkpoints" / "last.ckpt", make_content())


def test_speaks_from_the_checkpoint_alone(checkpoint):
    voice = Voice.load(checkpoint.parent.parent)
    samples, sample_rate = voice.say("abc", "theo", num_steps=2)
    assert sample_rate == 22050
    assert samples.dtype == np.float32
    assert len(samples) % 256 == 0
    assert len(samples) >= 7 * 256
    np.testing.assert_array_equal(samples, voice.say("abc", "theo", num_steps=2)[0])
    assert not np.array_equal(samples, voice.say("abc", "theo", num_steps=2, seed=1)[0])


def test_speaks_with_the_averaged_weights(checkpoint):
    content = torch.load(checkpoint, weights_only=True)
    model = Voice.load(checkpoint).model
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, content["ema"]["parameters"][name])
    assert torch.equal(model.mel_mean, torch.full((80,), -5.0))
    assert not model.training


def test_speaks_with_its_weights_where_there_is_no_average(tmp_path):
    content = make_content()
    del content["ema"]
    model = Voice.load(save(tmp_path / "a.ckpt", content)).model
    assert torch.equal(model.speakers.weight, content["state_dict"]["model.speakers.weight"])


def test_unknown_speaker_is_answered_with_the_list(checkpoint):
    with pytest.raises(UsageError, match="no speaker 'teo'") as caught:
        Voice.load(checkpoint).say("a", "teo")
    assert caught.value.hint == "did you mean theo? the speakers are: george, jackson, theo"


def test_speakers_are_listed_in_natural_order(tmp_path):
    voice = Voice.load(save(tmp_path / "a.ckpt", make_content(("p1", "p10", "p2", "x"))))
    with pytest.raises(UsageError) as caught:
        voice.speaker_number("somebody")
    assert caught.value.hint == "the speakers are: p1, p2, p10, x"


@pytest.mark.parametrize(
    ("trained", "language", "unheard"),
    [(["en"], "zh", ("zh",)), (["en"], "mixed", ("zh",)), (["mixed"], "zh", ()), (["en", "zh"], "mixed", ())],
)
def test_languages_never_heard(tmp_path, monkeypatch, trained, language, unheard):
    monkeypatch.setattr(front_end, "phonemize", lambda _: SimpleNamespace(ids=(1,), language=language))
    content = make_content()
    content["voxloom"]["languages"] = trained
    assert Voice.load(save(tmp_path / "a.ckpt", content)).unheard_languages("a") == unheard


def test_the_first_speaker_speaks_where_none_is_named(checkpoint):
    assert Voice.load(checkpoint).speaker_number(None) == 0


def test_another_front_end_with_the_same_symbols_is_told(tmp_path):
    content = make_content()
    content["voxloom"]["text_frontend"] = "0"
    with pytest.warns(UserWarning, match="front end 0"):
        Voice.load(save(tmp_path / "a.ckpt", content))


def test_list_of_many_speakers_is_cut_after_the_nearest(tmp_path):
    speakers = tuple(f"SSB{number:04d}" for number in range(200))
    voice = Voice.load(save(tmp_path / "a.ckpt", make_content(speakers)))
    with pytest.raises(UsageError) as caught:
        voice.say("a", "SSB150")
    assert "SSB0150" in caught.value.hint
    assert caught.value.hint.endswith("and 180 more")


def test_only_speaker_need_not_be_named(tmp_path):
    assert len(Voice.load(save(tmp_path / "a.ckpt", make_content(("default",)))).say("ab")[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_steps": 0}, {"num_steps": 10**9}, {"seed": -1}, {"seed": 2**63}, {"temperature": -1.0},
        {"temperature": float("nan")}, *({"length_scale": value} for value in (0.0, 1e9, float("nan"), float("inf"))),
    ],
    ids=str,
)  # fmt: skip
def test_senseless_numbers_are_refused(checkpoint, wrong):
    with pytest.raises(UsageError, match="must be from"):
        Voice.load(checkpoint).say("a", "theo", **wrong)


def test_other_symbols_are_refused(tmp_path):
    other = SymbolTable(version=1, symbols=("_", "a", "b", "d"))
    with pytest.raises(IdentityError, match="symbol table"):
        Voice.load(save(tmp_path / "a.ckpt", make_content(symbols=other)))


@pytest.mark.parametrize("missing", ["voxloom", "hyper_parameters", "state_dict"])
def test_incomplete_checkpoint_is_refused_by_what_it_lacks(tmp_path, missing):
    content = make_content()
    del content[missing]
    with pytest.raises(FormatError, match=missing):
        Voice.load(save(tmp_path / "a.ckpt", content))


def test_weights_of_another_size_are_refused(tmp_path):
    content = make_content()
    content["hyper_parameters"]["model"]["decoder_channels"] = 16
    with pytest.raises(FormatError, match="do not fit"):
        Voice.load(save(tmp_path / "a.ckpt", content))


class RunsCode:
    def __reduce__(self):
        return (print, ("code ran",))


WAV = io.BytesIO()
soundfile.write(WAV, np.zeros(100, np.float32), 16000, format="WAV")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"PK\x03\x04 no zip", "damaged or cut short"),
        (b"not a checkpoint at all", "another kind"),
        (WAV.getvalue(), "another kind"),
        (pickle.dumps([1]), "another kind"),
        (pickle.dumps(RunsCode()), "another kind"),
    ],
    ids=["empty", "cut", "text", "wav", "pickle", "code"],
)
def test_a_file_of_another_kind_is_refused_in_a_line(tmp_path, content, reason):
    path = tmp_path / "a.ckpt"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=f"cannot be read as a checkpoint: it is .*{reason.removeprefix('it is ')}"):
        Voice.load(path)


@pytest.mark.parametrize("wrong", [RunsCode(), {"a": RunsCode()}], ids=["bare", "inside"])
def test_checkpoint_that_would_run_code_is_refused(tmp_path, capsys, wrong):
    with pytest.raises(FormatError, match=r"other than tensors and plain types$"):
        Voice.load(save(tmp_path / "a.ckpt", wrong))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("wrong", [[1, 2], torch.zeros(3)], ids=["list", "tensor"])
def test_what_is_not_a_mapping_is_not_a_checkpoint(tmp_path, wrong):
    with pytest.raises(FormatError, match=r"is not a checkpoint: it holds a (list|Tensor)"):
        Voice.load(save(tmp_path / "a.ckpt", wrong))


def test_every_cut_and_every_flipped_weight_is_found(checkpoint):
    whole = checkpoint.read_bytes()
    for size in range(1, len(whole), len(whole) // 40):
        checkpoint.write_bytes(whole[:size])
        with pytest.raises(FormatError, match="cannot be read"):
            read_checkpoint(checkpoint)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        inside = [(info.header_offset, info.header_offset + info.compress_size) for info in archive.infolist()]
    start, end = max(inside, key=lambda places: places[1] - places[0])
    for place in range(end - 100, start + 600, -max((end - start - 700) // 20, 1)):
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        checkpoint.write_bytes(flipped)
        with pytest.raises(FormatError, match=r"checksum of .* does not match"):
            read_checkpoint(checkpoint)


def test_any_flipped_byte_is_harmless_or_a_format_error(checkpoint):
    whole, chance = checkpoint.read_bytes(), np.random.default_rng(0)
    wanted = {name: value.clone() for name, value in read_checkpoint(checkpoint)["state_dict"].items()}
    ends = [*range(len(whole) - 400, len(whole)), *range(200), *chance.integers(0, len(whole), 200).tolist()]
    for place in ends:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(chance.integers(8))
        checkpoint.write_bytes(flipped)
        try:
            content = read_checkpoint(checkpoint)
        except FormatError:
            continue
        assert all(torch.equal(value, wanted[name]) for name, value in content["state_dict"].items())


@pytest.mark.parametrize("part", ["state_dict", "ema"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path, part, value):
    content = make_content()
    weights = content["state_dict"] if part == "state_dict" else content["ema"]["parameters"]
    name = next(name for name in weights if name.endswith("speakers.weight"))
    weights[name] = weights[name].clone()
    weights[name][0, 0] = value
    with pytest.raises(FormatError, match=rf"weights are not finite: {name} in {part}"):
        Voice.load(save(tmp_path / "a.ckpt", content))


def test_last_checkpoint_wins_then_the_newest(tmp_path):
    older, newer = (save(tmp_path / "checkpoints" / name, {}) for name in ("step=9.ckpt", "step=10.ckpt"))
    os.utime(older, (100, 100))
    os.utime(newer, (200, 200))
    assert find_checkpoint(tmp_path) == newer
    last = save(tmp_path / "checkpoints" / "last.ckpt", {})
    os.utime(last, (50, 50))
    assert find_checkpoint(tmp_path) == last
    assert find_checkpoint(older) == older


def test_nothing_to_speak_with(tmp_path):
    with pytest.raises(UsageError, match="is not a run of `trainer fit`"):
        find_checkpoint(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(UsageError, match="no checkpoint in this folder"):
        find_checkpoint(tmp_path)
    with pytest.raises(UsageError, match="no such checkpoint"):
        find_checkpoint(tmp_path / "absent")
