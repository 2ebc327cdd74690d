//! The place of an open volume, with the means to reach it.
//!
//! Owns: the parts that all adapters share, the connection.
//! Does not own: the first request (`store`).
//! Invariants: the lock of a directory lives as long as its last adapter.

use std::ffi::OsString;
use std::sync::Arc;

use crate::address::Address;
use crate::clock::Time;
use crate::connect::connect;
use crate::directory::Lock;
use crate::error::StoreError;
use crate::options::Options;
use crate::threads::Threads;
use crate::wire::Wire;

/// The folder of the database of records. A volume has it.
pub(crate) const FOLDER: &str = "records";

/// A place that was opened.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) address: Address,
    pub(crate) threads: Threads,
    pub(crate) wire: Arc<Wire>,
    pub(crate) lock: Option<Lock>,
    pub(crate) time: Time,
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
        Ok(Self { url: url.to_owned(), address, threads, wire, lock, time })
    }
}
