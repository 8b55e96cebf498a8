//! `query`: SQL over a folder of results.

use super::args::QueryArgs;
use super::exit::Exit;

/// Answers a question in SQL; the tables are `points` and, if there is one, `refined`.
#[cfg(feature = "query")]
pub fn query(args: &QueryArgs) -> anyhow::Result<Exit> {
    use polars::prelude::{LazyFrame, PlRefPath, ScanArgsParquet};
    use polars::sql::SQLContext;

    use crate::results::folder::Folder;
    use crate::results::sink::Format;

    let folder = Folder::open(&args.results)?;
    let glob = folder.path.join("points").join("*.parquet");
    let points = LazyFrame::scan_parquet(PlRefPath::new(glob.to_string_lossy()), ScanArgsParquet::default())?;
    let mut context = SQLContext::new();
    context.register("points", points);
    if Folder::open_refined(&args.results).is_ok() {
        let glob = folder.path.join("refined").join("*.parquet");
        let refined = LazyFrame::scan_parquet(PlRefPath::new(glob.to_string_lossy()), ScanArgsParquet::default())?;
        context.register("refined", refined);
    }
    let mut frame = context.execute(&args.sql)?.collect()?;
    if args.csv {
        Format::Csv.part().write(&mut frame, &[], &mut std::io::stdout().lock())?;
    } else {
        let columns: Vec<String> =
            frame.get_column_names().iter().map(|name| name.as_str()).map(str::to_owned).collect();
        anstream::println!("{}", super::render::frame(&frame, &columns)?);
    }
    Ok(Exit::Complete)
}

/// Says how to get it.
#[cfg(not(feature = "query"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub fn query(args: &QueryArgs) -> anyhow::Result<Exit> {
    anstream::eprintln!("error: this build has no SQL");
    anstream::eprintln!(
        "help: `cargo run --release --features query -- query {} \"...\"` builds it, or read",
        args.results.display()
    );
    anstream::eprintln!(
        "      `{}/points/*.parquet` with polars, pandas or DuckDB (see scripts/)",
        args.results.display()
    );
    Ok(Exit::Usage)
}
