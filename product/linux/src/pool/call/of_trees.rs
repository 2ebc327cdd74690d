//! The calls that trees of names make through a pool.
//!
//! Owns: the form in which such a call is awaited, the reuse of a call's memory.
//! Does not own: the call (`call`), its work (`host`).
//! Invariants: a call is used again only once nobody else has it.

use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use afflux_engine::SharedRecycler;
use afflux_volume::{Called, TreeCall};

use super::{PoolCall, PoolWork, Stage};
use crate::pool::{Lane, WorkerPool};

/// Most calls of one kind that keep their memory.
pub(crate) const CALLS_KEPT: usize = 64;
/// Calls of one kind that reuse their memory.
pub(crate) type KeptCalls<W, R> = SharedRecycler<PoolCall<W, R>>;

impl WorkerPool {
    /// As [`WorkerPool::run`], for work of a lane. The work may leave more for its thread, which does it after it has
    /// given the result.
    pub(crate) fn run_on<R: Send + 'static>(&self, lane: Lane, work: impl PoolWork<R> + 'static) -> Called<R> {
        Called::waits_for(PoolCall::new(self, lane, work))
    }
}

impl<W: PoolWork<R> + 'static, R: Send + 'static> PoolCall<W, R> {
    /// As [`WorkerPool::run_on`], in kept memory.
    pub(crate) fn run_kept(kept: &KeptCalls<W, R>, pool: &WorkerPool, lane: Lane, work: W) -> Called<R> {
        let renew = |call: &mut Self, work| call.renew(pool, lane, work);
        Called::waits_for(kept.take(work, renew, |work| Self::new(pool, lane, work)))
    }

    /// Makes it another call. Nobody else may have it.
    fn renew(&mut self, pool: &WorkerPool, lane: Lane, work: W) {
        let stage = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        *stage = Stage::New { pool: pool.clone(), lane, work, ticket: None };
    }
}

/// Trees have one type for calls of any work.
impl<W: PoolWork<R> + 'static, R: Send + 'static> TreeCall<R> for PoolCall<W, R> {
    fn poll(self: Arc<Self>, cx: &mut Context<'_>) -> Poll<R> {
        self.poll_result(cx)
    }

    fn abandon(&self) {
        self.let_go();
    }
}

#[cfg(test)]
mod tests;
