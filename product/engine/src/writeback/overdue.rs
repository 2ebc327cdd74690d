//! Looks for requests that a device keeps for too long, and sets them aside.
//!
//! It does so only if another request or a writer waits. A device may complete nothing at all because it hangs, or
//! because all of its requests wait for such files. The next requests find out, and get less time than the first ones.
//!
//! Owns: for how long each request was seen in its device.
//! Does not own: the time that is too long (`policy`), the effect on accounts (`devices::aside`).
//! Invariants: only watched time counts, as for a hang. A look allocates nothing.

use std::sync::Arc;

use afflux_device::platform::Platform;

use crate::base::Base;
use crate::devices::DeviceState;
use crate::devices::request_table::RequestInFlight;
use crate::dirty::failing;
use crate::trace::EngineEvent;

/// The watched time at which a request was first seen, by its place.
pub(super) struct OverdueWatch {
    watched_ns: u64,
    seen: Box<[Seen]>,
}

#[derive(Clone, Copy)]
struct Seen {
    number: u64,
    at_ns: u64,
}

impl OverdueWatch {
    /// No time was watched yet.
    pub(super) fn begins(device: &DeviceState) -> Self {
        let seen = vec![Seen { number: u64::MAX, at_ns: 0 }; device.requests().entries.count()].into();
        Self { watched_ns: 0, seen }
    }

    /// So much more time was watched. Returns the longest time for which a request was seen.
    pub(super) fn look(&mut self, device: &DeviceState, passed_ns: u64) -> u64 {
        self.watched_ns += passed_ns;
        let requests = device.requests().entries.all().filter(|request| !request.is_aside);
        requests.map(|request| self.age_ns(&request)).max().unwrap_or(0)
    }

    fn age_ns(&mut self, request: &RequestInFlight) -> u64 {
        let at = (request.number % self.seen.len() as u64) as usize;
        if self.seen[at].number != request.number {
            self.seen[at] = Seen { number: request.number, at_ns: self.watched_ns };
        }
        self.watched_ns - self.seen[at].at_ns
    }

    /// Sets the requests aside that were seen for `most_ns` and longer, if another request waits.
    pub(super) fn set_aside<P: Platform>(&mut self, base: &Base<P>, device: &Arc<DeviceState>, most_ns: u64) {
        // A store's request is late because the store gets too many.
        if device.limits().is_store() || !device.is_waited_for() {
            return;
        }
        let mut any = false;
        for request in device.requests().entries.all().filter(|request| !request.is_aside) {
            any |= self.age_ns(&request) >= most_ns && try_set_one_aside(base, device, &request);
        }
        if any {
            let moment = base.moment_at(base.now());
            failing::apply_failed(&base.devices, device, moment);
            base.devices.refresh_bounds(device, moment);
            if device.hang().is_stalled() {
                // One of them may find out whether only these files' writes do not end.
                device.admission().device_changed();
            }
        }
    }
}

fn try_set_one_aside<P: Platform>(base: &Base<P>, device: &Arc<DeviceState>, request: &RequestInFlight) -> bool {
    // The request may have ended since, and its file may be gone.
    let file = base.devices.files.get(request.file).filter(|file| Arc::ptr_eq(&file.device, device));
    let (Some(file), now) = (file, base.now()) else { return false };
    if !file.try_set_aside(request, now) {
        return false;
    }
    device.admission().file_changed(request.file);
    base.trace_file(now, &file, None, || EngineEvent::SetAside { ns: now.since(request.submitted) });
    true
}
