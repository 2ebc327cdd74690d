//! The place of a volume in an object store, and the parts of an open one.
//!
//! Owns: both as values, the words of failures there, the end of a server that lost its volume.
//! Does not own: the opening (`store_volume`).
//! Invariants: each failure names the store.

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

/// The place of a volume, and the world of its server.
#[derive(Clone)]
pub(super) struct StorePlace {
    pub(super) url: String,
    pub(super) platform: LinuxPlatform,
    pub(super) store: Store,
}

/// The parts of an open volume that the server uses.
pub(super) struct Parts {
    pub(super) tree: Arc<dyn Directory>,
    pub(super) device: Arc<dyn Device>,
    pub(super) key: HandleKey,
    pub(super) verifier: [u8; 8],
}

impl StorePlace {
    pub(super) fn failed(&self, error: &ObjectVolumeError) -> Failure {
        Failure::failed(format!("{}: {}", output::shown(&self.url), output::shown(error)))
    }

    /// Ends the process: all answered changes are durable, and another start opens the volume again.
    pub(super) fn lost(&self, why: &str) {
        error!("{}: {}; this server ends", output::shown(&self.url), output::shown(why));
        process::exit(1);
    }
}
