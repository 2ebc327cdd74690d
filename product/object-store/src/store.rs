//! An open store.
//!
//! Owns: the opening of a URL: connection, lock, probe; the two adapters that come from it.
//! Does not own: the requests.
//! Invariants: a store that broke a promise gives no records to a writer. Each opening is told apart by its probe's name.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use crate::access::Access;
use crate::address::{Address, Place};
use crate::clock::StoreClock;
use crate::connect::connect;
use crate::directory::Lock;
use crate::error::StoreError;
use crate::failure::Failure;
use crate::objects::StoreObjects;
use crate::options::Options;
use crate::probe::probe;
use crate::records::StoreRecords;
use crate::site::Site;
use crate::threads::Threads;
use crate::wire::{Requests, Trouble, Wire};

/// The folder of the probes.
const PROBES: &str = "probe";

/// A store with the place of one volume. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    site: Arc<Site>,
    access: Access,
}

impl Store {
    /// Connects to `s3://BUCKET/PREFIX`, `gs://…`, `az://…`, `file:///DIR` or `memory:`, and probes it.
    ///
    /// Keys come from the usual variables (`AWS_*`, `GOOGLE_*`, `AZURE_*`), from the files in `~/.aws`, or from the
    /// instance. A directory is made if it is absent, and locked. `memory:` is empty at each opening.
    ///
    /// # Errors
    /// With advice, if the URL or the settings are wrong or the store does not take the requests of the probe.
    pub async fn open(url: &str, options: &Options) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let lock = match &address.place {
            Place::Directory(directory) => Some(Lock::take(directory)?),
            _ => None,
        };
        let threads = Threads::start().map_err(|error| StoreError::Threads { why: error.to_string() })?;
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let variables = std::env::vars_os().filter_map(text).collect();
        let wire = Arc::new(Wire::new(connect(url, &address, options, &variables)?));
        let name = address.path(&format!("{PROBES}/{:016x}", random()));
        let can_update = !matches!(address.place, Place::Directory(_));
        let probing = {
            let wire = Arc::clone(&wire);
            threads.run(async move { probe(&wire, &name, can_update).await })
        };
        let access = match probing.await {
            Ok(probed) => probed.map_err(|failure| advice(url, &address, failure))?,
            Err(gone) => return Err(StoreError::Threads { why: format!("{gone:?}") }),
        };
        Ok(Self { site: Arc::new(Site { url: url.to_owned(), address, threads, wire, lock }), access })
    }

    /// The result of the probe.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The objects of the volume.
    pub fn objects(&self) -> StoreObjects {
        StoreObjects { site: Arc::clone(&self.site) }
    }

    /// Opens the records of the volume for writing. From then on no older writer's batch becomes durable.
    ///
    /// # Errors
    /// If the store is read-only, another writer was quicker, or the records have an unknown format.
    pub async fn records(&self) -> Result<StoreRecords, StoreError> {
        if let Access::ReadOnly { why } = self.access() {
            return Err(StoreError::ReadOnly { url: self.site.url.clone(), why: why.clone() });
        }
        StoreRecords::open(Arc::clone(&self.site)).await
    }

    /// A clock for the volume.
    pub fn clock(&self) -> StoreClock {
        StoreClock { threads: self.site.threads.clone() }
    }

    /// Whether a lock shows that no earlier process uses the store: in a directory, but not in a bucket.
    pub fn is_locked(&self) -> bool {
        self.site.lock.is_some()
    }

    /// The requests since the opening, those of the probe and of the records too.
    pub fn requests(&self) -> Requests {
        self.site.wire.requests()
    }

    /// The reason why operations wait, if the last request failed. It is repeated until the store answers.
    pub fn trouble(&self) -> Option<Trouble> {
        self.site.wire.trouble()
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.site.url)
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn advice(url: &str, address: &Address, failure: Failure) -> StoreError {
    let url = url.to_owned();
    match failure {
        // The last source of keys is the instance's own address, which nothing answers elsewhere.
        Failure::Busy(why) | Failure::Unknown(why) if why.contains("169.254.169.254") => {
            StoreError::Denied { url, why: "there are no keys".to_owned() }
        }
        Failure::Busy(why) | Failure::Unknown(why) => StoreError::Unreachable { url, why },
        Failure::Missing | Failure::NoBucket => StoreError::NoBucket { url, bucket: address.bucket() },
        Failure::Denied(why) => StoreError::Denied { url, why },
        Failure::Region(why) => StoreError::Region { url, why },
        Failure::Refused(why) => StoreError::Refused { url, why },
    }
}
