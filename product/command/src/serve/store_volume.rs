//! A volume in an object store, open for this server.
//!
//! Owns: the opening and the end of the volume, the tasks that it needs, the check for another host.
//! Does not own: any decision about data (`afflux_object`), requests to the store (`afflux_object_store`).
//! Invariants: a volume that another host serves is opened only at the user's word. Once a later writer has it, this
//! process ends. A clean end is noted only after everything was written.

use std::process;
use std::sync::Arc;

use afflux_engine::Platform;
use afflux_linux::{LinuxPlatform, handle_key};
use afflux_object::{
    DeviceVolume, Fresh, Holder, Limits, ObjectDevice, ObjectTree, ObjectTreeOptions, ObjectVolume, ObjectVolumeError,
    Records, VolumeHeader, WatchedObjects,
};
use afflux_object_store::{Options, Store, StoreClock, StoreObjects, StoreRecords};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_volume::{DeviceFactory, Directory, HandleKey, NewDevice};
use rustix::process::{getegid, geteuid};
use rustix::system::uname;
use tracing::error;

use super::kept_prices::KeptPrices;
use super::running::Devices;
use crate::settings::Settings;

type OpenVolume = DeviceVolume<StoreObjects, StoreRecords, StoreClock, LinuxPlatform>;

/// The device's name in reports.
const DEVICE: &str = "store";

/// The volume, with the place that it is in.
pub(super) struct StoreVolume {
    url: String,
    platform: LinuxPlatform,
    store: Store,
    volume: Arc<OpenVolume>,
    tree: Arc<ObjectTree<OpenVolume>>,
    holder: Holder,
}

impl StoreVolume {
    pub(super) fn open(platform: &LinuxPlatform, url: &str, settings: &Settings) -> Outcome<Self> {
        platform.block_on(Self::opened(platform, url, settings))
    }

    async fn opened(platform: &LinuxPlatform, url: &str, settings: &Settings) -> Outcome<Self> {
        let options = Options { endpoint: settings.store.endpoint.clone(), keys: None };
        let store = Store::open(url, &options).await.map_err(|error| Failure::failed(output::shown(error)))?;
        let (objects, clock) = (store.objects(), store.clock());
        let host = uname().nodename().to_string_lossy().into_owned();
        if !settings.store.take_over {
            let alive = Holder::alive(&objects, &clock).await.map_err(|error| failed(url, &error))?;
            match alive.filter(|(holder, _)| holder.host != host) {
                Some((holder, _)) if settings.store.standby => {
                    output::remark(format_args!(
                        "Waiting until {} no longer serves {url}.",
                        output::shown(&holder.host)
                    ));
                    Holder::standby(&objects, &clock).await.map_err(|error| failed(url, &error))?;
                }
                Some((holder, age_ns)) => return Err(held(url, &holder, age_ns)),
                None => {}
            }
        }
        let records = store.records().await.map_err(|error| Failure::failed(output::shown(error)))?;
        let holder = Holder { host, epoch: records.epoch() };
        let world = Arc::new(platform.clone());
        let watched = WatchedObjects::new(&world, objects);
        let fresh = Fresh {
            header: VolumeHeader { id: new_id(platform), handle_key: *handle_key(None).0.as_bytes() },
            verifier: platform.random_u64(),
            is_alone: store.is_locked(),
        };
        let volume = ObjectVolume::open(watched, records, clock, Limits::default(), fresh);
        let volume = Arc::new(volume.await.map_err(|error| failed(url, &error))?);
        let options = ObjectTreeOptions {
            async_metadata: settings.at_once.async_metadata,
            owner: (geteuid().as_raw(), getegid().as_raw()),
            ..ObjectTreeOptions::default()
        };
        let tree = ObjectTree::open(Arc::clone(&volume), options).await.map_err(|error| failed(url, &error))?;
        let opened = Self { url: url.to_owned(), platform: platform.clone(), store, volume, tree, holder };
        opened.start_tasks();
        Ok(opened)
    }

    fn start_tasks(&self) {
        self.platform.spawn("store reaper", self.tree.reaper());
        let (volume, url) = (Arc::clone(&self.volume), self.url.clone());
        self.platform.spawn("store upkeep", async move {
            if let Err(error) = volume.upkeep().await {
                lost(&url, &error);
            }
        });
        let (objects, clock, holder, url) =
            (self.store.objects(), self.store.clock(), self.holder.clone(), self.url.clone());
        self.platform.spawn("store holder", async move {
            match holder.hold(&objects, &clock).await {
                Ok(other) => end(&url, &format!("{} has taken the volume over", other.host)),
                Err(error) => error!("{url}: other hosts cannot see that this one serves it: {error}"),
            }
        });
    }

    pub(super) fn tree(&self) -> Arc<dyn Directory> {
        Arc::clone(&self.tree) as _
    }

    pub(super) fn key(&self) -> HandleKey {
        HandleKey::new(self.volume.header().handle_key)
    }

    pub(super) fn verifier(&self) -> [u8; 8] {
        self.volume.verifier().to_be_bytes()
    }

    /// Makes the engine's device. Its prices are kept by the address.
    pub(super) fn device_factory(&self, devices: Arc<Devices>, kept: &KeptPrices) -> DeviceFactory {
        let device = ObjectDevice::new(&Arc::new(self.platform.clone()), Arc::clone(&self.volume));
        let (url, remembered) = (self.url.clone(), kept.of(&self.url));
        Box::new(move |_, _| {
            devices.add(DEVICE.to_owned(), url.clone(), Some(url.clone()));
            Ok(NewDevice { name: DEVICE.to_owned(), device: Arc::clone(&device) as _, remembered: remembered.clone() })
        })
    }

    /// Notes that everything was written, and that this host no longer serves the volume.
    pub(super) fn close(&self) -> Outcome {
        let (objects, clock) = (self.store.objects(), self.store.clock());
        self.platform.block_on(async {
            self.volume.close().await.map_err(|error| failed(&self.url, &error))?;
            self.holder.release(&objects, &clock).await.map_err(|error| failed(&self.url, &error))
        })
    }
}

fn failed(url: &str, error: &ObjectVolumeError) -> Failure {
    Failure::failed(format!("{}: {}", output::shown(url), output::shown(error)))
}

fn held(url: &str, holder: &Holder, age_ns: u64) -> Failure {
    Failure::failed(format!(
        "{} is served by {} (seen {} s ago): stop that server, or use --standby to wait for its end, or --take-over to \
         take the volume from it",
        output::shown(url),
        output::shown(&holder.host),
        age_ns / 1_000_000_000
    ))
}

/// The volume is no longer this writer's.
fn lost(url: &str, error: &ObjectVolumeError) {
    if !matches!(error, ObjectVolumeError::Closed) {
        end(url, &error.to_string());
    }
}

/// Ends the process: all answered changes are durable, and another start opens the volume again.
fn end(url: &str, why: &str) {
    error!("{}: {}; this server ends", output::shown(url), output::shown(why));
    process::exit(1);
}

fn new_id(platform: &LinuxPlatform) -> [u8; 16] {
    (u128::from(platform.random_u64()) << 64 | u128::from(platform.random_u64())).to_be_bytes()
}
