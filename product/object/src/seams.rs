//! The seams to the world: objects, records, time.
//!
//! Owns: the traits, their outcomes; scans of many records, some at a time, by the bytes of the scan before.
//! Does not own: an implementation.
//! Invariants: those that each trait demands of an implementation. A [`PagedScan`] holds no more values than one page
//! has. A user may have made them as large as they may be.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// A key of a record.
pub type Key = Vec<u8>;
/// A value of a record.
pub type Value = Vec<u8>;
/// A key with its value.
pub type Record = (Key, Value);

/// An outcome of a request to the store that brought no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// The store was too busy (503). The request had no effect.
    Busy,
    /// No answer came in time. The request had its effect, or will have it later, or never.
    Unknown,
    /// There is no such object.
    Missing,
    /// The store does not take the request now: it refuses the keys, or the request itself. Nothing happened.
    Denied,
    /// The store has no space for the object. Nothing happened.
    Full(String),
    /// The store refuses the request for good, and says why.
    Refused(String),
}

/// The result of a PUT that makes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was made.
    New,
    /// An object of this name was there, and stays.
    Present,
}

/// Bytes of an object in pieces, as they are sent or came one after another. So nobody copies them into one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteParts(pub Vec<Bytes>);

impl ByteParts {
    /// The bytes of all pieces. More than one are copied.
    pub fn joined(self) -> Bytes {
        match <[Bytes; 1]>::try_from(self.0) {
            Ok([all]) => all,
            Err(parts) => parts.concat().into(),
        }
    }
}

impl From<Bytes> for ByteParts {
    fn from(bytes: Bytes) -> Self {
        Self(vec![bytes])
    }
}

/// A store of immutable objects. It reads what it wrote: an answered PUT or DELETE holds for all later requests.
pub trait Objects: Send + Sync {
    /// Makes an object unless there is one.
    fn create(
        &self,
        name: &str,
        parts: impl Into<ByteParts> + Send,
    ) -> impl Future<Output = Result<PutOutcome, ObjectError>> + Send;
    /// A part of an object: the bytes of the range that the object has. It has none behind its end.
    fn get(&self, name: &str, range: Range<u64>) -> impl Future<Output = Result<ByteParts, ObjectError>> + Send {
        self.get_counted(name, range, Arrivals::NONE)
    }
    /// The same. The caller learns of each piece as it comes.
    fn get_counted(
        &self,
        name: &str,
        range: Range<u64>,
        arrivals: &Arrivals,
    ) -> impl Future<Output = Result<ByteParts, ObjectError>> + Send;
    /// The names with a prefix.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<String>, ObjectError>> + Send;
    /// Removes an object. A missing one is no error.
    fn delete(&self, name: &str) -> impl Future<Output = Result<(), ObjectError>> + Send;
    /// Forgets copies of an object that are nearer than the store, since their bytes are wrong.
    fn forget(&self, _name: &str) {}
    /// For how long the store has given no answer to a request of any kind, those for records too; 0 while it answers.
    fn away_ns(&self) -> u64 {
        0
    }
}

/// An account of the bytes of a GET that have come so far. A retry counts anew. Reads ahead have one: nobody waits for
/// them yet.
#[derive(Clone)]
pub struct Arrivals(Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl Arrivals {
    /// A GET for which a reader waits. It is counted for nobody.
    pub const NONE: &'static Self = &Self(None);

    /// Calls `note` with the number of bytes of each piece.
    pub fn to(note: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(note)))
    }

    /// Whether the GET reads ahead of a reader.
    pub fn is_ahead(&self) -> bool {
        self.0.is_some()
    }

    /// So many bytes have come.
    pub fn note(&self, bytes: u64) {
        if let Some(note) = &self.0 {
            note(bytes);
        }
    }
}

/// The version of an object. Each PUT makes a new version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectVersion {
    /// Entity tag, if the store gives one.
    pub tag: Option<String>,
    /// Its id, where a store counts versions.
    pub id: Option<String>,
}

/// An object that is overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatedObject {
    /// Contents of the object.
    pub bytes: Bytes,
    /// The time at which the store took it, by the store's clock, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Its version, for a replacement.
    pub version: ObjectVersion,
}

/// The result of a PUT that replaces one version of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceOutcome {
    /// The object has these bytes.
    Replaced,
    /// The object has a later version by now, and stays.
    Changed,
}

/// Objects that are overwritten, with their times by the store's clock. Only the holder (`holder`) and the list of
/// clients (`holder`) need them.
pub trait DatedObjects: Send + Sync {
    /// Makes an object, or replaces it.
    fn put(&self, name: &str, bytes: Bytes) -> impl Future<Output = Result<(), ObjectError>> + Send;
    /// Replaces this version of an object; without a version, makes an object that is not there. An earlier writer's
    /// request that comes late changes nothing. A store with a lock for its only writer may do without the comparison.
    fn replace(
        &self,
        name: &str,
        bytes: Bytes,
        version: Option<&ObjectVersion>,
    ) -> impl Future<Output = Result<ReplaceOutcome, ObjectError>> + Send;
    /// An object of at most so many bytes. A longer one is refused.
    fn dated(&self, name: &str, bytes_max: u64) -> impl Future<Output = Result<DatedObject, ObjectError>> + Send;
}

/// A batch's number. Batches become durable in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sequence(pub u64);

/// A change of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordChange {
    /// Sets the value.
    Put(Key, Value),
    /// Removes the record.
    Remove(Key),
    /// Adds to a value of 8 big-endian bytes. An absent record counts as 0.
    Add(Key, i64),
}

impl RecordChange {
    /// Makes the change in records that are an ordered map. For stores of records in memory.
    ///
    /// # Panics
    /// If it adds to a value of another length than 8 bytes, or beyond 64 bits.
    pub fn apply_to(&self, records: &mut BTreeMap<Key, Value>) {
        match self {
            Self::Put(key, value) => {
                records.insert(key.clone(), value.clone());
            }
            Self::Remove(key) => {
                records.remove(key);
            }
            Self::Add(key, by) => {
                let value = records.entry(key.clone()).or_insert_with(|| vec![0; 8]);
                let before = value.as_slice().try_into().expect("only a value of 8 bytes is added to");
                let sum = i64::from_be_bytes(before).checked_add(*by).expect("a sum has 64 bits");
                *value = sum.to_be_bytes().to_vec();
            }
        }
    }
}

/// Changes that become durable together or not at all.
pub type Batch = Vec<RecordChange>;

/// The state of the records that a scan sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// With all batches given.
    Applied,
    /// With durable batches only.
    Remote,
}

/// A view of the volume that a reader holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The manifest that it was made from.
    pub manifest: u64,
}

/// The newest manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Manifests have rising ids.
    pub id: u64,
    /// The living checkpoints.
    pub checkpoints: Vec<Checkpoint>,
}

/// Why the records take no more batches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// A later writer opened the volume.
    #[error("another writer took the volume over")]
    Fenced,
    /// The database ended.
    #[error("the database closed: {0}")]
    Closed(String),
    /// The records were opened for reading.
    #[error("the volume is open for reading only")]
    ReadOnly,
}

/// An open database of records. Its opening has fenced all earlier writers: no batch of theirs becomes durable any
/// more.
///
/// It retries for itself; an outcome here is final.
pub trait RecordDatabase: Send + Sync {
    /// The epoch of this opening; each opening has a larger one.
    fn epoch(&self) -> u32;
    /// Whether they are a view that takes no batch. Another writer's batches may move it on, and [`Self::prove`] waits
    /// until it shows all that was durable at the call.
    fn is_read_only(&self) -> bool {
        false
    }
    /// Takes a batch. Scans of applied batches see it at once. It becomes durable later.
    fn apply(&self, batch: Batch) -> Result<Sequence, RecordsError>;
    /// All batches up to this one are durable, and the durable scan sees them.
    fn durable_through(&self) -> Sequence;
    /// Waits until a batch is durable.
    fn durable(&self, sequence: Sequence) -> impl Future<Output = Result<(), RecordsError>> + Send;
    /// The first `most` records with keys from `from` to before `to`, in order. It sees one state.
    fn scan_first(
        &self,
        from: Key,
        to: Key,
        durability: Durability,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Record>, RecordsError>> + Send;
    /// All records of a range, as [`Self::scan_first`].
    fn scan(
        &self,
        from: Key,
        to: Key,
        durability: Durability,
    ) -> impl Future<Output = Result<Vec<Record>, RecordsError>> + Send {
        self.scan_first(from, to, durability, usize::MAX)
    }
    /// Reads the newest manifest. It shows all batches that were durable at the call, so every later checkpoint does.
    fn manifest(&self) -> impl Future<Output = Result<Manifest, RecordsError>> + Send;
    /// At this time, or later, this writer was not yet fenced. It is the time at which the last successful log PUT or
    /// manifest read was *sent*.
    fn unfenced_at_ns(&self) -> u64;
    /// At this time, or earlier, all earlier writers were fenced. Without a time, it was before the end of the opening.
    fn fenced_at_ns(&self) -> Option<u64> {
        None
    }
    /// Finds out whether this writer is fenced.
    fn prove(&self) -> impl Future<Output = Result<(), RecordsError>> + Send;
}

/// A clock that goes on while the machine sleeps.
pub trait Clock: Send + Sync {
    /// The time now, from any beginning.
    fn now_ns(&self) -> u64;
    /// The time of day, since 1970.
    fn wall_ns(&self) -> u64;
    /// Waits until an instant of the platform's clock.
    fn sleep_until_ns(&self, at_ns: u64) -> impl Future<Output = ()> + Send;
}

/// A paged scan begins with so many records: their values may be the largest.
const PAGE_MIN: usize = 4;
/// It reads so many at most.
const PAGE_MAX: usize = 512;
/// Later pages have as many records as have so many bytes, by the page before.
const PAGE_BYTES: usize = 256 << 10;

/// The key to go on with after a scan for so many records.
pub(crate) fn next_page(found: &[Record], most: usize, end: &Key) -> Key {
    match found.last() {
        Some((last, _)) if found.len() == most => [last.as_slice(), &[0]].concat(),
        _ => end.clone(),
    }
}

/// A scan of all records of a range, some at a time.
pub(crate) struct PagedScan {
    from: Key,
    end: Key,
    durability: Durability,
    most: usize,
}

impl PagedScan {
    pub(crate) fn new(from: Key, end: Key, durability: Durability) -> Self {
        Self { from, end, durability, most: PAGE_MIN }
    }

    /// The next records; nothing behind the last.
    pub(crate) async fn next(&mut self, records: &impl RecordDatabase) -> Result<Option<Vec<Record>>, RecordsError> {
        if self.from >= self.end {
            return Ok(None);
        }
        let from = std::mem::take(&mut self.from);
        let found = records.scan_first(from, self.end.clone(), self.durability, self.most).await?;
        self.from = next_page(&found, self.most, &self.end);
        let bytes: usize = found.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.most = (PAGE_BYTES * found.len() / bytes.max(1)).clamp(PAGE_MIN, PAGE_MAX);
        Ok(Some(found))
    }
}
