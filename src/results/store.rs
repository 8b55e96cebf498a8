//! The folder of a sweep's results: a lock, segments that appear whole or not at all, what was there earlier.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, ParquetReader, PolarsError, SerReader};
use thiserror::Error;

use super::seal::{BLANK, SEAL_KEY, is_whole, seal};
use super::segment::Segment;
use super::sink::{Footer, Format, parquet};
use super::table::Table;

/// Version of the layout of a folder and of its segments; goes up when an older program could not read them.
pub const FORMAT_VERSION: u32 = 2;
/// The footer's key of a sweep's identity.
pub const IDENTITY_KEY: &str = "starsweep.identity";
/// The footer's key of the rules by which points were judged.
const JUDGED_KEY: &str = "starsweep.judged_by";
/// The footer's key of the physics version.
pub const PHYSICS_KEY: &str = "starsweep.physics_version";
/// Where the points of a sweep are.
pub const POINTS: &str = "points";
/// Where the points are that were evaluated again, event-driven.
pub const REFINED: &str = "refined";
/// What was there earlier, by identity.
const EARLIER: &str = "earlier";
/// Says that a run from the beginning is under way, until it is done.
const FRESH: &str = ".fresh";

/// The world failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or folder could not be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another run is at work in the folder.
    #[error("another run is at work in `{}`", .0.display())]
    Locked(PathBuf),
    /// The folder holds no results.
    #[error("`{}` holds no results of a sweep", .0.display())]
    NoResults(PathBuf),
    /// The folder has something else in it.
    #[error("`{}` is not a folder of results, and is not empty", .0.display())]
    NotOurs(PathBuf),
    /// A segment could not be read.
    #[error("cannot read `{}`: the `run` that made it puts it aside and does it again", path.display())]
    Segment {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: PolarsError,
    },
    /// A table could not be read or written.
    #[error("cannot read or write a table")]
    Table(#[from] PolarsError),
    /// A stream could not be written.
    #[error("cannot write")]
    Stream(#[from] io::Error),
    /// A CSV file could not be written.
    #[error("cannot write a CSV file")]
    Csv(#[from] csv::Error),
}

/// Attaches what was tried to an error of the disk.
pub fn at<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::File { action, path: path.to_owned(), source }
}

/// What is written into the footer of every table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The identity of the sweep.
    pub identity: String,
    /// The version of the physics.
    pub physics: u32,
    /// A hash of the rules by which points are judged besides what they are: `require` and `derive`.
    pub judged_by: String,
}

/// A folder of results that this process alone writes.
#[derive(Debug)]
pub struct Store {
    /// The folder.
    pub folder: PathBuf,
    /// Identity of what is written into it.
    pub identity: String,
    /// What every segment's footer says.
    footer: Vec<(String, String)>,
    /// Held as long as the store.
    _lock: File,
}

/// What a store found when it was opened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Found {
    /// Segments of this sweep that are whole.
    pub whole: Vec<Segment>,
    /// The identity of the sweep whose points were put aside: another one's, or this one's if all was to be done again.
    pub moved: Option<String>,
    /// Whether points of this sweep were taken back from where they had been put aside.
    pub restored: bool,
    /// Files that were damaged and were put aside.
    pub damaged: usize,
}

impl Store {
    /// Opens a folder for a sweep, puts aside what belongs to another, and says which segments are whole.
    ///
    /// # Errors
    /// If the folder cannot be made or locked, or is somebody else's.
    pub fn open(folder: &Path, stamp: &Stamp, fresh: bool) -> Result<(Self, Found), StoreError> {
        if folder.is_dir() && !is_results(folder)? && !is_empty(folder)? {
            return Err(StoreError::NotOurs(folder.to_owned()));
        }
        // The lock comes first: a folder that has it is ours, whatever else was not made before a kill.
        fs::create_dir_all(folder).map_err(at("make", folder))?;
        let path = folder.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(at("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(folder.to_owned())),
            Err(TryLockError::Error(source)) => return Err(at("lock", &path)(source)),
        }
        let points = folder.join(POINTS);
        fs::create_dir_all(&points).map_err(at("make", &points))?;
        let footer = vec![
            (IDENTITY_KEY.to_owned(), stamp.identity.clone()),
            (PHYSICS_KEY.to_owned(), stamp.physics.to_string()),
            (JUDGED_KEY.to_owned(), stamp.judged_by.clone()),
            ("starsweep.format_version".to_owned(), FORMAT_VERSION.to_string()),
        ];
        let store = Self { folder: folder.to_owned(), identity: stamp.identity.clone(), footer, _lock: lock };
        let found = store.settle(fresh)?;
        Ok((store, found))
    }

    /// Puts the folder in order.
    fn settle(&self, fresh: bool) -> Result<Found, StoreError> {
        let mut found = Found::default();
        self.remove_torn()?;
        // A run from the beginning that was interrupted goes on with what it has done, and takes nothing from before.
        let marker = self.folder.join(FRESH);
        let going = fs::read_to_string(&marker).is_ok_and(|identity| identity == self.identity);
        let fresh = fresh && !going;
        let (mut mine, mut others, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
        let mut bytes = Vec::new();
        for name in [POINTS, REFINED] {
            for path in files(&self.folder.join(name))? {
                match whole_identity(&path, &mut bytes)? {
                    Some(identity) if identity == self.identity && !fresh && name == POINTS => mine.push(path),
                    Some(identity) if identity == self.identity && !fresh => {}
                    Some(identity) => others.push((path, identity)),
                    None => damaged.push(path),
                }
            }
        }
        found.damaged = damaged.len();
        for path in damaged {
            self.put_aside(&path, "damaged")?;
        }
        if let Some((_, identity)) = others.first() {
            found.moved = Some(identity.clone());
            for name in ["sweep.yaml", "pareto.parquet", "pareto.csv", "points.csv", "manifest.json"] {
                let path = self.folder.join(name);
                if path.exists() {
                    self.put_aside(&path, identity)?;
                }
            }
        }
        for (path, identity) in &others {
            self.put_aside(path, identity)?;
        }
        if fresh {
            self.write_file(&marker, |out| Ok(write!(out, "{}", self.identity)?))?;
        } else if !going {
            found.restored = self.take_back(&mut mine)?;
        }
        found.whole = mine.iter().filter_map(|path| Segment::from_file_name(path.file_name()?.to_str()?)).collect();
        found.whole.sort_unstable();
        Ok(found)
    }

    /// Where segments are.
    #[must_use]
    pub fn points(&self) -> PathBuf {
        self.folder.join(POINTS)
    }

    /// Where refined points are.
    #[must_use]
    pub fn refined(&self) -> PathBuf {
        self.folder.join(REFINED)
    }

    /// Moves a file into `earlier/<identity>/`, beside what is there: nothing is ever overwritten.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn put_aside(&self, path: &Path, identity: &str) -> Result<(), StoreError> {
        let below = path.parent().and_then(|parent| parent.strip_prefix(&self.folder).ok()).unwrap_or(Path::new(""));
        let folder = self.folder.join(EARLIER).join(identity).join(below);
        fs::create_dir_all(&folder).map_err(at("make", &folder))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut target = folder.join(&name);
        let mut k = 1;
        while target.exists() {
            k += 1;
            target = folder.join(format!("{name}.{k}"));
        }
        fs::rename(path, &target).map_err(at("move", path))
    }

    /// Takes back the segments of this sweep that had been put aside when it was edited.
    fn take_back(&self, mine: &mut Vec<PathBuf>) -> Result<bool, StoreError> {
        let folder = self.folder.join(EARLIER).join(&self.identity).join(POINTS);
        if !folder.is_dir() {
            return Ok(false);
        }
        let (mut any, mut bytes) = (false, Vec::new());
        for path in files(&folder)? {
            let Some(name) = path.file_name() else { continue };
            let target = self.points().join(name);
            if !target.exists() && whole_identity(&path, &mut bytes)?.as_ref() == Some(&self.identity) {
                fs::rename(&path, &target).map_err(at("move", &path))?;
                mine.push(target);
                any = true;
            }
        }
        Ok(any)
    }

    /// Removes files that were being written when a run ended.
    fn remove_torn(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(&self.folder).map_err(at("read", &self.folder))? {
            let path = entry.map_err(at("read", &self.folder))?.path();
            let torn = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".writing-"));
            if torn {
                fs::remove_file(&path).map_err(at("remove", &path))?;
            }
        }
        Ok(())
    }

    /// Writes a segment: beside its place, synced, renamed. It is there whole, or not at all.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write_segment(&self, segment: Segment, table: &Table) -> Result<(), StoreError> {
        let path = self.points().join(segment.file_name());
        self.write_part(&path, |footer, out| {
            parquet::write_columns(table.schema(), table.rows(), |kinds| table.pages(kinds), footer, out)
        })
    }

    /// Writes refined points, as a segment is written.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write_refined(&self, segment: Segment, frame: &mut DataFrame) -> Result<(), StoreError> {
        let folder = self.refined();
        fs::create_dir_all(&folder).map_err(at("make", &folder))?;
        let path = folder.join(segment.file_name());
        self.write_part(&path, |footer, out| Format::Parquet.part().write(frame, footer, out))
    }

    /// Writes a sealed table.
    fn write_part(
        &self,
        path: &Path,
        write: impl FnOnce(&Footer, &mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        let blank = (SEAL_KEY.to_owned(), BLANK.to_owned());
        let footer: Vec<_> = self.footer.iter().cloned().chain([blank]).collect();
        write(&footer, &mut bytes)?;
        seal(&mut bytes);
        self.write_file(path, |out| Ok(out.write_all(&bytes)?))
    }

    /// Tables of a kind in what the folder was earlier: those that are whole, of the same physics, judged by the same rules.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn earlier(&self, kind: &str) -> Result<Vec<PathBuf>, StoreError> {
        let before = self.folder.join(EARLIER);
        let mut folders = Vec::new();
        if before.is_dir() {
            for entry in fs::read_dir(&before).map_err(at("read", &before))? {
                folders.push(entry.map_err(at("read", &before))?.path().join(kind));
            }
        }
        folders.sort_unstable();
        // A name that was there already has a number behind it.
        let tables = |folder: &PathBuf| listed(folder, |name| name.contains(".parquet"));
        let all = folders.iter().map(tables).collect::<Result<Vec<_>, _>>()?.concat();
        let wanted = [PHYSICS_KEY, JUDGED_KEY].map(|key| (key, value_of(&self.footer, key)));
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        for path in all {
            let footer = whole_footer(&path, &mut bytes)?.unwrap_or_default();
            if wanted.iter().all(|(key, value)| value_of(&footer, key) == *value) {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Says that all points are there: a run from the beginning is over.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn finished(&self) -> Result<(), StoreError> {
        let marker = self.folder.join(FRESH);
        if marker.exists() { fs::remove_file(&marker).map_err(at("remove", &marker)) } else { Ok(()) }
    }

    /// Writes a file beside its place, synced, and renames it.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write_file(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let beside = self.folder.join(format!(".writing-{name}"));
        let file = File::create(&beside).map_err(at("write", &beside))?;
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        let file = out.into_inner().map_err(|error| at("write", &beside)(error.into_error()))?;
        file.sync_all().map_err(at("sync", &beside))?;
        fs::rename(&beside, path).map_err(at("rename", &beside))?;
        if let Some(folder) = path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(at("sync", folder))?;
        }
        Ok(())
    }

    /// What every segment's footer says.
    #[must_use]
    pub fn footer(&self) -> &Footer {
        &self.footer
    }
}

/// Segment files of a folder, in order; none if it is not there.
///
/// # Errors
/// If the folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    listed(folder, |name| Segment::from_file_name(name).is_some())
}

/// The files of a folder whose names are as they should be, in order.
fn listed(folder: &Path, is_right: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder).map_err(at("read", folder))? {
        let path = entry.map_err(at("read", folder))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if is_right(&name) {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The identity in a segment's footer; none if any byte of the file is not as it was written.
fn whole_identity(path: &Path, bytes: &mut Vec<u8>) -> Result<Option<String>, StoreError> {
    let footer = whole_footer(path, bytes)?;
    Ok(footer.and_then(|footer| value_of(&footer, IDENTITY_KEY).map(str::to_owned)))
}

/// What the footer of a file says; none if any byte of it is not as it was written. The bytes are the file's.
fn whole_footer(path: &Path, bytes: &mut Vec<u8>) -> Result<Option<Vec<(String, String)>>, StoreError> {
    bytes.clear();
    File::open(path).and_then(|mut file| file.read_to_end(bytes)).map_err(at("read", path))?;
    Ok(is_whole(bytes).then(|| footer_of(bytes)).flatten())
}

/// What the footer of a Parquet file says.
fn footer_of(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    let metadata = reader.get_metadata().ok()?;
    let pairs = metadata.key_value_metadata.as_ref()?;
    Some(pairs.iter().filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?))).collect())
}

/// What a footer says of a key.
fn value_of<'a>(footer: &'a Footer, key: &str) -> Option<&'a str> {
    footer.iter().find(|pair| pair.0 == key).map(|pair| pair.1.as_str())
}

/// Whether a folder looks like one of ours.
fn is_results(folder: &Path) -> Result<bool, StoreError> {
    let lock = folder.join(".lock");
    lock.try_exists().map_err(at("read", &lock))
}

fn is_empty(folder: &Path) -> Result<bool, StoreError> {
    Ok(fs::read_dir(folder).map_err(at("read", folder))?.next().is_none())
}
