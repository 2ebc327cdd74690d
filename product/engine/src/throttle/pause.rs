//! The payer of a write call, and its pauses, each noted from its beginning to its end.
//!
//! Owns: the record of a pause.
//! Does not own: where the record is kept (`policy::pauses`, `devices::waits`, `trace`), the sum of a call's pauses
//! (`call`), the waiting.
//! Invariants: a pause is noted once, when it ends or its writer goes away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::Base;
use crate::call::Call;
use crate::client::Client;
use crate::counters::Counter;
use crate::devices::delays::Delay;
use crate::devices::file::FileInner;
use crate::devices::waits::{PayerId, WaitOwner, WaitsFor};
use crate::platform::{Nanos, Platform};
use crate::policy::{PauseCause, Payer};
use crate::trace::Event;

/// The payer for a write call: an open file, for a client if one is known.
pub(crate) struct PayingCall<'a> {
    pub(crate) file: &'a Arc<FileInner>,
    client: Option<&'a Client>,
    /// The waits of the call.
    pub(crate) call: Call<'a>,
    /// The client's account, while the file is new.
    purse: Option<Arc<Payer>>,
    /// When the call began to wait; the end of time if it never did.
    since_ns: AtomicU64,
}

impl<'a> PayingCall<'a> {
    /// `by_client`: the client pays for writes to a new file.
    pub(crate) fn new(file: &'a Arc<FileInner>, client: Option<&'a Client>, by_client: bool) -> Self {
        let new = client.filter(|_| by_client && file.payer.is_new());
        let purse = new.and_then(Client::payer).map(|client| file.device.purses().of(&client));
        Self { file, client, call: Call::new(file, client), purse, since_ns: AtomicU64::new(u64::MAX) }
    }

    /// The account for its dirtied pages.
    pub(super) fn account(&self) -> &Payer {
        self.purse.as_deref().unwrap_or(&self.file.payer)
    }

    /// It has dirtied `pages` pages.
    pub(super) fn dirtied(&self, pages: u64) {
        if self.purse.is_some() {
            self.file.payer.note_client_dirtied(pages);
        }
    }

    /// The number of clients with waiting payers, and of its own client's waiting payers, both including this one.
    pub(super) fn sharing(&self) -> (u64, u64) {
        self.file.device.waits().sharing(self.client, self.id())
    }

    fn id(&self) -> PayerId {
        std::ptr::from_ref(self.account()).addr()
    }

    /// It waits now; returns the beginning of its wait, including earlier pauses.
    fn waits(&self, now: Nanos) -> Nanos {
        Nanos(self.since_ns.fetch_min(now.0, Ordering::Relaxed).min(now.0))
    }
}

pub(super) struct NotedPause<'a, P: Platform> {
    base: &'a Base<P>,
    payer: &'a PayingCall<'a>,
    cause: PauseCause,
    asked_ns: u64,
    pub(super) began: Nanos,
    wait: u64,
}

impl<'a, P: Platform> NotedPause<'a, P> {
    /// A pause that is to last `asked_ns` at most.
    pub(super) fn begins(base: &'a Base<P>, payer: &'a PayingCall<'a>, cause: PauseCause, asked_ns: u64) -> Self {
        let (file, client, began) = (payer.file, payer.client, base.now());
        let cause = if file.device.hang().is_stalled() { PauseCause::Hung } else { cause };
        base.local().count(Counter::ThrottlePauses, 1);
        file.device.pauses().begins(cause);
        let since = payer.waits(began);
        let whose = WaitOwner { file: Arc::downgrade(file), client, payer: Some(payer.id()) };
        let wait = file.device.waits().begins(whose, WaitsFor::Pause(cause), since);
        base.trace_file(began, file, client, || Event::PauseBegins { wait, cause });
        Self { base, payer, cause, asked_ns, began, wait }
    }
}

impl<P: Platform> Drop for NotedPause<'_, P> {
    fn drop(&mut self) {
        let Self { base, payer, cause, wait, .. } = *self;
        let now = base.now();
        let (device, ns) = (&payer.file.device, now.since(self.began));
        base.local().count(Counter::ThrottleNs, ns);
        device.pauses().ends(cause, ns, self.asked_ns);
        device.waits().ends(wait, ns);
        payer.call.waited(Delay::Throttle, ns);
        base.trace_file(now, payer.file, payer.client, || Event::PauseEnds { wait, cause, ns });
    }
}
