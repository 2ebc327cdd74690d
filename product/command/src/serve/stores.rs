//! A volume in an object store behind a server.
//!
//! Owns: the claim, the volume, its views and its end; here the location of a volume, the parts of an open one, the
//! words of failures there.
//! Does not own: the store and its records (crates `object`, `object-store`).
//! Invariants: the server runs without this module unless it is built with the feature `object`. Each failure names the
//! store.

use std::process;
use std::sync::Arc;

use afflux_engine::Device;
use afflux_linux_device::LinuxPlatform;
use afflux_object::ObjectVolumeError;
use afflux_object_store::Store;
use afflux_report::failure::Failure;
use afflux_report::output;
use afflux_volume::{Directory, HandleKey};
use tracing::error;

pub(crate) mod store_end;
pub(crate) mod store_last;
pub(crate) mod store_volume;
pub(crate) mod store_writer;

/// The location of a volume, and the platform of its server.
#[derive(Clone)]
pub(crate) struct VolumeLocation {
    pub(crate) url: String,
    pub(crate) platform: LinuxPlatform,
    pub(crate) store: Store,
}

/// The parts of an open volume that the server uses.
pub(crate) struct Parts {
    pub(crate) tree: Arc<dyn Directory>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) key: HandleKey,
    pub(crate) verifier: [u8; 8],
}

impl VolumeLocation {
    pub(crate) fn failed(&self, error: &ObjectVolumeError) -> Failure {
        Failure::failed(format!("{}: {}", output::shown(&self.url), output::shown(error)))
    }

    /// Ends the process: all answered changes are durable, and another start opens the volume again.
    pub(crate) fn lost(&self, why: &str) {
        error!("{}: {}; this server ends", output::shown(&self.url), output::shown(why));
        process::exit(1);
    }
}
