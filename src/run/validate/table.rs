//! A table of comma-separated values, as text: every cell with its place, for what is to be said of it.

use csv::ReaderBuilder;

use crate::input::diagnostic::nearest;
use crate::input::{Diagnostic, Place, Source};
use crate::units::narrow;

/// A table: its columns by name, its rows in order.
#[derive(Debug, Clone)]
pub struct Table {
    source: Source,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The lines of the text, for the places of cells.
    lines: Vec<String>,
}

/// One row.
#[derive(Debug, Clone)]
pub struct Row {
    line: u64,
    cells: Vec<String>,
}

impl Table {
    /// Reads a text whose first line names the columns.
    ///
    /// # Errors
    /// A line that has more or fewer cells than the first, a column that is named twice, a text without a line.
    pub fn read(text: &str, source: Source) -> Result<Self, Diagnostic> {
        let mut reader =
            ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
        let lines = text.lines().map(str::to_owned).collect();
        let mut table = Self { source, columns: Vec::new(), rows: Vec::new(), lines };
        for record in reader.records() {
            let record = record.map_err(|error| table.broken(&error))?;
            let line = record.position().map_or(1, csv::Position::line);
            let cells: Vec<String> = record.iter().map(str::to_owned).collect();
            if table.columns.is_empty() {
                table.columns = cells;
                table.no_column_twice()?;
            } else if cells.len() == table.columns.len() {
                table.rows.push(Row { line, cells });
            } else {
                let message =
                    format!("the row has {} cells, and there are {} columns", cells.len(), table.columns.len());
                let help = "a cell that holds a comma stands in double quotes; an empty cell keeps its comma";
                return Err(Diagnostic::error(message).at(table.place_of_line(line)).help(help));
            }
        }
        if table.columns.is_empty() {
            return Err(Diagnostic::error("the table is empty").help("its first line names its columns"));
        }
        Ok(table)
    }

    /// Reads a table of ours, which a test holds to being one.
    pub(super) fn of_ours(text: &str) -> Self {
        Self::read(text, Source::Preset).expect("a table of ours is a table")
    }

    fn broken(&self, error: &csv::Error) -> Diagnostic {
        let line = error.position().map_or(1, csv::Position::line);
        Diagnostic::error(format!("the line is no row of a table: {error}"))
            .at(self.place_of_line(line))
            .help("the table is text in UTF-8, its cells separated by commas")
    }

    fn no_column_twice(&self) -> Result<(), Diagnostic> {
        let twice = |(k, column): &(usize, &String)| self.columns[..*k].contains(column);
        match self.columns.iter().enumerate().find(twice) {
            Some((k, column)) => Err(Diagnostic::error(format!("the column `{column}` is named twice"))
                .at(self.place_in(1, k))
                .help("remove one of the two")),
            None => Ok(()),
        }
    }

    /// The place of the column of a name; none if there is no such column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The text of a cell; none if the column is not there, or the cell is empty.
    #[must_use]
    pub fn cell<'a>(&'a self, row: &'a Row, column: &str) -> Option<&'a str> {
        row.cells.get(self.column(column)?).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The place of a cell; of its row if the column is not there.
    #[must_use]
    pub fn place(&self, row: &Row, column: &str) -> Place {
        self.column(column).map_or_else(|| self.place_of_line(row.line), |k| self.place_in(row.line, k))
    }

    /// What to say of a column that must be there and is not.
    #[must_use]
    pub fn lacks(&self, column: &str, meaning: &str) -> Diagnostic {
        let others = self.columns.iter().map(String::as_str);
        let near = nearest(column, others).map_or_else(String::new, |near| format!("; is `{near}` meant to be it?"));
        Diagnostic::error(format!("the table has no column `{column}`"))
            .at(self.place_of_line(1))
            .help(format!("{meaning}{near}"))
    }

    fn place_of_line(&self, line: u64) -> Place {
        Place { source: self.source, line: narrow(line), column: 1, length: 1 }
    }

    /// The place of a cell: where its text begins in its line.
    fn place_in(&self, line: u64, column: usize) -> Place {
        let text = usize::try_from(line).ok().and_then(|line| self.lines.get(line - 1)).map_or("", String::as_str);
        let (mut open, mut at, mut from, mut end) = (false, 0, 0, None);
        for (k, character) in text.chars().enumerate() {
            match character {
                '"' => open = !open,
                ',' if !open && at == column => {
                    end = Some(k);
                    break;
                }
                ',' if !open => (at, from) = (at + 1, k + 1),
                _ => {}
            }
        }
        let end = end.unwrap_or_else(|| text.chars().count());
        let length = narrow(end.saturating_sub(from) as u64).max(1);
        Place { column: narrow(from as u64 + 1), length, ..self.place_of_line(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_their_places() {
        let table = Table::read("a,b,c\n1,\"x, y\",\n", Source::Input(0)).expect("a table");
        let row = &table.rows[0];
        assert_eq!((table.cell(row, "b"), table.cell(row, "c"), table.cell(row, "d")), (Some("x, y"), None, None));
        let place = table.place(row, "b");
        assert_eq!((place.line, place.column, place.length), (2, 3, 6));
    }

    #[test]
    fn a_row_that_is_too_long_is_told_with_its_line() {
        let error = Table::read("a,b\n1,2\n1,2,3\n", Source::Input(0)).expect_err("a cell too many");
        assert_eq!(error.place.expect("a place").line, 3);
    }
}
