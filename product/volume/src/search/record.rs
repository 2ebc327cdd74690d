//! Keeping the record of objects' locations, so that handles are found without a walk after a restart.
//!
//! Owns: when the record is read and written, the contents of a new one.
//! Does not own: its format (`location_log`), its file (the world's [`LocationStore`]).
//! Invariants: no call waits for it: entries lost in a
//! crash cost a walk. One write at a time.

use std::sync::Arc;

use afflux_engine::{Nanos, Platform};

use super::location_log::{self, LocationStore, LogWrite};
use crate::volume::Volume;

/// The interval of writes of new entries.
const EVERY_NS: u64 = Nanos::SECOND / 2;

impl<P: Platform> Volume<P> {
    /// Takes over the locations from an earlier `record`, and writes new ones to `store` from now on, in a task of the
    /// world. Call it once, before any other use of the volume. Returns whether all of the record could be read.
    pub fn keep_locations(&self, record: &[u8], store: Arc<dyn LocationStore>) -> bool {
        let read = location_log::read(record);
        let whole = read.whole;
        self.search.known.recall(read);
        let (me, platform) = (self.me.clone(), Arc::clone(self.engine.platform()));
        if let Some(mut kept_in) = self.search.store.try_lock() {
            *kept_in = Some(store);
        }
        self.engine.platform().spawn("keep locations", async move {
            loop {
                platform.sleep_until(platform.now().after(EVERY_NS)).await;
                let Some(volume) = me.upgrade() else { return };
                volume.write_locations().await;
            }
        });
        whole
    }

    /// Writes the new entries of the record of locations.
    pub(crate) async fn write_locations(&self) {
        let store = self.search.store.lock().await;
        let Some(store) = store.as_ref() else { return };
        let written = match self.search.known.locations_due(&self.table) {
            LogWrite::Nothing => return,
            LogWrite::More(bytes) => store.append(bytes).await,
            LogWrite::All => {
                let entries = self.search.known.all_entries(&self.table);
                store.replace(location_log::written(entries.into_iter()).into()).await
            }
        };
        if written.is_err() {
            self.search.known.locations_not_written();
        }
    }
}
