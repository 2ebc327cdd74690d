//! One call, as far as it waits.
//!
//! Owns: the call's waits so far for each thing, and the call's client.
//! Does not own: the waiting, the accounts (`devices::delays`).
//! Invariants: each instant counts once: a read's wait for a frame is not also a wait for the read. A call that does
//! not wait records nothing and reads no clock. A call that is dropped has waited until then.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::Base;
use crate::client::Client;
use crate::devices::delays::{Delay, WaitAccount, Waited};
use crate::devices::file::FileInner;
use crate::platform::{Nanos, Platform};

/// A call for a file, and for a client if one is known.
pub(crate) struct Call<'a> {
    pub(crate) file: &'a Arc<FileInner>,
    pub(crate) client: Option<&'a Client>,
    waited_ns: [AtomicU64; Delay::ALL.len()],
}

impl<'a> Call<'a> {
    pub(crate) fn new(file: &'a Arc<FileInner>, client: Option<&'a Client>) -> Self {
        Self { file, client, waited_ns: [const { AtomicU64::new(0) }; Delay::ALL.len()] }
    }

    /// The call waited for this thing, `ns` longer.
    pub(crate) fn waited(&self, delay: Delay, ns: u64) {
        self.waited_ns[delay as usize].fetch_add(ns, Ordering::Relaxed);
    }

    /// The call's waits so far, in all.
    fn in_all_ns(&self) -> u64 {
        self.waited_ns.iter().map(|ns| ns.load(Ordering::Relaxed)).sum()
    }

    /// Does the work, and notes how long it waited, except for waits that are noted separately meanwhile.
    pub(crate) async fn waits<P: Platform, T>(&self, base: &Base<P>, delay: Delay, work: impl Future<Output = T>) -> T {
        // Dropped after the work, which may note a wait of its own when it is dropped.
        let mut noted = None;
        let mut work = pin!(work);
        poll_fn(|cx| {
            let before_ns = self.in_all_ns();
            let done = work.as_mut().poll(cx);
            if done.is_pending() && noted.is_none() {
                noted = Some(Noted { call: self, base, delay, began: base.now(), before_ns });
            }
            done
        })
        .await
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let waited: Waited = std::array::from_fn(|at| *self.waited_ns[at].get_mut());
        if waited.iter().any(|ns| *ns > 0) {
            let of = self.client.map_or(WaitAccount::File(self.file, self.file.pages.slot), WaitAccount::Client);
            self.file.device.waits().call_ended(of, &waited);
        }
    }
}

struct Noted<'a, P: Platform> {
    call: &'a Call<'a>,
    base: &'a Base<P>,
    delay: Delay,
    began: Nanos,
    /// The call's other waits before this one.
    before_ns: u64,
}

impl<P: Platform> Drop for Noted<'_, P> {
    fn drop(&mut self) {
        let within_ns = self.call.in_all_ns() - self.before_ns;
        let ns = self.base.now().since(self.began).saturating_sub(within_ns);
        self.call.waited(self.delay, ns);
    }
}
