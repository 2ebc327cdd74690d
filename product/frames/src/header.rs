//! The header of an arena's memory: what the memory is, and how its last user left it.
//!
//! Owns: the constant part with its checksum; the write verifier, the state, the recoveries in a row.
//! Does not own: the choice of a verifier, what a state means for the tables (the engine).
//! Invariants: the constant part is written once, its checksum last. Memory whose header does not check is never used
//! as an arena.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::Layout;

#[cfg(test)]
mod tests;

const MAGIC: u64 = u64::from_le_bytes(*b"afflux\0\x01");
/// Changes with each change of the meaning of a header, a slot or a record.
const FORM: u64 = 1;

/// Places of the words.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const FORM: usize = 1;
    pub(super) const LAYOUT: usize = 2;
    pub(super) const BOOT: usize = 3;
    /// The checksum of the words before it.
    pub(super) const CHECKSUM: usize = 5;
    pub(super) const VERIFIER: usize = 8;
    pub(super) const STATE: usize = 9;
    pub(super) const RECOVERIES: usize = 10;
}

/// How the last user left the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum ArenaState {
    /// Nobody has used it.
    Fresh = 0,
    /// An engine works in it, or was killed there.
    Serving = 1,
    /// A successor looks through it, or was killed doing so.
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
    #[error("it has form {found}, and this version reads form {FORM}")]
    Form {
        /// The form that was found.
        found: u64,
    },
    /// The constant part is damaged.
    #[error("its header is damaged")]
    Damaged,
    /// The cache had another size.
    #[error("it was made for a cache of another size")]
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

    fn checksum(self) -> u64 {
        let bytes: Vec<u8> = (0..at::CHECKSUM).flat_map(|at| self.get(at).to_le_bytes()).collect();
        u64::from(crc32c::crc32c(&bytes))
    }

    /// Makes zeroed memory an arena, for the host's start with this number.
    pub fn begin(self, boot: [u8; 16], verifier: u64) {
        let boot = u128::from_le_bytes(boot);
        self.set(at::VERIFIER, verifier);
        self.set_state(ArenaState::Fresh);
        self.set(at::RECOVERIES, 0);
        self.set(at::MAGIC, MAGIC);
        self.set(at::FORM, FORM);
        self.set(at::LAYOUT, self.layout.hash());
        self.set(at::BOOT, boot as u64);
        self.set(at::BOOT + 1, (boot >> 64) as u64);
        self.set(at::CHECKSUM, self.checksum());
    }

    /// Whether the memory is an arena of this form, made since the host's start with this number.
    ///
    /// # Errors
    /// It is not, for the first of the reasons that holds.
    pub fn check(self, boot: [u8; 16]) -> Result<(), HeaderError> {
        let boot = u128::from_le_bytes(boot);
        match self.get(at::FORM) {
            _ if self.get(at::MAGIC) != MAGIC => Err(HeaderError::Foreign),
            _ if self.get(at::CHECKSUM) != self.checksum() => Err(HeaderError::Damaged),
            found if found != FORM => Err(HeaderError::Form { found }),
            _ if self.get(at::LAYOUT) != self.layout.hash() => Err(HeaderError::Layout),
            _ if (self.get(at::BOOT), self.get(at::BOOT + 1)) != (boot as u64, (boot >> 64) as u64) => {
                Err(HeaderError::Boot)
            }
            _ => Ok(()),
        }
    }

    /// The write verifier in force.
    pub fn verifier(self) -> u64 {
        self.get(at::VERIFIER)
    }

    /// Sets the write verifier.
    pub fn set_verifier(self, verifier: u64) {
        self.set(at::VERIFIER, verifier);
    }

    /// How the last user left the memory. An unknown number counts as [`ArenaState::Serving`]: the memory is looked
    /// through.
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
}
