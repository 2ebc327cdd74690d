//! A disk with a byte rate that needs no help from the kernel: writes wait in this process before they go to the real
//! device.
//!
//! Owns: the order and the pace of writes. Does not own: the device behind it, other operations.
//! Invariants: writes go on in the order in which they came. Each goes on no earlier than a disk of that rate would
//! have taken its bytes. This part completes no request itself. A request never stays here once the device is gone.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use afflux_engine::{Device, Limits, Operation, Request};

/// A device that takes writes at a rate.
pub struct LimitedDevice {
    behind: Arc<dyn Device>,
    writes: SyncSender<Request>,
}

impl LimitedDevice {
    /// Puts a rate before `behind`. Starts a thread, which ends with the value.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn new(behind: Arc<dyn Device>, write_bytes_per_s: u64) -> std::io::Result<Arc<Self>> {
        // Room for as many requests as can be in flight, so that the channel is never full.
        let (writes, waiting) = sync_channel(behind.limits().depth as usize);
        let device = Arc::clone(&behind);
        std::thread::Builder::new()
            .name("afflux-limit".to_owned())
            .spawn(move || pass_on(&waiting, &*device, write_bytes_per_s.max(1)))?;
        Ok(Arc::new(Self { behind, writes }))
    }
}

impl Device for LimitedDevice {
    fn limits(&self) -> &Limits {
        self.behind.limits()
    }

    fn submit(&self, request: Request) {
        if !matches!(request.operation(), Operation::Write { .. }) {
            return self.behind.submit(request);
        }
        match self.writes.try_send(request) {
            Ok(()) => {}
            // The engine has more in flight than allowed, or the thread has died. The request then goes on without a
            // limit, but is not lost.
            Err(TrySendError::Full(request) | TrySendError::Disconnected(request)) => self.behind.submit(request),
        }
    }

    fn free_bytes_hint(&self) -> u64 {
        self.behind.free_bytes_hint()
    }
}

fn pass_on(waiting: &Receiver<Request>, device: &dyn Device, bytes_per_s: u64) {
    let mut free_at = Instant::now();
    for request in waiting {
        let Operation::Write { len, .. } = request.operation() else { unreachable!("writes alone wait here") };
        free_at = free_at.max(Instant::now()) + Duration::from_secs_f64(f64::from(len) / bytes_per_s as f64);
        std::thread::sleep(free_at.saturating_duration_since(Instant::now()));
        device.submit(request);
    }
}
