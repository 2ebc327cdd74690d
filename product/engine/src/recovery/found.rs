//! What was found in an arena's memory, until its files are adopted.
//!
//! Owns: the found files, the frames of their pages; the change of the memory to what a fresh engine expects.
//! Does not own: the look (`look`), the engine's own files.
//! Invariants: the verifier is new in the header before a page that broke a rule is forgotten. A kill at any moment
//! leaves memory that is found again with the same dirty pages. A found page keeps its frame until it is written, cut
//! off or forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use afflux_frames::{ArenaState, FrameId, Frames, Memory};
use afflux_pages::page::PageTable;
use afflux_pages::wait::lock;

use super::look::{FoundFile, Quarantined, Seen, look};
use super::slots::{FileKey, FileSlots};

/// An arena's memory after its last user ended without a word: what is in it, looked through once.
pub struct Recovered {
    pub(super) memory: Arc<Memory>,
    pub(super) seen: Seen,
}

impl Recovered {
    /// Looks through memory of which [`Header::check`](afflux_frames::Header::check) said that it is an arena. Changes
    /// nothing in it, whatever it holds.
    pub fn look(memory: Arc<Memory>) -> Self {
        let seen = look(&memory);
        Self { memory, seen }
    }

    /// The found files' keys, each with the number of its dirty pages. Files without any need a flush, or have a change
    /// of shape to end.
    pub fn files(&self) -> impl Iterator<Item = (&FileKey, usize)> {
        self.seen.files.iter().map(|(key, file)| (key, file.pages.len()))
    }

    /// Recoveries before this one, each soon after the one before.
    pub fn recoveries(&self) -> u64 {
        self.memory.header().recoveries()
    }

    /// What broke a rule.
    pub fn quarantined(&self) -> Quarantined {
        self.seen.quarantined
    }

    /// Whether accepted data may be lost, so that clients must be given another write verifier.
    pub fn needs_new_verifier(&self) -> bool {
        self.seen.quarantined.pages > 0
    }

    /// Makes the memory what an engine expects: dirty pages of found files, and nothing else. `verifier` is the new
    /// write verifier, used only if one is needed.
    pub fn settle(self, verifier: u64) -> (Frames, BTreeMap<FileKey, FoundFile>) {
        let header = self.memory.header();
        header.set_state(ArenaState::Recovering);
        header.set_recoveries(header.recoveries().saturating_add(1));
        if self.needs_new_verifier() {
            header.set_verifier(verifier);
        }
        let mut taken: Vec<FrameId> = Vec::new();
        let pages = PageTable::of(&self.memory);
        for page in self.seen.files.values().flat_map(|file| &file.pages) {
            pages.settle_found(page.frame, page.dirty, page.dirty);
            taken.push(page.frame);
        }
        taken.sort_unstable();
        let mut next = taken.iter().peekable();
        pages.frames().filter(|frame| next.next_if_eq(&frame).is_none()).for_each(|frame| pages.settle_free(frame));
        let slots = FileSlots::of(&self.memory, Arc::default());
        // The slot that needs the flush may be another one, which is freed.
        self.seen
            .files
            .values()
            .filter(|file| !file.is_flushed)
            .for_each(|file| slots.persisted(file.slot).owe_flush());
        let live: BTreeSet<u32> = self.seen.files.values().map(|file| file.slot).collect();
        (0..slots.count()).filter(|slot| !live.contains(slot)).for_each(|slot| slots.free(slot));
        (Frames::over(self.memory, &taken), self.seen.files)
    }
}

/// The found files that nobody has adopted yet.
#[derive(Default)]
pub(crate) struct Unadopted(Mutex<BTreeMap<FileKey, FoundFile>>);

impl Unadopted {
    /// Files that were found and have yet to be adopted.
    pub(crate) fn new(files: BTreeMap<FileKey, FoundFile>) -> Self {
        Self(Mutex::new(files))
    }

    /// The keys of the files that nobody has adopted.
    pub(crate) fn keys(&self) -> Vec<FileKey> {
        lock(&self.0).keys().copied().collect()
    }

    pub(crate) fn slots(&self) -> BTreeSet<u32> {
        lock(&self.0).values().map(|file| file.slot).collect()
    }

    /// Takes a file out, for good.
    pub(crate) fn take(&self, key: &FileKey) -> Option<FoundFile> {
        lock(&self.0).remove(key)
    }

    /// Whether nobody has adopted this file.
    pub(crate) fn has(&self, key: &FileKey) -> bool {
        lock(&self.0).contains_key(key)
    }

    /// Whether a file has dirty pages or an unfinished change of shape.
    pub(crate) fn is_owed(&self, key: &FileKey) -> bool {
        lock(&self.0).get(key).is_some_and(FoundFile::has_unwritten)
    }

    /// Dirty pages of the files, in time proportional to the number of files.
    pub(crate) fn pages(&self) -> u64 {
        lock(&self.0).values().map(|file| file.pages.len() as u64).sum()
    }
}
