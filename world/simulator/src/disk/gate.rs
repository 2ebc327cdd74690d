//! Who may write to a file next to whom, where the file system has writes that make it longer alone.
//!
//! ext4 carries out a direct write beyond the file's end with the file's lock held until it is done
//! (Linux 6.18, fs/ext4/file.c: it is waited for; measured: a queue of 16 such writes was as fast as one at
//! a time, 2.3 times slower than into a file that was long enough). Writes inside the file go on together,
//! but begin after it.
//!
//! Owns: which write of each file is alone, and those that wait for it, in order.
//! Does not own: sizes; when a write ends.
//! Invariants: a request is let in once; with nobody alone nobody waits.

use std::collections::{BTreeMap, VecDeque};

#[derive(Default)]
struct Waiting {
    alone: Option<u64>,
    queue: VecDeque<u64>,
}

/// The gates of all files of a disk. Closed gates only: a file that nobody writes alone has none.
#[derive(Default)]
pub(super) struct Gates {
    files: BTreeMap<u64, Waiting>,
}

impl Gates {
    /// A write wants to begin: whether it may. If not it is let in later by [`Gates::left`].
    pub(super) fn enter(&mut self, file: u64, id: u64, alone: bool) -> bool {
        match self.files.get_mut(&file) {
            Some(waiting) => {
                waiting.queue.push_back(id);
                false
            }
            None => {
                if alone {
                    self.files.insert(file, Waiting { alone: Some(id), queue: VecDeque::new() });
                }
                true
            }
        }
    }

    /// A request has ended: those of its file that waited for it, in order, to try again.
    pub(super) fn left(&mut self, file: u64, id: u64) -> VecDeque<u64> {
        match self.files.get(&file) {
            Some(waiting) if waiting.alone == Some(id) => {
                self.files.remove(&file).map(|waiting| waiting.queue).unwrap_or_default()
            }
            _ => VecDeque::new(),
        }
    }

    /// All requests are gone.
    pub(super) fn clear(&mut self) {
        self.files.clear();
    }
}

#[cfg(test)]
mod tests;
