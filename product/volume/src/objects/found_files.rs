//! Files that the engine's memory has from an earlier process, until they are objects in memory again.
//!
//! Owns: the engine's key of a file, and which files nobody has brought back yet.
//! Does not own: the bringing back (`handles::adopt`), the files' pages (the engine).
//! Invariants: a file's key is its identity and the export that it was found through first. One caller at a time brings
//! a file back. It is taken out only after its object can be found, or when it is gone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::{FILE_KEY_BYTES_MAX, FileKey};
use futures_util::lock::Mutex as TaskMutex;

use crate::lock::lock;
use crate::objects::handle::HandleKey;
use crate::tree::directory::Directory;
use crate::tree::identity::{IDENTITY_BYTES_MAX, Identity, IdentityMap};

/// Export 2, file-system id 8, form 1, kind 1; then the host's bytes.
const FIXED_BYTES: usize = 12;
const _: () = assert!(FIXED_BYTES + IDENTITY_BYTES_MAX <= FILE_KEY_BYTES_MAX);

/// The engine's key of a file.
pub(crate) fn key_of(identity: &Identity, export: u16) -> Option<FileKey> {
    let mut bytes = Vec::with_capacity(FIXED_BYTES + identity.bytes().len());
    bytes.extend_from_slice(&export.to_be_bytes());
    bytes.extend_from_slice(&identity.fsid().to_be_bytes());
    bytes.extend_from_slice(&[identity.form(), identity.kind()]);
    bytes.extend_from_slice(identity.bytes());
    FileKey::new(&bytes)
}

/// The file of a key; `None` if this program made no such key.
fn parse(key: &FileKey) -> Option<(Identity, u16)> {
    let (fixed, host) = key.as_bytes().split_at_checked(FIXED_BYTES)?;
    let (export, rest) = fixed.split_first_chunk()?;
    let (fsid, rest) = rest.split_first_chunk()?;
    let [form, kind] = *rest else { return None };
    let fits = host.len() <= IDENTITY_BYTES_MAX;
    fits.then(|| (Identity::new(u64::from_be_bytes(*fsid), form, kind, host), u16::from_be_bytes(*export)))
}

/// The files of keys that a volume of this tree and this key of handles made, and the number of the other keys.
pub fn found_identities(
    tree: &dyn Directory,
    handle_key: &HandleKey,
    keys: Vec<FileKey>,
) -> (Vec<(FileKey, Identity)>, usize) {
    let tags: Vec<u16> = tree.exports().iter().map(|export| handle_key.export_tag(&export.root.identity)).collect();
    let all = keys.len();
    let here =
        |key: FileKey| parse(&key).filter(|(_, export)| tags.contains(export)).map(|(identity, _)| (key, identity));
    let files: Vec<_> = keys.into_iter().filter_map(here).collect();
    let elsewhere = all - files.len();
    (files, elsewhere)
}

/// A file that waits to be brought back.
#[derive(Clone)]
pub(crate) struct PendingFile {
    pub(crate) key: FileKey,
    pub(crate) export: u16,
    /// Held by the caller that brings it back.
    pub(crate) claim: Arc<TaskMutex<()>>,
}

/// The files that wait.
pub(crate) struct FoundFiles {
    files: Mutex<IdentityMap<PendingFile>>,
    remaining: AtomicUsize,
    /// Keys that no volume made.
    unreadable: usize,
}

impl FoundFiles {
    pub(crate) fn new(keys: Vec<FileKey>) -> Self {
        let all = keys.len();
        let file = |(identity, export), key| (identity, PendingFile { key, export, claim: Arc::default() });
        let files: IdentityMap<_> = keys.into_iter().filter_map(|key| Some(file(parse(&key)?, key))).collect();
        let remaining = files.len();
        Self { files: Mutex::new(files), remaining: AtomicUsize::new(remaining), unreadable: all - remaining }
    }

    /// The file, if it waits. Costs a load if none does.
    #[inline]
    pub(crate) fn get(&self, identity: &Identity) -> Option<PendingFile> {
        if self.remaining.load(Ordering::Acquire) == 0 { None } else { lock(&self.files).get(identity).cloned() }
    }

    /// Takes a file out.
    pub(crate) fn remove(&self, identity: &Identity) {
        if lock(&self.files).remove(identity).is_some() {
            self.remaining.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The files that wait, in the same order in every run.
    pub(crate) fn all(&self) -> Vec<(Identity, PendingFile)> {
        let mut all: Vec<_> = lock(&self.files).iter().map(|(identity, file)| (*identity, file.clone())).collect();
        all.sort_unstable_by_key(|(identity, _)| *identity);
        all
    }

    /// How many files were in no export of these.
    pub(crate) fn outside(&self, exports: &[u16]) -> usize {
        self.unreadable + lock(&self.files).values().filter(|file| !exports.contains(&file.export)).count()
    }
}

#[cfg(test)]
mod tests;
