//! A request in flight: which system operation comes next, until it is done.
//!
//! Owns: the request, and the vectors and descriptor of the operation in progress; the memory of flights that have
//! ended.
//! Does not own: how the operation is made. A ring or a worker thread asks for the next step and reports its result.
//! Invariants: the request is answered once. A write never makes the file larger than the request says, not even for a
//! moment. Parts that fill no block are written through the host's page cache; a small sync write goes through it as a
//! whole. There are two exceptions, which extend the file to the accepted size first: when several writes make the file
//! longer, and when the host would free reserved space (`DeviceCore::must_end_inside`). The operation for this makes no
//! file smaller, whatever other programs do to the file meanwhile.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use afflux_engine::{DeviceError, FILE_BYTES_MAX, Nanos, Operation, Recycler, Request};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::core::DeviceCore;
use super::file::{DescriptorUse, Growth, HostFile, Path};
use super::write_gate::{WriteGate, WriteGrant, WriteSharing};
use crate::device::blocks::{self, AfterRefusal};
use crate::device::file::error_of;
use crate::pool::{Job, Lane};
use crate::reactor::io::{IOVECS_MAX, IoVec, RingOperation};

/// Times in a row that the host may ask for another try.
const RETRIES_MAX: u32 = 1_000;
const PAGE_BYTES: u64 = 4096;
/// A removed file's space comes back a moment after its name is gone: when its last descriptor is closed, and the
/// host's journal has moved on. A full device is reported after 150 ms of trying.
const SPACE_RETRIES_MAX: u32 = 5;
const SPACE_PAUSE: Duration = Duration::from_millis(10);
/// The most bytes of a new end of a file to write in one piece through the host's page cache. Otherwise whole pages
/// would go past the cache, and the rest would wait for them. From some 400 KiB on the copy takes longer than the wait.
pub(super) const UNCACHED_BYTES_MAX: u32 = 128 << 10;

/// A device's core, for its flights.
pub(super) struct DeviceFlights {
    pub(super) core: DeviceCore,
    /// Flights that have ended, with their memory. A write that relieves a shortage of memory must not allocate.
    spare: Recycler<Box<RequestFlight>>,
}

impl DeviceFlights {
    pub(super) fn new(core: DeviceCore) -> Self {
        Self { spare: Recycler::new(core.limits.depth as usize), core }
    }

    /// Asks the host for its free space in the background, if the last answer is older than `age_ns`.
    pub(super) fn refresh_free_bytes(self: &Arc<Self>, age_ns: u64) {
        if self.core.try_ask_free_bytes(age_ns) {
            self.core.pool.post_job(Arc::clone(self) as _);
        }
    }
}

/// The device's pool runs one job for the device itself: it asks for the free space.
impl Job for DeviceFlights {
    fn run(&self) {
        self.core.ask_free_bytes();
    }
}

/// A request and its progress. Without a request, a flight is pooled for the next one, with its memory.
pub(super) struct RequestFlight {
    request: Option<Request>,
    flights: Option<Arc<DeviceFlights>>,
    /// When the request came, if it is a sync.
    sync_began: Option<Nanos>,
    /// Bytes done; for operations without data, 1 once done.
    done: u64,
    retries: u32,
    /// How often the host had no space to reserve; the next try waits for the space of files removed lately.
    space_retries: u32,
    /// The bytes that a reservation is for, once the host has refused to reserve all of them.
    lacking: Option<Range<u64>>,
    /// Memory and descriptor of the operation in progress.
    iovecs: Vec<IoVec>,
    fd: Option<Arc<OwnedFd>>,
    path: Path,
    /// The write goes in one piece through the host's page cache, which then drops the pages.
    uncached: bool,
    /// The number of the last request that this sync fulfils, if it includes times and mode.
    wholly: Option<u64>,
    /// The size to give the file before the write.
    pub(super) grows_to: Option<u64>,
    /// Dropped last, after the answer: other flights begin then.
    pub(super) grant: Option<WriteGrant>,
}

impl Default for RequestFlight {
    fn default() -> Self {
        Self {
            request: None,
            flights: None,
            sync_began: None,
            done: 0,
            retries: 0,
            space_retries: 0,
            lacking: None,
            iovecs: Vec::new(),
            fd: None,
            path: Path::Buffered,
            uncached: false,
            wholly: None,
            grows_to: None,
            grant: None,
        }
    }
}

// SAFETY: the pointers in `iovecs` are into the request's memory, which moves with it.
unsafe impl Send for RequestFlight {}

/// The next step.
pub(super) enum FlightStep {
    /// This operation; its result goes to [`RequestFlight::advance`]. Its pointers are into the flight.
    Do(RingOperation),
    /// A descriptor must be opened: ask again where blocking is allowed.
    Block,
    /// Nothing: answer the request.
    Answer(Result<(), DeviceError>),
}

impl RequestFlight {
    pub(super) fn new(request: Request, flights: Arc<DeviceFlights>) -> Box<Self> {
        let core = &flights.core;
        let path = if core.is_direct() { Path::Direct } else { Path::Buffered };
        let mut flight = flights.spare.take().unwrap_or_default();
        let sync_began = (request.operation() == Operation::Sync).then(|| core.pace.sync_begins());
        *flight = Self {
            request: Some(request),
            flights: Some(flights),
            sync_began,
            iovecs: std::mem::take(&mut flight.iovecs),
            path,
            ..Self::default()
        };
        flight
    }

    /// The gate of the file and this flight's sharing; none if it needs no grant.
    pub(super) fn sharing(&mut self) -> Option<(Arc<WriteGate>, WriteSharing)> {
        let file = self.file()?;
        if let Operation::Write { .. } = self.operation() {
            file.written();
        }
        match self.operation() {
            Operation::Write { offset, len } if self.core().is_direct() => {
                let end = offset.saturating_add(u64::from(len));
                let whole =
                    len.is_multiple_of(self.core().limits.block_bytes) && file.path(Path::Direct) == Path::Direct;
                let growth = file.growth(end);
                let must_end_inside = growth != Growth::None && self.core().must_end_inside(file);
                let sharing = match growth {
                    _ if must_end_inside => WriteSharing::Alone,
                    Growth::None if whole => WriteSharing::Together,
                    Growth::WholePages if whole && self.core().grows_files && file.may_grow() => WriteSharing::Longer,
                    Growth::WholePages if whole => WriteSharing::Together,
                    _ => WriteSharing::Alone,
                };
                let gate = Arc::clone(file.gate());
                self.uncached = growth == Growth::WithinAPage && self.is_new_end(file.size_seen());
                self.grows_to = must_end_inside.then(|| end.max(self.request().file_bytes()));
                Some((gate, sharing))
            }
            Operation::SetSize { size } => {
                file.resized(size);
                None
            }
            _ => None,
        }
    }

    /// True for a sync that appends some whole pages and a partial page to a file of `size` bytes. Then no page has to
    /// be read before the write, and the sync brings the file to the device in one piece.
    fn is_new_end(&self, size: u64) -> bool {
        let Operation::Write { offset, len } = self.operation() else { return false };
        let is_small = (PAGE_BYTES..=u64::from(UNCACHED_BYTES_MAX)).contains(&u64::from(len));
        let ends_inside = offset.is_multiple_of(PAGE_BYTES) && !u64::from(len).is_multiple_of(PAGE_BYTES);
        self.core().may_write_uncached() && self.request().is_for_sync() && is_small && ends_inside && size <= offset
    }

    /// Whether the thread that begins this read may have to wait for the device.
    pub(super) fn may_read_wait(&self) -> bool {
        self.file().is_some_and(HostFile::take_first_read) || self.core().pace.is_slow()
    }

    fn core(&self) -> &DeviceCore {
        &self.flights().core
    }

    pub(super) fn flights(&self) -> &Arc<DeviceFlights> {
        self.flights.as_ref().unwrap_or_else(|| unreachable!("a flight without a request goes nowhere"))
    }

    pub(super) fn request(&self) -> &Request {
        self.request.as_ref().unwrap_or_else(|| unreachable!("it is answered once"))
    }

    pub(super) fn operation(&self) -> Operation {
        self.request().operation()
    }

    /// The number of bytes that the request moves.
    pub(super) fn moves_bytes(&self) -> u32 {
        match self.operation() {
            Operation::Read { len, .. } | Operation::Write { len, .. } => len,
            _ => 0,
        }
    }

    /// The end of the bytes to write; 0 if the request writes none.
    pub(super) fn end(&self) -> u64 {
        match self.operation() {
            Operation::Write { offset, len } => offset.saturating_add(u64::from(len)),
            _ => 0,
        }
    }

    /// Answers the request.
    pub(super) fn answer(mut self: Box<Self>, result: Result<(), DeviceError>) {
        let end = self.end();
        if let (Some(grant), Ok(())) = (&mut self.grant, result) {
            grant.wrote(end);
        }
        if let (Some(wanted), Some(file), Ok(())) = (self.wholly, self.file(), result) {
            file.note_metadata_synced(wanted);
        }
        self.core().pace.end(self.sync_began);
        self.let_go_descriptor();
        if let Some(request) = self.request.take() {
            request.complete(result);
        }
        self.grant = None;
        if let Some(flights) = self.flights.take() {
            self.iovecs.clear();
            flights.spare.try_keep(self);
        }
    }

    /// Ends the use of the descriptor while the request still has the file. The file may have got another descriptor
    /// meanwhile: then this was the last use, and the device's own threads close it.
    fn let_go_descriptor(&mut self) {
        if let Some(last) = self.fd.take().and_then(Arc::into_inner) {
            self.core().pool.post(move || drop(last));
        }
    }

    /// The next step. If it `may_block`, it opens descriptors itself.
    pub(super) fn next(&mut self, may_block: bool) -> FlightStep {
        match self.try_next(may_block) {
            Ok(step) => step,
            Err(error) => FlightStep::Answer(Err(error)),
        }
    }

    fn try_next(&mut self, may_block: bool) -> Result<FlightStep, DeviceError> {
        let operation = self.operation();
        let end = match operation {
            Operation::Read { offset, len } | Operation::Write { offset, len } => {
                if self.done == u64::from(len) {
                    return Ok(FlightStep::Answer(Ok(())));
                }
                offset.checked_add(u64::from(len))
            }
            Operation::SetSize { size } => Some(size),
            Operation::Punch { offset, len } | Operation::Reserve { offset, len } => {
                if len == 0 {
                    return Ok(FlightStep::Answer(Ok(())));
                }
                offset.checked_add(len)
            }
            Operation::Sync => Some(0),
        };
        if end.is_none_or(|end| end > FILE_BYTES_MAX) {
            return Err(DeviceError::TooLarge);
        }
        if self.done > 0 && !matches!(operation, Operation::Read { .. } | Operation::Write { .. }) {
            return Ok(FlightStep::Answer(Ok(())));
        }
        if self.space_retries > 0 {
            if !may_block {
                return Ok(FlightStep::Block);
            }
            std::thread::sleep(SPACE_PAUSE * self.space_retries);
        }
        let len = self.lay_out(operation);
        let Some(fd) = self.descriptor(operation, may_block)? else { return Ok(FlightStep::Block) };
        if let Some(size) = self.grows_to {
            // Allocates the last page alone: the other pages get their space from their writes. Unlike setting the
            // size, this cuts nothing off if another program has made the file longer since.
            let offset = size.saturating_sub(1) / PAGE_BYTES * PAGE_BYTES;
            return Ok(FlightStep::Do(RingOperation::Allocate {
                fd,
                mode: 0,
                offset,
                len: size - offset,
                plain: self.is_plain(),
            }));
        }
        self.cut(len);
        if operation == Operation::Sync {
            self.wholly = self.file().and_then(HostFile::pending_metadata_sync);
        }
        let (iovecs, count) = (self.iovecs.as_ptr(), self.iovecs.len() as u32);
        let (done, plain) = (self.done, self.is_plain());
        let punch = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE;
        let mut reserve = FallocateFlags::KEEP_SIZE;
        reserve.set(FallocateFlags::UNSHARE_RANGE, self.core().unshares);
        Ok(FlightStep::Do(match operation {
            Operation::Read { offset, .. } => {
                RingOperation::ReadV { fd, iovecs, count, offset: offset + done, may_wait: false }
            }
            Operation::Write { offset, .. } if self.uncached => {
                RingOperation::WriteUncached { fd, iovecs, count, offset: offset + done, may_wait: true, plain }
            }
            Operation::Write { offset, .. } => {
                RingOperation::WriteV { fd, iovecs, count, offset: offset + done, may_wait: true, plain }
            }
            Operation::Sync => RingOperation::Sync { fd, data_only: self.wholly.is_none() },
            Operation::SetSize { size } => RingOperation::SetSize { fd, size },
            Operation::Punch { offset, len } => RingOperation::Allocate { fd, mode: punch.bits(), offset, len, plain },
            Operation::Reserve { offset, len } => {
                let Range { start: offset, end } = self.lacking.clone().unwrap_or(offset..offset + len);
                RingOperation::Allocate { fd, mode: reserve.bits(), offset, len: end - offset, plain }
            }
        }))
    }

    /// Whether the plain user makes it: for a server of others' files, unless root alone may write the file.
    fn is_plain(&self) -> bool {
        self.core().is_of_users && !self.file().is_some_and(HostFile::is_roots)
    }

    /// For the threads of its device: a request waits at most for others of its file.
    pub(super) fn lane(&self) -> Lane {
        Lane { object: self.file().map(|file| std::ptr::from_ref(file).addr() as u64), user: None }
    }

    fn file(&self) -> Option<&HostFile> {
        self.request().backing().get::<HostFile>()
    }

    fn refuse_direct(&self) {
        if let Some(file) = self.file() {
            file.refuse_direct();
        }
    }

    /// Decides the path of the next operation and collects its memory. Returns the number of bytes for the operation.
    fn lay_out(&mut self, operation: Operation) -> u64 {
        self.iovecs.clear();
        let (offset, len, is_write) = match operation {
            Operation::Read { offset, len } => (offset, u64::from(len), false),
            Operation::Write { offset, len } => (offset, u64::from(len), true),
            _ => return 0,
        };
        if self.core().is_direct() {
            self.path = Path::Direct;
        }
        if let Some(file) = self.file() {
            self.path = file.path(self.path);
        }
        let mut skip = self.done;
        let request = self.request.as_ref().unwrap_or_else(|| unreachable!("it is answered once"));
        for (start, bytes) in request.segments() {
            let bytes = bytes as u64;
            if skip >= bytes {
                skip -= bytes;
                continue;
            }
            let (start, bytes) = (start.wrapping_add(skip as usize), (bytes - skip) as usize);
            skip = 0;
            match self.iovecs.last_mut() {
                Some(last) if last.start.wrapping_add(last.len) == start => last.len += bytes,
                _ => self.iovecs.push(IoVec { start, len: bytes }),
            }
        }
        if self.uncached {
            self.path = Path::Buffered;
        }
        if self.path == Path::Buffered {
            return len - self.done;
        }
        // The part that ends on a block boundary; the rest goes the other path. This part is whole pages, so that no
        // page of the file is written on both paths in one request.
        let block = u64::from(self.core().limits.block_bytes);
        let whole = if len.is_multiple_of(block) { len } else { whole_pages(offset, len) };
        if whole <= self.done || !self.is_aligned(offset + self.done, whole - self.done) {
            self.path = Path::Buffered;
            return len - self.done;
        }
        debug_assert!(is_write || whole == len, "reads are whole blocks");
        whole - self.done
    }

    /// Whether the next `len` bytes can be moved past the host's page cache.
    fn is_aligned(&self, offset: u64, len: u64) -> bool {
        let block = self.core().limits.block_bytes as usize;
        let mut left = len as usize;
        offset.is_multiple_of(block as u64)
            && self.iovecs.iter().all(|iovec| {
                let bytes = iovec.len.min(left);
                left -= bytes;
                bytes.is_multiple_of(block)
                    && (bytes == 0 || (iovec.start as usize).is_multiple_of(self.core().memory_align))
            })
    }

    /// Shortens the vectors to `len` bytes and to as many pieces as one call takes.
    fn cut(&mut self, len: u64) {
        let mut left = len as usize;
        let mut pieces = 0;
        for iovec in &mut self.iovecs {
            if left == 0 || pieces == IOVECS_MAX {
                break;
            }
            iovec.len = iovec.len.min(left);
            left -= iovec.len;
            pieces += 1;
        }
        self.iovecs.truncate(pieces);
    }

    /// The descriptor of the next operation; `None` if it must be opened first and this may not block.
    fn descriptor(&mut self, operation: Operation, may_block: bool) -> Result<Option<i32>, DeviceError> {
        let Some(file) = self.file() else {
            return Err(error_of(Errno::BADF.raw_os_error()));
        };
        let mut path = self.path;
        let (opened, wanted) = match operation {
            Operation::Read { .. } => (file.opened(path, DescriptorUse::Read), DescriptorUse::Read),
            Operation::Write { .. } => (file.opened(path, DescriptorUse::Write), DescriptorUse::Write),
            Operation::Sync => (file.opened_for_sync(), DescriptorUse::Read),
            _ => (file.opened_for_change(), DescriptorUse::Write),
        };
        if opened.is_none() && !may_block {
            return Ok(None);
        }
        if !matches!(operation, Operation::Read { .. } | Operation::Write { .. }) {
            path = Path::Buffered;
        }
        let fd = match opened {
            Some(fd) => fd,
            None => match file.open(path, wanted)? {
                Some(fd) => fd,
                None => {
                    path = Path::Buffered;
                    file.open(path, wanted)?.ok_or(DeviceError::Lost)?
                }
            },
        };
        self.path = path;
        let number = fd.as_raw_fd();
        self.let_go_descriptor();
        self.fd = Some(fd);
        Ok(Some(number))
    }

    /// Takes the result of the last step's operation: a count, or a negated errno.
    pub(super) fn advance(&mut self, result: i32) -> Result<(), DeviceError> {
        if let Some(size) = self.grows_to.take() {
            self.grown(size, result);
            return Ok(());
        }
        let operation = self.operation();
        if result < 0 {
            return self.failed(operation, -result);
        }
        self.retries = 0;
        let count = result as u64;
        let block = u64::from(self.core().limits.block_bytes);
        match operation {
            Operation::Read { len, .. } => {
                self.done += count;
                // An empty read, or one that ends within a block, has reached the file's end.
                let end = count == 0 || (self.path == Path::Direct && !self.done.is_multiple_of(block));
                if end {
                    self.fill_with_zeros(u64::from(len));
                }
            }
            Operation::Write { .. } => {
                if count == 0 {
                    return Err(DeviceError::Io { errno: 0 });
                }
                let before = self.done;
                self.done += count;
                if self.path == Path::Direct {
                    self.done -= self.done % block;
                    // A part of a block cannot be continued past the page cache.
                    if self.done == before {
                        self.refuse_direct();
                    }
                }
            }
            Operation::Reserve { .. } => {
                self.file().into_iter().for_each(HostFile::reserved);
                self.reserved();
            }
            _ => self.done = 1,
        }
        Ok(())
    }

    /// The file was made longer, or the host refused; then this write makes it as long as it needs itself.
    fn grown(&mut self, size: u64, result: i32) {
        if result >= 0 {
            if let Some(grant) = &mut self.grant {
                grant.grown(size);
            }
        } else if matches!(Errno::from_raw_os_error(-result), Errno::OPNOTSUPP | Errno::NOSYS)
            && let Some(file) = self.file()
        {
            file.refuse_growth();
        }
    }

    /// The host has reserved what it was asked for. Bytes behind these that have no blocks are asked for next.
    fn reserved(&mut self) {
        let (Operation::Reserve { offset, len }, Some(fd)) = (self.operation(), &self.fd) else { return };
        let whole = offset..offset + len;
        self.lacking = self
            .lacking
            .take()
            .and_then(|asked| blocks::after_success(&asked, &whole, |range| blocks::first_lacking(fd.as_fd(), range)));
        self.done = u64::from(self.lacking.is_none());
    }

    /// Whether a refused reservation was for more bytes than have no blocks: the host may refuse to reserve bytes that
    /// have blocks. Then a try with fewer bytes follows, or all have blocks.
    fn try_ask_for_less(&mut self) -> bool {
        let (Operation::Reserve { offset, len }, Some(fd)) = (self.operation(), &self.fd) else { return false };
        if !self.core().writes_in_place {
            return false;
        }
        let whole = offset..offset + len;
        let asked = self.lacking.clone().unwrap_or(whole.clone());
        match blocks::after_refusal(&asked, &whole, |range| blocks::first_lacking(fd.as_fd(), range)) {
            AfterRefusal::Less(lacking) => self.lacking = Some(lacking),
            AfterRefusal::AllHaveBlocks => (self.lacking, self.done) = (None, 1),
            AfterRefusal::NoSpace => return false,
        }
        true
    }

    fn failed(&mut self, operation: Operation, errno: i32) -> Result<(), DeviceError> {
        let moves_data = matches!(operation, Operation::Read { .. } | Operation::Write { .. });
        match Errno::from_raw_os_error(errno) {
            Errno::INTR | Errno::AGAIN if self.retries < RETRIES_MAX => {
                self.retries += 1;
                Ok(())
            }
            // The kernel does not know the flag or the call, or a filter forbids the call.
            Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM if self.uncached => {
                self.uncached = false;
                self.core().refuse_uncached();
                Ok(())
            }
            Errno::INVAL | Errno::OPNOTSUPP if moves_data && self.path == Path::Direct => {
                self.refuse_direct();
                Ok(())
            }
            Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV
                if matches!(operation, Operation::Punch { .. } | Operation::Reserve { .. }) =>
            {
                if let Operation::Reserve { .. } = operation {
                    self.core().reserves_nothing();
                }
                Err(DeviceError::Unsupported)
            }
            Errno::NOSPC | Errno::DQUOT if self.try_ask_for_less() => Ok(()),
            Errno::NOSPC
                if matches!(operation, Operation::Reserve { .. }) && self.space_retries < SPACE_RETRIES_MAX =>
            {
                self.space_retries += 1;
                Ok(())
            }
            // The host may need a block for its list of extents, and find none. It writes zeros then, to have fewer
            // extents: one part of them at each try.
            Errno::NOSPC | Errno::DQUOT
                if moves_data
                    && self.file().is_some_and(|file| self.core().must_end_inside(file))
                    && self.space_retries < SPACE_RETRIES_MAX =>
            {
                self.space_retries += 1;
                Ok(())
            }
            _ => Err(error_of(errno)),
        }
    }

    fn fill_with_zeros(&mut self, len: u64) {
        static ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];
        while self.done < len {
            let count = (len - self.done).min(PAGE_BYTES);
            if let Some(request) = &mut self.request {
                request.copy_in(self.done as usize, &ZEROS[..count as usize]);
            }
            self.done += count;
        }
    }
}

/// The number of bytes out of `len` at `offset` that come before the last partial page.
fn whole_pages(offset: u64, len: u64) -> u64 {
    let end = offset + len;
    (end - end % PAGE_BYTES).saturating_sub(offset)
}
