//! Requests: operations on a device, and the path of their answers.
//!
//! Owns: the operation, the device's name for the file, the frames it reads into or writes from, the obligation to
//! answer once.
//! Does not own: page states; the engine changes them when it learns the outcome.
//! Invariants: a request is completed exactly once; dropping it completes it as lost. Its memory stays valid and, for a
//! write, unchanged until then.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use afflux_frames::Frames;
use afflux_pages::memory::{FrameMemory, SharedArena};

use crate::error::DeviceError;

/// The device's name for a file: its descriptors, or its address on a simulated disk. Opaque to the engine. Every
/// request for the file holds a reference, so it outlives the last completion.
#[derive(Clone)]
pub struct Backing(Arc<dyn Any + Send + Sync>);

impl Backing {
    /// Wraps the value that the device will get back from [`Request::backing`].
    pub fn new(backing: Arc<dyn Any + Send + Sync>) -> Self {
        Self(backing)
    }

    /// The wrapped value, if it is a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// The operation of a request. Offsets and lengths are bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fill the request's memory from `offset`. Bytes past the file's end read as zeros.
    Read {
        /// First byte; a multiple of the block size.
        offset: u64,
        /// How many bytes; a multiple of the block size.
        len: u32,
    },
    /// Write the request's memory to `offset`. If the length is not a multiple of the block size, the last byte becomes
    /// the file's last byte. The file's size is then `offset + len`, or its old size if larger; it is never rounded up,
    /// not even for a moment. If several writes extend a file, the device may set its size ahead of them, up to
    /// [`Request::file_bytes`] and in whole pages: bytes not yet written read as zeros.
    Write {
        /// First byte; a multiple of the block size.
        offset: u64,
        /// The number of bytes, at least 1.
        len: u32,
    },
    /// Make every completed write and size change of this file durable (data, size, and the metadata that finds them),
    /// including the device's volatile cache.
    Sync,
    /// Set the file's size. Bytes past a new end are gone; bytes up to a larger one read as zeros.
    SetSize {
        /// The new size.
        size: u64,
    },
    /// Deallocate a range; it reads as zeros afterwards. The size does not change.
    Punch {
        /// First byte; a multiple of 4096.
        offset: u64,
        /// How many bytes; a multiple of 4096.
        len: u64,
    },
    /// Reserve space for a range, so that later writes to it cannot run out of space. The size and the contents do not
    /// change.
    Reserve {
        /// Offset in the file of the first byte.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
}

/// Gets the outcome of a request, on the thread on which the device reaps it.
pub trait Completion: Send {
    /// The file's size for readers of the cache; 0 if nobody needs it.
    fn file_bytes(&self) -> u64 {
        0
    }

    /// The request has ended, with the memory that it had.
    fn completed(self: Box<Self>, operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>);
}

/// An operation on a file, owned by the device that carries it out.
pub struct Request {
    open: Option<Open>,
}

struct Open {
    sink: Box<dyn Completion>,
    backing: Backing,
    operation: Operation,
    memory: Option<FrameMemory>,
    is_for_sync: bool,
    is_ahead: bool,
}

impl Request {
    /// A request of the engine. It notifies `completion` of its end, once.
    pub fn new(sink: Box<dyn Completion>, backing: Backing, operation: Operation, memory: Option<FrameMemory>) -> Self {
        Self { open: Some(Open { sink, backing, operation, memory, is_for_sync: false, is_ahead: false }) }
    }

    /// Sets whether a caller waits for the written data to be durable ([`Request::is_for_sync`]).
    #[must_use]
    pub fn for_sync(mut self, is_for_sync: bool) -> Self {
        if let Some(open) = &mut self.open {
            open.is_for_sync = is_for_sync;
        }
        self
    }

    /// Sets whether no caller waits for the bytes as the read begins ([`Request::is_ahead`]).
    #[must_use]
    pub fn ahead(mut self, is_ahead: bool) -> Self {
        if let Some(open) = &mut self.open {
            open.is_ahead = is_ahead;
        }
        self
    }

    /// A request without an engine, to try a device with. A read or write takes its memory from `frames`; a write
    /// carries `bytes`. `done` gets the outcome and the memory's bytes (none for operations without data), on the
    /// thread that completes the request.
    ///
    /// # Panics
    /// If `frames` has too few free frames, or the length of a write is not that of `bytes`.
    pub fn probe(
        frames: &Arc<Frames>,
        backing: Backing,
        operation: Operation,
        bytes: &[u8],
        done: impl FnOnce(Result<(), DeviceError>, Vec<u8>) + Send + 'static,
    ) -> Self {
        let done = move |result, memory: Option<ProbeMemory>| {
            let bytes = memory.map_or_else(Vec::new, |memory| {
                let mut bytes = vec![0; memory.len()];
                memory.copy_to(&mut bytes);
                bytes
            });
            done(result, bytes);
        };
        Self::past_cache(&PastCache::new(Arc::clone(frames)), backing, operation, bytes, done)
    }

    /// As [`Request::probe`], for reads and writes past the cache: `done` gets the memory itself, to copy bytes out of
    /// it (none for operations without data).
    ///
    /// # Panics
    /// As [`Request::probe`].
    pub fn past_cache(
        frames: &PastCache,
        backing: Backing,
        operation: Operation,
        bytes: &[u8],
        done: impl FnOnce(Result<(), DeviceError>, Option<ProbeMemory>) + Send + 'static,
    ) -> Self {
        let memory = match operation {
            Operation::Read { offset, len } => Some(FrameMemory::allocate(&frames.0, offset, len as usize)),
            Operation::Write { offset, len } => {
                assert_eq!(len as usize, bytes.len());
                let memory = FrameMemory::allocate(&frames.0, offset, bytes.len());
                memory.copy_in(0, bytes);
                Some(memory)
            }
            _ => None,
        };
        Self::new(Box::new(Probe(done)), backing, operation, memory)
    }

    fn open(&self) -> &Open {
        self.open.as_ref().unwrap_or_else(|| unreachable!("open until completed, which consumes it"))
    }

    /// Operation that the request asks of the device.
    pub fn operation(&self) -> Operation {
        self.open().operation
    }

    /// The device's name for the file.
    pub fn backing(&self) -> &Backing {
        &self.open().backing
    }

    /// For a write: the file's size as accepted, which its readers have seen. No write in flight to the file ends after
    /// it, and it does not shrink while one is in flight.
    pub fn file_bytes(&self) -> u64 {
        self.open().sink.file_bytes()
    }

    /// For a write: whether a caller waits for the file to be durable, so that an [`Operation::Sync`] follows the
    /// write, unless it fails. A device may leave more of the work, and the report of errors, to the sync.
    pub fn is_for_sync(&self) -> bool {
        self.open().is_for_sync
    }

    /// For a read: whether no caller waits for the bytes as it begins. A device may begin reads with a waiting caller
    /// first.
    pub fn is_ahead(&self) -> bool {
        self.open().is_ahead
    }

    /// The number of separate pieces of memory with the data; 0 for operations without data.
    pub fn segment_count(&self) -> usize {
        self.open().memory.as_ref().map_or(0, FrameMemory::segment_count)
    }

    /// How many bytes of each 4 KiB page of the file its memory backs, from the page's first on: all 4096, or 16 in a
    /// stamped arena. Other bytes read as zeros. 4096 for operations without data.
    pub fn backed_bytes(&self) -> usize {
        self.open().memory.as_ref().map_or(afflux_frames::FRAME_BYTES, FrameMemory::backed_bytes)
    }

    /// The number of bytes of data; 0 for operations without data.
    pub fn memory_bytes(&self) -> usize {
        self.open().memory.as_ref().map_or(0, FrameMemory::bytes)
    }

    /// The pieces of memory, in the order of the file's bytes, as address and length; their lengths add up to the
    /// operation's. They stay valid until the request is completed or dropped: a device that hands the addresses to the
    /// kernel holds the request until the kernel is done.
    ///
    /// # Panics
    /// If its memory does not back whole pages.
    pub fn segments(&self) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
        self.open().memory.iter().flat_map(FrameMemory::segments)
    }

    /// Copies the bytes in `range` (relative to the request's offset) of a write out of its memory.
    ///
    /// # Panics
    /// If the range is not inside the request, or `out` has another length.
    pub fn copy_out(&self, range: Range<usize>, out: &mut [u8]) {
        assert_eq!(range.len(), out.len());
        if let Some(memory) = &self.open().memory {
            memory.copy_out(range.start, out);
        }
    }

    /// Copies `bytes` into the memory of a read, at `at` (relative to the request's offset).
    ///
    /// # Panics
    /// If the copy would pass the request's end, or the request is not a read.
    pub fn copy_in(&mut self, at: usize, bytes: &[u8]) {
        assert!(matches!(self.operation(), Operation::Read { .. }));
        if let Some(memory) = &self.open().memory {
            memory.copy_in(at, bytes);
        }
    }

    /// Copies the backed bytes of `range` (relative to the request's offset) into `out`, without gaps; returns how
    /// many.
    ///
    /// # Panics
    /// If the range is not inside the request, or `out` is too short.
    pub fn copy_backed_out(&self, range: Range<usize>, out: &mut [u8]) -> usize {
        self.open().memory.as_ref().map_or(0, |memory| memory.copy_backed_out(range, out))
    }

    /// Copies `bytes` to the backed bytes of `range` (relative to the request's offset) of a read's memory; returns how
    /// many.
    ///
    /// # Panics
    /// If the range is not inside the request, `bytes` is too short, or the request is not a read.
    pub fn copy_backed_in(&mut self, range: Range<usize>, bytes: &[u8]) -> usize {
        assert!(matches!(self.operation(), Operation::Read { .. }));
        self.open().memory.as_ref().map_or(0, |memory| memory.copy_backed_in(range, bytes))
    }

    /// Answers the request. May wake tasks and submit further requests before it returns: call it with no lock held and
    /// no ring borrowed.
    pub fn complete(mut self, result: Result<(), DeviceError>) {
        self.answer(result);
    }

    fn answer(&mut self, result: Result<(), DeviceError>) {
        if let Some(open) = self.open.take() {
            open.sink.completed(open.operation, open.memory, result);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.answer(Err(DeviceError::Lost));
    }
}

/// Frames for requests past the cache.
pub struct PastCache(Arc<SharedArena>);

impl PastCache {
    /// Requests take their memory from these frames.
    pub fn new(frames: Arc<Frames>) -> Self {
        Self(Arc::new(SharedArena(frames)))
    }
}

struct Probe<F>(F);

impl<F: FnOnce(Result<(), DeviceError>, Option<ProbeMemory>) + Send> Completion for Probe<F> {
    fn completed(self: Box<Self>, _operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        (self.0)(result, memory.map(|memory| ProbeMemory(Some(memory))));
    }
}

/// A read or a write that a device may carry out on the calling thread
/// ([`Device::read_here`](crate::platform::Device::read_here),
/// [`Device::write_here`](crate::platform::Device::write_here)). Its memory stays valid while it lives, and unchanged
/// if it is written.
pub struct TransferHere<'a> {
    backing: &'a Backing,
    offset: u64,
    memory: &'a FrameMemory,
}

impl<'a> TransferHere<'a> {
    /// A transfer by the calling thread.
    pub fn new(backing: &'a Backing, offset: u64, memory: &'a FrameMemory) -> Self {
        Self { backing, offset, memory }
    }

    /// The device's name for the file.
    pub fn backing(&self) -> &Backing {
        self.backing
    }

    /// The first byte in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The pieces of memory, in the order of the file's bytes, as address and length in bytes.
    ///
    /// # Panics
    /// If its memory does not back whole pages.
    pub fn segments(&self) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
        self.memory.segments()
    }
}

/// The memory of a request without an engine, after its end. Its frames go back when it is dropped.
pub struct ProbeMemory(Option<FrameMemory>);

impl ProbeMemory {
    /// The number of bytes.
    #[allow(clippy::len_without_is_empty, reason = "no request with memory is empty")]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, FrameMemory::bytes)
    }

    /// Copies its bytes from the first on. Bytes without memory read as zeros.
    ///
    /// # Panics
    /// If `out` is longer than the memory.
    pub fn copy_to(&self, out: &mut [u8]) {
        if let Some(memory) = &self.0 {
            memory.copy_out(0, out);
        }
    }
}

impl Drop for ProbeMemory {
    fn drop(&mut self) {
        if let Some(memory) = self.0.take() {
            memory.free();
        }
    }
}
