//! The paths of the exports on the host. Clients may mount an export by its name, or by this path.
//!
//! Owns: the export's name that stands for such a path, or for a path below it.
//! Does not own: the exports, and the way below them (the volume).
//! Invariants: a path that is not served has no name here. The name of an export wins over a path of the host.

use std::path::{Component, Path, PathBuf};

/// The paths of the exports on the host.
#[derive(Clone, Debug, Default)]
pub struct ExportPaths(Vec<(PathBuf, String)>);

impl ExportPaths {
    /// From the absolute paths of exports, and the exports' names. An export may have several paths.
    pub fn new(places: impl IntoIterator<Item = (PathBuf, String)>) -> Self {
        Self(places.into_iter().filter(|(path, _)| path.is_absolute()).collect())
    }

    /// Each path with its export's, as bytes.
    pub(crate) fn named_paths(&self) -> Vec<(Vec<u8>, String)> {
        self.0.iter().map(|(path, name)| (path.as_os_str().as_encoded_bytes().to_vec(), name.clone())).collect()
    }

    /// The path below the exports' names for a path of the host.
    pub(crate) fn named(&self, path: &Path) -> Option<PathBuf> {
        // The volume decides where ".." leads, and it knows no directory above an export.
        if path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let below = |(place, name): &(PathBuf, String)| Some(Path::new(name).join(path.strip_prefix(place).ok()?));
        self.0.iter().find_map(below)
    }
}

#[cfg(test)]
mod tests;
