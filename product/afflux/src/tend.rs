//! Looking after files from time to time.
//!
//! Owns: one task for each device. It notices the changes of others in open files. Idle files give up their descriptors
//! by it.
//! Does not own: what a look says (`coherence`), which files there are (`files`).
//! Invariants: they hold the cache only while they work, and ask the host after a bounded number of files a round, on
//! threads of the device. A device that hangs keeps its own round alone.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afflux_engine::{Nanos, Platform};
use afflux_linux::LinuxPlatform;

use crate::coherence::{Before, Stamp};
use crate::core::Core;
use crate::devices::CacheDevice;
use crate::files::CachedFile;

/// Between two rounds.
pub(crate) const ROUND: Duration = Duration::from_secs(1);

/// Files that the host is asked after in a round; of more, each has its turn.
const LOOKS_A_ROUND: usize = 1024;

/// Goes round until the cache is gone.
pub(crate) async fn tend(core: Weak<Core>, platform: Arc<LinuxPlatform>) {
    loop {
        platform.sleep_until(platform.now().after(ROUND.as_secs() * Nanos::SECOND)).await;
        let Some(core) = core.upgrade().filter(|core| core.gate.check().is_ok()) else { return };
        for device in core.devices.all() {
            // A round on a device that hangs lasts. The others have theirs.
            if !device.is_tended.swap(true, Ordering::AcqRel) {
                platform.spawn("tend", tend_device(Arc::clone(&core), device));
            }
        }
    }
}

async fn tend_device(core: Arc<Core>, device: Arc<CacheDevice>) {
    core.let_rest(&device).await;
    core.look_at_some(&device).await;
    device.is_tended.store(false, Ordering::Release);
}

impl Core {
    /// Files that nobody has open and whose pages are written become durable, and give up their descriptors.
    async fn let_rest(self: &Arc<Self>, device: &CacheDevice) {
        for file in self.files.idle_held(device.id) {
            if file.file.is_clean() {
                if !file.is_durable() && self.sync(&file).await.is_err() {
                    continue;
                }
                self.let_go(&file).await;
            }
        }
    }

    /// Looks at files that somebody has open, from where the last round ended.
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

fn looked_at(file: Arc<CachedFile>) -> Option<(Arc<CachedFile>, Before, Stamp)> {
    if file.device.size.is_some() || file.was_looked_at(ROUND / 2) {
        return None;
    }
    let before = file.before_look();
    let stamp = Stamp::of(file.host.given()?).ok()?;
    Some((file, before, stamp))
}
