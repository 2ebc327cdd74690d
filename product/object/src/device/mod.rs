//! A volume in an object store as a device of the engine.
//!
//! A request waits for the store inside the device, however long an outage lasts. So an outage or an answer 503 fails
//! no request, and a sync waits like its file's writes. [`Device::report`] returns whether the store is away, and since
//! when.
//!
//! Owns: the path of each request to the volume, which writes wait for their sync; the world's clock as the volume's.
//! Does not own: which writes share a segment and other decisions of the volume, the cache of pages.
//! Invariants: a write is complete when its segment was PUT, or when its sync carries its bytes. The volume counts the
//! bytes as unsynced until durable records name them. Bytes that wait for a sync are bounded.

mod fetch;
mod put;
#[cfg(test)]
mod tests;
mod watched;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::{Backing, Device, DeviceReport, FILE_BYTES_MAX, Limits, Nanos, Operation, Platform, Request};
use bytes::Bytes;

use crate::device::fetch::{AheadRead, LineCache, ReadsAhead};
use crate::device::put::InlineBytes;
use crate::error::{ObjectVolumeError, device_error};
use crate::format::extent::SEGMENT_BYTES_MAX;
use crate::open::ObjectVolume;
use crate::seams::{Arrivals, Clock, Objects, RecordDatabase};
use crate::tree::HeldNode;

pub(crate) use self::fetch::Via;
pub use self::watched::WatchedObjects;

/// The clock of a world.
#[derive(Debug)]
pub struct PlatformClock<P>(pub Arc<P>);

impl<P> Clone for PlatformClock<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: Platform> Clock for PlatformClock<P> {
    fn now_ns(&self) -> u64 {
        self.0.now().0
    }

    fn wall_ns(&self) -> u64 {
        u64::try_from(self.0.wall_clock().0).unwrap_or(0)
    }

    fn sleep_until_ns(&self, at_ns: u64) -> impl Future<Output = ()> + Send {
        self.0.sleep_until(Nanos(at_ns))
    }
}

/// The most requests in flight. The policy learns how many the store likes.
const DEPTH: u32 = 256;
/// A write of at least this size is a segment of its own.
const OWN_SEGMENT_BYTES: u64 = 1 << 20;
/// While a sync waits, the records must show within this time that the store is there.
const SILENT_NS: u64 = 10 * Nanos::SECOND;

/// The volume of an [`ObjectDevice`].
pub type DeviceVolume<O, R, C, P> = ObjectVolume<WatchedObjects<O, P>, R, C>;

/// A device whose files are objects of a store.
pub struct ObjectDevice<O, R, C, P: Platform> {
    limits: Limits,
    core: Arc<Core<O, R, C, P>>,
}

struct Core<O, R, C, P: Platform> {
    volume: Arc<DeviceVolume<O, R, C, P>>,
    platform: Arc<P>,
    lines: LineCache,
    reads_ahead: Arc<ReadsAhead>,
    inline: Mutex<InlineBytes>,
}

impl<O: Objects + 'static, R: RecordDatabase + 'static, C: Clock + 'static, P: Platform> ObjectDevice<O, R, C, P> {
    /// A device over an open volume.
    pub fn new(platform: &Arc<P>, volume: Arc<DeviceVolume<O, R, C, P>>) -> Arc<Self> {
        let limits = Limits {
            block_bytes: 4096,
            request_bytes_max: SEGMENT_BYTES_MAX,
            depth: DEPTH,
            file_bytes_max: FILE_BYTES_MAX,
            volatile_cache: true,
            readable_before_flush: true,
            syncs_overlap: false,
            request_bytes_preferred: Some(OWN_SEGMENT_BYTES as u32),
        };
        let core = Core {
            volume,
            platform: Arc::clone(platform),
            lines: LineCache::default(),
            reads_ahead: Arc::default(),
            inline: Mutex::default(),
        };
        Arc::new(Self { limits, core: Arc::new(core) })
    }

    /// A file of a volume without names, as a backing for an engine. A tree makes backings that hold their object.
    pub fn backing(ino: u64) -> Backing {
        Backing::new(HeldNode::without_tree(ino))
    }
}

impl<O: Objects + 'static, R: RecordDatabase + 'static, C: Clock + 'static, P: Platform> Device
    for ObjectDevice<O, R, C, P>
{
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        let Some(ino) = request.backing().get::<HeldNode>().map(HeldNode::ino) else {
            request.complete(Err(afflux_engine::DeviceError::Stale));
            return;
        };
        let volume = &self.core.volume;
        match request.operation() {
            Operation::Write { offset, .. } => self.write(ino, offset, request),
            Operation::Read { offset, len } => {
                let core = Arc::clone(&self.core);
                self.spawn("object read", async move { core.read(ino, offset, u64::from(len), request).await });
            }
            Operation::Sync => {
                let core = Arc::clone(&self.core);
                self.spawn("object commit", async move { core.sync(ino, request).await });
            }
            Operation::SetSize { size } => answer(request, volume.set_size(ino, size)),
            Operation::Punch { len: 0, .. } => request.complete(Ok(())),
            Operation::Punch { offset, len } => answer(request, volume.punch(ino, offset, len)),
            // Each write takes new space, and there is always some.
            Operation::Reserve { .. } => request.complete(Ok(())),
        }
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }

    fn report(&self) -> DeviceReport {
        let (objects, records) = (&self.core.volume.objects, &self.core.volume.records);
        let now = self.core.platform.now();
        // The clock of the records goes on while the machine sleeps, and may have another beginning.
        let silent_ns = self.core.volume.clock.now_ns().saturating_sub(records.unfenced_at_ns());
        let is_silent = self.core.inline().syncs() > 0 && silent_ns >= SILENT_NS;
        let shown = Nanos(now.0.saturating_sub(silent_ns));
        let away_since = objects.away_since(now).or_else(|| is_silent.then_some(shown));
        DeviceReport { away_since, ..DeviceReport::default() }
    }

    fn too_many(&self) -> u64 {
        self.core.volume.objects.too_many()
    }
}

impl<O: Objects + 'static, R: RecordDatabase + 'static, C: Clock + 'static, P: Platform> ObjectDevice<O, R, C, P> {
    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.core.platform.spawn(name, task);
    }

    fn write(&self, ino: u64, offset: u64, request: Request) {
        let length = request.memory_bytes();
        let mut bytes = vec![0; length];
        request.copy_out(0..length, &mut bytes);
        let is_inline = request.is_for_sync() && self.core.inline().try_defer(ino, length as u64);
        let taken = self.core.volume.take_write(ino, offset, Bytes::from(bytes), is_inline);
        match taken {
            Ok(number) if !is_inline => {
                let core = Arc::clone(&self.core);
                self.spawn("object put", async move { answer(request, core.volume.put(ino, number).await) });
            }
            taken => answer(request, taken.map(drop)),
        }
    }
}

impl<O: Objects + 'static, R: RecordDatabase + 'static, C: Clock + 'static, P: Platform> Core<O, R, C, P> {
    fn inline(&self) -> MutexGuard<'_, InlineBytes> {
        self.inline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, ino: u64, offset: u64, length: u64, mut request: Request) {
        let turn = if request.is_ahead() { Some(self.reads_ahead.begin(length).await) } else { None };
        let counted = turn.as_ref().map(AheadRead::arrivals);
        let via = Via { cache: Some(&self.lines), arrivals: counted.as_ref().unwrap_or(Arrivals::NONE) };
        let mut copy = |at: usize, bytes: &[u8]| request.copy_in(at, bytes);
        let read = self.volume.read_into(via, ino, offset, length, &mut copy).await;
        answer(request, read);
    }

    async fn sync(&self, ino: u64, request: Request) {
        let taken = self.inline().sync_begins(ino);
        let committed = self.volume.commit(ino).await;
        self.inline().sync_ends(taken);
        answer(request, committed);
    }
}

fn answer(request: Request, result: Result<(), ObjectVolumeError>) {
    request.complete(result.map_err(|error| device_error(&error)));
}
