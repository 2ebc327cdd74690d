//! The header of an arena's memory: what the memory is, and the state in which its last user ended.
//!
//! Owns: the constant part with its checksum; the write verifier, the state, the recoveries in a row, the holder, the
//! number of the servers.
//! Does not own: the choice of a verifier, what a state means for the tables (the engine).
//! Invariants: the constant part is written once, its first word last. Memory whose header does not check is never used
//! as an arena.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::FRAME_BYTES;
use crate::layout::{FORM, HEADER_BYTES, Layout};

#[cfg(test)]
mod tests;

/// Beside the holder: a server has given the memory a number.
const HAS_NUMBER: u64 = 1 << 32;

const MAGIC: u64 = u64::from_le_bytes(*b"afflux\0\x01");

/// Offsets of the words.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const FORM: usize = 1;
    pub(super) const LAYOUT: usize = 2;
    /// Frames in the lower half, file slots in the upper.
    pub(super) const SIZES: usize = 3;
    pub(super) const BOOT: usize = 4;
    /// The checksum of the words before it.
    pub(super) const CHECKSUM: usize = 6;
    pub(super) const VERIFIER: usize = 8;
    pub(super) const STATE: usize = 9;
    pub(super) const RECOVERIES: usize = 10;
    /// The process in the lower half. In the upper one, [`HAS_NUMBER`](super::HAS_NUMBER).
    pub(super) const HOLDER: usize = 11;
    pub(super) const NUMBER: usize = 12;
}

/// The state of the memory when its last user ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum ArenaState {
    /// Nobody has used it.
    Fresh = 0,
    /// An engine works in it, or was killed there.
    Serving = 1,
    /// A successor scans it, or was killed doing so.
    Recovering = 2,
    /// Everything was written, and the user has ended.
    Clean = 3,
}

/// Why memory is no arena for this program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The first word is not an arena's.
    #[error("it is no arena of this program")]
    Foreign,
    /// Another version wrote it.
    #[error(
        "it has form {found}, and this version reads form {}: start the version that wrote it and stop it in order, or remove the memory with all that is unwritten in it",
        FORM
    )]
    Form {
        /// The form that was found.
        found: u64,
    },
    /// The constant part is damaged.
    #[error("its header is damaged")]
    Damaged,
    /// This program does not use parts of these sizes on this machine.
    #[error("its cache has a size that this machine cannot hold, or its parts have other places")]
    Layout,
    /// The host was started anew since.
    #[error("it is from before the host's last start")]
    Boot,
}

/// The header of one memory.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    words: &'a [AtomicU64],
    layout: Layout,
}

impl<'a> Header<'a> {
    pub(crate) fn new(words: &'a [AtomicU64], layout: Layout) -> Self {
        Self { words, layout }
    }

    fn get(self, at: usize) -> u64 {
        self.words[at].load(Ordering::Acquire)
    }

    fn set(self, at: usize, value: u64) {
        self.words[at].store(value, Ordering::Release);
    }

    /// The words of the constant part.
    fn constant(self) -> [u64; at::CHECKSUM + 1] {
        std::array::from_fn(|at| self.get(at))
    }

    /// Makes zeroed memory an arena, for the host's start with this number. The first word is stored last.
    pub fn begin(self, boot: [u8; 16], verifier: u64) {
        self.set(at::VERIFIER, verifier);
        self.set_state(ArenaState::Fresh);
        self.set(at::RECOVERIES, 0);
        let constant = constant(self.layout, boot);
        (1..=at::CHECKSUM).for_each(|at| self.set(at, constant[at]));
        self.set(at::MAGIC, constant[at::MAGIC]);
    }

    /// Whether the memory is an arena of this layout, made since the host's start with this number.
    ///
    /// # Errors
    /// It is not, for the first of the reasons that holds.
    pub fn check(self, boot: [u8; 16]) -> Result<(), HeaderError> {
        match check(&self.constant(), boot)? {
            layout if layout == self.layout => Ok(()),
            _ => Err(HeaderError::Layout),
        }
    }

    /// The write verifier in force.
    pub fn verifier(self) -> u64 {
        self.get(at::VERIFIER)
    }

    /// Makes the write verifier another one, because accepted data may be lost.
    pub fn change_verifier(self) {
        // An odd number: the verifier does not come back.
        self.words[at::VERIFIER].fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::AcqRel);
    }

    /// Sets the write verifier.
    pub fn set_verifier(self, verifier: u64) {
        self.set(at::VERIFIER, verifier);
    }

    /// The state of the memory when its last user ended. An unknown number counts as [`ArenaState::Serving`]: the
    /// memory is scanned.
    pub fn state(self) -> ArenaState {
        match self.get(at::STATE) {
            0 => ArenaState::Fresh,
            2 => ArenaState::Recovering,
            3 => ArenaState::Clean,
            _ => ArenaState::Serving,
        }
    }

    /// Sets the state.
    pub fn set_state(self, state: ArenaState) {
        self.set(at::STATE, state as u64);
    }

    /// Recoveries since the last clean end or quiet minute.
    pub fn recoveries(self) -> u64 {
        self.get(at::RECOVERIES)
    }

    /// Sets the number of recoveries in a row.
    pub fn set_recoveries(self, recoveries: u64) {
        self.set(at::RECOVERIES, recoveries);
    }

    /// The process that uses the memory, or used it last; 0 if none has.
    pub fn holder(self) -> u32 {
        self.get(at::HOLDER) as u32
    }

    /// Sets the process that uses the memory.
    pub fn set_holder(self, process: u32) {
        self.set(at::HOLDER, self.get(at::HOLDER) & HAS_NUMBER | u64::from(process));
    }

    /// The number of the last server that used the memory. `None` if that server gave it none.
    pub fn number(self) -> Option<u64> {
        (self.get(at::HOLDER) & HAS_NUMBER != 0).then(|| self.get(at::NUMBER))
    }

    /// Gives the memory a number.
    pub fn set_number(self, number: u64) {
        self.set(at::NUMBER, number);
        self.words[at::HOLDER].fetch_or(HAS_NUMBER, Ordering::AcqRel);
    }
}

/// The header of a file that may be an arena's, before anybody maps it.
#[derive(Clone, Copy, Debug)]
pub struct HeaderBytes(pub [u8; HEADER_BYTES]);

impl HeaderBytes {
    fn word(&self, at: usize) -> u64 {
        let bytes = self.0.as_chunks::<8>().0;
        u64::from_le_bytes(bytes[at])
    }

    /// Whether no arena was begun here.
    pub fn is_unused(&self) -> bool {
        self.word(at::MAGIC) == 0
    }

    /// The process that uses the arena, or used it last; 0 if none has.
    pub fn holder(&self) -> u32 {
        self.word(at::HOLDER) as u32
    }

    /// The layout of the arena, if it was made since the host's start with this number.
    ///
    /// # Errors
    /// It is no arena for this program, for the first of the reasons that holds.
    pub fn layout(&self, boot: [u8; 16]) -> Result<Layout, HeaderError> {
        check(&std::array::from_fn(|at| self.word(at)), boot)
    }
}

/// The constant part of a header.
fn constant(layout: Layout, boot: [u8; 16]) -> [u64; at::CHECKSUM + 1] {
    let mut words = [0; at::CHECKSUM + 1];
    (words[at::MAGIC], words[at::FORM], words[at::LAYOUT]) = (MAGIC, FORM, layout.hash());
    words[at::SIZES] = u64::from(layout.frames()) | u64::from(layout.files()) << 32;
    let boot = u128::from_le_bytes(boot);
    (words[at::BOOT], words[at::BOOT + 1]) = (boot as u64, (boot >> 64) as u64);
    words[at::CHECKSUM] = checksum(&words);
    words
}

fn checksum(constant: &[u64; at::CHECKSUM + 1]) -> u64 {
    let bytes: Vec<u8> = constant[..at::CHECKSUM].iter().flat_map(|word| word.to_le_bytes()).collect();
    u64::from(crc32c::crc32c(&bytes))
}

/// The layout that a constant part describes.
fn check(words: &[u64; at::CHECKSUM + 1], boot: [u8; 16]) -> Result<Layout, HeaderError> {
    if words[at::MAGIC] != MAGIC {
        return Err(HeaderError::Foreign);
    }
    if words[at::CHECKSUM] != checksum(words) {
        return Err(HeaderError::Damaged);
    }
    if words[at::FORM] != FORM {
        return Err(HeaderError::Form { found: words[at::FORM] });
    }
    let (frames, files) = (words[at::SIZES] as u32, (words[at::SIZES] >> 32) as u32);
    let layout = Layout::new(u64::from(frames) * FRAME_BYTES as u64, files).map_err(|_| HeaderError::Layout)?;
    match constant(layout, boot) {
        same if same == *words => Ok(layout),
        other if other[at::LAYOUT] != words[at::LAYOUT] => Err(HeaderError::Layout),
        _ => Err(HeaderError::Boot),
    }
}
