"""The command `dataprep`: options and help only; nothing heavy is imported before a command runs."""

from __future__ import annotations

from pathlib import Path

import click

from dataprep.console import reporting_errors
from dataprep.options import Place, Shares, Size

FOLDER = Place()
WORKERS = click.option(
    "--workers", type=click.IntRange(0), default=0, show_default="one a core", help="Local processes."
)
# The docstrings below are not raw: click takes the control character \b as "do not wrap this paragraph".

SCHEDULER = click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler to run on, such as tcp://host:8786.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="voxloom")
def main() -> None:
    """From a folder of recordings and transcripts to clean, validated, length-indexed shards.

    \b
    dataprep ingest ./wavs --sr 22050      # -> ./prepared
    dataprep shard --format webdataset     # ./prepared -> ./shards
    dataprep validate shards/              # schemas, checksums, counts; exit status for CI
    trainer fit shards/                    # -> ./runs/<time>
    """  # noqa: D301


@main.command(short_help="Recordings and transcripts -> ./prepared.")
@click.argument("source", type=FOLDER)
@click.option("--out", type=FOLDER, default=Path("prepared"), show_default=True, help="Folder to write.")
@click.option(
    "--sr",
    "sample_rate",
    type=click.IntRange(8000, 192000),
    default=22050,
    show_default=True,
    help="Sample rate, Hz; the mel preset you will shard with fixes it.",
)
@click.option(
    "--metadata",
    type=FOLDER,
    help="Table of path|text or path|text|speaker. Default: metadata.csv in, beside or above SOURCE.",
)
@click.option("--delimiter", default="|", show_default=True, help="What separates its columns.")
@click.option("--trim/--no-trim", default=True, show_default=True, help="Remove silence at both ends.")
@click.option(
    "--trim-db",
    type=click.FloatRange(1),
    default=40.0,
    show_default=True,
    help="Silence: so far below the loudest, dB.",
)
@click.option(
    "--trim-margin",
    type=click.FloatRange(0),
    default=0.05,
    show_default=True,
    help="Silence left at each end, seconds.",
)
@click.option(
    "--split", type=Shares(), default="0.9,0.05,0.05", show_default=True, help="Shares of train, validation, test."
)
@click.option(
    "--split-by",
    type=click.Choice(["id", "speaker"]),
    default="id",
    show_default=True,
    help="What is hashed into a split.",
)
@click.option(
    "--min-duration", type=click.FloatRange(0.02), default=0.1, show_default=True, help="Shortest kept, seconds."
)
@click.option(
    "--max-duration", type=click.FloatRange(0.02), default=60.0, show_default=True, help="Longest kept, seconds."
)
@click.option(
    "--phonemes/--no-phonemes",
    default=True,
    show_default=True,
    help="Drop texts that cannot be spoken, or keep them without phonemes.",
)
@click.option(
    "--max-drop-share",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="More drops than this share fail the run.",
)
@WORKERS
@SCHEDULER
@reporting_errors
def ingest(
    source: Path, out: Path, sample_rate: int, metadata: Path | None, delimiter: str, trim: bool, trim_db: float,
    trim_margin: float, split: tuple[float, float, float], split_by: str, min_duration: float, max_duration: float,
    phonemes: bool, max_drop_share: float, workers: int, scheduler: str | None,
) -> None:  # fmt: skip
    """Prepare the recordings in SOURCE: decode, mix to mono, resample, trim, and turn their texts into phonemes.

    Transcripts come from metadata.csv (`path|text` or `path|text|speaker`, with or without a header), or from a .txt,
    .lab or .normalized.txt beside each recording. Every row ends as an utterance or as a listed drop. A second run
    does only what is new or changed.

    \b
    dataprep ingest ./wavs
    dataprep ingest corpus/ --out prepared-raw --split 0.8,0.1,0.1 --workers 8 --no-trim
    """  # noqa: D301
    from dataprep.commands import ingest as command
    from dataprep.commands.summary import print_ingest
    from dataprep.engine import Workers
    from schemas.config import ingest_config

    config = ingest_config(
        sample_rate=sample_rate, trim=trim, trim_top_db=trim_db, trim_margin_seconds=trim_margin, split_shares=split,
        split_by=split_by, min_duration_seconds=min_duration, max_duration_seconds=max_duration, phonemes=phonemes,
    )  # fmt: skip
    outcome = command.ingest(
        source, metadata, delimiter, config, out, max_drop_share, Workers(number=workers, scheduler=scheduler)
    )
    print_ingest(outcome, out)


@main.command(short_help="./prepared -> ./shards: mels and an index.")
@click.argument("prepared", type=FOLDER, default=Path("prepared"))
@click.option("--out", type=FOLDER, default=Path("shards"), show_default=True, help="Folder to write.")
@click.option(
    "--format",
    "container",
    type=click.Choice(["webdataset", "parquet"]),
    default="webdataset",
    show_default=True,
    help="Tar or Parquet.",
)
@click.option(
    "--preset",
    default="hifigan-22k",
    show_default=True,
    help="Mel settings, named after the vocoder they match; so far hifigan-22k.",
)
@click.option(
    "--mel-dtype",
    type=click.Choice(["float32", "float16", "none"]),
    default="float32",
    show_default=True,
    help="Numbers of the stored mels; none stores no mels, and training computes them from the recordings.",
)
@click.option("--shard-size", type=Size(), default="256M", show_default=True, help="Largest shard: bytes, or 256M, 1G.")
@WORKERS
@SCHEDULER
@reporting_errors
def shard(
    prepared: Path,
    out: Path,
    container: str,
    preset: str,
    mel_dtype: str,
    shard_size: int,
    workers: int,
    scheduler: str | None,
) -> None:
    """Compute mels of the PREPARED data set (default: ./prepared) and write shards with an index of lengths.

    \b
    dataprep shard
    dataprep shard prepared --out shards-parquet --format parquet --shard-size 1G
    """  # noqa: D301
    from dataprep.commands import shard as command
    from dataprep.commands.summary import print_shard
    from dataprep.engine import Workers

    options = command.shard_options(container, preset, mel_dtype, shard_size)
    print_shard(command.shard(prepared, out, options, Workers(number=workers, scheduler=scheduler)), out)


@main.command(short_help="Check schemas, hashes, counts, lengths.")
@click.argument("path", type=FOLDER)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "junit", "github"]),
    default="text",
    show_default=True,
    help="Form of the findings.",
)
@WORKERS
@reporting_errors
def validate(path: Path, form: str, workers: int) -> None:
    """Check every schema, hash, count, offset and length of the prepared or sharded data set at PATH.

    Exit status 0 where all is well, 1 where anything is not.

    \b
    dataprep validate shards/
    dataprep validate prepared/ --format junit > report.xml
    """  # noqa: D301
    from dataprep.commands.validate import validate as command
    from dataprep.engine import Workers
    from dataprep.validate.findings import formatted

    verdict = command(path, Workers(number=workers))
    click.echo(formatted(verdict, form))  # type: ignore[arg-type]  # click checked the choice
    raise SystemExit(1 if verdict.findings else 0)


@main.command(short_help="Show an utterance, or a set as a whole.")
@click.argument("path", type=FOLDER)
@click.argument("key", required=False)
@click.option("--plot", "plot_file", type=FOLDER, help="Draw waveform and mel to this PNG.")
@reporting_errors
def inspect(path: Path, key: str | None, plot_file: Path | None) -> None:
    """Show the utterance KEY of the data set at PATH: text, phonemes, lengths. Without KEY: the set as a whole.

    KEY is a key of the shards or an id of the prepared set; without it some of them are listed.

    \b
    dataprep inspect shards/
    dataprep inspect shards/ LJ001-0001 --plot utterance.png
    """  # noqa: D301
    from dataprep.commands import inspect as command
    from dataprep.commands.summary import print_view

    view = command.inspect(path, key)
    print_view(view)
    if plot_file is not None:
        command.plot(view, plot_file)
        click.echo(f"drawn: {plot_file}")
