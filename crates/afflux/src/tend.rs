//! Looking after files from time to time.
//!
//! Owns: the task that notices what others changed in open files, and that has files that nobody has open let go of
//! their descriptors.
//! Does not own: what a look says (`coherence`), which files there are (`files`).
//! Invariants: it holds the cache only while it works, and asks the host after a bounded number of files a round.

use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::{Nanos, Platform};
use platform_linux::LinuxPlatform;

use crate::coherence::{Before, Stamp};
use crate::core::Core;
use crate::files::CachedFile;

/// Between two rounds.
pub(crate) const ROUND: Duration = Duration::from_secs(1);

/// Files that the host is asked after in a round; of more, each has its turn.
const LOOKS_A_ROUND: usize = 1024;

/// Goes round until the cache is gone.
pub(crate) async fn tend(core: Weak<Core>, platform: Arc<LinuxPlatform>) {
    let mut from = 0;
    loop {
        platform.sleep_until(platform.now().after(ROUND.as_secs() * Nanos::SECOND)).await;
        let Some(core) = core.upgrade().filter(|core| core.gate.check().is_ok()) else { return };
        core.let_rest().await;
        from = core.look_at_some(from).await;
    }
}

impl Core {
    /// Files that nobody has open and whose pages are written become durable, and give up their descriptors.
    async fn let_rest(&self) {
        for file in self.files.idle_held() {
            if file.file.is_clean() {
                if !file.is_durable() && self.sync(&file).await.is_err() {
                    continue;
                }
                self.files.rest(&file);
            }
        }
    }

    /// Looks at files that somebody has open, from this one on; returns where to go on.
    async fn look_at_some(&self, from: usize) -> usize {
        let open = self.files.open_now();
        if open.is_empty() {
            return 0;
        }
        let from = from % open.len();
        let some: Vec<_> = open.iter().cycle().skip(from).take(open.len().min(LOOKS_A_ROUND)).cloned().collect();
        let count = some.len();
        let seen = self.on_a_thread(move || some.into_iter().filter_map(looked_at).collect::<Vec<_>>()).await;
        for (file, before, stamp) in seen {
            self.take_note(&file, &before, stamp).await;
        }
        from + count
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
