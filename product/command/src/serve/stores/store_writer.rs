//! A volume in an object store that this server writes.
//!
//! Owns: the opening and the end of the volume, the tasks that it needs, the check for another host.
//! Does not own: any decision about data (`afflux_object`), requests to the store (`afflux_object_store`).
//! Invariants: a volume that another server has is opened only at the user's explicit request. Once the volume is lost
//! to this writer, this process ends; any other failure of its upkeep is logged and tried again. A clean end is noted
//! only after everything was written.

use std::sync::Arc;

use afflux_engine::Platform;
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::handle_key;
use afflux_object::{
    DeviceVolume, EndedWriter, Fresh, Holder, ObjectDevice, ObjectTree, ObjectTreeOptions, ObjectVolume,
    ObjectVolumeError, RecordDatabase, VolumeHeader, VolumeLimits, WatchedObjects,
};
use afflux_object_store::{StoreClock, StoreError, StoreObjects, StoreRecords};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_volume::HandleKey;
use rustix::process::{getegid, geteuid};
use rustix::system::uname;
use tracing::{error, info, warn};

use crate::serve::start::wanted_volume::WantedVolume;
use crate::serve::stores::store_last::{LastWriter, StoreClaim};
use crate::serve::stores::{Parts, VolumeLocation};

pub(crate) type OpenVolume = DeviceVolume<StoreObjects, StoreRecords, StoreClock, LinuxPlatform>;

pub(crate) struct StoreWriter {
    pub(crate) volume: Arc<OpenVolume>,
    pub(crate) tree: Arc<ObjectTree<OpenVolume>>,
    holder: Holder,
    _claim: Option<StoreClaim>,
    _last: Option<LastWriter>,
}

/// The reason why a store is only read.
pub(crate) struct ReadOnly(pub(crate) String);

/// Opens the volume for writing, unless the store is only read.
pub(crate) async fn open(
    location: &VolumeLocation,
    wanted: &WantedVolume<'_>,
) -> Outcome<Result<(Parts, StoreWriter), ReadOnly>> {
    let VolumeLocation { platform, store, .. } = location;
    let WantedVolume { settings, async_metadata, state } = *wanted;
    let failed = |error| location.failed(&error);
    let host = uname().nodename().to_string_lossy().into_owned();
    let take_claim = || {
        let taken = StoreClaim::take(&location.url, settings.endpoint.as_deref());
        taken.map_err(|error| Failure::failed(format!("{}: {error}", output::shown(&location.url))))
    };
    let claim = take_claim()?;
    if !settings.take_over {
        // A holder of this name without a process that has the claim was killed.
        let own = claim.is_some().then_some(host.as_str());
        wait_for_others(location, own, settings.standby).await?;
    }
    let records = match store.records().await {
        Ok(records) => records,
        // An empty location has nothing to read.
        Err(StoreError::ReadOnly { why, .. }) if store.has_volume() => return Ok(Err(ReadOnly(why))),
        Err(error) => return Err(Failure::failed(output::shown(error))),
    };
    let holder = Holder { host, epoch: records.epoch() };
    let world = Arc::new(platform.clone());
    let watched = WatchedObjects::new(&world, store.objects());
    let fresh = Fresh {
        header: VolumeHeader { id: new_id(platform), handle_key: *handle_key(None).0.as_bytes() },
        verifier: platform.random_u64(),
        is_alone: store.is_locked(),
    };
    let mut last = None;
    let ended = |header: &VolumeHeader| {
        last = LastWriter::take(state, header);
        last.as_ref().and_then(LastWriter::ended)
    };
    let epoch = records.epoch();
    let limits = VolumeLimits { compression: settings.compression.unwrap_or_default(), ..VolumeLimits::default() };
    let volume = ObjectVolume::open_after(watched, records, store.clock(), limits, fresh, ended);
    let volume = Arc::new(volume.await.map_err(failed)?);
    if volume.had_waited() {
        info!(
            "{}: the last writer may have lived on another host, so this start waited until its last answer was over",
            output::shown(&location.url)
        );
    }
    let options = ObjectTreeOptions {
        async_metadata,
        owner: (geteuid().as_raw(), getegid().as_raw()),
        ..ObjectTreeOptions::default()
    };
    let tree = ObjectTree::open(Arc::clone(&volume), options).await.map_err(failed)?;
    platform.spawn("store reaper", tree.reaper());
    let parts = Parts {
        key: HandleKey::new(volume.header().handle_key),
        verifier: volume.verifier().to_be_bytes(),
        tree: Arc::clone(&tree) as _,
        device: ObjectDevice::new(&world, Arc::clone(&volume)),
    };
    // A process of this host that lost the volume has ended by now.
    let claim = if claim.is_some() { claim } else { take_claim()? };
    // From now on the next writer need not wait for this one's last answer, once this process has ended.
    let last = last.or_else(|| LastWriter::take(state, volume.header()));
    if let Some(last) = &last {
        last.note(EndedWriter { epoch, verifier: volume.verifier() });
    }
    let writer = StoreWriter { volume, tree, holder, _claim: claim, _last: last };
    writer.start_tasks(location);
    Ok(Ok((parts, writer)))
}

/// Makes sure that no other server has the volume. A standby waits for that. `own` is the name of a holder that is
/// gone.
async fn wait_for_others(location: &VolumeLocation, own: Option<&str>, waits: bool) -> Outcome {
    let failed = |error| location.failed(&error);
    let (objects, clock, url) = (location.store.objects(), location.store.clock(), output::shown(&location.url));
    let alive = Holder::alive(&objects, &clock, own).await.map_err(failed)?;
    match alive {
        Some((holder, _)) if waits => {
            output::remark(format_args!("Waiting until {} no longer serves {url}.", output::shown(&holder.host)));
            Holder::standby(&objects, &clock).await.map_err(failed)
        }
        Some((holder, age_ns)) => Err(Failure::failed(format!(
            "{url} is served by {} (seen {} s ago): stop that server, or use --standby to wait for its end, --take-over \
             to take the volume from it, or --follow to read it",
            output::shown(&holder.host),
            age_ns / 1_000_000_000
        ))),
        None => Ok(()),
    }
}

impl StoreWriter {
    /// The epoch of this opening.
    pub(crate) fn epoch(&self) -> u32 {
        self.holder.epoch
    }

    fn start_tasks(&self, location: &VolumeLocation) {
        let VolumeLocation { url, platform, store } = location;
        let (volume, url) = (Arc::clone(&self.volume), output::shown(url));
        platform.spawn("store upkeep", async move {
            let mut said = None;
            let failed = |error: &ObjectVolumeError| {
                let why = error.to_string();
                if said.as_ref() != Some(&why) {
                    warn!("{url}: garbage could not be collected, and is tried again: {}", output::shown(&why));
                    said = Some(why);
                }
            };
            // The loss of the volume ends the process in another task.
            drop(volume.upkeep(failed).await);
        });
        let volume = Arc::clone(&self.volume);
        // The loss of the volume ends the process in another task.
        platform.spawn("store proofs", async move { drop(volume.keep_answering().await) });
        let (volume, of_end) = (Arc::clone(&self.volume), location.clone());
        platform.spawn("store end", async move {
            let ended = volume.records().ended().await;
            // The records of a closed volume end with it.
            if volume.wait_to_answer().await != Err(ObjectVolumeError::Closed) {
                of_end.lost(&ended.to_string());
            }
        });
        let (objects, clock, holder, location) =
            (store.objects(), store.clock(), self.holder.clone(), location.clone());
        platform.spawn("store holder", async move {
            match holder.hold(&objects, &clock).await {
                // Its own release: this server ends.
                Ok(other) if other.epoch == holder.epoch => (),
                Ok(other) => location.lost(&format!("{} has taken the volume over", other.host)),
                Err(error) => {
                    error!("{}: other hosts cannot see that this one serves it: {error}", output::shown(&location.url));
                }
            }
        });
    }

    /// Notes that everything was written, and that this host no longer serves the volume.
    pub(crate) async fn close(&self, location: &VolumeLocation) -> Outcome {
        let (objects, clock) = (location.store.objects(), location.store.clock());
        let failed = |error| location.failed(&error);
        self.volume.close().await.map_err(failed)?;
        // The next opening and snapshots then need no log.
        self.volume.records().close().await.map_err(|error| failed(error.into()))?;
        self.holder.release(&objects, &clock).await.map_err(failed)
    }
}

fn new_id(platform: &LinuxPlatform) -> [u8; 16] {
    (u128::from(platform.random_u64()) << 64 | u128::from(platform.random_u64())).to_be_bytes()
}
