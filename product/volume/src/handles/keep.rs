//! Keeping the record of where objects are, so that handles are found again without a walk after a restart.
//!
//! Owns: when the record is read and written, what a new one has in it.
//! Does not own: its form (`objects::location_log`), its file (the world's [`LocationStore`]).
//! Invariants: what is kept is of use only where the tree cannot open identities, and only of that. Nobody waits for
//! it: what a crash takes of it costs a walk. One writing at a time.

use std::sync::Arc;

use afflux_engine::{Nanos, Platform};

use crate::objects::location_log::{self, Due, LocationStore};
use crate::volume::Volume;

/// How often what is new is written.
const EVERY_NS: u64 = Nanos::SECOND / 2;

impl<P: Platform> Volume<P> {
    /// Takes note of where objects were when the `record` was written, and keeps it in `store` from now on, in a task
    /// of the world. To be called once, before anything is asked of the volume. Says whether all of the record could
    /// be read.
    pub fn keep_locations(&self, record: &[u8], store: Arc<dyn LocationStore>) -> bool {
        let read = location_log::read(record);
        let whole = read.whole;
        self.sightings.recall(read);
        let (me, platform) = (self.me.clone(), Arc::clone(self.engine.platform()));
        if let Some(mut kept_in) = self.location_store.try_lock() {
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

    /// Writes what is new in the record of locations.
    pub(crate) async fn write_locations(&self) {
        let store = self.location_store.lock().await;
        let Some(store) = store.as_ref() else { return };
        let written = match self.sightings.locations_due(&self.table) {
            Due::Nothing => return,
            Due::More(bytes) => store.append(bytes).await,
            Due::All => {
                let entries = self.sightings.all_entries(&self.table);
                store.replace(location_log::written(entries.into_iter()).into()).await
            }
        };
        if written.is_err() {
            self.sightings.locations_not_written();
        }
    }
}
