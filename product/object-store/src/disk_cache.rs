//! Parts of objects on a local disk, beside the store that has all of them.
//!
//! Objects never change, so a part of one is right for ever. An object is cut into parts of 65,540 bytes: the lines of
//! a segment's first run are parts, and another line lies in two. The library checks a checksum of each part that it
//! reads, and finds the parts again after a kill.
//!
//! Owns: the reading of a range by its parts, the fetches of missing parts, the figures; the threads of the disk, a
//! reader's patience with them.
//! Does not own: the disk's format, its order of eviction, which is that of the writes (`foyer`); which parts enter
//! (`admission`); the directory (`directory`); the checksums of lines (`afflux_object`).
//! Invariants: a disk that fails, lies or hangs costs a request to the store, and never an error. A part's key has the
//! volume, its address and its state, so no other volume's bytes are returned. A hanging disk takes no thread of the
//! store. Memory for parts in flight is bounded by [`QUEUE_BYTES`], and beyond it parts do not enter. The index takes
//! about a thousandth of the size of the disk cache. (`tests`)

mod admission;
mod directory;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afflux_object::{Arrivals, ByteParts, ObjectError, SEGMENT_BYTES_MAX};
use bytes::{Bytes, BytesMut};
use foyer::{
    BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCache, HybridCacheBuilder, Load, PsyncIoEngineConfig,
    RecoverMode,
};
use futures_util::future::join_all;

use crate::disk_cache::admission::PartAdmission;
use crate::disk_cache::directory::CacheDirectory;
use crate::error::DiskCacheError;
use crate::threads::{Threads, now_ns};

/// Bytes of a part: a line of a segment with its checksum.
const PART_BYTES: u64 = 65_540;
/// A longer read passes the disk cache by: it is the upkeep's, which reads whole objects once.
const READ_BYTES_MAX: u64 = 8 << 20;
/// Most bytes of a segment's object that may be in parts.
const OBJECT_BYTES_MAX: u64 = 2 * SEGMENT_BYTES_MAX as u64;
/// Reads whose ends are known: a reader of a stream goes on at one of them.
const ENDS_MAX: usize = 256;
/// Segments that are read from the store, the last ones that were damaged.
const DISTRUSTED_MAX: usize = 64;
/// The least size.
const BYTES_MIN: u64 = 64 << 20;
/// The largest size: its index takes a gigabyte of memory, and its files take 1,024 descriptors.
const BYTES_MAX: u64 = 1 << 40;
/// Parts that wait for the disk, in bytes.
const QUEUE_BYTES: usize = 32 << 20;
/// Buffers of writes.
const BUFFER_BYTES: usize = 16 << 20;
/// The library has a tier in memory, too. The engine's cache is above, so it gets nothing.
const MEMORY_BYTES: usize = 1;
/// Bytes that a part takes on the disk: its header, its key, and whole pages.
const DISK_BYTES: u64 = 17 * 4096;
/// Files that are looked through at once after a start.
const RECOVERED_AT_ONCE: usize = 8;
/// Reads of the disk that wait in the host.
const DISK_THREADS_MAX: usize = 16;
/// A reader waits so long for the disk, and then asks the store.
const PATIENCE: Duration = Duration::from_secs(1);
/// A disk that was too slow is left alone for so long.
const REST_NS: u64 = 10_000_000_000;

/// Figures of a disk cache since its opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCacheFigures {
    /// Its size.
    pub size_bytes: u64,
    /// Bytes that were written to the disk, with headers and indexes.
    pub written_bytes: u64,
    /// Bytes that readers got from it.
    pub read_bytes: u64,
    /// Parts that readers got from it.
    pub hits: u64,
    /// Parts that were fetched from the store.
    pub misses: u64,
    /// Parts that were damaged, or whose read failed.
    pub dropped: u64,
    /// How often a read took too long, and the disk was left alone.
    pub rests: u64,
}

#[derive(Debug, Default)]
struct Counters {
    read_bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    dropped: AtomicU64,
    rests: AtomicU64,
}

/// A disk cache. Clones are the same one. The last one frees its directory.
#[derive(Clone)]
pub struct DiskCache(Arc<Inner>);

struct Inner {
    parts: HybridCache<String, Bytes>,
    admission: Mutex<PartAdmission>,
    counters: Counters,
    size_bytes: u64,
    resting_until_ns: AtomicU64,
    threads: Threads,
    directory: CacheDirectory,
}

impl DiskCache {
    /// Fails if no disk cache has this size.
    ///
    /// # Errors
    /// With the range.
    pub fn check_size(bytes: u64) -> Result<(), DiskCacheError> {
        if (BYTES_MIN..=BYTES_MAX).contains(&bytes) {
            Ok(())
        } else {
            Err(DiskCacheError::Size { least: BYTES_MIN, most: BYTES_MAX })
        }
    }

    /// Locks a directory, reserves `bytes` in it, and finds the parts that are there. The directory is made if its
    /// parent is there.
    ///
    /// # Errors
    /// If another process has the directory, or it cannot be used.
    pub async fn open(path: &Path, bytes: u64) -> Result<Self, DiskCacheError> {
        Self::check_size(bytes)?;
        let unusable = |why: String| DiskCacheError::Unusable { directory: path.display().to_string(), why };
        let threads = Threads::for_disk(DISK_THREADS_MAX).map_err(|error| unusable(error.to_string()))?;
        let directory = CacheDirectory::take(path, bytes)?;
        let built = threads.run(build(directory.parts(), directory.files * directory.file_bytes, directory.file_bytes));
        let built = built.await.map_err(|_| unusable("its files cannot be read".to_owned()))?;
        let parts = built.map_err(|error| unusable(error.to_string()))?;
        let window = (bytes / DISK_BYTES) as usize;
        Ok(Self(Arc::new(Inner {
            parts,
            admission: Mutex::new(PartAdmission::new(directory.free_bytes, bytes, window)),
            counters: Counters::default(),
            size_bytes: bytes,
            resting_until_ns: AtomicU64::new(0),
            threads,
            directory,
        })))
    }

    /// Its figures.
    pub fn figures(&self) -> DiskCacheFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { read_bytes, hits, misses, dropped, rests } = &self.0.counters;
        DiskCacheFigures {
            size_bytes: self.0.size_bytes,
            written_bytes: self.0.parts.statistics().disk_write_bytes() as u64,
            read_bytes: read(read_bytes),
            hits: read(hits),
            misses: read(misses),
            dropped: read(dropped),
            rests: read(rests),
        }
    }

    /// The parts of a volume. `epoch` is that of a writer's opening, and absent for a reader. `fresh` is a random
    /// number.
    pub(crate) fn of_volume(
        &self,
        id: [u8; 16],
        address: &str,
        epoch: Option<u32>,
        fresh: u64,
    ) -> Result<VolumeParts, DiskCacheError> {
        let volume = format!("{:032x}-{:016x}", u128::from_be_bytes(id), hash(address));
        let state = self.0.directory.name_of(&volume, epoch, fresh)?;
        Ok(VolumeParts {
            cache: self.clone(),
            prefix: format!("{volume}-{state}"),
            distrusted: Mutex::default(),
            ends: Mutex::default(),
        })
    }
}

impl fmt::Debug for DiskCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskCache").field("directory", &self.0.directory).finish_non_exhaustive()
    }
}

async fn build(
    folder: std::path::PathBuf,
    bytes: u64,
    file_bytes: u64,
) -> Result<HybridCache<String, Bytes>, foyer::Error> {
    let device = FsDeviceBuilder::new(folder).with_capacity(bytes as usize).build()?;
    let engine = BlockEngineConfig::new(device)
        .with_block_size(file_bytes as usize)
        .with_buffer_pool_size(BUFFER_BYTES)
        .with_submit_queue_size_threshold(QUEUE_BYTES)
        .with_recover_concurrency(RECOVERED_AT_ONCE);
    HybridCacheBuilder::new()
        .with_name("parts")
        .memory(MEMORY_BYTES)
        .with_shards(1)
        .storage()
        .with_io_engine_config(PsyncIoEngineConfig::new())
        .with_engine_config(engine)
        .with_recover_mode(RecoverMode::Quiet)
        .build()
        .await
}

/// The parts of one volume's objects.
#[derive(Debug)]
pub(crate) struct VolumeParts {
    cache: DiskCache,
    /// The volume's identity, address and state.
    prefix: String,
    /// Segments whose parts did not match their lines' checksums.
    distrusted: Mutex<VecDeque<String>>,
    /// The objects and the ends of the last reads.
    ends: Mutex<VecDeque<(u64, u64)>>,
}

/// Bytes of an object, from an offset on.
type Piece = (u64, Bytes);

impl VolumeParts {
    fn inner(&self) -> &Inner {
        &self.cache.0
    }

    pub(crate) fn figures(&self) -> DiskCacheFigures {
        self.cache.figures()
    }

    fn distrusted(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.distrusted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, name: &str, part: u64) -> String {
        format!("{}/{name}/{part}", self.prefix)
    }

    /// The bytes of a range. `fetch` brings those of a range from the store.
    pub(crate) async fn read<F>(
        &self,
        name: &str,
        range: Range<u64>,
        arrivals: &Arrivals,
        fetch: impl FnOnce(Range<u64>) -> F + Send,
    ) -> Result<ByteParts, ObjectError>
    where
        F: Future<Output = Result<ByteParts, ObjectError>> + Send,
    {
        let is_distrusted = self.distrusted().iter().any(|distrusted| distrusted == name);
        if is_distrusted || range.end - range.start > READ_BYTES_MAX {
            return fetch(range).await;
        }
        let is_of_stream = self.try_continue(name, &range) || arrivals.is_ahead();
        let numbers = range.start / PART_BYTES..range.end.div_ceil(PART_BYTES);
        let (mut all, missing) = self.load(name, numbers).await;
        let found_bytes = all.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        self.inner().admission().credit(found_bytes);
        let counters = &self.inner().counters;
        counters.hits.fetch_add(all.len() as u64, Ordering::Relaxed);
        counters.read_bytes.fetch_add(found_bytes, Ordering::Relaxed);
        arrivals.note(found_bytes.min(range.end - range.start));
        let Some(missing) = missing else { return Ok(cut(all, &range)) };
        counters.misses.fetch_add(missing.end - missing.start, Ordering::Relaxed);
        let entering = self.entering(name, &missing, &range, is_of_stream);
        let enters = |part: u64| entering.contains(&part);
        let from = if enters(missing.start) { 0 } else { range.start }.max(missing.start * PART_BYTES);
        let to = if enters(missing.end - 1) { u64::MAX } else { range.end }.min(missing.end * PART_BYTES);
        let fetched = pieces(from, fetch(from..to).await?);
        let fetched_end = fetched.last().map_or(from, |(at, bytes)| at + bytes.len() as u64);
        for part in entering {
            let bytes = part * PART_BYTES..(part + 1) * PART_BYTES;
            // A part is whole, or the object ends in it. Nothing is known behind an end.
            if fetched_end >= bytes.start && (fetched_end >= bytes.end || fetched_end < to) {
                self.enter(self.key(name, part), joined(&fetched, &bytes));
            }
        }
        all.extend(fetched);
        all.sort_by_key(|(at, _)| *at);
        Ok(cut(all, &range))
    }

    /// Notes a read. True if it begins where one of the last reads of this object ended.
    fn try_continue(&self, name: &str, range: &Range<u64>) -> bool {
        let object = hash(name);
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let before = ends.iter().position(|end| *end == (object, range.start)).and_then(|at| ends.remove(at));
        ends.push_back((object, range.end));
        if ends.len() > ENDS_MAX {
            ends.pop_front();
        }
        before.is_some()
    }

    /// The shortest run of parts with all missing ones, and the present parts beside it. Behind a short part
    /// the object has no bytes.
    async fn load(&self, name: &str, parts: Range<u64>) -> (Vec<Piece>, Option<Range<u64>>) {
        let keys: Vec<(u64, String)> = parts.clone().map(|part| (part, self.key(name, part))).collect();
        let is_resting = now_ns() < self.inner().resting_until_ns.load(Ordering::Relaxed);
        let is_there = |key: &String| !is_resting && self.inner().parts.storage().may_contains(key);
        if !keys.iter().any(|(_, key)| is_there(key)) {
            return (Vec::new(), Some(parts));
        }
        let cache = self.cache.clone();
        let loads = keys.into_iter().map(move |(part, key)| {
            let cache = cache.clone();
            async move { Some((part * PART_BYTES, cache.0.load(&key).await?)) }
        });
        // A hanging disk has threads of its own, which do not hold the reader up.
        let loaded = self.inner().threads.run(async { tokio::time::timeout(PATIENCE, join_all(loads)).await }).await;
        let Ok(Ok(loaded)) = loaded else {
            self.inner().counters.rests.fetch_add(1, Ordering::Relaxed);
            self.inner().resting_until_ns.store(now_ns().saturating_add(REST_NS), Ordering::Relaxed);
            return (Vec::new(), Some(parts));
        };
        let end = loaded.iter().zip(parts.clone()).find_map(|(loaded, part)| {
            let is_last = loaded.as_ref().is_some_and(|(_, bytes)| (bytes.len() as u64) < PART_BYTES);
            is_last.then_some(part + 1)
        });
        let end = end.unwrap_or(parts.end);
        let is_missing = |part: &u64| loaded[(part - parts.start) as usize].is_none();
        let first = (parts.start..end).find(is_missing);
        let last = (parts.start..end).rev().find(is_missing);
        let missing = first.zip(last).map(|(first, last)| first..last + 1);
        let is_beside = |part: u64| part < end && missing.as_ref().is_none_or(|missing| !missing.contains(&part));
        let found = loaded.into_iter().flatten().filter(|(at, _)| is_beside(at / PART_BYTES)).collect();
        (found, missing)
    }

    /// The missing parts that will enter. Each byte of a stream is in one read: a part counts as read by the read that
    /// has its first byte.
    fn entering(&self, name: &str, missing: &Range<u64>, range: &Range<u64>, is_of_stream: bool) -> Vec<u64> {
        let mut admission = self.inner().admission();
        let mut enters = |part: u64| {
            let hash = hash(&self.key(name, part));
            match is_of_stream {
                true => range.contains(&(part * PART_BYTES)) && admission.try_enter_again(hash),
                false => admission.try_enter(hash, DISK_BYTES),
            }
        };
        missing.clone().filter(|part| enters(*part)).collect()
    }

    fn enter(&self, key: String, bytes: Bytes) {
        // The library returns an entry, of which nobody has a use here.
        drop(self.inner().parts.storage_writer(key).force().insert(bytes));
    }

    /// Forgets all parts of a segment, and reads it from the store from now on.
    pub(crate) fn forget(&self, name: &str) {
        let mut distrusted = self.distrusted();
        distrusted.push_back(name.to_owned());
        if distrusted.len() > DISTRUSTED_MAX {
            distrusted.pop_front();
        }
        drop(distrusted);
        let keys = (0..OBJECT_BYTES_MAX.div_ceil(PART_BYTES)).map(|part| self.key(name, part));
        let there: Vec<String> = keys.filter(|key| self.inner().parts.storage().may_contains(key)).collect();
        there.iter().for_each(|key| self.inner().parts.remove(key));
        self.inner().counters.dropped.fetch_add(there.len() as u64, Ordering::Relaxed);
    }
}

impl Inner {
    fn admission(&self) -> MutexGuard<'_, PartAdmission> {
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part, if the disk has it whole.
    async fn load(&self, key: &String) -> Option<Bytes> {
        if !self.parts.storage().may_contains(key) {
            return None;
        }
        match self.parts.storage().load(key).await {
            Ok(Load::Entry { value, .. }) => return Some(value),
            Ok(Load::Piece { piece, .. }) => return Some(piece.value().clone()),
            // The library has dropped it.
            Ok(Load::Miss | Load::Throttled) => {}
            Err(_) => self.parts.remove(key),
        }
        self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// A hash that other processes compute, too.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The offsets of bytes that came one after another.
fn pieces(from: u64, bytes: ByteParts) -> Vec<Piece> {
    let mut at = from;
    let piece = |bytes: Bytes| {
        let piece = (at, bytes);
        at += piece.1.len() as u64;
        piece
    };
    bytes.0.into_iter().map(piece).collect()
}

/// The bytes of a range, as far as the pieces have them.
fn cut(pieces: Vec<Piece>, range: &Range<u64>) -> ByteParts {
    let part = |(at, bytes): Piece| {
        let end = at + bytes.len() as u64;
        let wanted = range.start.clamp(at, end)..range.end.clamp(at, end);
        bytes.slice((wanted.start - at) as usize..(wanted.end - at) as usize)
    };
    ByteParts(pieces.into_iter().map(part).filter(|bytes| !bytes.is_empty()).collect())
}

/// A copy of the bytes of a range, which share no memory with the rest of an answer.
fn joined(pieces: &[Piece], range: &Range<u64>) -> Bytes {
    let parts = cut(pieces.to_vec(), range).0;
    let mut bytes = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.freeze()
}
