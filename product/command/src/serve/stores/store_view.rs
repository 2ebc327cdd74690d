//! A volume in an object store that this server only reads.
//!
//! Owns: the opening of a view, the task that moves it on.
//! Does not own: the view itself (`afflux_object_store`), how cached pages notice a change (`afflux_volume`).
//! Invariants: nothing is written to the store. Once the view can move no further, this process ends.

use std::sync::Arc;

use afflux_engine::Platform;
use afflux_object::{ObjectDevice, ObjectTree, ObjectTreeOptions, ObjectVolume, VolumeLimits, WatchedObjects};
use afflux_object_store::ViewState;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_volume::HandleKey;

use crate::serve::stores::volume_location::{Parts, VolumeLocation};

pub(crate) async fn open(location: &VolumeLocation, view: &ViewState) -> Outcome<Parts> {
    let VolumeLocation { platform, store, .. } = location;
    let failed = |error| location.failed(&error);
    let records = store.view(view).await.map_err(|error| Failure::failed(output::shown(error)))?;
    let world = Arc::new(platform.clone());
    let objects = WatchedObjects::new(&world, store.objects());
    let volume =
        ObjectVolume::open_view(objects, records, store.clock(), VolumeLimits::default()).await.map_err(failed)?;
    let volume = Arc::new(volume);
    let tree = ObjectTree::open(Arc::clone(&volume), ObjectTreeOptions::default()).await.map_err(failed)?;
    let device = ObjectDevice::new(&world, Arc::clone(&volume));
    let parts = Parts {
        key: HandleKey::new(volume.header().handle_key),
        verifier: volume.verifier().to_be_bytes(),
        tree: Arc::clone(&tree) as _,
        device,
    };
    let location = location.clone();
    platform.spawn("store view", async move {
        let ended = volume.records().follow(|| {
            tree.forget_inodes();
            volume.forget_maps();
        });
        location.lost(&ended.await.to_string());
    });
    Ok(parts)
}
