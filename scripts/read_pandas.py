"""A result folder in pandas: what became of the points, the fastest, the best of each model, the front.

    python scripts/read_pandas.py results/quickstart
"""

import sys
from pathlib import Path

import pandas as pd

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/quickstart")
# The nullable types keep whole numbers whole where a column has holes.
points = pd.read_parquet(sorted(folder.glob("points/*.parquet")), dtype_backend="numpy_nullable")

# A training step and a single collective call their time differently.
time = "iteration_time_s" if "iteration_time_s" in points else "finish_time_s"
wanted = ["id", "model", "collective", "npus", "network_shape", "tp", "pp", "dp", time, "peak_memory_bytes"]
shown = [column for column in wanted if column in points]


def show(title: str, table: pd.DataFrame) -> None:
    print(f"\n{title}\n{table.to_string(index=False) if len(table) else '(none)'}")


counts = points.groupby(["status", "reason"], dropna=False).size().reset_index(name="points")
show("What became of the points", counts.sort_values("points", ascending=False))

feasible = points[points["status"] == "feasible"].sort_values([time, "id"])
show("The ten fastest", feasible[shown].head(10))

if "model" in points:
    show("The fastest of each model", feasible.groupby("model").head(1)[shown])

front = folder / "pareto.parquet"
if front.exists():
    show("The front", pd.read_parquet(front)[shown])
