//! The compactor of the database.
//!
//! Owns: its making, its run, its end.
//! Does not own: the moment of its start (`tasks`), the choice of records that it merges (the database).
//! Invariants: no opening waits for it: its start takes seven round trips. A failure ends the records. After
//! [`Compaction::stop`] it sends no request.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::CompactorBuilder;
use slatedb::compactor::Compactor;
use tokio::sync::watch::{Receiver, Sender, channel};

use super::settings::{BLOCK, compaction};
use super::sum::Sum;
use crate::clock::Time;

/// Makes the compactor of a database. It sends no request before its run.
pub(super) fn compactor(path: Path, store: Arc<dyn ObjectStore>, time: &Time) -> Compactor {
    let builder = CompactorBuilder::new(path, store)
        .with_options(compaction())
        .with_merge_operator(Arc::new(Sum))
        .with_sst_block_size(BLOCK);
    match &time.replay {
        Some((clock, seed)) => builder.with_system_clock(Arc::clone(clock)).with_seed(*seed).build(),
        None => builder.build(),
    }
}

/// The wish that the compactor ends. Each run has a receiver until it has ended.
pub(super) struct Compaction(Sender<bool>);

impl Compaction {
    pub(super) fn new() -> Self {
        Self(channel(false).0)
    }

    pub(super) fn begin(&self) -> Receiver<bool> {
        self.0.subscribe()
    }

    /// Asks a run to end.
    pub(super) fn end(&self) {
        self.0.send_replace(true);
    }

    /// Ends a run, and waits for it.
    pub(super) async fn stop(&self) {
        self.end();
        self.0.closed().await;
    }
}

/// Compacts until the end.
///
/// # Errors
/// If another compactor took over, or the database fails.
pub(super) async fn run(compactor: Compactor, mut wish: Receiver<bool>) -> Result<(), slatedb::Error> {
    let ended = {
        let (ended, run) = (pin!(wish.wait_for(|ends| *ends)), pin!(compactor.run()));
        match select(ended, run).await {
            Either::Left(_) => None,
            Either::Right((result, _)) => Some(result),
        }
    };
    match ended {
        Some(result) => result,
        None => compactor.stop().await,
    }
}
