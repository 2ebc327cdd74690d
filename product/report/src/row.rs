//! Rows: one figure, or a few, with all their parameters, as a JSON object on one line.
//!
//! Owns: the shape that every experiment prints.
//! Does not own: the figures and their names.
//! Invariants: names retain their original order; a number that is not finite is `null`.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The source of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureSource {
    /// From the real engine on this machine.
    Measured,
    /// From the simulator, in virtual time.
    Simulated,
}

/// Named values in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fields(Vec<(String, Value)>);

impl Fields {
    /// A row without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more field.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.push(name, value);
        self
    }

    /// Adds a field; an existing name gets the new value.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some(field) => field.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// One row. [`fmt::Display`] gives JSON on one line, without its end.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Name of the experiment.
    pub experiment: String,
    /// The compared thing.
    pub variant: String,
    /// Parameters of the run, by name.
    pub params: Fields,
    /// The results, each name ending with its unit.
    pub metrics: Fields,
    /// Published values for the same, under the metrics' names.
    pub published: Fields,
    /// The source of the metrics.
    pub source: FigureSource,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
