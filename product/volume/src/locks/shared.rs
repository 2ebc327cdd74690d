//! The table of locks, as callers and the threads that call the host share it.
//!
//! Owns: the table's lock, the wakes and the calls to the host after its release.
//! Does not own: the table's changes (`table`, `asking`), the order of calls (`host_calls`).
//! Invariants: nobody has the table's lock while the host is called.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Waker;

use afflux_engine::Nanos;

use super::holders::LockRefusal;
use super::host::HostLocks;
use super::host_calls::CallToHost;
use super::of_file::{AfterRelease, LockTable, WaitForProgram, Wakers};
use crate::lock::lock;

/// The table with its lock, and the world's call for ends of turns.
#[derive(Default)]
pub(super) struct SharedTable {
    pub(super) table: Mutex<LockTable>,
    /// Is told when turns end.
    pub(super) on_offers: OnceLock<Box<dyn Fn(Nanos) + Send + Sync>>,
}

impl SharedTable {
    /// Has the world look again when the turns of a file end.
    pub(super) fn tell_end_of_offers(&self, table: &LockTable, file: u64) {
        self.tell(table.files.get(&file).and_then(|it| it.queue.next_end()));
    }

    /// Has the world look again at this time.
    pub(super) fn tell(&self, at: Option<Nanos>) {
        if let (Some(at), Some(told)) = (at, self.on_offers.get()) {
            told(at);
        }
    }

    /// Releases the table's lock, then wakes, and has threads call the host. A waiter is in its queue before the host
    /// may wake it.
    pub(super) fn leave(self: &Arc<Self>, mut table: MutexGuard<'_, LockTable>, wakers: &Wakers) {
        let AfterRelease { calls, woken, waits, ended } = std::mem::take(&mut table.after);
        drop(table);
        drop(ended);
        wakers.iter().for_each(|waker| waker.wake());
        woken.into_iter().for_each(Waker::wake);
        for WaitForProgram { host, wanted, waker } in waits {
            host.wake_when_free(wanted.span, wanted.mode, waker);
        }
        for (file, host) in calls {
            let work = HostCalls { shared: Arc::clone(self), file, host: Some(Arc::clone(&host)) };
            host.start(Box::new(move || work.make_all()));
        }
    }
}

/// The calls to the host for one file.
struct HostCalls {
    shared: Arc<SharedTable>,
    file: u64,
    /// None once all calls are made.
    host: Option<Arc<dyn HostLocks>>,
}

impl HostCalls {
    fn make_all(mut self) {
        while let Some((call, host)) = self.next() {
            let result = call.make(&*host);
            drop(host);
            self.note(&call, result);
        }
    }

    fn next(&mut self) -> Option<(CallToHost, Arc<dyn HostLocks>)> {
        let (shared, place) = (Arc::clone(&self.shared), &mut self.host);
        let mut table = lock(&shared.table);
        let next = table.with(self.file, |_, of_file| {
            let call = of_file.host.as_mut().and_then(|host| host.next_call(&of_file.ranges));
            let Some(call) = call else {
                // The file's part on the host may end now.
                *place = None;
                return None;
            };
            place.clone().map(|host| (call, host))
        });
        shared.leave(table, &Wakers::new());
        next
    }

    fn note(&self, call: &CallToHost, result: Result<(), LockRefusal>) {
        let mut table = lock(&self.shared.table);
        table.with(self.file, |holders, of_file| {
            let Some(host) = &mut of_file.host else { return };
            host.called(call, result);
            if host.is_refused() {
                of_file.take_back(holders);
            }
        });
        self.shared.leave(table, &Wakers::new());
    }
}

impl Drop for HostCalls {
    fn drop(&mut self) {
        if self.host.take().is_none() {
            return;
        }
        let mut table = lock(&self.shared.table);
        table.with(self.file, |holders, of_file| {
            of_file.take_back(holders);
            of_file.host.iter_mut().for_each(|host| host.lose_calls());
        });
        self.shared.leave(table, &Wakers::new());
    }
}
