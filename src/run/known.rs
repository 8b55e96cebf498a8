//! What is known: event-driven rows of a folder and of what it was earlier, found by id and used again.

use std::collections::HashMap;

use polars::prelude::{AnyValue, DataFrame};

use super::layout::{Layout, Origin};
use crate::results::Status;
use crate::results::folder::{Folder, RowPlace};
use crate::results::store::StoreError;
use crate::sweep::column::From;
use crate::sweep::point::ID_LEN;
use crate::sweep::{Fidelity, Inputs, Sweep, point};
use crate::units::{real, signed};

/// Rows by id: where they are, not what they say.
#[derive(Debug)]
pub struct Known {
    folder: Folder,
    places: HashMap<[u8; ID_LEN], RowPlace>,
}

/// The table that was read last: neighbours are often in the same one.
pub type Loaded = Option<(usize, DataFrame)>;

impl Known {
    /// The event-driven rows of some tables; of several with one id the first.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn of(folder: Folder) -> Result<Self, StoreError> {
        let mut places = HashMap::new();
        for file in 0..folder.files.len() {
            // Tables of older versions have no such column, and no such rows.
            let Ok(frame) = folder.read(file, Some(&["id", "fidelity", "status"].map(str::to_owned))) else { continue };
            let [ids, fidelities, statuses] = ["id", "fidelity", "status"].map(|name| frame.column(name));
            let (ids, fidelities, statuses) = (ids?.str()?, fidelities?.str()?, statuses?.str()?);
            for row in 0..frame.height() {
                let id = ids.get(row).and_then(|id| id.as_bytes().try_into().ok());
                // Our mistakes are not worth keeping.
                let is_known = fidelities.get(row) == Some(Fidelity::EventDriven.name());
                if let (Some(id), true) =
                    (id, is_known && statuses.get(row) != Some(Status::NAMES[Status::Error as usize]))
                {
                    places.entry(id).or_insert(RowPlace { file, row });
                }
            }
        }
        Ok(Self { folder, places })
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The row of an id, if it has the columns of the layout and says of the inputs what their own row would say.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn row(
        &self,
        (sweep, layout): (&Sweep, &Layout),
        (id, inputs): (u64, &Inputs),
        loaded: &mut Loaded,
    ) -> Result<Option<DataFrame>, StoreError> {
        let Some(place) = self.places.get(&point::id_text(id)) else { return Ok(None) };
        let frame = match loaded {
            Some((file, frame)) if *file == place.file => frame,
            _ => &mut loaded.insert((place.file, self.folder.read(place.file, None)?)).1,
        };
        let columns = std::iter::once("id").chain(layout.columns.iter().map(|column| column.column.name.as_str()));
        if !frame.get_column_names().iter().map(|name| name.as_str()).eq(columns) {
            return Ok(None);
        }
        let row = frame.slice(signed(real(place.row as u64)), 1);
        Ok(says_the_same(sweep, layout, inputs, &row)?.then_some(row))
    }
}

/// Whether a row says of a point's inputs what its own row would say: names may have changed where the id has not.
fn says_the_same(sweep: &Sweep, layout: &Layout, inputs: &Inputs, row: &DataFrame) -> Result<bool, StoreError> {
    for (spec, origin) in layout.columns.iter().zip(&layout.origins) {
        let Origin::Input(k) = *origin else { continue };
        let input = &sweep.columns[k];
        let number = input.number(inputs);
        let value = row.column(&spec.column.name)?.get(0)?;
        let is_same = match (&value, value.get_str(), input.from) {
            (_, Some(text), From::Shape) => text == point::system(inputs).network.shape(),
            (_, Some(text), _) => input.text(number, &sweep.names, &sweep.tiers) == Some(text),
            (AnyValue::Null, ..) => number.is_nan() && input.from != From::Shape,
            (AnyValue::Float64(found), ..) => found.to_bits() == number.to_bits(),
            (AnyValue::Int64(found), ..) => !number.is_nan() && *found == signed(number),
            (AnyValue::Boolean(found), ..) => !number.is_nan() && *found == (number != 0.0),
            _ => false,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}
