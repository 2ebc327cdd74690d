//! The list of mounts, which is only for people.
//!
//! Owns: the reported mounts: client and path.
//! Does not own: the calls that change and show it (`mount`).
//! Invariants: the list has at most [`MOUNTS_MAX`] lines, and no code relies on it: a handle is valid whether or not
//! its mount is in the list.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Most lines that the list of mounts has; the oldest go first.
pub const MOUNTS_MAX: usize = 256;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct MountedLine {
    pub(super) client: IpAddr,
    pub(super) path: Vec<u8>,
}

/// The clients' mounts, as far as the clients reported them.
#[derive(Default)]
pub(crate) struct Mounts {
    lines: Mutex<VecDeque<MountedLine>>,
}

impl Mounts {
    pub(super) fn change(&self, change: impl FnOnce(&mut VecDeque<MountedLine>)) {
        change(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn add(&self, client: IpAddr, path: Vec<u8>) {
        let line = MountedLine { client, path };
        self.change(|lines| {
            lines.retain(|known| *known != line);
            if lines.len() == MOUNTS_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        });
    }
}
