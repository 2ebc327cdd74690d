//! All state of the clients of NFS version 4, for the next server on this host: in the arena, and in a file after an
//! orderly end.
//!
//! Owns: the file, and its form.
//! Does not own: the state (`afflux_nfs`), the names of clients (`persisted_clients`).
//! Invariants: each server removes the file durably before it serves, and only the next one after the server that left
//! the file takes its contents: a server without version 4 lets others change what a client had locked
//! (`a_server_without_version_4_in_between_ends_the_state_of_clients`). The file has the number of that server. It is
//! written after the last answer (`after_an_orderly_stop_clients_go_on_with_and_without_an_arena`). A volume in a store
//! has none: another host may have served it since. The file names no directories: each open has its file's handle,
//! which names the export.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::{CLIENT_STATE_BYTES, FrameTable, Memory, Part};
use afflux_nfs::{ClientMemory, LostOpen};
use afflux_report::output;
use tracing::{info, warn};

use crate::private_directory;
use crate::serve::persisted::persisted_clients::{PersistedClients, StateFile};
use crate::serve::persisted::state::{CLIENT_STATE, StateDirectory};
use crate::serve::persisted::word_runs;

/// Words of a piece of the state.
const PIECE_WORDS: usize = CLIENT_STATE_BYTES / 8;
/// The first words of the file. Another form has another number.
const FORM: &str = "afflux-nfs-state 3";
/// Most bytes of its first line.
const HEAD_BYTES_MAX: usize = 64;

/// Lines about opens that have ended.
const LOST_LINES_MAX: usize = 8;

/// Tells which opens of clients have ended with the last server.
fn tell_lost(lost: &[LostOpen]) {
    for LostOpen { file, client, error } in lost.iter().take(LOST_LINES_MAX) {
        warn!(
            "client {client} had the file with the number {file} open at the last server, and this server does not find \
             that file: {error}. The open has ended, with its locks; the client opens the file again if it is there."
        );
    }
    if lost.len() > LOST_LINES_MAX {
        warn!("{} more open files of clients have ended in this way", lost.len() - LOST_LINES_MAX);
    }
}

/// Removes what an earlier server has left, since this server does not go on with it, and nobody may later.
pub(crate) fn forget(directory: &StateDirectory) {
    let Some(path) = directory.own_file(CLIENT_STATE) else { return };
    // Nobody reads it.
    match private_directory::take(&path, u64::MAX) {
        Ok(None) => {}
        Ok(Some(_)) => info!("clients of NFS version 4 of the last server ask again for their open files and locks"),
        Err(error) => {
            let shown = output::shown(path.display());
            warn!(
                "{shown} is of clients of an earlier server and cannot be removed: {error}; remove it before version 4 is served"
            );
        }
    }
}

/// The state of clients in a server's memory.
pub(crate) struct ClientState {
    pieces: Arc<FrameTable<[AtomicU64; PIECE_WORDS]>>,
    /// The file for an orderly end.
    file: Option<StateFile>,
}

impl ClientState {
    /// The memory for a server that begins, with the state that an earlier one has left.
    pub(crate) fn taken(memory: &Arc<Memory>, persisted: PersistedClients) -> (Option<Self>, ClientMemory) {
        let PersistedClients { previous_names, list, state } = persisted;
        let state = state.map(|file| Self { pieces: Arc::new(memory.table(Part::Clients)), file });
        state.iter().for_each(Self::take);
        // The memory of an earlier form has no room.
        let state = state.filter(|state| !state.words().is_empty());
        let words = state.as_ref().map(|state| Arc::clone(&state.pieces) as _);
        (state, ClientMemory { previous_names, list, words, told: Some(Arc::new(tell_lost)) })
    }

    fn words(&self) -> &[AtomicU64] {
        (*self.pieces).as_ref()
    }

    /// Takes the state that a server has left at its orderly end, unless the memory has that of a killed one.
    fn take(&self) {
        let Some(StateFile { path, previous_server, .. }) = &self.file else { return };
        let most = (HEAD_BYTES_MAX + word_runs::bytes_max(self.words().len())) as u64;
        let taken = private_directory::take(path, most);
        if let Err(error) = taken.and_then(|bytes| bytes.map_or(Ok(()), |bytes| self.fill(&bytes, *previous_server))) {
            // Only the words that the file has filled: a store to another word would take memory.
            let filled = self.words().iter().filter(|word| word.load(Ordering::Relaxed) != 0);
            filled.for_each(|word| word.store(0, Ordering::Relaxed));
            info!("clients ask again for their open files and locks: {}: {error}", output::shown(path.display()));
        }
    }

    /// Takes the state in a file of the server with the number `previous_server`.
    fn fill(&self, bytes: &[u8], previous_server: Option<u64>) -> io::Result<()> {
        let wrong = || io::Error::other("it is not of the last server, or of one with another cache");
        let words = self.words();
        if words.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            return Ok(());
        }
        let head = self.head(previous_server.ok_or_else(wrong)?);
        let runs = bytes.strip_prefix(head.as_bytes()).ok_or_else(wrong)?;
        word_runs::decode(runs, words).ok_or_else(wrong)
    }

    fn head(&self, number: u64) -> String {
        format!("{FORM} {:x} {number:016x}\n", self.words().len())
    }

    /// Keeps the state of a server that answers no more calls. All of it fits, however many clients there are.
    pub(crate) fn keep(&self) {
        let Some(StateFile { path, number, .. }) = &self.file else { return };
        let (head, runs) = (self.head(*number), word_runs::encode(self.words()));
        if let Err(error) = private_directory::leave(path, &[head.as_bytes(), &runs]) {
            warn!("clients will ask again for their open files and locks: {}: {error}", output::shown(path.display()));
        }
    }
}
