//! The files of a disk after the process that used it was killed, for a disk of another world.
//!
//! Owns: the effect of requests in flight. The host carries out each one in whole, in part, or not at all.
//! Does not own: the effect of a request that ends (`state`), a loss of power (`file`).
//! Invariants: the disk stays as it was, so that its world may go on for a moment. Nothing of a request is carried out
//! later.

use std::collections::BTreeMap;
use std::sync::Arc;

use afflux_engine::{Operation, Request};

use super::file::{Change, DiskFile, torn};
use super::image::backed_len;
use super::{Disk, DiskFileId};
use crate::random::Random;

/// The files of a disk, without the disk.
#[derive(Clone)]
pub struct DiskFiles {
    files: BTreeMap<u64, DiskFile>,
    made: u64,
}

impl Disk {
    /// The files as the host has them after the submitting process is killed now. `random` decides about requests in
    /// flight.
    pub fn files_after_kill(&self, random: &mut Random) -> DiskFiles {
        let state = self.lock();
        let (mut files, mut free) = (state.files.clone(), state.blocks_free());
        for pending in state.pending.values().filter(|pending| !pending.direct) {
            let Some(file) = files.get_mut(&pending.file.0) else { continue };
            let blocks = file.live.blocks();
            let end = Orphan { request: &pending.request, backed_bytes: state.backed_bytes, free };
            self.end_orphan(file, &end, pending.log_end, random);
            free = (free + blocks).saturating_sub(file.live.blocks());
        }
        DiskFiles { files, made: state.files_made }
    }

    fn end_orphan(&self, file: &mut DiskFile, orphan: &Orphan<'_>, log_end: u64, random: &mut Random) {
        let (volatile, whole) = (self.options.volatile_cache, random.chance(500));
        match orphan.request.operation() {
            Operation::Write { offset, len } => {
                let len = u64::from(len);
                if file.live.blocks_missing(offset, len) > orphan.free {
                    return;
                }
                let mut backed = vec![0; backed_len(offset, len, orphan.backed_bytes)];
                orphan.request.copy_backed_out(0..len as usize, &mut backed);
                for (offset, len, backed) in
                    torn(offset, len, &backed, orphan.backed_bytes, self.options.block_bytes.into())
                {
                    if whole || random.chance(300) {
                        file.change(Change::Write { offset, len, backed: backed.to_vec() }, volatile);
                    }
                }
            }
            Operation::Sync if whole => file.make_durable(log_end),
            Operation::SetSize { size } if whole => file.change(Change::SetSize { size }, volatile),
            Operation::Punch { offset, len } if whole => file.change(Change::Punch { offset, len }, volatile),
            _ => {}
        }
    }

    /// Gives an empty disk the files of another one.
    ///
    /// # Panics
    /// If a file was made on it.
    pub fn restore(self: &Arc<Self>, files: DiskFiles) {
        let mut state = self.lock();
        assert!(state.files.is_empty(), "before the first file is made");
        for (number, file) in &files.files {
            state.service.lay_out(DiskFileId(*number), 0, file.live.size());
        }
        (state.files, state.files_made) = (files.files, files.made);
        state.count_blocks();
    }
}

/// A request whose process is gone.
struct Orphan<'a> {
    request: &'a Request,
    backed_bytes: u64,
    /// Blocks that the disk has left.
    free: u64,
}
