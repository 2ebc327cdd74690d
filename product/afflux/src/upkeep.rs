//! Periodic upkeep of files.
//!
//! Owns: one task for each device. It notices others' changes of open files, and has idle files give up their
//! descriptors.
//! Does not own: the conclusion from a check (`coherence`), the list of files (`files`).
//! Invariants: the tasks hold the cache only while they work. Each asks the host about a bounded number of files a
//! round, on threads of the device. A device that hangs delays only its own round.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afflux_engine::{Nanos, Platform};
use afflux_linux_device::LinuxPlatform;

use crate::coherence::{EngineSnapshot, Stamp};
use crate::core::Core;
use crate::devices::CacheDevice;
use crate::files::CachedFile;

/// Between two rounds.
pub(crate) const ROUND: Duration = Duration::from_secs(1);

/// Most files that a round asks the host about; if there are more, a later round asks about them.
const LOOKS_A_ROUND: usize = 1024;

/// Runs rounds until the cache is gone.
pub(crate) async fn upkeep(core: Weak<Core>, platform: Arc<LinuxPlatform>) {
    loop {
        platform.sleep_until(platform.now().after(ROUND.as_secs() * Nanos::SECOND)).await;
        let Some(core) = core.upgrade().filter(|core| core.gate.check().is_ok()) else { return };
        for device in core.devices.all() {
            // A round on a device that hangs does not end. Other devices have rounds of their own.
            if !device.is_tended.swap(true, Ordering::AcqRel) {
                platform.spawn("tend", upkeep_of_device(Arc::clone(&core), device));
            }
        }
    }
}

async fn upkeep_of_device(core: Arc<Core>, device: Arc<CacheDevice>) {
    core.release_idle(&device).await;
    core.look_at_some(&device).await;
    device.is_tended.store(false, Ordering::Release);
}

impl Core {
    /// Syncs files without a handle whose pages are written, and has them give up their descriptors.
    async fn release_idle(self: &Arc<Self>, device: &CacheDevice) {
        for file in self.files.idle_held(device.id) {
            if file.file.is_clean() {
                if !file.is_durable() && self.sync(&file).await.is_err() {
                    continue;
                }
                self.release_file(&file).await;
            }
        }
    }

    /// Checks files with a handle, starting where the last round ended.
    async fn look_at_some(&self, device: &CacheDevice) {
        let open = self.files.open_now(device.id);
        if open.is_empty() {
            return;
        }
        let from = device.looks_from.load(Ordering::Relaxed) % open.len();
        let some: Vec<_> = open.iter().cycle().skip(from).take(open.len().min(LOOKS_A_ROUND)).cloned().collect();
        device.looks_from.store(from + some.len(), Ordering::Relaxed);
        let looked = move || some.into_iter().filter_map(looked_at).collect::<Vec<_>>();
        for (file, before, stamp) in device.calls.run(looked).await {
            self.take_note(&file, &before, stamp).await;
        }
    }
}

fn looked_at(file: Arc<CachedFile>) -> Option<(Arc<CachedFile>, EngineSnapshot, Stamp)> {
    if file.device.size.is_some() || file.was_looked_at(ROUND / 2) {
        return None;
    }
    let before = file.before_look();
    let stamp = Stamp::of(file.host.given()?).ok()?;
    Some((file, before, stamp))
}
