//! One call, as far as it waits.
//!
//! Owns: the call's waits so far for each thing, and the call's client; each wait from its beginning to its end.
//! Does not own: the waiting, the ledger of waits (`devices::waits`), the accounts (`devices::delays`).
//! Invariants: a wait is noted once, when it ends or its caller goes away. Each instant counts once: a read's wait for
//! a frame is not also a wait for the read. A call that does not wait records nothing and reads no clock. A call that
//! is dropped has waited until then.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_device::client::Client;
use afflux_device::counters::Counter;
use afflux_device::platform::{Nanos, Platform};

use crate::base::Base;
use crate::devices::delays::{Delay, WaitAccount, Waited};
use crate::devices::file::FileInner;
use crate::devices::waits::{PayerId, Wait, WaitId, WaitsFor};
use crate::trace::EngineEvent;

/// A call for a file, and for a client if one is known.
pub(crate) struct FileCall<'a> {
    pub(crate) file: &'a Arc<FileInner>,
    pub(crate) client: Option<&'a Client>,
    waited_ns: [AtomicU64; Delay::ALL.len()],
    /// When its first pause or sync began; the end of time if there was none.
    since_ns: AtomicU64,
}

impl<'a> FileCall<'a> {
    pub(crate) fn new(file: &'a Arc<FileInner>, client: Option<&'a Client>) -> Self {
        let waited_ns = [const { AtomicU64::new(0) }; Delay::ALL.len()];
        Self { file, client, waited_ns, since_ns: AtomicU64::new(u64::MAX) }
    }

    /// The call's waits so far, in all.
    fn in_all_ns(&self) -> u64 {
        self.waited_ns.iter().map(|ns| ns.load(Ordering::Relaxed)).sum()
    }

    /// A pause or a sync begins, and is in the device's ledger until the result is dropped. `asked_ns`: the longest
    /// time that a policy requested.
    pub(crate) fn begins<P: Platform>(
        &'a self,
        base: &'a Base<P>,
        waits_for: WaitsFor,
        payer: Option<PayerId>,
        asked_ns: u64,
    ) -> CallWait<'a, P> {
        // Counted before the clock is read: counting is part of the wait.
        base.local().count(counters(waits_for).0, 1);
        let (file, client, began) = (self.file.pages.slot, self.client.cloned(), base.now());
        let since = Nanos(self.since_ns.fetch_min(began.0, Ordering::Relaxed).min(began.0));
        let wait = self.file.device.waits.begins(Wait { file, client, payer, waits_for, since, asked_ns });
        base.trace_file(began, self.file, self.client, || begin_event(waits_for, wait.number));
        let (before_ns, listed) = (self.in_all_ns(), Some((waits_for, wait)));
        CallWait { call: self, base, delay: waits_for.delay(), began, before_ns, listed }
    }

    /// Notes a wait that has ended. Nothing else notes it.
    pub(crate) fn waited(&self, delay: Delay, ns: u64) {
        self.waited_ns[delay as usize].fetch_add(ns, Ordering::Relaxed);
    }

    /// Does the work, and notes how long it waited, except for waits that are noted separately meanwhile. The callee
    /// makes the work where it runs: as an argument it would take its memory twice.
    pub(crate) async fn waits<P: Platform, W: Future>(
        &self,
        base: &Base<P>,
        delay: Delay,
        work: impl FnOnce() -> W,
    ) -> W::Output {
        // Dropped after the work, which may note a wait of its own when it is dropped.
        let mut noted = None;
        let mut work = pin!(work());
        poll_fn(|cx| {
            let before_ns = self.in_all_ns();
            let done = work.as_mut().poll(cx);
            if done.is_pending() && noted.is_none() {
                noted = Some(CallWait { call: self, base, delay, began: base.now(), before_ns, listed: None });
            }
            done
        })
        .await
    }
}

impl Drop for FileCall<'_> {
    fn drop(&mut self) {
        let waited: Waited = std::array::from_fn(|at| *self.waited_ns[at].get_mut());
        if waited.iter().any(|ns| *ns > 0) {
            let file = self.file;
            let of_file = WaitAccount::File(file.pages.slot, &file.backing, &file.delays);
            file.device.waits.call_ended(self.client.map_or(of_file, WaitAccount::Client), &waited);
        }
    }
}

/// A call's wait, until it ends or the caller goes away.
pub(crate) struct CallWait<'a, P: Platform> {
    call: &'a FileCall<'a>,
    base: &'a Base<P>,
    delay: Delay,
    pub(crate) began: Nanos,
    /// The call's other waits before this one.
    before_ns: u64,
    /// A wait in the device's ledger.
    listed: Option<(WaitsFor, WaitId)>,
}

impl<P: Platform> Drop for CallWait<'_, P> {
    fn drop(&mut self) {
        let Self { call, base, delay, began, before_ns, listed } = *self;
        let (now, within_ns) = (base.now(), call.in_all_ns() - before_ns);
        let ns = now.since(began).saturating_sub(within_ns);
        call.waited(delay, ns);
        if let Some((waits_for, wait)) = listed {
            call.file.device.waits.ends(wait, ns);
            base.local().count(counters(waits_for).1, ns);
            base.trace_file(now, call.file, call.client, || end_event(waits_for, wait.number, ns));
        }
    }
}

/// The counters of such waits and of their time.
fn counters(waits_for: WaitsFor) -> (Counter, Counter) {
    match waits_for {
        WaitsFor::Pause(_) => (Counter::ThrottlePauses, Counter::ThrottleNs),
        WaitsFor::Sync => (Counter::SyncCalls, Counter::SyncNs),
    }
}

fn begin_event(waits_for: WaitsFor, wait: u64) -> EngineEvent {
    match waits_for {
        WaitsFor::Pause(cause) => EngineEvent::PauseBegins { wait, cause },
        WaitsFor::Sync => EngineEvent::SyncBegins { wait },
    }
}

fn end_event(waits_for: WaitsFor, wait: u64, ns: u64) -> EngineEvent {
    match waits_for {
        WaitsFor::Pause(cause) => EngineEvent::PauseEnds { wait, cause, ns },
        WaitsFor::Sync => EngineEvent::SyncEnds { wait, ns },
    }
}
