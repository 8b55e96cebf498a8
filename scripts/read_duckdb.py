"""A result folder in DuckDB: what became of the points, the fastest, the best of each model, the front.

    python scripts/read_duckdb.py results/quickstart
"""

import sys
from pathlib import Path

import duckdb

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/quickstart")
points = duckdb.read_parquet(f"{folder}/points/*.parquet")  # SQL below finds it by the variable's name

# A training step and a single collective call their time differently.
time = "iteration_time_s" if "iteration_time_s" in points.columns else "finish_time_s"
wanted = ["id", "model", "collective", "npus", "network_shape", "tp", "pp", "dp", time, "peak_memory_bytes"]
shown = ", ".join(column for column in wanted if column in points.columns)


def show(title: str, table: duckdb.DuckDBPyRelation) -> None:
    print(f"\n{title}")
    table.show(max_width=160, max_rows=1000)


counts = duckdb.sql("SELECT status, reason, count(*) AS points FROM points GROUP BY ALL ORDER BY points DESC")
show("What became of the points", counts)

feasible = duckdb.sql(f"SELECT * FROM points WHERE status = 'feasible' ORDER BY {time}, id")
show("The ten fastest", duckdb.sql(f"SELECT {shown} FROM feasible LIMIT 10"))

if "model" in points.columns:
    best = f"SELECT DISTINCT ON (model) {shown} FROM feasible ORDER BY model, {time}, id"
    show("The fastest of each model", duckdb.sql(best))

front = folder / "pareto.parquet"
if front.exists():
    show("The front", duckdb.sql(f"SELECT {shown} FROM read_parquet('{front}')"))
