//! File slots: the files of an arena, as a later process finds them.
//!
//! Owns: the words of a slot and the order in which they are stored.
//! Does not own: the number of a file's slot (`devices::table`), the meaning of a key.
//! Invariants: each word that decides about bytes has a check over the slot, the key and itself
//! (`no_damage_of_one_word_moves_a_page_to_another_place`). The word with state and checksum is stored last when a slot
//! becomes live, and first when it becomes free. The size is stored before any client sees it. An intent is stored
//! before the device is asked and cleared after the cache has followed. A flush is owed before the page that needs it
//! becomes clean, and until one succeeds. Between two stores a later process finds the state before or after.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_device::FILE_BYTES_MAX;
use afflux_frames::{FILE_SLOT_BYTES, FrameTable, Memory, Part};
use afflux_pages::page::mixed;
use afflux_pages::rare::Stores;

#[cfg(test)]
mod tests;

/// Most bytes of a key.
pub const FILE_KEY_BYTES_MAX: usize = 64;
const KEY_WORDS: usize = FILE_KEY_BYTES_MAX / 8;

/// Offsets of the words in a slot.
mod at {
    /// State in the lowest byte, the key's length in the next, the key's checksum in the upper half.
    pub(super) const STATE: usize = 0;
    pub(super) const SIZE: usize = 1;
    /// The intent's kind with the check of all three words in the upper half; then its offset or size; then its length.
    pub(super) const INTENT: usize = 2;
    pub(super) const FLUSHED: usize = 5;
    /// The check of the size that is stored next, or last, in the upper half; that of the size before it in the lower.
    /// The word before is reserved.
    pub(super) const SIZE_CHECK: usize = 7;
    pub(super) const KEY: usize = 8;
    pub(super) const END: usize = 16;
}

const _: () = assert!(at::END * 8 == FILE_SLOT_BYTES && at::KEY + KEY_WORDS == at::END);

const FREE: u64 = 0;
const FILLING: u64 = 1;
const LIVE: u64 = 2;

/// Bytes on the device need a flush.
const UNFLUSHED: u64 = 0;
/// No flipped bit makes this of the other.
const FLUSHED: u64 = 0x6465_6873_756c_6621;

const NO_INTENT: u64 = 0;
const SIZE: u64 = 1;
const HOLE: u64 = 2;

/// The name of a file over restarts: bytes that the engine stores and does not read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey {
    bytes: [u8; FILE_KEY_BYTES_MAX],
    len: u8,
}

impl FileKey {
    /// The key of these bytes; `None` if they are more than [`FILE_KEY_BYTES_MAX`].
    pub fn new(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; FILE_KEY_BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self { bytes, len: key.len() as u8 })
    }

    /// Bytes of the key, as the memory has them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for FileKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "FileKey({:02x?})", self.as_bytes())
    }
}

/// A change of shape that was begun and not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intent {
    /// A new size in bytes.
    Size(u64),
    /// Bytes that become zeros.
    Hole(Range<u64>),
}

/// A file as its slot shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlotFile {
    pub(crate) key: FileKey,
    /// The size as clients know it.
    pub(crate) size: u64,
    pub(crate) intent: Option<Intent>,
    /// Whether each byte that the engine has written is durable.
    pub(crate) is_flushed: bool,
}

/// The content of a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SlotContent {
    /// Nothing, or a file of which no page was ever dirty.
    Free,
    Live(SlotFile),
    /// Bytes that no engine stored.
    Broken,
}

/// The slots of an arena.
pub(crate) struct FileSlots {
    table: FrameTable<[AtomicU64; at::END]>,
    stores: Arc<Stores>,
}

impl FileSlots {
    pub(crate) fn of(memory: &Arc<Memory>, stores: Arc<Stores>) -> Arc<Self> {
        Arc::new(Self { table: memory.table(Part::Files), stores })
    }

    /// The live word of a slot with this key.
    fn live_word(slot: u32, key: &FileKey) -> u64 {
        // Another slot has another number here.
        let slot = slot.wrapping_mul(0x9e37_79b9);
        LIVE | u64::from(key.len) << 8 | u64::from(crc32c::crc32c(key.as_bytes()) ^ slot) << 32
    }

    /// The check of a size in the slot with this live word.
    #[inline]
    fn size_check(live: u64, size: u64) -> u64 {
        mixed(mixed(size) ^ live >> 32) >> 32
    }

    /// The kind of an intent with its check.
    fn intent_word(live: u64, kind: u64, offset: u64, len: u64) -> u64 {
        let check = mixed(mixed(mixed(offset) ^ len) ^ (live & !0xffff_ffff | kind)) >> 32;
        kind | check << 32
    }

    /// The number of slots.
    pub(crate) fn count(&self) -> u32 {
        self.table.len() as u32
    }

    /// Makes a file live in its slot. `None` if the arena has no such slot: the file does not outlive the process.
    pub(crate) fn keep(self: &Arc<Self>, slot: u32, key: &FileKey, size: u64) -> Option<PersistedFile> {
        let words = self.table.get(slot as usize)?;
        words[at::STATE].store(FILLING, Ordering::Release);
        for (word, bytes) in words[at::KEY..].iter().zip(key.bytes.chunks_exact(8)) {
            let bytes = bytes.try_into().unwrap_or_default();
            word.store(u64::from_le_bytes(bytes), Ordering::Release);
        }
        let live = Self::live_word(slot, key);
        words[at::SIZE].store(size, Ordering::Release);
        words[at::INTENT].store(Self::intent_word(live, NO_INTENT, 0, 0), Ordering::Release);
        let check = Self::size_check(live, size);
        words[at::SIZE_CHECK].store(check << 32 | check, Ordering::Release);
        words[at::FLUSHED].store(FLUSHED, Ordering::Release);
        self.stores.point();
        words[at::STATE].store(live, Ordering::Release);
        Some(PersistedFile { slots: Arc::clone(self), slot })
    }

    /// The file that is live in this slot already.
    pub(crate) fn persisted(self: &Arc<Self>, slot: u32) -> PersistedFile {
        PersistedFile { slots: Arc::clone(self), slot }
    }

    /// Makes the slot free.
    pub(crate) fn free(&self, slot: u32) {
        self.stores.point();
        self.table[slot as usize][at::STATE].store(FREE, Ordering::Release);
    }

    /// The content of the slot.
    pub(crate) fn content(&self, slot: u32) -> SlotContent {
        let words = &self.table[slot as usize];
        let get = |at: usize| words[at].load(Ordering::Acquire);
        let state = get(at::STATE);
        if matches!(state, FREE | FILLING) {
            return SlotContent::Free;
        }
        let bytes: Vec<u8> = (at::KEY..at::END).flat_map(|at| get(at).to_le_bytes()).collect();
        let len = (state >> 8 & 0xff) as usize;
        let key = bytes.get(..len).and_then(FileKey::new).filter(|key| Self::live_word(slot, key) == state);
        let [kind, offset, len] = [at::INTENT, at::INTENT + 1, at::INTENT + 2].map(get);
        let has_kind = |number, offset, len| kind == Self::intent_word(state, number, offset, len);
        let intent = match kind & 0xff {
            NO_INTENT if has_kind(NO_INTENT, 0, 0) => Some(None),
            SIZE if has_kind(SIZE, offset, len) && offset <= FILE_BYTES_MAX => Some(Some(Intent::Size(offset))),
            HOLE if has_kind(HOLE, offset, len) => {
                let end = offset.checked_add(len).filter(|end| *end <= FILE_BYTES_MAX);
                end.map(|end| Some(Intent::Hole(offset..end)))
            }
            _ => None,
        };
        let is_flushed = get(at::FLUSHED) == FLUSHED;
        let (size, checks) = (get(at::SIZE), get(at::SIZE_CHECK));
        let size_check = Self::size_check(state, size);
        let is_size = size_check == checks >> 32 || size_check == checks & 0xffff_ffff;
        match (key, intent) {
            (Some(key), Some(intent)) if is_size && size <= FILE_BYTES_MAX => {
                SlotContent::Live(SlotFile { key, size, intent, is_flushed })
            }
            _ => SlotContent::Broken,
        }
    }
}

/// A file that is live in its slot.
pub(crate) struct PersistedFile {
    slots: Arc<FileSlots>,
    slot: u32,
}

impl PersistedFile {
    fn store(&self, at: usize, value: u64) {
        self.slots.stores.point();
        self.slots.table[self.slot as usize][at].store(value, Ordering::Release);
    }

    fn get(&self, at: usize) -> u64 {
        self.slots.table[self.slot as usize][at].load(Ordering::Relaxed)
    }

    /// Called before any client sees the size. The check of both sizes comes first: each of them has one then.
    pub(crate) fn store_size(&self, size: u64) {
        let (live, before) = (self.get(at::STATE), self.get(at::SIZE));
        let check = |size| FileSlots::size_check(live, size);
        self.store(at::SIZE_CHECK, check(size) << 32 | check(before));
        self.store(at::SIZE, size);
    }

    /// Called before a page that the device has written becomes clean, and before an intent is cleared.
    pub(crate) fn owe_flush(&self) {
        self.store(at::FLUSHED, UNFLUSHED);
    }

    /// Called when a flush has succeeded, and nothing was written since it began.
    pub(crate) fn store_flushed(&self) {
        self.store(at::FLUSHED, FLUSHED);
    }

    /// Called before the device is asked.
    pub(crate) fn begin(&self, intent: &Intent) {
        let (kind, offset, len) = match intent {
            Intent::Size(size) => (SIZE, *size, 0),
            Intent::Hole(range) => (HOLE, range.start, range.end - range.start),
        };
        self.store(at::INTENT + 1, offset);
        self.store(at::INTENT + 2, len);
        self.store(at::INTENT, FileSlots::intent_word(self.get(at::STATE), kind, offset, len));
    }

    /// Called after the cache has followed, or the device has refused; before any caller gets the answer.
    pub(crate) fn end(&self) {
        self.store(at::INTENT, FileSlots::intent_word(self.get(at::STATE), NO_INTENT, 0, 0));
    }

    /// No record names the file any more, but for clean pages.
    pub(crate) fn forget(&self) {
        self.slots.free(self.slot);
    }
}
