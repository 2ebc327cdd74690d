//! The look at what a kill left: which pages are to be written home, and which break a rule.
//!
//! A thread that was killed stood between two stores, and all its earlier stores are seen. So each frame is in a state
//! of the table below, or its memory was damaged. A frame's mark tells; in memory without marks, a `PRESENT` record
//! with dirty sectors does.
//!
//! | found | cause | taken as |
//! | --- | --- | --- |
//! | no mark | free, detached, clean, being read, or a copy under way | free |
//! | a mark | a write was accepted, or nearly | dirty: only the mark's sectors are valid, since a copy may have reached others |
//! | a page twice, one dirty sectors within the other's | a page was being replaced | the frame with more |
//! | a size or a hole intended | the device was asked, perhaps | the file has the intent |
//! | a file without all these, and flushed | it is as on the device | not found: it is opened as any other |
//!
//! Owns: these rules, and what breaks them.
//! Does not own: the memory, which is only read; the consequences (`found`).
//! Invariants: one pass over the slots and one over the records, whatever they hold. A page that breaks a rule is never
//! taken as dirty. Beside a mark nothing of a record is believed but its page.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use afflux_device::FILE_BYTES_MAX;
use afflux_frames::{FrameId, Memory};
use afflux_pages::page::{FoundRecord, PageTable, Sectors};
use afflux_pages::units::PAGE_BYTES;

use super::slots::{FileKey, FileSlots, Intent, SlotContent, SlotFile};

#[cfg(test)]
mod tests;

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

/// What a look found.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) files: BTreeMap<FileKey, FoundFile>,
    pub(crate) quarantined: Quarantined,
}

/// Looks through memory of which the header was checked.
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
