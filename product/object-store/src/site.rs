//! The place of an open volume, with the means to reach it.
//!
//! Owns: the parts that all adapters share, the connection, the store as the database sees it.
//! Does not own: the first request (`store`).
//! Invariants: the lock of a directory lives as long as its last adapter. The database never sees a volume's prefix: it encodes
//! some characters of a path, so that its names would begin with another prefix.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::ObjectStore;
use object_store::path::Path;
use object_store::prefix::PrefixStore;

use crate::address::Address;
use crate::clock::Time;
use crate::connect::connect;
use crate::directory::Lock;
use crate::error::StoreError;
use crate::folders::RECORDS;
use crate::options::Options;
use crate::threads::Threads;
use crate::wire::Wire;

/// The store as the database sees it.
pub(crate) type Rooted = Arc<dyn ObjectStore>;

/// A place that was opened.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) address: Address,
    pub(crate) threads: Threads,
    pub(crate) wire: Arc<Wire>,
    pub(crate) lock: Option<Lock>,
    pub(crate) time: Time,
    pub(crate) is_split: AtomicBool,
}

impl Site {
    /// Makes the connection. No request is sent.
    pub(crate) fn reach(
        url: &str,
        address: Address,
        options: &Options,
        lock: Option<Lock>,
    ) -> Result<Self, StoreError> {
        let threads = Threads::start().map_err(|error| StoreError::Threads { why: error.to_string() })?;
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let variables = std::env::vars_os().filter_map(text).collect();
        let time = Time::of_host();
        let wire = Arc::new(Wire::new(connect(url, &address, options, &variables)?, time.now_ns));
        Ok(Self { url: url.to_owned(), address, threads, wire, lock, time, is_split: AtomicBool::new(false) })
    }

    /// The database's folder, and the store that has it.
    pub(crate) fn root(&self) -> (Path, Rooted) {
        let wire: Arc<dyn ObjectStore> = self.wire.clone();
        if self.is_split() {
            return (self.address.path(RECORDS), wire);
        }
        (Path::from(RECORDS), Arc::new(PrefixStore::new(wire, self.address.prefix.clone())))
    }

    /// Whether an earlier version put a part of the database below another prefix.
    pub(crate) fn is_split(&self) -> bool {
        self.is_split.load(Ordering::Relaxed)
    }

    pub(crate) fn set_split(&self, is_split: bool) {
        self.is_split.store(is_split, Ordering::Relaxed);
    }
}
