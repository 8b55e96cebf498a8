//! Reading a folder of results: segment by segment, and only the columns that are asked for.

use std::fs::File;
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, IdxCa, NewChunkedArray, ParallelStrategy, ParquetReader, PolarsError, SerReader};

use super::store::{POINTS, REFINED, StoreError, at, files};

/// The segments of a folder of results.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// Its segments' files, in order.
    pub files: Vec<PathBuf>,
}

/// A row of a folder: which file, which row in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPlace {
    /// The file, by its place in the list.
    pub file: usize,
    /// The row.
    pub row: usize,
}

impl Folder {
    /// Opens a folder of results.
    ///
    /// # Errors
    /// If it holds none.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_in(path, POINTS)
    }

    /// Opens the points of a folder that were evaluated again, event-driven.
    ///
    /// # Errors
    /// If it holds none.
    pub fn open_refined(path: &Path) -> Result<Self, StoreError> {
        Self::open_in(path, REFINED)
    }

    fn open_in(path: &Path, name: &str) -> Result<Self, StoreError> {
        let files = files(&path.join(name))?;
        if files.is_empty() {
            Err(StoreError::NoResults(path.to_owned()))
        } else {
            Ok(Self { path: path.to_owned(), files })
        }
    }

    /// The names of the columns.
    ///
    /// # Errors
    /// If the first segment cannot be read.
    pub fn columns(&self) -> Result<Vec<String>, StoreError> {
        let file = File::open(&self.files[0]).map_err(at("read", &self.files[0]))?;
        let schema = ParquetReader::new(file).schema().map_err(broken(&self.files[0]))?;
        Ok(schema.iter_names().map(polars::prelude::PlSmallStr::to_string).collect())
    }

    /// The names of the columns that hold numbers.
    ///
    /// # Errors
    /// If the first segment cannot be read.
    pub fn numbers(&self) -> Result<Vec<String>, StoreError> {
        let file = File::open(&self.files[0]).map_err(at("read", &self.files[0]))?;
        let schema = ParquetReader::new(file).schema().map_err(broken(&self.files[0]))?;
        let numbers = schema.iter_values().filter(|field| field.dtype.is_numeric());
        Ok(numbers.map(|field| field.name.to_string()).collect())
    }

    /// Some columns of one segment, or all.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, file: usize, columns: Option<&[String]>) -> Result<DataFrame, StoreError> {
        let path = &self.files[file];
        let opened = File::open(path).map_err(at("read", path))?;
        let reader = ParquetReader::new(opened).read_parallel(ParallelStrategy::None);
        reader.with_columns(columns.map(<[String]>::to_vec)).finish().map_err(broken(path))
    }

    /// The places of all rows, in their order.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn places(&self) -> Result<Vec<RowPlace>, StoreError> {
        let mut places = Vec::new();
        for file in 0..self.files.len() {
            let rows = self.read(file, Some(&["id".to_owned()]))?.height();
            places.extend((0..rows).map(|row| RowPlace { file, row }));
        }
        Ok(places)
    }

    /// Whole rows, in the order in which they are asked for.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn rows(&self, places: &[RowPlace]) -> Result<DataFrame, StoreError> {
        let mut sorted: Vec<(usize, RowPlace)> = places.iter().copied().enumerate().collect();
        sorted.sort_by_key(|place| place.1);
        let mut all: Option<DataFrame> = None;
        let mut order = vec![0; places.len()];
        let mut next = 0;
        for of_file in sorted.chunk_by(|a, b| a.1.file == b.1.file) {
            let frame = self.read(of_file[0].1.file, None)?;
            let rows: Vec<u32> = of_file.iter().map(|place| crate::units::narrow(place.1.row as u64)).collect();
            let taken = frame.take(&IdxCa::from_slice("".into(), &rows))?;
            for place in of_file {
                order[place.0] = next;
                next += 1;
            }
            match &mut all {
                Some(all) => {
                    all.vstack_mut(&taken)?;
                }
                None => all = Some(taken),
            }
        }
        match all {
            Some(all) => Ok(all.take(&IdxCa::from_slice("".into(), &order))?),
            None => Ok(self.read(0, None)?.head(Some(0))),
        }
    }
}

/// Attaches the file to an error of a segment.
fn broken(path: &Path) -> impl FnOnce(PolarsError) -> StoreError + '_ {
    move |source| StoreError::Segment { path: path.to_owned(), source }
}
