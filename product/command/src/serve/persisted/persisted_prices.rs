//! The prices of disks, persisted in a file until the next start.
//!
//! The file is JSON. It has, for each disk by its identity (`device_identity`), its name, the time when it was last
//! served, and the numbers that the policy persists.
//!
//! Owns: the file, the choice of disks to forget.
//! Does not own: the meaning of the numbers (the policy), when the file is written.
//! Invariants: the file is replaced whole or not at all. Entries that other servers wrote stay. A server ignores
//! entries that make no sense, and reports them. No lock is held while the file is read or written.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use afflux_budget::RememberedPrices;
use afflux_engine::lock;
use afflux_engine::policy::Remembered;
use serde::{Deserialize, Serialize};

use crate::private_directory;
use afflux_report::{bounded_file, output};

const VERSION: u32 = 1;

/// Most disks in the file; the ones not served for longest are forgotten first.
const DISKS_MAX: usize = 64;

/// An unchanged entry is written again after this time, so that it counts as served.
const RECENT_S: u64 = 86_400;

const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    disks: BTreeMap<String, Disk>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    /// The disk's name in reports; for people who read the file.
    name: String,
    /// When it was last served, in seconds since 1970.
    served_unix_s: u64,
    prices: Remembered,
}

/// The current prices of a disk.
pub(crate) struct Learned {
    pub(crate) identity: String,
    pub(crate) name: String,
    pub(crate) prices: Remembered,
}

/// The entries, and the file's path.
pub(crate) struct PersistedPrices {
    path: Option<PathBuf>,
    disks: Mutex<BTreeMap<String, Disk>>,
}

impl PersistedPrices {
    /// Reads the file, if it exists; returns defects in it as warnings.
    pub(crate) fn read(path: Option<PathBuf>) -> (Self, Vec<String>) {
        let Some(path) = path else { return (Self { path: None, disks: Mutex::default() }, Vec::new()) };
        let none = BTreeMap::new();
        let shown = output::shown(path.display());
        let (path, disks, warnings) = match document(&path) {
            Ok(document) => {
                let (disks, refused) = sensible(document.disks);
                (Some(path), disks, refused.into_iter().map(|why| format!("{shown}: {why}")).collect())
            }
            Err(LoadFailure::Newer(version)) => {
                let why = format!("{shown} has version {version}, and this program knows {VERSION}");
                (None, none, vec![format!("{why}: the file is neither used nor changed")])
            }
            Err(LoadFailure::Nonsense(why)) => {
                (Some(path), none, vec![format!("{shown} is not used ({why}); it will be written anew")])
            }
        };
        (Self { path, disks: Mutex::new(disks) }, warnings)
    }

    /// The prices of a disk from earlier runs.
    pub(crate) fn of(&self, identity: &str) -> Remembered {
        lock(&self.disks).get(identity).map(|disk| disk.prices.clone()).unwrap_or_default()
    }

    /// Writes the current prices, beside entries that other servers have written since. One thread at a time calls it,
    /// and waits for the file's disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn keep(&self, learned: Vec<Learned>) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let served_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut disks = match document(path) {
            Ok(document) => sensible(document.disks).0,
            Err(LoadFailure::Newer(_)) => return Ok(()),
            Err(LoadFailure::Nonsense(_)) => BTreeMap::new(),
        };
        let before = disks.clone();
        for Learned { identity, name, prices } in learned {
            let is_recent = |disk: &Disk| served_unix_s.saturating_sub(disk.served_unix_s) < RECENT_S;
            let same = disks.get(&identity).is_some_and(|disk| disk.prices == prices && is_recent(disk));
            if !prices.is_empty() && !same {
                disks.insert(identity, Disk { name, served_unix_s, prices });
            }
        }
        while disks.len() > DISKS_MAX {
            let oldest = disks.iter().min_by_key(|(_, disk)| disk.served_unix_s).map(|(identity, _)| identity.clone());
            oldest.map(|identity| disks.remove(&identity));
        }
        if disks != before {
            let document = Document { version: VERSION, disks: disks.clone() };
            private_directory::replace(path, &serde_json::to_string_pretty(&document)?)?;
        }
        *lock(&self.disks) = disks;
        Ok(())
    }
}

/// Why a file was not read.
enum LoadFailure {
    Newer(u64),
    Nonsense(String),
}

fn document(path: &Path) -> Result<Document, LoadFailure> {
    let nonsense = |why: String| LoadFailure::Nonsense(why);
    let bytes = match bounded_file::read(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Document { version: VERSION, disks: BTreeMap::new() });
        }
        Err(error) => return Err(nonsense(error.to_string())),
    };
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| nonsense(error.to_string()))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => Err(LoadFailure::Newer(version)),
        _ => serde_json::from_value(value).map_err(|error| nonsense(error.to_string())),
    }
}

/// The disks with plausible prices, and the defects of the others.
fn sensible(disks: BTreeMap<String, Disk>) -> (BTreeMap<String, Disk>, Vec<String>) {
    let mut refused = Vec::new();
    let persisted = disks.into_iter().filter(|(identity, disk)| match RememberedPrices::from_named(&disk.prices) {
        Ok(_) => true,
        Err(why) => {
            let (name, identity) = (output::shown(&disk.name), output::shown(identity));
            refused.push(format!("its entry for {name} ({identity}) is not used: {why}"));
            false
        }
    });
    (persisted.collect(), refused)
}
