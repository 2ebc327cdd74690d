//! Requests: what the engine asks of a device, and the way the answer comes back.
//!
//! Owns: the operation, the file as its device knows it, the frames it reads into or writes from, the obligation to answer once.
//! Does not own: page states; the engine changes them when it is told the outcome.
//! Invariants: a request is completed exactly once; dropping it completes it as lost. Its memory
//! stays valid and, for a write, unchanged until then.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use afflux_frames::Frames;

use crate::error::DeviceError;
use crate::memory::{Arena, FrameMemory};

/// What a device knows a file by: its descriptors, or its place in a simulated disk. Opaque to the
/// engine; every request for the file holds a reference, so it outlives the last completion.
#[derive(Clone)]
pub struct Backing(Arc<dyn Any + Send + Sync>);

impl Backing {
    /// Wraps what the device will get back from [`Request::backing`].
    pub fn new(backing: Arc<dyn Any + Send + Sync>) -> Self {
        Self(backing)
    }

    /// What was wrapped, if it was a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// What a request asks for. Offsets and lengths are bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fill the request's memory from `offset`. What lies past the file's end reads as zeros.
    Read {
        /// First byte; a multiple of the block size.
        offset: u64,
        /// How many bytes; a multiple of the block size.
        len: u32,
    },
    /// Write the request's memory to `offset`. If the length is not a multiple of the block size the
    /// last byte becomes the file's last byte: its size is `offset + len` or what it was if larger,
    /// never rounded up, at no moment. Where several writes make a file longer, the device may give it a size
    /// ahead of them, up to [`Request::file_bytes`] and in whole pages: what is not written yet reads as zeros.
    Write {
        /// First byte; a multiple of the block size.
        offset: u64,
        /// How many bytes, at least 1.
        len: u32,
    },
    /// Make every completed write and size change of this file durable (data, size, and what is
    /// needed to find them), the device's volatile cache included.
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
    /// Reserve space for a range, so that later writes to it cannot run out of it. The size and the
    /// contents do not change.
    Reserve {
        /// First byte.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
}

/// Told the outcome of a request, on whatever thread the device reaps it.
pub(crate) trait Completion: Send {
    /// The size that the file has for those who read the cache; 0 where nobody asks.
    fn file_bytes(&self) -> u64 {
        0
    }

    fn completed(self: Box<Self>, operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>);
}

/// One operation on one file, owned by whoever carries it out.
pub struct Request {
    open: Option<Open>,
}

struct Open {
    sink: Box<dyn Completion>,
    backing: Backing,
    operation: Operation,
    memory: Option<FrameMemory>,
    is_for_sync: bool,
}

impl Request {
    pub(crate) fn new(
        sink: Box<dyn Completion>,
        backing: Backing,
        operation: Operation,
        memory: Option<FrameMemory>,
    ) -> Self {
        Self { open: Some(Open { sink, backing, operation, memory, is_for_sync: false }) }
    }

    /// Says whether somebody waits for what it writes to be durable ([`Request::is_for_sync`]).
    #[must_use]
    pub fn for_sync(mut self, is_for_sync: bool) -> Self {
        if let Some(open) = &mut self.open {
            open.is_for_sync = is_for_sync;
        }
        self
    }

    /// A request of no engine, to try a device with. A read or write takes its memory from `frames`;
    /// a write carries `bytes`. `done` gets the outcome and the memory's bytes (none for operations
    /// without data), on the thread that completes it.
    ///
    /// # Panics
    /// When `frames` has too few free frames, or a write's length is not that of `bytes`.
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

    /// The same for whoever reads and writes past the cache: `done` gets the memory itself, to copy out of what it
    /// wants (none for operations without data).
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

    /// What is asked for.
    pub fn operation(&self) -> Operation {
        self.open().operation
    }

    /// The file, as the device knows it.
    pub fn backing(&self) -> &Backing {
        &self.open().backing
    }

    /// Of a write: the size that the file has by what was accepted, and that its readers have seen. No write of it
    /// that is in flight ends after that, and it gets no smaller while one is.
    pub fn file_bytes(&self) -> u64 {
        self.open().sink.file_bytes()
    }

    /// Of a write: whether it is made because somebody waits for the file to be durable, so that an
    /// [`Operation::Sync`] follows its end, unless it fails. A device may leave more of the work, and the telling of
    /// what goes wrong, to that.
    pub fn is_for_sync(&self) -> bool {
        self.open().is_for_sync
    }

    /// How many separate pieces of memory the data is in; 0 for operations without data.
    pub fn segment_count(&self) -> usize {
        self.open().memory.as_ref().map_or(0, FrameMemory::segment_count)
    }

    /// How many bytes of each 4 KiB page of the file its memory keeps, from the page's first on: all 4096,
    /// or 16 in a stamped arena, where what was not kept reads as zeros. 4096 for operations without data.
    pub fn kept_bytes(&self) -> usize {
        self.open().memory.as_ref().map_or(afflux_frames::FRAME_BYTES, FrameMemory::kept_bytes)
    }

    /// How many bytes its data is; 0 for operations without data.
    pub fn memory_bytes(&self) -> usize {
        self.open().memory.as_ref().map_or(0, FrameMemory::len)
    }

    /// The pieces of memory, in the order of the file's bytes, as address and length; their lengths
    /// add up to the operation's. They stay valid until the request is completed or dropped: a device
    /// that hands the addresses to the kernel keeps the request until the kernel is done.
    ///
    /// # Panics
    /// When its memory does not keep whole pages.
    pub fn segments(&self) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
        self.open().memory.iter().flat_map(FrameMemory::segments)
    }

    /// Copies the bytes in `range` (relative to the request's offset) of a write out of its memory.
    ///
    /// # Panics
    /// When the range is not inside the request, or `out` has another length.
    pub fn copy_out(&self, range: Range<usize>, out: &mut [u8]) {
        assert_eq!(range.len(), out.len());
        if let Some(memory) = &self.open().memory {
            memory.copy_out(range.start, out);
        }
    }

    /// Copies `bytes` into the memory of a read, at `at` (relative to the request's offset).
    ///
    /// # Panics
    /// When it would pass the request's end, or the request is not a read.
    pub fn copy_in(&mut self, at: usize, bytes: &[u8]) {
        assert!(matches!(self.operation(), Operation::Read { .. }));
        if let Some(memory) = &self.open().memory {
            memory.copy_in(at, bytes);
        }
    }

    /// Copies those bytes of `range` (relative to the request's offset) that are kept into `out`, one after
    /// the other; returns how many these are.
    ///
    /// # Panics
    /// When the range is not inside the request, or `out` is too short.
    pub fn copy_kept_out(&self, range: Range<usize>, out: &mut [u8]) -> usize {
        self.open().memory.as_ref().map_or(0, |memory| memory.copy_kept_out(range, out))
    }

    /// Copies `bytes` to those bytes of `range` (relative to the request's offset) of a read's memory that
    /// are kept; returns how many these are.
    ///
    /// # Panics
    /// When the range is not inside the request, `bytes` is too short, or the request is not a read.
    pub fn copy_kept_in(&mut self, range: Range<usize>, bytes: &[u8]) -> usize {
        assert!(matches!(self.operation(), Operation::Read { .. }));
        self.open().memory.as_ref().map_or(0, |memory| memory.copy_kept_in(range, bytes))
    }

    /// Answers the request. May wake tasks and submit further requests before it returns: call it
    /// with no lock and no borrowed ring.
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
pub struct PastCache(Arc<Arena>);

impl PastCache {
    /// Requests take their memory from these frames.
    pub fn new(frames: Arc<Frames>) -> Self {
        Self(Arc::new(Arena(frames)))
    }
}

struct Probe<F>(F);

impl<F: FnOnce(Result<(), DeviceError>, Option<ProbeMemory>) + Send> Completion for Probe<F> {
    fn completed(self: Box<Self>, _operation: Operation, memory: Option<FrameMemory>, result: Result<(), DeviceError>) {
        (self.0)(result, memory.map(|memory| ProbeMemory(Some(memory))));
    }
}

/// The memory of a request of no engine, after its end. Its frames go back when it is dropped.
pub struct ProbeMemory(Option<FrameMemory>);

impl ProbeMemory {
    /// How many bytes it is.
    #[allow(clippy::len_without_is_empty, reason = "no request with memory is empty")]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, FrameMemory::len)
    }

    /// Its bytes from the first on. What was not kept reads as zeros.
    ///
    /// # Panics
    /// When `out` is longer than it.
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
