import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.__main__ import DESCRIBED, generated
from schemas.base import VersionedFile
from schemas.errors import FormatError, IdentityError, TextError, UsageError, VoxloomError
from schemas.features import HIFIGAN_22K
from schemas.symbols import SymbolTable
from schemas.units import samples_to_frames, seconds_to_samples


def test_committed_json_schemas_are_those_of_the_models():
    for path, content in generated().items():
        assert path.read_bytes() == content, f"{path.name} differs: python -m schemas"


def test_every_field_is_described():
    for model in DESCRIBED.values():
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"


@given(st.integers(0, 10**9), st.sampled_from([8000, 16000, 22050, 24000, 44100, 48000]))
def test_whole_samples_survive_the_way_through_seconds(num_samples, rate):
    assert seconds_to_samples(num_samples / rate, rate) == num_samples


@given(st.integers(0, 10**9), st.integers(1, 4096))
def test_frames_are_whole_hops(num_samples, hop):
    frames = samples_to_frames(num_samples, hop)
    assert frames * hop <= num_samples < (frames + 1) * hop


def test_an_error_survives_the_trip_from_a_worker():
    error = pickle.loads(pickle.dumps(FormatError("bad", hint="mend", path="a/b.tar", line=3)))
    assert (str(error), error.hint, error.exit_status) == ("a/b.tar:3: bad", "mend", 1)
    assert UsageError("x").exit_status == 2
    assert isinstance(error, VoxloomError)


def test_a_file_of_another_version_is_refused_by_name(tmp_path):
    manifest_class = next(model for name, model in DESCRIBED.items() if name == "shards")
    assert issubclass(manifest_class, VersionedFile)
    path = tmp_path / "shards.json"
    path.write_text('{"format": "voxloom-shards", "version": 99}')
    with pytest.raises(FormatError, match="version 99") as caught:
        manifest_class.read(path)
    assert "reads 'voxloom-shards' version 1" in str(caught.value)
    path.write_text('{"format": "voxloom-shards", "version": 1, "surprise": 1}')
    with pytest.raises(FormatError, match="field"):
        manifest_class.read(path)
    path.write_text("[1, 2")
    with pytest.raises(FormatError, match="JSON"):
        manifest_class.read(path)


def test_equal_records_have_equal_digests_and_any_change_shows():
    assert HIFIGAN_22K.digest() == HIFIGAN_22K.model_copy().digest()
    for name, value in (("sample_rate", 24000), ("fmax_hz", 7999.0), ("hop_length", 255), ("log_floor", 2e-5)):
        assert HIFIGAN_22K.model_copy(update={name: value}).digest() != HIFIGAN_22K.digest()


def test_symbols_encode_and_refuse():
    table = SymbolTable(version=1, symbols=("_", "a", "b"))
    assert table.encode(["b", "a"]) == [2, 1]
    with pytest.raises(TextError, match="'c'"):
        table.encode(["c"])
    with pytest.raises(IdentityError):
        table.require_same(SymbolTable(version=2, symbols=("_", "a")), "the shards", "this program")
