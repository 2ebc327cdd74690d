//! A store whose answers are counted.
//!
//! Owns: since when the store has given no answer, how often it was too busy.
//! Does not own: the tries that follow (`retry`).
//! Invariants: any answer but 503 shows that the store is there.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::{Nanos, Platform};

use crate::seams::{Arrivals, ByteParts, ObjectError, Objects, PutOutcome};

/// A store that fails for so long is away.
const AWAY_NS: u64 = 5 * Nanos::SECOND;
/// The store answers.
const THERE: u64 = u64::MAX;

/// The store, watched.
#[derive(Debug)]
pub struct WatchedObjects<O, P> {
    objects: O,
    platform: Arc<P>,
    /// When the first request was sent of those that failed since the last answer.
    failing_since: AtomicU64,
    too_many: AtomicU64,
}

impl<O: Objects, P: Platform> WatchedObjects<O, P> {
    /// Watches a store.
    pub fn new(platform: &Arc<P>, objects: O) -> Self {
        let (failing_since, too_many) = (AtomicU64::new(THERE), AtomicU64::new(0));
        Self { objects, platform: Arc::clone(platform), failing_since, too_many }
    }

    /// Since when the store has been away: by the requests of this device, or by all that the store itself counts.
    pub(super) fn away_since(&self, now: Nanos) -> Option<Nanos> {
        let failing = Some(self.failing_since.load(Ordering::Relaxed)).filter(|since| *since != THERE).map(Nanos);
        let counted = Nanos(now.0.saturating_sub(self.objects.away_ns()));
        let since = failing.map_or(counted, |since| since.min(counted));
        (now.since(since) >= AWAY_NS).then_some(since)
    }

    /// How often the store was too busy.
    pub(super) fn too_many(&self) -> u64 {
        self.too_many.load(Ordering::Relaxed)
    }

    async fn watch<T>(&self, request: impl Future<Output = Result<T, ObjectError>> + Send) -> Result<T, ObjectError> {
        let sent = self.platform.now();
        let answer = request.await;
        match &answer {
            Err(error @ (ObjectError::Busy | ObjectError::Unknown | ObjectError::Denied)) => {
                self.failing_since.fetch_min(sent.0, Ordering::Relaxed);
                self.too_many.fetch_add(u64::from(*error == ObjectError::Busy), Ordering::Relaxed);
            }
            _ => self.failing_since.store(THERE, Ordering::Relaxed),
        }
        answer
    }
}

impl<O: Objects, P: Platform> Objects for WatchedObjects<O, P> {
    async fn create(&self, name: &str, parts: impl Into<ByteParts> + Send) -> Result<PutOutcome, ObjectError> {
        self.watch(self.objects.create(name, parts)).await
    }

    async fn get_counted(&self, name: &str, range: Range<u64>, arrivals: &Arrivals) -> Result<ByteParts, ObjectError> {
        self.watch(self.objects.get_counted(name, range, arrivals)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        self.watch(self.objects.list(prefix)).await
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.watch(self.objects.delete(name)).await
    }

    fn forget(&self, name: &str) {
        self.objects.forget(name);
    }

    fn away_ns(&self) -> u64 {
        self.objects.away_ns()
    }
}
