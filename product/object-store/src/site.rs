//! The location of an open volume, with the means to reach it.
//!
//! Owns: the parts that all adapters share, the connection, the store as the database sees it.
//! Does not own: the first request (`store`).
//! Invariants: the lock of a directory lives as long as its last adapter. The database never sees a volume's prefix: it
//! encodes some characters of a path, so that its names would begin with another prefix.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::path::Path;
use object_store::prefix::PrefixStore;

use crate::address::{Address, RECORDS};
use crate::connect::connect;
use crate::directory::DirectoryLock;
use crate::disk_cache::VolumeParts;
use crate::error::StoreError;
use crate::judge::Patience;
use crate::options::Options;
use crate::profile::Variables;
use crate::threads::{Threads, Time};
use crate::waits::RequestWaits;
use crate::wire::Wire;

/// The store as the database sees it.
pub(crate) type Rooted = Arc<dyn ObjectStore>;

/// A wait is reported after this time, and again after each [`WAIT_REPORTED_EVERY`].
const WAIT_REPORTED_AFTER: Duration = Duration::from_secs(2);
const WAIT_REPORTED_EVERY: Duration = Duration::from_secs(5);

/// The process's variables that are text.
pub(crate) fn variables() -> Variables {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}

/// A location that was opened.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) address: Address,
    pub(crate) threads: Threads,
    pub(crate) wire: Arc<Wire>,
    pub(crate) lock: Option<DirectoryLock>,
    pub(crate) time: Time,
    /// Parts of objects on a local disk, once the identity of the volume is known.
    pub(crate) disk: OnceLock<VolumeParts>,
    /// The server of the store, if it is one of the user's own.
    pub(crate) endpoint: Option<String>,
}

impl Site {
    /// Makes the connection. No request is sent.
    pub(crate) fn reach(
        url: &str,
        address: Address,
        options: &Options,
        lock: Option<DirectoryLock>,
    ) -> Result<Self, StoreError> {
        let threads = Threads::start().map_err(|error| StoreError::Threads { why: error.to_string() })?;
        let time = Time::of_host();
        let wire = Arc::new(Wire::new(
            connect(url, &address, options, &variables())?,
            time.now_ns,
            Patience::of(&address.store),
        ));
        if let Some(told) = options.told {
            drop(threads.run(tell(told, url.to_owned(), Arc::downgrade(&wire))));
        }
        let (disk, endpoint) = (OnceLock::new(), options.endpoint.clone());
        Ok(Self { url: url.to_owned(), address, threads, wire, lock, time, disk, endpoint })
    }

    /// A text that tells the volume's location from others.
    pub(crate) fn location(&self) -> String {
        format!("{} {}", self.endpoint.as_deref().unwrap_or_default(), self.url)
    }

    /// The database's folder, and the store that has it.
    pub(crate) fn root(&self) -> (Path, Rooted) {
        let wire: Arc<dyn ObjectStore> = self.wire.clone();
        (Path::from(RECORDS), Arc::new(PrefixStore::new(wire, self.address.prefix.clone())))
    }
}

/// Reports requests that wait, until the volume is served or nobody has the connection.
async fn tell(told: fn(&str, &RequestWaits), url: String, wire: Weak<Wire>) {
    let mut pause = WAIT_REPORTED_AFTER / 2;
    loop {
        tokio::time::sleep(pause).await;
        let Some(wire) = wire.upgrade().filter(|wire| wire.patience().limit_ns().is_some()) else { return };
        let waits = wire.waits();
        let is_long = Duration::from_nanos(waits.oldest_ns) >= WAIT_REPORTED_AFTER;
        if is_long {
            told(&url, &waits);
        }
        pause = if is_long { WAIT_REPORTED_EVERY } else { WAIT_REPORTED_AFTER / 2 };
    }
}
