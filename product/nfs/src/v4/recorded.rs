//! The recorded form of operations that move bytes or ask for a sync.
//!
//! Owns: which operations are recorded.
//! Does not own: the recording (`frontend`); COPY's ranges, which only its end knows (`operations::ranges`).
//! Invariants: an operation is recorded once, although a worker begins it again after it would have waited.

use std::sync::Arc;

use afflux_frontend::RecordedCall;
use afflux_frontend::trace::TracedOperation;
use afflux_volume::{Inode, Platform, handle_number};

use super::codec::ArgOp;
use super::compound::{Compound, Object};

impl<P: Platform> Compound<P> {
    /// Records the operation that starts here, while somebody reads the recording.
    #[inline]
    pub(super) fn record(&mut self, operation: &ArgOp) {
        if self.service.recording.is_on() {
            self.record_now(operation);
        }
    }

    #[cold]
    fn record_now(&mut self, operation: &ArgOp) {
        let (traced, offset, bytes) = match *operation {
            ArgOp::Read { offset, count, .. } => (TracedOperation::Read, offset, count.into()),
            ArgOp::Write { offset, data, .. } => (TracedOperation::Write, offset, data.range().len() as u64),
            ArgOp::Commit { offset, .. } => (TracedOperation::Sync, offset, 0),
            _ => return,
        };
        if self.recorded_at == self.at {
            return;
        }
        self.recorded_at = self.at;
        if let Some(Object::Inode(inode)) = &self.current {
            self.record_of(inode, traced, offset, bytes);
        }
    }

    /// Records an access to a file.
    pub(super) fn record_of(&self, inode: &Arc<Inode<P>>, operation: TracedOperation, offset: u64, bytes: u64) {
        let recording = &self.service.recording;
        if recording.is_on()
            && let Some(file) = handle_number(inode.handle_bytes())
        {
            let call = RecordedCall { operation, file, offset, bytes };
            recording.note(&mut vec![call], || self.service.volume.engine().platform().now().0);
        }
    }
}
