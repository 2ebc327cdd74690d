//! All state of the clients of NFS version 4, for the next server on this host: in the arena, and in a file after an
//! orderly end.
//!
//! Owns: the file, and its form.
//! Does not own: the state (`afflux_nfs`), the names of clients (`kept_clients`).
//! Invariants: one server takes the file once, and it is durably gone before that server serves. It is written after
//! the last answer (`after_an_orderly_stop_clients_go_on_with_and_without_an_arena`). A volume in a store has none:
//! another host may have served it since.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::{CLIENT_STATE_BYTES, FrameTable, Memory, Part};
use afflux_nfs::{ClientMemory, NotHeld};
use afflux_report::output;
use tracing::{info, warn};

use crate::private_directory::{self, FILE_BYTES_MAX};
use crate::serve::kept::kept_clients::KeptClients;

/// Words of a piece of the state.
const PIECE_WORDS: usize = CLIENT_STATE_BYTES / 8;
/// The first words of the file. Another form has another number.
const FORM: &str = "afflux-nfs-state 1";

/// Tells which file of a client could not be held, and what follows.
fn tell_not_held(NotHeld { file, client, error }: NotHeld) {
    warn!(
        "file number {file}, which client {client} had open when the last server was killed, cannot be held: {error}. \
         The client's calls fail once the file has no name."
    );
}

/// The state of clients in a server's memory.
pub(crate) struct ClientState {
    pieces: Arc<FrameTable<[AtomicU64; PIECE_WORDS]>>,
    /// The file for an orderly end.
    path: Option<PathBuf>,
}

impl ClientState {
    /// The memory for a server that begins, with the state that an earlier one has left.
    pub(crate) fn taken(memory: &Arc<Memory>, kept: KeptClients) -> (Option<Self>, ClientMemory) {
        let KeptClients { left, list, state } = kept;
        let state = state.map(|path| Self { pieces: Arc::new(memory.table(Part::Clients)), path });
        // The memory of an earlier form has no room.
        let state = state.filter(|state| !state.words().is_empty());
        state.iter().for_each(Self::take);
        let words = state.as_ref().map(|state| Arc::clone(&state.pieces) as _);
        (state, ClientMemory { left, list, words, told: Some(Arc::new(tell_not_held)) })
    }

    fn words(&self) -> &[AtomicU64] {
        (*self.pieces).as_ref()
    }

    /// Takes the state that a server has left at its orderly end, unless the memory has that of a killed one.
    fn take(&self) {
        let Some(path) = &self.path else { return };
        let taken = private_directory::take(path);
        if let Err(error) = taken.and_then(|text| text.map_or(Ok(()), |text| self.fill(&text))) {
            self.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
            info!("clients ask again for their open files and locks: {}: {error}", output::shown(path.display()));
        }
    }

    fn fill(&self, text: &str) -> io::Result<()> {
        let wrong = || io::Error::other("it is not of this version, or of a server with another cache");
        let words = self.words();
        if words.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            return Ok(());
        }
        let mut lines = text.trim_end().lines();
        if lines.next() != Some(&self.head()) {
            return Err(wrong());
        }
        for line in lines {
            let (at, value) = line.split_once(' ').ok_or_else(wrong)?;
            let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| wrong());
            words.get(number(at)? as usize).ok_or_else(wrong)?.store(number(value)?, Ordering::Relaxed);
        }
        Ok(())
    }

    fn head(&self) -> String {
        format!("{FORM} {:x}", self.words().len())
    }

    /// Keeps the state of a server that answers no more calls. The file has each word that is not zero, with its place.
    pub(crate) fn keep(&self) {
        let Some(path) = &self.path else { return };
        let words = self.words().iter().map(|word| word.load(Ordering::Relaxed)).enumerate();
        let used = words.filter(|(_, word)| *word != 0).map(|(at, word)| format!("\n{at:x} {word:x}"));
        let text: String = std::iter::once(self.head()).chain(used).collect();
        let written = match text.len() as u64 <= FILE_BYTES_MAX {
            true => private_directory::leave(path, &text),
            false => Err(io::Error::other("there are too many for a file")),
        };
        if let Err(error) = written {
            info!("clients will ask again for their open files and locks: {}: {error}", output::shown(path.display()));
        }
    }
}
