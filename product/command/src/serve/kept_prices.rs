//! What was learned of disks, kept in a file until the next start.
//!
//! The file is JSON: for each disk by its identity (`device_identity`) the name that it had, when it was last served,
//! and what the policy wanted kept.
//!
//! Owns: the file, which disks are forgotten. Does not own: what the numbers mean (the policy), when it is written.
//! Invariants: the file is replaced whole or not at all. What others have written to it stays. A server starts without
//! whatever makes no sense, and says so.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use afflux_budget::RememberedPrices;
use afflux_engine::policy::Remembered;
use serde::{Deserialize, Serialize};

use afflux_report::output;

/// The form of the file.
const VERSION: u32 = 1;

/// Most disks that are kept; of more those are forgotten that were not served for longest.
const DISKS_MAX: usize = 64;

/// What has not changed is written again after so long, so that it counts as served.
const RECENT_S: u64 = 86_400;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    disks: BTreeMap<String, Disk>,
}

/// A disk in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    /// As it was shown; for whoever reads the file.
    name: String,
    /// When it was last served, in seconds since 1970.
    served_unix_s: u64,
    prices: Remembered,
}

/// What is known of a disk now.
pub(crate) struct Learned {
    pub(crate) identity: String,
    pub(crate) name: String,
    pub(crate) prices: Remembered,
}

/// What was kept, and where.
pub(crate) struct KeptPrices {
    path: Option<PathBuf>,
    disks: BTreeMap<String, Disk>,
}

impl KeptPrices {
    /// Reads the file, if it is there; what is wrong with it is told.
    pub(crate) fn read(path: Option<PathBuf>) -> (Self, Vec<String>) {
        let Some(path) = path else { return (Self { path: None, disks: BTreeMap::new() }, Vec::new()) };
        let shown = output::shown(path.display());
        match document(&path) {
            Ok(document) => {
                let (disks, refused) = sensible(document.disks);
                let refused = refused.into_iter().map(|why| format!("{shown}: {why}"));
                let warnings = refused.collect();
                (Self { path: Some(path), disks }, warnings)
            }
            Err(Unread::Newer(version)) => {
                let why = format!("{shown} has version {version}, and {VERSION} is what this program knows");
                (Self { path: None, disks: BTreeMap::new() }, vec![format!("{why}: it is neither used nor changed")])
            }
            Err(Unread::Nonsense(why)) => {
                let why = format!("{shown} is not used ({why}); it will be written anew");
                (Self { path: Some(path), disks: BTreeMap::new() }, vec![why])
            }
        }
    }

    /// What was kept of a disk.
    pub(crate) fn of(&self, identity: &str) -> Remembered {
        self.disks.get(identity).map(|disk| disk.prices.clone()).unwrap_or_default()
    }

    /// Keeps what is known now, beside what others have kept since.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn keep(&mut self, learned: Vec<Learned>) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let served_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut disks = match document(path) {
            Ok(document) => sensible(document.disks).0,
            Err(Unread::Newer(_)) => return Ok(()),
            Err(Unread::Nonsense(_)) => BTreeMap::new(),
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
            replace(path, &Document { version: VERSION, disks: disks.clone() })?;
        }
        self.disks = disks;
        Ok(())
    }
}

/// Why a file is not read.
enum Unread {
    Newer(u64),
    Nonsense(String),
}

fn document(path: &Path) -> Result<Document, Unread> {
    let nonsense = |why: String| Unread::Nonsense(why);
    let mut text = String::new();
    match File::open(path) {
        Ok(file) => {
            file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| nonsense(error.to_string()))?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Document { version: VERSION, disks: BTreeMap::new() });
        }
        Err(error) => return Err(nonsense(error.to_string())),
    }
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(nonsense(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| nonsense(error.to_string()))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => Err(Unread::Newer(version)),
        _ => serde_json::from_value(value).map_err(|error| nonsense(error.to_string())),
    }
}

/// The disks whose prices are some that a disk can have, and what is wrong with the others.
fn sensible(disks: BTreeMap<String, Disk>) -> (BTreeMap<String, Disk>, Vec<String>) {
    let mut refused = Vec::new();
    let kept = disks.into_iter().filter(|(identity, disk)| match RememberedPrices::from_named(&disk.prices) {
        Ok(_) => true,
        Err(why) => {
            let (name, identity) = (output::shown(&disk.name), output::shown(identity));
            refused.push(format!("what it says of {name} ({identity}) is not used: {why}"));
            false
        }
    });
    (kept.collect(), refused)
}

/// Puts a whole new file in the place of the old one.
fn replace(path: &Path, document: &Document) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    let new = path.with_extension(format!("json.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        // It may not even be there.
        let _ = fs::remove_file(&new);
    }
    written
}
