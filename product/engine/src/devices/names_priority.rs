//! The priority of a change that the host's file system makes durable by a few small writes of its own.
//!
//! Such a change is one of names, or the flush of a file whose size or place on the device has changed. The host writes
//! its journal, one small write after the other, and each waits for all the data in flight before it.
//!
//! Owns: the guard. Does not own: the smaller amount in flight meanwhile (`in_flight`).
//! Invariants: the last guard's drop wakes the tasks that wait to submit.

use std::sync::Arc;

use super::DeviceState;

/// Less data is in flight to the device while this lives: see [`Engine::prioritize_names`](crate::Engine::prioritize_names).
pub struct NamesPriority(Arc<DeviceState>);

impl NamesPriority {
    pub(crate) fn begin(device: &Arc<DeviceState>) -> Self {
        device.in_flight.names_begin();
        Self(Arc::clone(device))
    }
}

impl Drop for NamesPriority {
    fn drop(&mut self) {
        if self.0.in_flight.names_end() {
            self.0.requests().write_ended().wake_all();
        }
    }
}
