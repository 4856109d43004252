"""Draws the micro-batches of a plan: how many utterances of which length, how full, how much padding."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from dataprep.shards.atomic import write_atomic
from schemas.errors import UsageError
from trainer.data.plan import PlanSettings
from trainer.data.shapes import BatchShapes

_SUFFIXES = (".png", ".svg", ".pdf")
_SCATTERED = 5000  # more points than this are drawn as a density


def plot_shapes(shapes: BatchShapes, settings: PlanSettings, frames_per_second: float, title: str, path: Path) -> None:
    """Writes the picture atomically.

    Raises:
        UsageError: another kind of file than .png, .svg or .pdf, or there is nothing to draw.
    """
    if path.suffix.lower() not in _SUFFIXES:
        kinds = ", ".join(_SUFFIXES)
        raise UsageError(f"{path.suffix or 'no suffix'} is no kind of picture", hint=f"give one of {kinds}", path=path)
    if not len(shapes.sizes):
        raise UsageError("the plan is empty: there is nothing to draw", hint="see `trainer plan` without --plot")
    from matplotlib.figure import Figure  # not pyplot, which has global state and looks for a screen

    figure = Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplot_mosaic("sf;sp", width_ratios=[3, 2])
    shape, full, padding = panels["s"], panels["f"], panels["p"]
    _draw_shapes(shape, shapes, settings, frames_per_second)
    full.hist(shapes.padded_frames / settings.max_frames * 100, bins=40, color="tab:blue")
    full.set(xlabel="padded frames, % of the budget", ylabel="micro-batches", yscale="log")
    full.axvline(100, color="tab:red", linewidth=1)
    padding.hist((1 - shapes.real_frames / shapes.padded_frames) * 100, bins=40, color="tab:orange")
    padding.set(xlabel="padding, % of a micro-batch's frames", ylabel="micro-batches", yscale="log")
    figure.suptitle(title)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=120)
    write_atomic(path, content.getvalue())


def _draw_shapes(axes: Any, shapes: BatchShapes, settings: PlanSettings, frames_per_second: float) -> None:  # noqa: ANN401
    longest = shapes.longest_frames / frames_per_second
    if len(longest) > _SCATTERED:
        drawn = axes.hexbin(longest, shapes.sizes, gridsize=60, bins="log", yscale="log", mincnt=1, cmap="viridis")
        axes.figure.colorbar(drawn, ax=axes, label="micro-batches")
    else:
        axes.scatter(longest, shapes.sizes, s=8, alpha=0.5, label="micro-batch")
        axes.set_yscale("log")
    seconds = np.linspace(max(longest.min(), 1 / frames_per_second), longest.max() * 1.02 + 1e-3, 300)
    frames = seconds * frames_per_second
    fitting = np.clip(settings.max_frames / (frames * (1 + settings.quadratic * frames)), 1, settings.max_batch_size)
    axes.plot(seconds, fitting, color="tab:red", linewidth=1, label="what the budget holds")
    axes.set(xlabel="longest utterance, s", ylabel="utterances of the micro-batch")
    axes.legend(loc="upper right")
