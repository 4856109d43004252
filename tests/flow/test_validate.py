"""Validation finds what was damaged, says where, and says so in each form."""

import json
import shutil
from xml.etree import ElementTree

import pytest

from tests.helpers.corpora import make_corpus, tool


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    corpus = make_corpus(tmp_path_factory.mktemp("validate"), 24)
    tool("dataprep", "ingest", "wavs", cwd=corpus)
    tool("dataprep", "shard", cwd=corpus)
    tool("dataprep", "shard", "--format", "parquet", "--out", "shards-parquet", cwd=corpus)
    return corpus


@pytest.mark.parametrize("folder", ["prepared", "shards", "shards-parquet"])
def test_what_we_write_is_valid(sound, folder):
    assert tool("dataprep", "validate", folder, cwd=sound).stdout.strip().endswith("24 utterances: valid")


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def first(folder, pattern):
    return sorted(folder.glob(pattern))[0]


DAMAGES = {
    "a flipped bit in a part": ("prepared", lambda folder: flip(first(folder, "parts/*"), 300), "SHA-256"),
    "a part cut short": ("prepared", lambda folder: first(folder, "parts/*").write_bytes(b"PAR1"), "bytes"),
    "a part gone": ("prepared", lambda folder: first(folder, "parts/*").unlink(), "missing"),
    "a part too many": ("prepared", lambda folder: (folder / "parts/part-x.parquet").touch(), "no manifest names"),
    "drops gone": ("prepared", lambda folder: (folder / "drops.parquet").unlink(), "missing"),
    "a flipped bit in a tar": ("shards", lambda folder: flip(first(folder, "train*"), 5000), "SHA-256"),
    "a tar gone": ("shards", lambda folder: first(folder, "train*").unlink(), "missing"),
    "a flipped bit in the index": ("shards", lambda folder: flip(folder / "index.arrow", 3000), "SHA-256"),
    "an index cut short": ("shards", lambda folder: (folder / "index.arrow").write_bytes(b"ARROW1"), "index"),
    "a manifest that is not JSON": ("shards", lambda folder: (folder / "shards.json").write_text("{"), "JSON"),
    "a flipped bit in Parquet": ("shards-parquet", lambda folder: flip(first(folder, "train*"), 5000), "SHA-256"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(sound, tmp_path, damage):
    folder, do, expected = DAMAGES[damage]
    shutil.copytree(sound / folder, tmp_path / folder)
    do(tmp_path / folder)
    done = tool("dataprep", "validate", folder, "--workers", 1, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert expected in done.stdout
    assert "Traceback" not in done.stderr


def test_numbers_that_lie_are_found(sound, tmp_path):
    shutil.copytree(sound / "prepared", tmp_path / "prepared")
    path = tmp_path / "prepared/dataset.json"
    manifest = json.loads(path.read_text())
    manifest["counts"]["utterances"] += 1
    manifest["fingerprint"] = "0" * 64
    path.write_text(json.dumps(manifest))
    done = tool("dataprep", "validate", "prepared", "--format", "json", cwd=tmp_path, check=False)
    found = json.loads(done.stdout)
    assert (done.returncode, found["valid"]) == (1, False)
    assert {"counts.utterances", "fingerprint"} <= {finding["message"].split(" ")[0] for finding in found["findings"]}


def test_the_forms_of_a_finding(sound, tmp_path):
    shutil.copytree(sound / "shards", tmp_path / "shards")
    flip(first(tmp_path / "shards", "train*"), 5000)
    run = {
        form: tool("dataprep", "validate", "shards", "--format", form, cwd=tmp_path, check=False).stdout
        for form in ("junit", "github")
    }
    suite = ElementTree.fromstring(run["junit"])
    assert (suite.get("failures"), len(suite.findall("testcase"))) == ("1", 2)
    assert suite.find("testcase/failure") is not None
    assert run["github"].startswith("::error file=shards/train-000000.tar,title=")
    good = ElementTree.fromstring(tool("dataprep", "validate", "shards", "--format", "junit", cwd=sound).stdout)
    assert (good.get("failures"), len(good.findall("testcase"))) == ("0", 1)


def test_a_folder_that_is_no_data_set(tmp_path):
    done = tool("dataprep", "validate", ".", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "dataset.json" in done.stderr


def test_inspect(sound, tmp_path):
    shown = tool("dataprep", "inspect", "shards", "u0000", "--plot", tmp_path / "u.png", cwd=sound).stdout
    assert "n i3 h ao3 sh i4 j ie4" in shown
    assert (tmp_path / "u.png").read_bytes().startswith(b"\x89PNG")
    assert "你好世界" in tool("dataprep", "inspect", "prepared", "u0000", cwd=sound).stdout
    assert "utterances" in tool("dataprep", "inspect", "shards", cwd=sound).stdout
    missing = tool("dataprep", "inspect", "shards", "u00x0", cwd=sound, check=False)
    assert missing.returncode == 2
    assert "u00x0" in missing.stderr
    assert "some that there are: u00" in missing.stderr
