//! A pool for each device, so that a hanging device takes no threads from the others, and the calls that trees of names
//! make through it.
//!
//! Owns: the pool of each device; making it on first use; the form in which a call is awaited, the reuse of a call's
//! memory.
//! Does not own: threads and queues (each pool its own), which device a call is about, the call's stages (`PoolCall`),
//! its work (`host`).
//! Invariants: pools of two devices share neither threads nor queue. Each device that was asked for has a pool, so the
//! source of the devices bounds their number; a pool without work has no thread. A call is used again only once nobody
//! else has it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use afflux_engine::SharedRecycler;
use afflux_linux_device::WorkerPool;
use afflux_linux_device::pool::{Job, Lane, PoolCall, PoolWork};
use afflux_volume::{Called, DeviceKey, TreeCall};

/// The pools of the devices, each with the same bounds.
pub(crate) struct DevicePools {
    /// The pattern for the others; it also runs calls about no device.
    common: WorkerPool,
    pools: Mutex<BTreeMap<DeviceKey, WorkerPool>>,
}

impl DevicePools {
    /// No pools yet. `common` itself serves no device.
    pub(crate) fn new(common: &WorkerPool) -> Self {
        Self { common: common.clone(), pools: Mutex::default() }
    }

    /// The pool for calls about a device.
    pub(crate) fn of(&self, device: DeviceKey) -> WorkerPool {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.entry(device).or_insert_with(|| self.common.another()).clone()
    }

    /// The pool for calls whose device is not known yet.
    pub(crate) fn common(&self) -> &WorkerPool {
        &self.common
    }
}

/// Most calls of one kind that are pooled with their memory.
pub(crate) const CALLS_POOLED: usize = 64;
/// Calls of one kind that reuse their memory.
pub(crate) type PooledCalls<W, R> = SharedRecycler<HostCall<W, R>>;

/// A call of the host, of which a tree awaits the result.
pub(crate) struct HostCall<W, R>(PoolCall<W, R>);

impl<W: PoolWork<R> + 'static, R: Send + 'static> HostCall<W, R> {
    /// As [`WorkerPool::run`], for work of a lane. The work may leave more for its thread, which does it after it has
    /// given the result.
    pub(crate) fn run(pool: &WorkerPool, lane: Lane, work: W) -> Called<R> {
        Called::waits_for(Self::new(pool, lane, work))
    }

    /// As [`HostCall::run`], in pooled memory.
    pub(crate) fn run_pooled(pooled: &PooledCalls<W, R>, pool: &WorkerPool, lane: Lane, work: W) -> Called<R> {
        let renew = |call: &mut Self, work| call.0.renew(pool, lane, work);
        Called::waits_for(pooled.take(work, renew, |work| Self::new(pool, lane, work)))
    }

    fn new(pool: &WorkerPool, lane: Lane, work: W) -> Arc<Self> {
        Arc::new(Self(PoolCall::new(pool, lane, work)))
    }
}

impl<W: PoolWork<R> + 'static, R: Send + 'static> Job for HostCall<W, R> {
    fn run(&self) {
        self.0.run();
    }
}

/// Trees have one type for calls of any work.
impl<W: PoolWork<R> + 'static, R: Send + 'static> TreeCall<R> for HostCall<W, R> {
    fn poll(self: Arc<Self>, cx: &mut Context<'_>) -> Poll<R> {
        self.0.poll_result(cx, || Arc::clone(&self) as _)
    }

    fn abandon(&self) {
        self.0.let_go();
    }
}

#[cfg(test)]
mod tests;
