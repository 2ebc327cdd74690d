//! A data core whose files are on a simulated disk.
//!
//! Owns: the file on the disk for each file of the tree.
//! Does not own: the disk.
//! Invariants: the bytes survive a new tree; bodies are always in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use afflux_engine::{Backing, Platform};
use afflux_object::{
    Body, BodyInMemory, DataCore, HeldNode, ObjectVolumeError, RecordChange, RecordDatabase, VolumeHeader,
};
use afflux_simulator::{Disk, DiskFileId, SimPlatform};

use crate::records::{MapRecords, ROUND_TRIP_NS};

/// A file on the disk.
struct OnDisk {
    file: DiskFileId,
    /// The count of changes at the last check, and the time of that check.
    seen: u64,
    changed_ns: u64,
}

#[derive(Default)]
pub(crate) struct Files {
    by_number: BTreeMap<u64, OnDisk>,
    /// Files with bodies that must be read first.
    pub(crate) unread: BTreeSet<u64>,
}

pub(crate) struct DiskCore {
    pub(crate) records: MapRecords,
    disk: Arc<Disk>,
    platform: Arc<SimPlatform>,
    files: Arc<Mutex<Files>>,
}

impl DiskCore {
    pub(crate) fn new(platform: &Arc<SimPlatform>, disk: &Arc<Disk>, records: MapRecords) -> Self {
        Self { records, disk: Arc::clone(disk), platform: Arc::clone(platform), files: Arc::default() }
    }

    /// The core of the next opening: the same files.
    pub(crate) fn reopened(&self, records: MapRecords) -> Self {
        let (disk, platform, files) = (Arc::clone(&self.disk), Arc::clone(&self.platform), Arc::clone(&self.files));
        Self { records, disk, platform, files }
    }

    pub(crate) fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap()
    }

    /// The disk's file of a file of the tree.
    pub(crate) fn file_of(&self, ino: u64) -> DiskFileId {
        self.files().by_number[&ino].file
    }

    fn on_disk(&self, ino: u64) -> Option<Body> {
        let now_ns = self.wall_ns();
        let mut files = self.files();
        let on_disk = files.by_number.get_mut(&ino)?;
        let changes = self.disk.change_count(on_disk.file);
        if on_disk.seen != changes {
            (on_disk.seen, on_disk.changed_ns) = (changes, now_ns);
        }
        let size = self.disk.size(on_disk.file);
        Some(Body { size, used: size.next_multiple_of(4096), changed_ns: on_disk.changed_ns })
    }

    pub(crate) fn files_on_disk(&self) -> usize {
        self.files().by_number.len()
    }
}

impl DataCore for DiskCore {
    type Records = MapRecords;

    fn records(&self) -> &MapRecords {
        &self.records
    }

    fn header(&self) -> VolumeHeader {
        VolumeHeader { id: [7; 16], handle_key: [8; 16] }
    }

    fn wall_ns(&self) -> u64 {
        self.platform.wall_clock().0 as u64
    }

    fn body_in_memory(&self, ino: u64) -> BodyInMemory {
        if self.files().unread.contains(&ino) {
            return BodyInMemory::Unread;
        }
        self.on_disk(ino).map_or(BodyInMemory::AsStored, BodyInMemory::Newest)
    }

    async fn body(&self, ino: u64) -> Result<Body, ObjectVolumeError> {
        self.platform.preemption_point().await;
        self.files().unread.remove(&ino);
        Ok(self.on_disk(ino).unwrap_or_default())
    }

    fn backing(&self, held: Arc<HeldNode>) -> Backing {
        let mut files = self.files();
        let make = || OnDisk { file: self.disk.create_file(), seen: 0, changed_ns: 0 };
        self.disk.backing(files.by_number.entry(held.ino()).or_insert_with(make).file)
    }

    async fn reap(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        self.platform.sleep_until(self.platform.now().after(ROUND_TRIP_NS)).await;
        {
            let mut files = self.files();
            if let Some(on_disk) = files.by_number.remove(&ino) {
                self.disk.remove_file(on_disk.file);
            }
        }
        let key = |kind: u8| [&[kind][..], &ino.to_be_bytes()].concat();
        self.records.apply([key(b'i'), key(b'o')].into_iter().map(RecordChange::Remove).collect())?;
        Ok(())
    }

    async fn wait_to_answer(&self) -> Result<(), ObjectVolumeError> {
        Ok(self.records.prove().await?)
    }
}
