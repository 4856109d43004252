"""What a checkpoint says of the data it was trained on, and whether a run may go on from it."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.checkpoint import VoiceHeader
from schemas.errors import IdentityError, UsageError
from schemas.shards import ShardManifest
from trainer.model.config import ModelConfig


def header_of(manifest: ShardManifest) -> VoiceHeader:
    """What a checkpoint says of the data it was trained on.

    Raises:
        UsageError: there are no mel statistics, since there is no training split.
    """
    if manifest.mel_statistics is None:
        raise UsageError("the training split is empty", hint="prepare more recordings")
    return VoiceHeader(
        feature_spec=manifest.feature_spec,
        symbols=manifest.symbols,
        text_frontend=manifest.text_frontend,
        speakers=manifest.speakers,
        languages=manifest.languages,
        mel_statistics=manifest.mel_statistics,
        index_sha256=manifest.index.sha256,
    )


def require_same_voice(here: VoiceHeader, there: VoiceHeader, model: ModelConfig, stored: Mapping[str, object]) -> None:
    """Checks that a checkpoint fits this run.

    Args:
        here: header of this run.
        there: header of the checkpoint.
        model: sizes of this run's model.
        stored: sizes of the checkpoint's model, by name.

    Raises:
        IdentityError: it has other symbols, mels, speakers or model sizes; the message names them.
    """
    here.symbols.require_same(there.symbols, "the shard set", "the checkpoint")
    for name, told in (("feature_spec", "feature spec"), ("speakers", "speakers")):
        mine, theirs = getattr(here, name), getattr(there, name)
        if mine != theirs:
            raise IdentityError(
                f"the {told} of the checkpoint is {theirs}, that of the shard set {mine}",
                hint="resume with the shard set of that run, or start a new run without --ckpt_path",
            )
    differing = [name for name, value in model.to_dict().items() if stored.get(name) != value]
    if differing:
        raise IdentityError(
            "the checkpoint's model has other settings: "
            + ", ".join(f"{name} {stored.get(name)} (here {getattr(model, name)})" for name in differing),
            hint="give the --config of that run (config.yaml in its folder)",
        )
