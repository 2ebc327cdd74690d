//! The life of a process that writes a volume.
//!
//! Owns: its opening, its clients, its end.
//! Does not own: the volume; the knowledge of right answers (`observer`).
//! Invariants: a client counts an answer only if the writer may give one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use afflux_object::{Compression, Fresh, ObjectVolume, ObjectVolumeError, VolumeHeader, VolumeLimits, check};
use bytes::Bytes;
use futures_util::future::{join_all, select};
use object_store::memory::InMemory;
use object_store::path::Path;
use tokio::runtime::Handle;

use super::observer::body;
use super::process::SimClock;
use super::store::SimStore;
use super::world::{Broken, MS, Shared, now_ns};
use crate::address::{Address, StoreAddress};
use crate::judge::Patience;
use crate::objects::StoreObjects;
use crate::records::StoreRecords;
use crate::site::Site;
use crate::threads::{Threads, Time};
use crate::wire::Wire;

/// Files by their numbers: inline ones, and segments of their own.
const FILES: [(u64, usize); 5] = [(1, 96), (2, 4_096), (3, 48 << 10), (4, 200 << 10), (5, 1 << 20)];
const CLIENTS: u64 = 3;
/// Garbage goes soon.
const DEAD_NS: u64 = 20_000 * MS;

pub(super) type Volume = ObjectVolume<StoreObjects, StoreRecords, SimClock>;

/// The identity and the environment of a process in its world.
#[derive(Clone)]
pub(super) struct TestWriter {
    pub(super) world: Shared,
    pub(super) objects: Arc<InMemory>,
    pub(super) process: u64,
}

impl TestWriter {
    pub(super) fn site(&self, handle: Handle) -> Arc<Site> {
        let seed = self.world.world().random.next();
        let store = SimStore { world: self.world.clone(), objects: Arc::clone(&self.objects), process: self.process };
        Arc::new(Site {
            url: "sim://".to_owned(),
            address: Address { store: StoreAddress::Memory, prefix: Path::from("volume") },
            threads: Threads::of(handle),
            wire: Arc::new(Wire::new(Arc::new(store), now_ns, Patience::served())),
            lock: None,
            time: Time { now_ns, replay: Some((Arc::new(SimClock), seed)) },
            disk: OnceLock::new(),
            endpoint: None,
        })
    }

    /// Opens the volume. With `is_alone`, no earlier writer may still answer.
    pub(super) async fn open(&self, site: &Arc<Site>, is_alone: bool) -> Result<Volume, String> {
        let records = StoreRecords::open(Arc::clone(site)).await.map_err(|error| error.to_string())?;
        let verifier = self.world.world().random.next();
        let header = VolumeHeader { id: [1; 16], handle_key: [2; 16] };
        let fresh = Fresh { header, verifier, is_alone };
        let compression = [Compression::None, Compression::Zstd(1), Compression::Lz4][(verifier % 3) as usize];
        let limits = VolumeLimits { dead_ns: DEAD_NS, compression, ..VolumeLimits::default() };
        let objects = StoreObjects { site: Arc::clone(site) };
        let opened = ObjectVolume::open(objects, records, SimClock, limits, fresh).await;
        self.world.world().observer.openings += 1;
        opened.map_err(|error| error.to_string())
    }

    fn violation(&self, what: String) {
        self.world.world().observer.violations.push(format!("process {}: {what}", self.process));
    }

    fn below(&self, end: u64) -> u64 {
        self.world.world().random.below(end)
    }
}

/// The newest stamps that this process wrote.
type Written = Mutex<BTreeMap<u64, u64>>;

/// Opens the volume and works, until another writer takes over or the process is asked to end.
pub(super) async fn life(writer: TestWriter, handle: Handle, shall_end: Arc<AtomicBool>) {
    // It may be fenced while it opens.
    let Ok(volume) = writer.open(&writer.site(handle), false).await else { return };
    let written = Written::default();
    let clients = join_all((0..CLIENTS).map(|_| client(&writer, &volume, &written, &shall_end)));
    let upkeep = volume.upkeep(|error| writer.violation(format!("upkeep: {error}")));
    let (clients, upkeep) = (std::pin::pin!(clients), std::pin::pin!(upkeep));
    // The upkeep ends with the volume.
    drop(select(clients, upkeep).await);
    if shall_end.load(Ordering::Relaxed) && volume.close().await.is_ok() {
        drop(volume.records().close().await);
    }
}

async fn client(writer: &TestWriter, volume: &Volume, written: &Written, shall_end: &AtomicBool) {
    while !shall_end.load(Ordering::Relaxed) {
        match operation(writer, volume, written).await {
            Ok(()) => {}
            Err(ObjectVolumeError::Records(_) | ObjectVolumeError::Closed) => return,
            Err(error) => return writer.violation(error.to_string()),
        }
        tokio::time::sleep(Duration::from_nanos(writer.below(400 * MS))).await;
    }
}

async fn operation(writer: &TestWriter, volume: &Volume, written: &Written) -> Result<(), ObjectVolumeError> {
    let (file, bytes) = FILES[writer.below(FILES.len() as u64) as usize];
    let own = || written.lock().unwrap_or_else(PoisonError::into_inner).get(&file).copied().unwrap_or(0);
    match writer.below(8) {
        0..3 => {
            let stamp = writer.world.world().observer.stamp();
            volume.write(file, 0, Bytes::from(body(stamp, bytes)))?;
            written.lock().unwrap_or_else(PoisonError::into_inner).insert(file, stamp);
        }
        3..6 => {
            let stamp = own();
            if writer.world.world().broken == Some(Broken::AnswerAfterDurable) {
                writer.world.world().observer.answered(file, stamp);
            }
            volume.commit(file).await?;
            writer.world.world().observer.answered(file, stamp);
        }
        _ => {
            let least = writer.world.world().observer.least(file).max(own());
            let found = volume.read(file, 0, bytes as u64).await?;
            volume.wait_to_answer().await?;
            writer.world.world().observer.read(&format!("process {}", writer.process), file, &found, least);
        }
    }
    Ok(())
}

/// Opens the volume at the end of a run, reads all of it, and checks it.
pub(super) async fn last(writer: TestWriter, handle: Handle) {
    if let Err(why) = looks(&writer, handle).await {
        writer.violation(format!("the last writer: {why}"));
    }
}

async fn looks(writer: &TestWriter, handle: Handle) -> Result<(), String> {
    let said = |error: ObjectVolumeError| error.to_string();
    let site = writer.site(handle);
    let volume = writer.open(&site, false).await?;
    for (file, bytes) in FILES {
        let least = writer.world.world().observer.least(file);
        let found = volume.read(file, 0, bytes as u64).await.map_err(said)?;
        writer.world.world().observer.read("the last writer", file, &found, least);
    }
    let report = check(&StoreObjects { site }, volume.records(), &SimClock).await.map_err(said)?;
    if !report.is_sound() {
        return Err(format!("{report:?}"));
    }
    volume.close().await.map_err(said)?;
    volume.records().close().await.map_err(|error| error.to_string())
}
