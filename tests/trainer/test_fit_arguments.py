import json

import pytest

from schemas.errors import UsageError
from trainer.commands.fit_arguments import FitArguments


def test_one_shard_set_and_options_as_they_are():
    given = FitArguments.of(["shards/", "--config", "tiny", "--trainer.max_steps", "6", "-c=base"])
    assert given.shards_option == ("--data.shards", "shards/")
    assert given.configs == ("tiny", "base")
    assert given.rest == ("--trainer.max_steps", "6")
    assert (given.checkpoint, given.audit, given.probe) == (None, False, False)


def test_several_shard_sets_and_locations_stay_as_they_were_given():
    given = FitArguments.of(["a b/", "s3://bucket/x", "普/", "--probe", "--audit"])
    name, value = given.shards_option
    assert name == "--data.shards"
    assert json.loads(value) == ["a b/", "s3://bucket/x", "普/"]
    assert given.location == "a b/ s3://bucket/x 普/"
    assert given.probe
    assert given.audit
    assert given.rest == ()


def test_reset_data_is_an_option_of_the_data():
    given = FitArguments.of(["x", "--reset-data", "--ckpt_path", "a", "--ckpt_path=b"])
    assert given.rest == ("--data.reset_data", "true")
    assert given.checkpoint == "b"


@pytest.mark.parametrize("arguments", [[], ["--probe"], ["x", "--config"], ["x", "--ckpt_path="]])
def test_what_lacks_is_told(arguments):
    with pytest.raises(UsageError, match=r"no shard set|needs a value"):
        FitArguments.of(arguments)
