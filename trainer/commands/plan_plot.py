"""Draws the micro-batches of a plan: how many utterances of which length, how full, how much padding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dataprep.shards.atomic import atomic_file
from schemas.errors import UsageError
from trainer.commands.plan import PlanView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_NO_DATE: dict[str, dict[str, Any]] = {
    "png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None},
}  # fmt: skip
_SCATTERED = 3000  # more micro-batches than this are drawn as a density
_COUNTED = 60  # up to so many, the bars of a histogram are read on a linear scale
_LONGEST_TITLE = 100


def picture_kind(path: Path) -> str:
    """What kind of picture a file is to be. Raises UsageError where its suffix is none of ours."""
    kind = path.suffix[1:].lower()
    if kind not in _NO_DATE:
        kinds = ", ".join(f".{known}" for known in _NO_DATE)
        raise UsageError(f"{path.suffix or 'no suffix'} is no kind of picture", hint=f"give one of {kinds}", path=path)
    return kind


def draw_plan(view: PlanView, path: Path) -> None:
    """Writes the picture atomically; the same plan gives the same bytes.

    Raises:
        UsageError: another kind of file than .png, .svg or .pdf.
        OSError: as the machine raises it.
    """
    kind = picture_kind(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure  # not pyplot, which has global state and looks for a screen

    with mpl.rc_context({"svg.hashsalt": "voxloom", "axes.axisbelow": True}):
        figure = Figure(figsize=(12, 7), layout="constrained")
        panels = figure.subplot_mosaic("sf;sp", width_ratios=[3, 2])
        figure.suptitle(_title(view), parse_math=False, fontsize="medium")
        if len(view.shapes.sizes):
            _draw_shapes(panels["s"], view)
            _draw_frames(panels["f"], view)
            _draw_padding(panels["p"], view)
        else:
            panels["s"].text(0.5, 0.5, "the plan is empty", ha="center", transform=panels["s"].transAxes)
        with atomic_file(path) as handle:
            figure.savefig(handle, format=kind, dpi=120, metadata=_NO_DATE[kind])


def _title(view: PlanView) -> str:
    summary, settings = view.summary, view.settings
    locations = " ".join(one.location for one in view.sets)
    if len(locations) > _LONGEST_TITLE or not locations.isascii():  # the font has no Chinese
        locations = f"{len(view.sets)} shard set{'s' * (len(view.sets) > 1)}"
    waiting = f", waiting {summary.expected_wait:.1%}" if settings.ranks > 1 else ""
    return (
        f"Epoch {view.epoch} of {locations}\n{summary.utterances:,} utterances in {summary.steps:,} steps of "
        f"{settings.ranks:,} micro-batches of up to {settings.max_frames:,} frames: "
        f"padding {summary.padding_share:.1%}{waiting}"
    )


def _draw_shapes(axes: Axes, view: PlanView) -> None:
    """Utterances against the longest of them, and what the budget holds."""
    shapes, settings, per_second = view.shapes, view.settings, view.frames_per_second
    longest = shapes.longest_frames / per_second
    axes.set(xscale="log", yscale="log", xlabel="longest utterance, s", ylabel="utterances of the micro-batch")
    if len(longest) > _SCATTERED:
        density = axes.hexbin(
            longest, shapes.sizes, gridsize=60, xscale="log", yscale="log", bins="log", mincnt=1, cmap="viridis",
            linewidths=0.2, rasterized=True,
        )  # fmt: skip
        bar = axes.figure.colorbar(density, ax=axes, label="micro-batches", pad=0.01)
        _plain(bar.ax.yaxis, is_log=True)
    else:
        axes.scatter(longest, shapes.sizes, s=14, alpha=0.4, linewidths=0, label="micro-batch", rasterized=True)
    frames = np.geomspace(max(int(shapes.longest_frames.min()), 1), int(shapes.longest_frames.max()) + 1, 500)
    holds = settings.max_frames / (frames * (1 + settings.quadratic * frames))
    fits = holds >= 1
    holds = np.minimum(holds, settings.max_batch_size)
    axes.plot(frames[fits] / per_second, holds[fits], color="tab:red", linewidth=1, label="what the budget holds")
    scale: Any = float(per_second)  # matplotlib hands arrays to functions that it types for anything like an array
    top = axes.secondary_xaxis("top", functions=(lambda x: x * scale, lambda x: x / scale))
    top.set_xlabel("longest utterance, frames")
    for axis in (axes.xaxis, axes.yaxis, top.xaxis):
        _plain(axis, is_log=True)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")


def _draw_frames(axes: Axes, view: PlanView) -> None:
    settings = view.settings
    _histogram(axes, view.shapes.padded_frames, "tab:blue")
    axes.set(xlabel="padded frames of a micro-batch", ylabel="micro-batches")
    if not settings.quadratic:
        axes.axvline(settings.max_frames, color="tab:red", linewidth=1, label=f"budget {settings.max_frames:,}")
        axes.legend(loc="upper left")
    _plain(axes.xaxis, is_log=False)


def _draw_padding(axes: Axes, view: PlanView) -> None:
    shapes, mean = view.shapes, view.summary.padding_share * 100
    _histogram(axes, (1 - shapes.real_frames / shapes.padded_frames) * 100, "tab:orange")
    axes.set(xlabel="padding, % of the frames of a micro-batch", ylabel="micro-batches")
    axes.axvline(mean, color="tab:red", linewidth=1, label=f"of all frames {mean:.1f} %")
    axes.legend(loc="upper right")


def _histogram(axes: Axes, values: NDArray[np.integer | np.floating], color: str) -> None:
    counts, _, _ = axes.hist(values, bins=40, color=color)
    is_log = float(np.max(counts)) > _COUNTED
    axes.set_yscale("log" if is_log else "linear")
    _plain(axes.yaxis, is_log=is_log)
    axes.grid(axis="y", alpha=0.3)


def _plain(axis: Axis, *, is_log: bool) -> None:
    """Numbers as people write them, a few to a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if is_log:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
