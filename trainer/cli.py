"""The command `trainer`: options and help only; nothing heavy is imported before a command runs."""

from __future__ import annotations

from pathlib import Path

import click

from dataprep.console import reporting_errors
from dataprep.options import Numbers

FOLDER = click.Path(path_type=Path)
SEED = click.IntRange(0, 2**63 - 1)

# The docstrings below are not raw: click takes the control character \b as "do not wrap this paragraph".


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="voxloom")
def main() -> None:
    """From shards to a voice: plan an epoch, train the flow-matching model, speak.

    \b
    trainer plan shards/                                        # what an epoch will be
    trainer fit shards/                                         # -> ./runs/<time>
    trainer synthesize runs/<time> --text "Hello." --out hello.wav
    """  # noqa: D301


@main.command()
@click.argument("shards", nargs=-1, metavar="SHARDS...")
@click.option("--config", metavar="NAME|FILE", help="Whose limits to take. Default: what `trainer fit` would take.")
@click.option("--ranks", type=click.IntRange(1), help="GPUs x accumulations. Default: what `trainer fit` would take.")
@click.option("--max-frames", type=click.IntRange(1), help="Padded frames of a micro-batch.")
@click.option("--max-symbols", type=click.IntRange(1), help="Padded symbols of a micro-batch.")
@click.option("--max-batch-size", type=click.IntRange(1), help="Utterances of a micro-batch.")
@click.option("--overlong", type=click.Choice(["own-batch", "error", "drop"]), help="What to do with the overlong.")
@click.option("--quadratic", type=click.FloatRange(0), help="Cost of a frame for each frame of its utterance.")
@click.option("--fixed", type=click.FloatRange(0), help="Cost of any micro-batch in frames, for the waiting.")
@click.option("--jitter", type=click.FloatRange(0, 1, max_open=True), help="How far lengths are mixed.")
@click.option("--length-classes", type=click.IntRange(1), help="Length classes of a step.")
@click.option("--window", type=click.IntRange(1), help="Utterances sorted together, in whole shards.")
@click.option("--weights", type=Numbers(), help="Of several sets, how often an epoch takes each utterance.")
@click.option("--temperature", type=click.FloatRange(1), help="Instead: 1 takes all once, more evens the sets out.")
@click.option("--seed", type=SEED, help="Seed of the order.")
@click.option("--epoch", type=click.IntRange(0), default=0, show_default=True, help="Which epoch.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
@click.option(
    "--plot", type=click.Path(path_type=Path), is_flag=False, flag_value=Path("plan.png"), metavar="[FILE]",
    help="Draw the micro-batches: .png, .svg or .pdf. FILE is plan.png where not given.",
)  # fmt: skip
@reporting_errors
def plan(
    shards: tuple[str, ...], config: str | None, ranks: int | None, epoch: int, as_json: bool, plot: Path | None,
    **given: float | str | tuple[float, ...] | None,
) -> None:  # fmt: skip
    """Show what an epoch on SHARDS will be: steps, padding, waiting, lengths, the largest batches, the overlong.

    SHARDS are one or more shard sets: folders, or locations such as s3://bucket/shards. They may be left out where the
    configuration names them, as the `config.yaml` of a run does.

    \b
    trainer plan shards/ --ranks 8 --max-frames 24000
    trainer plan mandarin/ english/ --temperature 2 --plot plan.png
    """  # noqa: D301
    from trainer.commands.data_config import data_config
    from trainer.commands.plan import plan_json, view_plan
    from trainer.commands.plan_next import fit_command
    from trainer.commands.plan_plot import draw_plan, picture_kind
    from trainer.commands.plan_print import print_plan

    if plot is not None:
        picture_kind(plot)
    found = data_config(config, ranks, given)
    locations = shards or found.shards
    view = view_plan(found, locations, epoch)
    if plot is not None:
        draw_plan(view, plot)
    if as_json:
        click.echo(plan_json(view))
    else:
        print_plan(view, fit_command(locations, config, ranks, given, found.overruled), plot)


@main.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="RUN...")
@click.option("--shards", multiple=True, help="Where a shard set lies now, if it was moved; once for each.")
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
@reporting_errors
def audit(runs: tuple[Path, ...], shards: tuple[str, ...], as_json: bool) -> None:
    """Prove that each utterance of an epoch was computed exactly once, over all restarts of a run.

    RUN is the folder of the last run of `trainer fit --audit`; it names those it went on from. Where folders were
    moved, name them all, the last one last. Exit status 0 where the proof holds, 1 where it does not.

    \b
    trainer fit shards/ --audit
    trainer audit runs/<time>
    """  # noqa: D301
    from trainer.commands.audit import audit as command
    from trainer.commands.audit import audit_json, audit_text

    verdicts = command(runs, shards or None)
    click.echo(audit_json(verdicts) if as_json else audit_text(verdicts))
    if not all(verdict.is_proven for verdict in verdicts):
        raise SystemExit(1)


@main.command(context_settings={"ignore_unknown_options": True}, add_help_option=False, options_metavar="")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="SHARDS... [OPTIONS]")
@click.pass_context
@reporting_errors
def fit(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Train on SHARDS into ./runs/<time>: checkpoints and a TensorBoard log.

    SHARDS are one or more shard sets: folders, or locations such as s3://bucket/shards. Of several, --data.weights
    [1,0.5] or --data.temperature 2 say how much an epoch takes of each.

    --probe computes the most expensive micro-batches of the epoch first and says what they take; where memory runs out,
    now or later, larger micro-batches are computed in parts, and training goes on. --audit writes down what was trained
    on, for `trainer audit`. --reset-data goes on from a checkpoint with other data or another plan.

    Every option of LightningCLI is an option here; `trainer fit --help` lists them. --config takes a file or a packaged
    configuration: tiny (default without a GPU) or base (default with one). The defaults in the list are those before
    --config; `trainer fit SHARDS --print_config` shows what would be run. Symbols, speakers and mel settings come from
    the shard set.

    A run ends at --trainer.max_steps or --trainer.max_time, or by Ctrl-C. --ckpt_path goes on with a run, in a folder
    of its own; steps and time are counted from the run's first start, so one that ended at its limit needs a larger
    one.

    \b
    trainer fit shards/
    trainer fit shards/ --config base --trainer.devices 4 --trainer.max_time 01:00:00:00
    trainer fit mandarin/ english/ --data.temperature 2 --probe
    trainer fit shards/ --ckpt_path runs/<time> --trainer.max_steps 400000     # go on
    """  # noqa: D301
    if {"-h", "--help"} & set(arguments):
        click.echo(context.get_help() + "\n")
        from trainer.commands.voice_cli import print_options

        print_options()
    if not arguments or arguments[0].startswith("-"):
        raise click.UsageError("the shard set comes first: trainer fit SHARDS... [OPTIONS]", context)
    from trainer.commands.fit import fit as command

    outcome = command(arguments)
    if not outcome.is_first_rank:
        return
    in_all = f" ({outcome.steps} in all)" if outcome.steps != outcome.new_steps else ""
    click.echo(f"trained {outcome.new_steps} steps{in_all} in {outcome.run}")
    if outcome.has("last"):
        best = ", best.ckpt that of the lowest validation loss" if outcome.has("best") else ""
        click.echo(f"checkpoints: last.ckpt is the newest, and goes on with --ckpt_path{best}")
        click.echo(f'next: trainer synthesize {outcome.run} --text "Hello." --out hello.wav')


@main.command()
@click.argument("checkpoint", type=FOLDER, metavar="RUN|CKPT")
@click.option("--text", required=True, help="Mandarin, English or both.")
@click.option("--speaker", help="By name; the first by default.")
@click.option("--steps", type=click.IntRange(1, 1000), default=10, show_default=True, help="Steps of the flow.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the flow's noise.")
@click.option("--length-scale", type=click.FloatRange(0.1, 10), default=1.0, show_default=True, help="Above 1: slower.")
@click.option("--out", type=FOLDER, default=Path("speech.wav"), show_default=True, help="WAV file to write.")
@reporting_errors
def synthesize(
    checkpoint: Path, text: str, speaker: str | None, steps: int, seed: int, length_scale: float, out: Path
) -> None:
    """Speak a text with a run's last checkpoint, or with a checkpoint.

    \b
    trainer synthesize runs/<time> --text "你好世界，hello world." --out hello.wav
    """  # noqa: D301
    from trainer.commands.synthesize import synthesize as command

    spoken = command(checkpoint, text, speaker, steps, seed, length_scale, out)
    if spoken.unheard_languages:
        click.echo(
            f"warning: the voice was trained on {', '.join(spoken.languages)} only; "
            f"it has never heard {', '.join(spoken.unheard_languages)}",
            err=True,
        )
    others = (
        f" (one of {spoken.num_speakers}: --speaker chooses)" if speaker is None and spoken.num_speakers > 1 else ""
    )
    click.echo(
        f"{out}: {spoken.seconds:.2f} s by {spoken.speaker}{others}, computed in {spoken.computing_seconds:.2f} s "
        f"(real-time factor {spoken.real_time_factor:.2f})"
    )


if __name__ == "__main__":
    main()
