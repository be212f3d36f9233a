"""A probe's results as a table, as JSON and as a plot."""

import dataclasses
import os
import pathlib
from typing import Any

from matplotlib.figure import Figure

from elmo_tf.files import json_file, staging

_COLORS = {"baseline": "0.7", "layer": "tab:blue", "mix": "tab:orange"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A method, and its scores."""

    name: str
    kind: str  # "baseline", "layer" or "mix"
    scores: dict[str, float]  # by measure, 0 to 1; the first is plotted


@dataclasses.dataclass(frozen=True)
class Results:
    """The results of a probe."""

    title: str  # the task
    rows: list[Row]  # in display order
    details: dict[str, Any]  # about data and method, as JSON
    chance: float | None = None  # the score of a random answer, drawn as a line
    labels: str = ""  # what was labeled, if the task does not say it

    @property
    def heading(self) -> str:
        """The title of table and plot."""
        return f"{self.title} ({self.labels})" if self.labels else self.title

    def table(self) -> str:
        """Returns the rows as lines of text, scores in percent."""
        measures = list(self.rows[0].scores)
        width = max(len(self.heading), *(len(row.name) for row in self.rows))
        wide = max(12, *map(len, measures))
        lines = [f"{self.heading:{width}}" + "".join(f"  {measure:>{wide}}" for measure in measures)]
        for row in self.rows:
            lines.append(f"{row.name:{width}}" + "".join(f"  {row.scores[measure]:{wide}.1%}" for measure in measures))
        numbers = [(name, value) for name, value in self.details.items() if isinstance(value, int | float)]
        return "\n".join([*lines, "  ".join(f"{name} {value:,}" for name, value in numbers)])

    def to_json(self) -> dict[str, Any]:
        """Returns everything as values for JSON."""
        scores = {row.name: row.scores for row in self.rows}
        labels = {"labels": self.labels} if self.labels else {}
        return {"task": self.title, **labels, "scores": scores, **self.details}

    def write(self, output: str | os.PathLike) -> None:
        """Writes JSON, the table and a plot to the new folder `output`, all or nothing."""
        name = self.title.lower()
        with staging.new_folder(output) as folder:
            (folder / f"{name}.json").write_text(json_file.dumps(self.to_json(), indent=2) + "\n", "utf-8")
            (folder / f"{name}.txt").write_text(self.table() + "\n", "utf-8")
            self._plot(folder / f"{name}.png")

    def _plot(self, path: pathlib.Path) -> None:
        measure = next(iter(self.rows[0].scores))
        values = [100 * row.scores[measure] for row in self.rows]
        # A bare Figure needs no display.
        figure = Figure(figsize=(1.1 * len(values) + 2, 3.6), layout="constrained")
        axes = figure.subplots()
        names, colors = [row.name.replace("_", "\n") for row in self.rows], [_COLORS[row.kind] for row in self.rows]
        axes.bar_label(axes.bar(names, values, color=colors), fmt="%.1f")
        if self.chance is not None:
            axes.axhline(100 * self.chance, color="0.3", linestyle="--", linewidth=1)
            right_end = 1, 100 * self.chance
            axes.annotate("chance", right_end, (4, 0), ("axes fraction", "data"), "offset points", va="center")
        axes.set_ylim(0, 105)
        axes.set_ylabel(f"{measure} (%)")
        axes.set_title(self.heading)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=150)
