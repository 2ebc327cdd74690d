//! The kernel's numbers and their meaning, and its requests that come again, in memory that outlives the process.
//!
//! Owns: the form of this memory: its header, its tables, the words of each record; the agreement of INIT; the entry of
//! a change, from its beginning to its outcome; the nodes and files that an answer grants.
//! Does not own: the memory (worlds), the states of records and the journal of entries (`afflux_frontend`), the meaning
//! of nodes and open files (`nodes`, `open_files`), a repetition itself (`operations`).
//! Invariants: a record is in the memory before the answer that gives its number to the kernel. A kill between two
//! stores leaves a record as it was, or as it is to be. A record whose check fails is never used, and its memory
//! neither. Memory beyond the highest used slot of a table is not touched. A change has its entry before the server
//! asks the host. The entry has the outcome, also a refusal, before the kernel gets the answer. The entry stays after
//! the call's end until others need the slot, because the server may be killed before the kernel has the answer. The
//! change of a call that is given up in between stays begun: the host may still carry it out. After the loss of a
//! grant's entry the server counts a lookup that the kernel does not know, and never the reverse.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use afflux_frontend::{
    CallJournal, ENTRY_WORDS_MIN, EarlierProgress, EntryForm, EntryOwner, JournalCall, PersistedRecordTable,
    PersistedSlot, PersistedWords, words_checksum,
};
use afflux_volume::{Before, Caller, FileHandle, HANDLE_BYTES_MAX, VolumeError};

use crate::abi::UNIQUE_RESENT;
use crate::limits::{NODES_MAX, OPEN_FILES_MAX};
use crate::reply::Errno;
use crate::slots::{self, SlotId};

const MAGIC: u64 = u64::from_le_bytes(*b"AFXMOUNT");
/// Another form has another number.
const FORM: u64 = 4;

const HEADER_WORDS: usize = 64;
const HANDLE_WORDS: usize = HANDLE_BYTES_MAX / 8;
/// Grants that are remembered. Fewer are unanswered at a time, unless a thread stands still for so many calls.
const GRANTS: usize = 3072;
const GRANT_WORDS: usize = 4;
/// Changes that are remembered.
const CHANGES: usize = 1024;
const CHANGE_WORDS: usize = ENTRY_WORDS_MIN;
/// State, the handle's length, the handle, lookups.
const NODE_WORDS: usize = 3 + HANDLE_WORDS;
/// State, the handle's length, the handle, the node, the process and the user that opened it, the write verifier.
const FILE_WORDS: usize = 5 + HANDLE_WORDS;

const GRANTS_AT: usize = HEADER_WORDS;
const CHANGES_AT: usize = GRANTS_AT + GRANTS * GRANT_WORDS;
const FILES_AT: usize = CHANGES_AT + CHANGES * CHANGE_WORDS;
const NODES_AT: usize = FILES_AT + OPEN_FILES_MAX * FILE_WORDS;

/// Words for as many nodes as a mount may have.
pub const PERSISTED_WORDS: usize = NODES_AT + NODES_MAX * NODE_WORDS;
/// Fewest words: they hold the root and some nodes more.
pub const PERSISTED_WORDS_MIN: usize = NODES_AT + 64 * NODE_WORDS;

/// The offsets of the header's words.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const FORM: usize = 1;
    pub(super) const NODES: usize = 2;
    /// The check of the words before it.
    pub(super) const FORM_CHECK: usize = 3;
    pub(super) const FLAGS: usize = 8;
    pub(super) const MINOR: usize = 9;
    /// The check of the agreement, which counts once this is there.
    pub(super) const AGREED: usize = 10;
    /// One more than the highest slot in use, with its check.
    pub(super) const FILES_USED: usize = 16;
    pub(super) const NODES_USED: usize = 17;
}

/// Why an earlier server's memory cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountStateError {
    /// It is too short, or longer than its header says.
    #[error("it has {words} words, which is no size of it")]
    Size {
        /// Count of words of the memory.
        words: usize,
    },
    /// Another program or another form wrote it.
    #[error("it is not of this program, or of another version")]
    Form,
    /// Its server and the kernel had not agreed yet.
    #[error("its server had not begun to serve")]
    NotAgreed,
    /// A record is in a state that no kill leaves.
    #[error("its {0} are damaged")]
    Damaged(&'static str),
    /// The mount is of another directory.
    #[error("it is of another directory")]
    OtherRoot,
}

/// The agreement of INIT, which the kernel does not repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Agreed {
    pub(crate) minor: u32,
    pub(crate) flags: u64,
}

/// The open files: the node and all that its opener may not change are covered, the write verifier is not.
const FILES: PersistedRecordTable =
    PersistedRecordTable { at: FILES_AT, words: FILE_WORDS, used_at: at::FILES_USED, covered: FILE_WORDS - 2 };
/// The nodes: the count of lookups is not covered.
const NODES: PersistedRecordTable =
    PersistedRecordTable { at: NODES_AT, words: NODE_WORDS, used_at: at::NODES_USED, covered: NODE_WORDS - 2 };

/// The node's count follows its handle.
const LOOKUPS_AT: usize = NODE_WORDS - 1;
/// The write verifier follows an open file's opener.
const VERIFIER_AT: usize = FILE_WORDS - 1;
/// The bit of a synchronous file beside its process: Linux's numbers of processes end at 2^22.
const SYNCHRONOUS: u32 = 1 << 31;
/// Bits of the check beside a word that changes alone.
const WORD_CHECK_BITS: u32 = 24;

/// A node in the memory.
#[derive(Clone, Copy)]
pub(crate) struct PersistedNode {
    pub(crate) handle: FileHandle,
    pub(crate) lookups: u64,
}

/// An open file in the memory.
#[derive(Clone, Copy)]
pub(crate) struct PersistedOpenFile {
    pub(crate) handle: FileHandle,
    pub(crate) node: u64,
    /// The process that opened it; zero if that was not known.
    pub(crate) process: u32,
    pub(crate) user: u32,
    /// It was opened with O_SYNC or O_DSYNC.
    pub(crate) is_synchronous: bool,
    /// The write verifier under which the server last reported no loss to its program.
    pub(crate) verifier: ShortVerifier,
}

/// As much of a write verifier as fits in the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ShortVerifier(u64);

impl ShortVerifier {
    pub(crate) fn of(verifier: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(verifier) >> WORD_CHECK_BITS)
    }
}

/// The memory of one mount.
#[derive(Clone)]
pub struct MountState {
    words: PersistedWords,
    nodes: usize,
}

impl MountState {
    /// Memory that nobody has used: its words are zeros.
    ///
    /// # Errors
    /// It is too short.
    pub fn fresh(words: PersistedWords) -> Result<Self, MountStateError> {
        let state = Self::sized(words)?;
        state.word(at::FORM).store(FORM, Ordering::Relaxed);
        state.word(at::NODES).store(state.nodes as u64, Ordering::Relaxed);
        state.word(at::MAGIC).store(MAGIC, Ordering::Relaxed);
        [FILES, NODES].iter().for_each(|table| table.set_used(&state.words, 0));
        state.word(at::FORM_CHECK).store(state.form_check(), Ordering::Release);
        Ok(state)
    }

    /// Memory of an earlier server, with any bytes.
    ///
    /// # Errors
    /// It is no such memory, or it is damaged.
    pub fn inherited(words: PersistedWords) -> Result<Self, MountStateError> {
        let state = Self::sized(words)?;
        let is_ours = state.value(at::MAGIC) == MAGIC && state.value(at::FORM) == FORM;
        if !is_ours || state.value(at::FORM_CHECK) != state.form_check() {
            return Err(MountStateError::Form);
        }
        if state.value(at::NODES) != state.nodes as u64 {
            return Err(MountStateError::Size { words: state.all().len() });
        }
        state.agreed().ok_or(MountStateError::NotAgreed)?;
        state.nodes()?;
        state.files()?;
        Ok(state)
    }

    fn sized(words: PersistedWords) -> Result<Self, MountStateError> {
        let len = (*words).as_ref().len();
        if len < PERSISTED_WORDS_MIN {
            return Err(MountStateError::Size { words: len });
        }
        let nodes = ((len - NODES_AT) / NODE_WORDS).min(NODES_MAX);
        Ok(Self { words, nodes })
    }

    /// Most nodes that it holds.
    pub(crate) fn nodes_max(&self) -> usize {
        self.nodes
    }

    fn all(&self) -> &[AtomicU64] {
        (*self.words).as_ref()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.all()[at]
    }

    fn value(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    fn form_check(&self) -> u64 {
        words_checksum((0..at::FORM_CHECK).map(|at| self.value(at)))
    }

    /// The agreement of INIT, once there is one.
    pub(crate) fn agreed(&self) -> Option<Agreed> {
        let (flags, minor) = (self.value(at::FLAGS), self.value(at::MINOR));
        let agreed = Agreed { minor: u32::try_from(minor).ok()?, flags };
        (self.value(at::AGREED) == words_checksum([flags, minor])).then_some(agreed)
    }

    pub(crate) fn note_agreed(&self, agreed: Agreed) {
        self.word(at::FLAGS).store(agreed.flags, Ordering::Relaxed);
        self.word(at::MINOR).store(agreed.minor.into(), Ordering::Relaxed);
        self.word(at::AGREED).store(words_checksum([agreed.flags, agreed.minor.into()]), Ordering::Release);
    }

    /// Writes a record and then, in one store, makes it valid.
    fn put(&self, of: PersistedRecordTable, number: u64, body: impl IntoIterator<Item = u64>) {
        let Some(SlotId { at: slot, generation }) = slots::slot_id(number) else { return };
        of.put(&self.words, slot, generation, body);
    }

    /// Removes the record in one store: its slot has its next generation.
    fn free(&self, of: PersistedRecordTable, number: u64) {
        let Some(SlotId { at: slot, generation }) = slots::slot_id(number) else { return };
        of.free(&self.words, slot, slots::next(generation));
    }

    pub(crate) fn put_node(&self, number: u64, node: PersistedNode) {
        let Some(SlotId { at: slot, generation }) = slots::slot_id(number) else { return };
        let count = checked(slot, generation, node.lookups);
        self.put(NODES, number, handle_words(&node.handle).chain([count]));
    }

    pub(crate) fn set_lookups(&self, number: u64, lookups: u64) {
        let Some(SlotId { at: slot, generation }) = slots::slot_id(number) else { return };
        NODES.record(&self.words, slot)[LOOKUPS_AT].store(checked(slot, generation, lookups), Ordering::Release);
    }

    pub(crate) fn free_node(&self, number: u64) {
        self.free(NODES, number);
    }

    /// All nodes, by their slots.
    pub(crate) fn nodes(&self) -> Result<Vec<PersistedSlot<PersistedNode>>, MountStateError> {
        let nodes = NODES.all(&self.words, self.nodes, |slot, generation, record| {
            let count = record[LOOKUPS_AT].load(Ordering::Relaxed);
            let lookups = count >> WORD_CHECK_BITS;
            let is_right = lookups > 0 && checked(slot, generation, lookups) == count;
            Some(PersistedNode { handle: handle_of(&record[1..])?, lookups }).filter(|_| is_right)
        });
        nodes.ok_or(MountStateError::Damaged("nodes"))
    }

    pub(crate) fn put_file(&self, number: u64, file: &PersistedOpenFile) {
        let process = file.process | if file.is_synchronous { SYNCHRONOUS } else { 0 };
        let opener = u64::from(process) << 32 | u64::from(file.user);
        let Some(SlotId { at: slot, generation }) = slots::slot_id(number) else { return };
        let verifier = checked(slot, generation, file.verifier.0);
        self.put(FILES, number, handle_words(&file.handle).chain([file.node, opener, verifier]));
    }

    pub(crate) fn set_verifier(&self, number: u64, verifier: ShortVerifier) {
        let Some(SlotId { at: slot, generation }) = slots::slot_id(number) else { return };
        FILES.record(&self.words, slot)[VERIFIER_AT].store(checked(slot, generation, verifier.0), Ordering::Release);
    }

    pub(crate) fn free_file(&self, number: u64) {
        self.free(FILES, number);
    }

    /// All open files, by their slots.
    pub(crate) fn files(&self) -> Result<Vec<PersistedSlot<PersistedOpenFile>>, MountStateError> {
        let files = FILES.all(&self.words, OPEN_FILES_MAX, |slot, generation, record| {
            let rest = &record[2 + HANDLE_WORDS..];
            let [node, opener, word] = [0, 1, 2].map(|at: usize| rest[at].load(Ordering::Relaxed));
            let (handle, verifier) = (handle_of(&record[1..])?, ShortVerifier(word >> WORD_CHECK_BITS));
            let (process, user) = ((opener >> 32) as u32, opener as u32);
            let (is_synchronous, process) = (process & SYNCHRONOUS != 0, process & !SYNCHRONOUS);
            let file = PersistedOpenFile { handle, node, process, user, is_synchronous, verifier };
            Some(file).filter(|_| checked(slot, generation, verifier.0) == word)
        });
        files.ok_or(MountStateError::Damaged("open files"))
    }
}

/// A count of lookups or a verifier, with the check of it.
fn checked(slot: usize, generation: u32, value: u64) -> u64 {
    let check = words_checksum([slot as u64, generation.into(), value]) >> (u64::BITS - WORD_CHECK_BITS);
    value << WORD_CHECK_BITS | check
}

/// The length and the bytes.
fn handle_words(handle: &FileHandle) -> impl Iterator<Item = u64> {
    let mut bytes = [0; HANDLE_BYTES_MAX];
    let len = handle.as_bytes().len();
    bytes[..len].copy_from_slice(handle.as_bytes());
    let word = move |at: usize| bytes[at * 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    std::iter::once(len as u64).chain((0..HANDLE_WORDS).map(word))
}

fn handle_of(words: &[AtomicU64]) -> Option<FileHandle> {
    let value = |at: usize| words[at].load(Ordering::Relaxed);
    let bytes: Vec<u8> = (1..=HANDLE_WORDS).flat_map(|at| value(at).to_le_bytes()).collect();
    FileHandle::from_bytes(bytes.get(..usize::try_from(value(0)).ok()?)?)
}

/// The key of a change is the request's number and its user. The kernel's numbers grow.
const CHANGE_FORM: EntryForm = EntryForm {
    words: CHANGE_WORDS,
    age: |&[unique, ..], _| unique,
    owner: |&[_, user, _]| EntryOwner { party: user, user: 0, slot: None },
};

/// A change under way.
pub(crate) struct BegunChange {
    /// None for a mount that ends with its server.
    entry: Option<JournalCall>,
    pub(crate) before: Before,
}

impl BegunChange {
    /// Begins a change for a request, with a value and an object that a repetition needs. It fails if an earlier server
    /// has refused it.
    pub(crate) fn begin(
        journal: Option<&Arc<CallJournal>>,
        unique: u64,
        user: u32,
        value: u64,
        object: u64,
    ) -> Result<Self, Errno> {
        let Some(journal) = journal else { return Ok(Self { entry: None, before: Before::Nothing }) };
        let number = unique & !UNIQUE_RESENT;
        let (entry, left) = journal.begin([number, user.into(), 0], value, object);
        if unique & UNIQUE_RESENT == 0 {
            if left != EarlierProgress::Nothing {
                // The kernel has given the number of an earlier request again.
                entry.note(value, object);
            }
            return Ok(Self { entry: Some(entry), before: Before::Nothing });
        }
        match left {
            EarlierProgress::Answered { code, .. } if code != 0 => Err(Errno(code as i32)),
            left => Ok(Self { entry: Some(entry), before: left.before(0) }),
        }
    }

    /// The caller of the change, which notes when the host has carried it out.
    pub(crate) fn of(&self, caller: Caller) -> Caller {
        match &self.entry {
            Some(entry) => caller.keeping(entry.step(0, self.before)),
            None => caller,
        }
    }

    /// The host has carried it out. A repetition is to do the same once more.
    pub(crate) fn stays_begun(&self) {
        self.entry.iter().for_each(JournalCall::ended);
    }

    /// Nothing was done: its repetition is a new one.
    pub(crate) fn forget(&self) {
        self.entry.iter().for_each(JournalCall::forget);
    }

    /// It has this outcome.
    pub(crate) fn ended<T>(&self, outcome: &Result<T, VolumeError>) {
        let code = outcome.as_ref().map_or_else(|error| Errno::from(error.clone()).0, |_| 0);
        self.entry.iter().for_each(|entry| entry.answered(code as u32, &[], 1));
    }
}

impl MountState {
    /// The journal of changes, with those of earlier servers.
    pub(crate) fn changes(&self) -> Arc<CallJournal> {
        CallJournal::new(Arc::clone(&self.words), CHANGES_AT..FILES_AT, CHANGE_FORM)
    }
}

/// The grants of a mount.
pub(crate) struct Grants {
    state: MountState,
    next: AtomicUsize,
    /// Slots of earlier servers' grants, by request.
    inherited: Mutex<BTreeMap<u64, Vec<usize>>>,
}

/// Nodes and files of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    Node(u64),
    File(u64),
}

impl Grants {
    /// The ring in this memory, with the entries of earlier servers.
    pub(crate) fn new(state: MountState) -> Self {
        let mut inherited: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for slot in 0..GRANTS {
            if let Some((unique, _)) = grant_in(words(&state, slot)) {
                inherited.entry(unique).or_default().push(slot);
            }
        }
        Self { state, next: AtomicUsize::new(0), inherited: Mutex::new(inherited) }
    }

    /// Notes what the answer to a request will grant to the kernel.
    pub(crate) fn grant(&self, unique: u64, grant: Grant) {
        let words = words(&self.state, self.next.fetch_add(1, Ordering::Relaxed) % GRANTS);
        let unique = unique & !UNIQUE_RESENT;
        let (node, file) = match grant {
            Grant::Node(node) => (node, 0),
            Grant::File(file) => (0, file),
        };
        words[0].store(0, Ordering::Release);
        words[1].store(node, Ordering::Relaxed);
        words[2].store(file, Ordering::Relaxed);
        words[3].store(words_checksum([unique, node, file]), Ordering::Relaxed);
        words[0].store(unique, Ordering::Release);
    }

    /// Takes the grants of earlier servers for a request that the kernel sends again: it got no answer.
    pub(crate) fn take(&self, unique: u64) -> Vec<Grant> {
        let unique = unique & !UNIQUE_RESENT;
        let places = self.inherited.lock().unwrap_or_else(PoisonError::into_inner).remove(&unique).unwrap_or_default();
        let taken = places.into_iter().filter_map(|slot| {
            let words = words(&self.state, slot);
            // Another answer may have taken the slot meanwhile.
            let (_, grant) = grant_in(words).filter(|(of, _)| *of == unique)?;
            words[0].store(0, Ordering::Release);
            Some(grant)
        });
        taken.collect()
    }
}

fn words(state: &MountState, slot: usize) -> &[AtomicU64] {
    &state.all()[GRANTS_AT + slot * GRANT_WORDS..][..GRANT_WORDS]
}

fn grant_in(words: &[AtomicU64]) -> Option<(u64, Grant)> {
    let [unique, node, file, check] = [0, 1, 2, 3].map(|at| words[at].load(Ordering::Acquire));
    let grant = if file == 0 { Grant::Node(node) } else { Grant::File(file) };
    (unique != 0 && check == words_checksum([unique, node, file])).then_some((unique, grant))
}

#[cfg(test)]
mod tests;
