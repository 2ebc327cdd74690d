//! What outlives the process, if the arena's memory does: the scan of memory after a kill, and the files found until
//! they are adopted.
//!
//! A thread that was killed stood between two stores, and all its earlier stores are seen. So each frame is in a state
//! of the table below, or its memory was damaged. A frame's mark says whether its page is dirty.
//!
//! | found | cause | taken as |
//! | --- | --- | --- |
//! | no mark | free, detached, clean, being read, or a copy under way | free |
//! | a mark | a write was accepted, or nearly | dirty: only the mark's sectors are valid, since a copy may have reached others |
//! | a page twice, one dirty sectors within the other's | a page was being replaced | the frame with more |
//! | a size or a hole intended | the device was asked, perhaps | the file has the intent |
//! | a file without all these, and flushed | it is as on the device | not found: it is opened as any other |
//!
//! Owns: these rules, and what breaks them; the found files and the frames of their pages; the change of the memory to
//! what a fresh engine expects; writing found files home without an engine.
//! Does not own: the memory (the crate `frames`), the form of a file slot (`slots`), the records (`page`), the return
//! of found pages to their files (`adopt`), the host's file and the moment of a rescue (`RescuedFile`'s makers).
//! Invariants: one pass over the slots and one over the records, whatever they hold. A page that breaks a rule is never
//! taken as dirty. Beside a mark nothing of a record is believed but its page. The verifier is new in the header before
//! a page that broke a rule is forgotten. A kill at any moment leaves memory that is found again with the same dirty
//! pages. A found page holds its frame until it is written, cut off or forgotten. A rescue changes nothing in the
//! memory, so that a kill during it is one more kill; a file is home when its sync has succeeded, and bytes past the
//! size that clients know stay behind.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use afflux_device::FILE_BYTES_MAX;
use afflux_frames::{ArenaState, FRAME_BYTES, FrameId, Frames, Memory};
use afflux_pages::page::{FoundRecord, PageTable, SECTOR_BYTES, Sectors};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::recovery::slots::{FileSlots, Intent, SlotContent, SlotFile};

pub(crate) mod adopt;
pub(crate) mod slots;

pub use slots::{FILE_KEY_BYTES_MAX, FileKey};

/// A dirty page that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundPage {
    /// Number of the page in its file.
    pub page: u64,
    /// Frame that has the page's bytes.
    pub frame: FrameId,
    /// Its dirty sectors.
    pub dirty: Sectors,
}

/// A file that was found in its slot, with its dirty pages in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundFile {
    /// Slot of the file in the memory's table.
    pub slot: u32,
    /// Its size in bytes.
    pub size: u64,
    /// The change of shape that was begun.
    pub intent: Option<Intent>,
    /// Whether each byte that the device has of it is durable.
    pub(crate) is_flushed: bool,
    /// Its dirty pages, in order.
    pub pages: Vec<FoundPage>,
}

impl FoundFile {
    /// Whether something of it is not on the device.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.pages.is_empty() || self.intent.is_some()
    }
}

/// What broke a rule, and is never written home.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quarantined {
    /// File slots with bytes that no engine stored, or with another slot's key.
    pub files: u64,
    /// Pages that may have been dirty: in a state that no kill leaves, or of a file that is in no slot.
    pub pages: u64,
}

/// What a scan found.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) files: BTreeMap<FileKey, FoundFile>,
    pub(crate) quarantined: Quarantined,
}

/// Scans memory of which the header was checked.
pub(crate) fn look(memory: &Arc<Memory>) -> Seen {
    let slots = FileSlots::of(memory, Arc::default());
    let pages = PageTable::of(memory);
    let mut quarantined = Quarantined::default();
    let mut files = live_files(&slots, &mut quarantined);
    for (slot, page) in dirty_pages(&pages, &mut quarantined) {
        match files.get_mut(&slot) {
            Some((_, file)) => file.pages.push(page),
            None => quarantined.pages += 1,
        }
    }
    for (_, file) in files.values_mut() {
        file.pages.sort_unstable_by_key(|page| (page.page, page.frame));
        quarantined.pages += leave_single(&mut file.pages);
    }
    let mut files = by_key(files, &mut quarantined);
    files.retain(|_, file| file.has_unwritten() || !file.is_flushed);
    Seen { files, quarantined }
}

/// The live files by slot.
fn live_files(slots: &FileSlots, quarantined: &mut Quarantined) -> BTreeMap<u32, (FileKey, FoundFile)> {
    let mut files = BTreeMap::new();
    for slot in 0..slots.count() {
        match slots.content(slot) {
            SlotContent::Free => {}
            SlotContent::Broken => quarantined.files += 1,
            SlotContent::Live(SlotFile { key, size, intent, is_flushed }) => {
                files.insert(slot, (key, FoundFile { slot, size, intent, is_flushed, pages: Vec::new() }));
            }
        }
    }
    files
}

/// The dirty pages, each with the slot of its file.
fn dirty_pages(pages: &PageTable, quarantined: &mut Quarantined) -> Vec<(u32, FoundPage)> {
    let mut dirty = Vec::new();
    for frame in pages.frames() {
        match pages.found(frame) {
            FoundRecord::Nothing => {}
            FoundRecord::Dirty { identity, dirty: sectors } if identity.index < FILE_BYTES_MAX / PAGE_BYTES + 1 => {
                dirty.push((identity.file, FoundPage { page: identity.index, frame, dirty: sectors }));
            }
            FoundRecord::Dirty { .. } | FoundRecord::Illegal => quarantined.pages += 1,
        }
    }
    dirty
}

/// Leaves one frame of each page, if the frames are those of a page that was being replaced, otherwise none. Returns
/// how many frames broke that rule.
fn leave_single(pages: &mut Vec<FoundPage>) -> u64 {
    let mut broken = 0;
    let single = pages.chunk_by(|one, other| one.page == other.page).filter_map(|frames| match frames {
        [page] => Some(*page),
        [one, other] if one.dirty.contains(other.dirty) => Some(*one),
        [one, other] if other.dirty.contains(one.dirty) => Some(*other),
        frames => {
            broken += frames.len() as u64;
            None
        }
    });
    *pages = single.collect();
    broken
}

/// The files by key. A file that was closed, and opened again in another slot, is clean in the old one. It may need a
/// flush there.
fn by_key(files: BTreeMap<u32, (FileKey, FoundFile)>, quarantined: &mut Quarantined) -> BTreeMap<FileKey, FoundFile> {
    let mut by_key: BTreeMap<FileKey, Option<FoundFile>> = BTreeMap::new();
    for (key, mut file) in files.into_values() {
        let entry = match by_key.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(Some(file));
                continue;
            }
            Entry::Occupied(entry) => entry.into_mut(),
        };
        match (&mut *entry, file.has_unwritten()) {
            (Some(other), true) if other.has_unwritten() => {
                quarantined.files += 2;
                quarantined.pages += (other.pages.len() + file.pages.len()) as u64;
                *entry = None;
            }
            (Some(other), true) => {
                file.is_flushed &= other.is_flushed;
                *entry = Some(file);
            }
            (Some(other), false) => other.is_flushed &= file.is_flushed,
            (None, true) => {
                quarantined.files += 1;
                quarantined.pages += file.pages.len() as u64;
            }
            (None, false) => {}
        }
    }
    by_key.into_iter().filter_map(|(key, file)| Some((key, file?))).collect()
}

/// An arena's memory after its last user ended without a word: what is in it, looked through once.
pub struct Recovered {
    memory: Arc<Memory>,
    seen: Seen,
}

impl Recovered {
    /// Scans memory of which [`Header::check`](afflux_frames::Header::check) said that it is an arena. Changes nothing
    /// in it, whatever it holds.
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

/// A file of the host that takes what was found of it. Each call may block.
pub trait RescuedFile {
    /// The host's refusal.
    type Error;

    /// Writes all of the bytes.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Sets the size.
    fn set_size(&mut self, size: u64) -> Result<(), Self::Error>;

    /// Makes everything durable that was written so far, by whichever process.
    fn sync(&mut self) -> Result<(), Self::Error>;
}

impl Recovered {
    /// Whether the file has dirty pages or an unfinished change of shape.
    pub fn is_owed(&self, key: &FileKey) -> bool {
        self.seen.files.get(key).is_some_and(|file| file.has_unwritten())
    }

    /// Writes a found file home and makes it durable. Returns the number of bytes written. An unfinished change of
    /// shape is carried out; a hole is written as zeros.
    ///
    /// # Errors
    /// The first of the host's. The call can be repeated.
    pub fn write_home<F: RescuedFile>(&self, key: &FileKey, file: &mut F) -> Result<u64, F::Error> {
        let Some(found) = self.seen.files.get(key) else { return Ok(0) };
        let mut written = 0;
        for page in &found.pages {
            let frame = self.memory.frame(page.frame);
            for part in dirty_parts(page, found.size) {
                file.write(page.page * PAGE_BYTES + part.start as u64, &frame[part.clone()])?;
                written += part.len() as u64;
            }
        }
        match &found.intent {
            None => {}
            Some(Intent::Size(size)) => file.set_size(*size)?,
            Some(Intent::Hole(range)) => write_zeros(file, range.start..range.end.min(found.size))?,
        }
        file.sync()?;
        Ok(written)
    }

    /// The memory for a fresh engine, once each file is home. `verifier` is used as in `Engine::recover`.
    pub fn written(mut self, verifier: u64) -> Frames {
        self.seen.files.clear();
        let memory = std::sync::Arc::clone(&self.memory);
        let frames = self.settle(verifier).0;
        memory.header().set_recoveries(0);
        frames
    }
}

/// The runs of dirty sectors in a page of a file of `size` bytes.
fn dirty_parts(page: &FoundPage, size: u64) -> impl Iterator<Item = Range<usize>> {
    let in_file = size.saturating_sub(page.page * PAGE_BYTES).min(PAGE_BYTES) as usize;
    let sectors: Vec<usize> = page.dirty.iter().collect();
    let runs: Vec<Range<usize>> =
        sectors.chunk_by(|one, next| one + 1 == *next).map(|run| run[0]..run[run.len() - 1] + 1).collect();
    let bytes = move |run: Range<usize>| run.start * SECTOR_BYTES..(run.end * SECTOR_BYTES).min(in_file);
    runs.into_iter().map(bytes).filter(|part| part.start < part.end)
}

fn write_zeros<F: RescuedFile>(file: &mut F, range: Range<u64>) -> Result<(), F::Error> {
    let zeros = [0; FRAME_BYTES];
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(zeros.len() as u64);
        file.write(at, &zeros[..len as usize])?;
        at += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
