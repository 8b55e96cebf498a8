"""Do pandas, polars and DuckDB see the same table, and does every segment have the same schema?

    python scripts/check_readers.py RESULTS...

Each RESULTS is a folder written by `starsweep run`. Ends with 0 if all holds, else with 1 and what does not.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

DICTIONARY = Path(__file__).resolve().parent.parent / "results" / "README.md"
STATUSES = {"feasible", "infeasible", "unmet", "error", "limit"}
FOOTER_KEYS = ["starsweep.identity", "starsweep.physics_version"]
TIME_AND_SIZE = ("_s", "_ns", "_bytes", "_bytes_per_s", "_flop_per_s", "_flops_per_s")
COST = ("_watts", "_joules", "_joules_per_tok", "_usd", "_usd_per_s", "_usd_per_joule", "_usd_per_tok")
WORK = ("_seq", "_seq_per_s", "_tok", "_tok_per_s", "_tok_per_s_per_npu")
UNIT_SUFFIXES = TIME_AND_SIZE + COST + WORK


class Broken(Exception):
    """Something that must hold does not."""


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


# --- what a segment is, before any reader ---


def opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise Broken(f"{file}: {error}") from error


def physical_schema(file: Path) -> list[tuple]:
    """One column a tuple: name, physical type, logical type, whether it may be null."""
    schema = opened(file).schema
    columns = [schema.column(i) for i in range(len(schema.names))]
    return [
        (c.path, c.physical_type, str(c.logical_type), "nullable" if c.max_definition_level else "required")
        for c in columns
    ]


def footer(file: Path) -> dict[str, str]:
    stored = opened(file).metadata.metadata or {}
    found = {key: stored.get(key.encode(), b"").decode() for key in FOOTER_KEYS}
    for key, value in found.items():
        expect(value != "", f"{file}: the footer has no `{key}`")
    return found


def segments(folder: Path) -> list[Path]:
    found = sorted((folder / "points").glob("*"))
    expect(bool(found), f"{folder}: no file in points/")
    for file in found:
        expect(file.suffix == ".parquet", f"{file}: points/ may hold nothing but *.parquet")
    return found


def check_segments(files: list[Path]) -> None:
    """All segments of a folder are alike, in schema and footer."""
    first, first_footer = physical_schema(files[0]), footer(files[0])
    for file in files[1:]:
        schema = physical_schema(file)
        expect(len(schema) == len(first), f"{file}: {len(schema)} columns, but {len(first)} in {files[0].name}")
        for here, there in zip(schema, first, strict=True):
            expect(here == there, f"{file}: column {here}, but {there} in {files[0].name}")
        expect(footer(file) == first_footer, f"{file}: footer {footer(file)}, but {first_footer} in {files[0].name}")


def check_across(folders: dict[Path, list[Path]]) -> None:
    """A column that several folders have is the same in all of them; so is the version of the physics."""
    seen: dict[str, tuple[Path, tuple]] = {}
    versions: dict[str, Path] = {}
    for folder, files in folders.items():
        for column in physical_schema(files[0]):
            other, there = seen.setdefault(column[0], (folder, column))
            expect(column == there, f"{folder}: column {column}, but {there} in {other}")
        versions[footer(files[0])["starsweep.physics_version"]] = folder
    expect(len(versions) == 1, f"physics versions differ: {versions}")


# --- the column dictionary ---


def dictionary(page: Path) -> dict[str, str]:
    """Column to unit, from every table of the page that starts with `| column | type | unit | meaning |`."""
    expect(page.is_file(), f"{page}: no such file")
    units, inside = {}, False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if [cell.lower() for cell in cells[:4]] == ["column", "type", "unit", "meaning"]:
            inside = True
        elif len(cells) < 4:
            inside = False
        elif inside:
            units[cells[0].strip("`")] = cells[2].strip("`")
    expect(bool(units), f"{page}: no table `column | type | unit | meaning`")
    return units


def coined(text: str) -> set[str]:
    """The names that a text of YAML gives to things."""
    return set(re.findall(r"([\w-]+)[\"']?\s*:", text))


def own_columns(sweep: str) -> set[str]:
    """The columns that a sweep adds, without their unit: derived values and zips."""
    sections = re.findall(r"^(?:derive|zip):(.*\n(?:[ \t].*\n|\n)*)", sweep, flags=re.MULTILINE)
    return set().union(*map(coined, sections))


def general_names(column: str, names: set[str]) -> list[str]:
    """A column as the dictionary may have it: `dim3_size` is `dim0_size`, `pool_latency_s` of a tier is `tier_latency_s`."""
    of_tier = [f"tier_{column.removeprefix(f'{name}_')}" for name in names if column.startswith(f"{name}_")]
    return [column, re.sub(r"^dim\d+_", "dimK_", column), re.sub(r"^dim\d+_", "dim0_", column), *of_tier]


def check_names(folder: Path, schema: pa.Schema, units: dict[str, str]) -> None:
    """Each column is in the dictionary or the sweep's own; a fraction without a unit in its name is a ratio there."""
    file = folder / "sweep.yaml"
    expect(file.is_file(), f"{file}: no such file")
    sweep = file.read_text(encoding="utf-8")
    names, own = coined(sweep), own_columns(sweep)
    for field in schema:
        if any(field.name == name or field.name.startswith(f"{name}_") for name in own):
            continue
        row = next((name for name in general_names(field.name, names) if name in units), None)
        expect(row is not None, f"{folder}: column `{field.name}` has no row in the dictionary, results/README.md")
        if pa.types.is_floating(field.type) and not field.name.endswith(UNIT_SUFFIXES):
            expect(
                units[row] == "ratio",
                f"{folder}: `{field.name}` is {field.type}, ends in no unit ({' '.join(UNIT_SUFFIXES)}), "
                f"and its unit in results/README.md is `{units[row]}`, not `ratio`",
            )


# --- the three readers ---


@dataclass
class Seen:
    """What one reader makes of a folder."""

    rows: int
    columns: list[str]
    untyped: list[str]
    missing: dict[str, int]
    groups: dict[str, dict[str | None, int]]  # for each text column, rows by value
    filtered: dict[str, int]  # rows that a filter on each status leaves


def with_pandas(files: list[Path]) -> Seen:
    table = pd.read_parquet(files)
    text = [c for c in table if isinstance(table[c].dtype, (pd.StringDtype, pd.CategoricalDtype))]
    groups = {c: table.groupby(c, dropna=False, observed=True).size() for c in text}
    return Seen(
        rows=len(table),
        columns=list(table),
        untyped=[field.name for field in pq.read_schema(files[0]) if pa.types.is_null(field.type)],
        missing={c: int(table[c].isna().sum()) for c in table},
        groups={c: {None if pd.isna(value) else value: int(n) for value, n in groups[c].items()} for c in text},
        filtered={status: int((table["status"] == status).sum()) for status in STATUSES},
    )


def with_polars(glob: str) -> Seen:
    table = pl.read_parquet(glob)
    text = [c for c, dtype in table.schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    return Seen(
        rows=table.height,
        columns=table.columns,
        untyped=[c for c, dtype in table.schema.items() if dtype == pl.Null],
        missing=table.null_count().row(0, named=True),
        groups={c: dict(table.group_by(c).len().rows()) for c in text},
        filtered={status: table.filter(pl.col("status") == status).height for status in STATUSES},
    )


def with_duckdb(glob: str) -> Seen:
    table = duckdb.read_parquet(glob)
    types = {c: str(kind) for c, kind in zip(table.columns, table.types, strict=True)}
    text = [c for c, kind in types.items() if kind == "VARCHAR" or kind.startswith("ENUM")]
    missing = table.aggregate(", ".join(f'count(*) - count("{c}")' for c in types)).fetchall()[0]
    return Seen(
        rows=len(table),
        columns=table.columns,
        untyped=[c for c, kind in types.items() if kind.strip('"') == "NULL"],
        missing=dict(zip(types, missing, strict=True)),
        groups={c: dict(table.aggregate(f'"{c}", count(*)', f'"{c}"').fetchall()) for c in text},
        filtered={status: len(table.filter(f"status = '{status}'")) for status in STATUSES},
    )


def check_readers(folder: Path, files: list[Path]) -> Seen:
    """All three see the same rows, columns, holes and groups."""
    glob = str(folder / "points" / "*.parquet")
    readers = {"pandas": with_pandas(files), "polars": with_polars(glob), "duckdb": with_duckdb(glob)}
    first = readers["pandas"]
    expect(first.rows > 0, f"{folder}: no rows")
    for name, seen in readers.items():
        where = f"{folder}: {name}"
        expect(not seen.untyped, f"{where} finds no type for {seen.untyped}")
        expect(seen.rows == first.rows, f"{where} sees {seen.rows} rows, pandas {first.rows}")
        expect(seen.columns == first.columns, f"{where} sees the columns {seen.columns}, pandas {first.columns}")
        for column, missing in seen.missing.items():
            other = first.missing[column]
            expect(missing == other, f"{where} misses {missing} values in `{column}`, pandas {other}: is one a NaN?")
        expect({"id", "status", "reason"} <= set(seen.groups), f"{where} takes only {list(seen.groups)} for text")
        text, other = list(seen.groups), list(first.groups)
        expect(text == other, f"{where} takes {text} for text, pandas {other}")
        for column, groups in seen.groups.items():
            expect(groups == first.groups[column], f"{where} groups by `{column}` otherwise than pandas")
        strange = set(seen.groups["status"]) - STATUSES
        expect(not strange, f"{where} sees the status {strange}, expected {sorted(STATUSES)}")
        found = {status: n for status, n in seen.filtered.items() if n}
        expect(found == seen.groups["status"], f"{where} filters {found}, but groups {seen.groups['status']}")
    return first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS")
    parser.add_argument("--dictionary", type=Path, default=DICTIONARY, help="the column dictionary (results/README.md)")
    arguments = parser.parse_args()
    try:
        folders = {folder: segments(folder) for folder in arguments.results}
        units = dictionary(arguments.dictionary)
        for folder, files in folders.items():
            check_segments(files)
            check_names(folder, pq.read_schema(files[0]), units)
            seen = check_readers(folder, files)
            counts = ", ".join(f"{n} {status}" for status, n in sorted(seen.groups["status"].items()))
            print(f"{folder.name}: {len(files)} segments, {len(seen.columns)} columns, {seen.rows} rows ({counts})")
        check_across(folders)
    except Broken as broken:
        sys.exit(f"check_readers: {broken}")


if __name__ == "__main__":
    main()
