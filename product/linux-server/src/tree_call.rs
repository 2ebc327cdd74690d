//! The calls that trees of names make through a pool.
//!
//! Owns: the form in which such a call is awaited, the reuse of a call's memory.
//! Does not own: the call's stages (`PoolCall`), its work (`host`).
//! Invariants: a call is used again only once nobody else has it.

use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_engine::SharedRecycler;
use afflux_linux_device::WorkerPool;
use afflux_linux_device::pool::{Job, Lane, PoolCall, PoolWork};
use afflux_volume::{Called, TreeCall};

/// Most calls of one kind that keep their memory.
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

    /// As [`HostCall::run`], in kept memory.
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
