//! Raw lines around small extents.
//!
//! Files made together lie together in a segment. A read of one file fetches the lines of its neighbours, too. Later
//! reads find these lines here.
//!
//! Owns: parts of segments as the store holds them, 64 at most of a MiB each; one GET at a time for each part.
//! Does not own: checksums, which each reader checks.
//! Invariants: segments do not change, so no part grows stale.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::lock;

use crate::format::segment_id::SegmentId;
use crate::seams::ObjectError;

/// Bytes of a part.
pub(crate) const PART_BYTES: u64 = 1 << 20;
/// Parts that are kept.
const PARTS: usize = 64;

/// A part of a segment: absent until the first reader has fetched it.
type Part = Arc<lock::Mutex<Option<Bytes>>>;

#[derive(Debug, Default)]
pub(crate) struct LineCache {
    /// The newest last.
    parts: Mutex<VecDeque<((SegmentId, u64), Part)>>,
}

impl LineCache {
    /// The part of a segment with this number, fetched if it is not here.
    pub(crate) async fn part<F>(&self, segment: SegmentId, number: u64, fetch: F) -> Result<Bytes, ObjectError>
    where
        F: Future<Output = Result<Bytes, ObjectError>>,
    {
        let part = self.entry((segment, number));
        let mut bytes = part.lock().await;
        if let Some(bytes) = &*bytes {
            return Ok(bytes.clone());
        }
        let fetched = fetch.await?;
        *bytes = Some(fetched.clone());
        Ok(fetched)
    }

    fn entry(&self, key: (SegmentId, u64)) -> Part {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let at = parts.iter().position(|(there, _)| *there == key);
        let entry = at.and_then(|at| parts.remove(at)).unwrap_or_else(|| (key, Part::default()));
        if parts.len() >= PARTS {
            parts.pop_front();
        }
        let part = Arc::clone(&entry.1);
        parts.push_back(entry);
        part
    }
}
