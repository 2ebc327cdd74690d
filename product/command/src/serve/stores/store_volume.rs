//! A volume in an object store, open for this server.
//!
//! Owns: the choice between writing and reading, the parts for the server, its figures; the opening of a view, the task
//! that moves it on.
//! Does not own: the opening for writes (`store_writer`), any decision about data (`afflux_object`), the view itself
//! (`afflux_object_store`), how cached pages notice a change (`afflux_volume`).
//! Invariants: a store that cannot be written safely is only read, and the server reports the reason. For a view
//! nothing is written to the store. Once the view can move no further, this process ends.

use std::sync::Arc;

use afflux_engine::Platform;
use afflux_linux_device::LinuxPlatform;
use afflux_object::{ObjectDevice, ObjectTree, ObjectTreeOptions, ObjectVolume, VolumeLimits, WatchedObjects};
use afflux_object_store::{DiskCache, DiskCacheError, DiskCacheFigures, Store, ViewState};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_volume::{DeviceFactory, HandleKey, NewDevice};

use crate::control::messages::{DiskCacheGauges, StoreGauges};
use crate::serve::live::{ServedDevices, StoreFigures};
use crate::serve::persisted::client_state::{self, PersistedClients};
use crate::serve::persisted::persisted_prices::PersistedPrices;
use crate::serve::start::wanted_volume::WantedVolume;
use crate::serve::stores::store_end::UnstoredView;
use crate::serve::stores::store_writer::{self, ReadOnly, StoreWriter};
use crate::serve::stores::{Parts, VolumeLocation};
use crate::settings::{ServeSettings, StoreSettings, is_store};
use crate::stores;

/// The device's name in reports.
const DEVICE: &str = "store";

/// The volume, with its location.
pub(crate) struct StoreVolume {
    location: VolumeLocation,
    pub(crate) parts: Parts,
    /// Absent if the volume is only read.
    writer: Option<StoreWriter>,
    notes: Vec<String>,
}

impl StoreVolume {
    /// Finds what [`Self::open`] would refuse without a request to the store. Nothing is made.
    /// The server `running` may have it.
    pub(crate) fn check(settings: &ServeSettings, running: Option<u32>) -> Outcome {
        let Some(place) = settings.directories.first().filter(|place| is_store(place)) else { return Ok(()) };
        let store = &settings.store;
        let is_read = store.follow || store.snapshot.is_some() || running.is_some();
        let checked = Store::check(&place.to_string_lossy(), &stores::options(store.endpoint.as_ref()), is_read);
        checked.map_err(|error| stores::failure(&error))
    }

    pub(crate) fn open(platform: &LinuxPlatform, url: &str, wanted: &WantedVolume<'_>) -> Outcome<Self> {
        platform.block_on(Self::opened(platform, url, wanted))
    }

    async fn opened(platform: &LinuxPlatform, url: &str, volume: &WantedVolume<'_>) -> Outcome<Self> {
        let settings = volume.settings;
        let options = stores::options(settings.endpoint.as_ref());
        let (url, platform) = (url.to_owned(), platform.clone());
        let wanted = match &settings.snapshot {
            Some(name) => Some((ViewState::Snapshot(name.clone()), format!("it is the snapshot {name}"))),
            None if settings.follow => {
                Some((ViewState::Following, "it follows the server that writes the volume (--follow)".to_owned()))
            }
            None => None,
        };
        let store = match wanted {
            Some(_) => Store::open_to_read(&url, &options).await,
            None => Store::open(&url, &options).await,
        };
        let location = VolumeLocation { url, platform, store: store.map_err(|error| stores::failure(&error))? };
        let (disk, mut notes) = disk_cache(settings).await?;
        if settings.standby {
            // A standby outlives outages of its store.
            location.store.serve();
        }
        let (view, why) = match wanted {
            Some(wanted) => wanted,
            None => match store_writer::open(&location, volume).await? {
                Ok((parts, writer)) => {
                    location.store.serve();
                    notes.extend(location.store.warning().map(str::to_owned));
                    let id = writer.volume.header().id;
                    notes.extend(use_disk_cache(&location, disk.as_ref(), id, Some(writer.epoch())));
                    return Ok(Self { location, parts, writer: Some(writer), notes });
                }
                Err(ReadOnly(why)) => (ViewState::Following, why),
            },
        };
        let (parts, id) = open(&location, &view).await?;
        location.store.serve();
        notes.push(format!("every change is refused: {why}"));
        notes.extend(use_disk_cache(&location, disk.as_ref(), id, None));
        Ok(Self { location, parts, writer: None, notes })
    }

    /// Whether this server is the volume's writer.
    pub(crate) fn is_written(&self) -> bool {
        self.writer.is_some()
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The clients of NFS version 4 that an earlier server had. Nobody has open files or locks where nothing is
    /// written.
    pub(crate) fn persisted_clients(&self) -> Outcome<PersistedClients> {
        let of_writer = |writer: &StoreWriter| client_state::in_store(&self.location, writer.epoch());
        self.writer.as_ref().map_or_else(|| Ok(PersistedClients::default()), of_writer)
    }

    /// Reads the figures of the store.
    pub(crate) fn figures(&self) -> StoreFigures {
        let (store, is_read_only) = (self.location.store.clone(), self.writer.is_none());
        let volume = self.writer.as_ref().map(|writer| Arc::clone(&writer.volume));
        Box::new(move || {
            let (requests, waits) = (store.requests(), store.waits());
            StoreGauges {
                waiting: waits.requests,
                waiting_ns: waits.oldest_ns,
                puts: requests.puts,
                gets: requests.gets,
                lists: requests.lists,
                deletes: requests.deletes,
                trouble: store.trouble().map(|trouble| trouble.why),
                is_read_only,
                silent_ns: store.silent_ns(),
                unsynced_bytes: volume.as_ref().map_or(0, |volume| volume.unsynced_bytes()),
                disk_cache: store.disk_cache().map(disk_cache_gauges),
            }
        })
    }

    /// Makes the engine's device. Its prices are persisted by the address.
    pub(crate) fn device_factory(&self, devices: Arc<ServedDevices>, prices: &PersistedPrices) -> DeviceFactory {
        let (device, url) = (Arc::clone(&self.parts.device), self.location.url.clone());
        let remembered = prices.of(&url);
        Box::new(move |_, _| {
            let name = devices.add(DEVICE, url.clone(), Some(url.clone()));
            Ok(NewDevice { name, device: Arc::clone(&device), remembered: remembered.clone() })
        })
    }

    /// The view of the end of this server.
    pub(crate) fn unstored_view(&self) -> Option<UnstoredView> {
        let writer = self.writer.as_ref()?;
        Some(UnstoredView {
            location: self.location.clone(),
            volume: Arc::clone(&writer.volume),
            tree: Arc::clone(&writer.tree),
        })
    }

    /// Notes that everything was written, and that this host no longer serves the volume.
    pub(crate) fn close(&self) -> Outcome {
        match &self.writer {
            Some(writer) => self.location.platform.block_on(writer.close(&self.location)),
            None => Ok(()),
        }
    }
}

/// Opens the disk cache. One that cannot be used costs a note: the store has all bytes.
async fn disk_cache(settings: &StoreSettings) -> Outcome<(Option<DiskCache>, Vec<String>)> {
    let Some((path, bytes)) = settings.disk_cache.as_ref().zip(settings.disk_cache_size) else {
        return Ok((None, Vec::new()));
    };
    match DiskCache::open(path, bytes).await {
        Ok(cache) => Ok((Some(cache), Vec::new())),
        Err(error @ DiskCacheError::InUse { .. }) => {
            Err(Failure::failed(output::shown(format!("--disk-cache: {error}"))))
        }
        Err(error) => Ok((None, vec![without_disk(&error)])),
    }
}

fn without_disk(error: &DiskCacheError) -> String {
    output::shown(format!("there is no disk cache: {error}"))
}

/// Has the volume use the disk cache. Returns the reason if it cannot.
fn use_disk_cache(
    location: &VolumeLocation,
    disk: Option<&DiskCache>,
    id: [u8; 16],
    epoch: Option<u32>,
) -> Option<String> {
    location.store.use_disk_cache(disk?, id, epoch).err().map(|error| without_disk(&error))
}

fn disk_cache_gauges(figures: DiskCacheFigures) -> DiskCacheGauges {
    let DiskCacheFigures { size_bytes, written_bytes, read_bytes, hits, misses, dropped, rests } = figures;
    DiskCacheGauges { size_bytes, written_bytes, read_bytes, hits, misses, dropped, rests }
}

/// Opens a view. Returns its parts and the identity of the volume.
async fn open(location: &VolumeLocation, view: &ViewState) -> Outcome<(Parts, [u8; 16])> {
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
    let (location, id) = (location.clone(), volume.header().id);
    platform.spawn("store view", async move {
        let ended = volume.records().follow(|| {
            tree.forget_inodes();
            volume.forget_maps();
        });
        location.lost(&ended.await.to_string());
    });
    Ok((parts, id))
}
