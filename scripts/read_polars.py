"""A result folder in polars: what became of the points, the fastest, the best of each model, the front.

    python scripts/read_polars.py results/quickstart
"""

import sys
from pathlib import Path

import polars as pl

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/quickstart")
points = pl.scan_parquet(folder / "points/*.parquet")  # lazy: nothing is read before `collect`
columns = points.collect_schema().names()

# A training step and a single collective call their time differently.
time = "iteration_time_s" if "iteration_time_s" in columns else "finish_time_s"
wanted = ["id", "model", "collective", "npus", "network_shape", "tp", "pp", "dp", time, "peak_memory_bytes"]
shown = [column for column in wanted if column in columns]

pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True)


def show(title: str, table: pl.LazyFrame) -> None:
    print(f"\n{title}\n{table.collect()}")


counts = points.group_by("status", "reason").agg(pl.len().alias("points"))
show("What became of the points", counts.sort("points", descending=True))

feasible = points.filter(pl.col("status") == "feasible").sort(time, "id")
show("The ten fastest", feasible.select(shown).head(10))

if "model" in columns:
    show("The fastest of each model", feasible.group_by("model", maintain_order=True).first().select(shown))

front = folder / "pareto.parquet"
if front.exists():
    show("The front", pl.scan_parquet(front).select(shown))
