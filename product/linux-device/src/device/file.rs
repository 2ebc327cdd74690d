//! A host file as a device knows it: one descriptor was given, and requests open others as needed.
//!
//! Owns: the descriptors of one file, until the file's last user is gone or takes them back; the count of further
//! descriptors that the files of a pool have opened; the meaning of the host's error numbers.
//! Does not own: names and identity (the opener of the file), the bytes to read or write.
//! Invariants: the first write to a file opens it for writing. A descriptor in use by the kernel stays open, since the
//! request holds a reference. A descriptor that a writer has retained stays open, too. The last user of a tree's file
//! never closes its descriptors.

mod spare_descriptors;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use afflux_engine::DeviceError;
use rustix::fs::{CWD, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;

use crate::device::file::spare_descriptors::{SpareMember, SpareOwner};
use crate::device::write_gate::WriteGate;
use crate::pool::WorkerPool;
use crate::reopen::{make_read_only, open_without_waiting};

pub use self::spare_descriptors::SpareDescriptors;

const PAGE_BYTES: u64 = 4096;

/// The operation that needs a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DescriptorUse {
    Read,
    Write,
}

/// Whether the host's page cache is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Path {
    Direct,
    Buffered,
}

/// The effect of a write on the size of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Growth {
    /// Nothing.
    None,
    /// It makes the file larger; the old end and the new one are pages' ends.
    WholePages,
    /// It makes the file larger, and the old end or the new one lies inside a page.
    WithinAPage,
}

/// The writes for which a descriptor is open and stays open: none, writes of whole blocks, or all.
const CARRIES_NONE: u8 = 0;
const CARRIES_BLOCKS: u8 = 1;
const CARRIES_ALL: u8 = 2;

/// An open host file. `Backing` wraps one for a [`HostDevice`](crate::HostDevice).
pub struct HostFile {
    descriptors: Mutex<Descriptors>,
    /// The pool that counts the descriptors this file opens itself.
    spare: Option<SpareMember>,
    /// The pool whose threads close the descriptors after the last use; none lets the last user close them.
    closes: Option<WorkerPool>,
    gate: Arc<WriteGate>,
    /// The writes that are possible whatever happens to the process's other descriptors.
    carries: AtomicU8,
    /// The host's file has at least this size, unless another program cut it.
    size_seen: AtomicU64,
    growth_refused: AtomicBool,
    /// The host does not take O_DIRECT for this file.
    direct_refused: AtomicBool,
    /// Space was reserved for bytes of it.
    has_reserved: AtomicBool,
    /// Root alone may write it: its bytes may take blocks that the file system reserves for root.
    roots: AtomicBool,
    /// It has been read since its last write.
    was_read: AtomicBool,
    /// Requests so far to make times and mode durable with the bytes.
    wholly_wanted: AtomicU64,
    /// The last of these requests that a sync has fulfilled.
    wholly_synced: AtomicU64,
}

#[derive(Default)]
struct Descriptors {
    /// The other descriptors are opened through this one; none while the file is not lent to the device.
    given: Option<Arc<OwnedFd>>,
    direct: Option<Descriptor>,
    buffered: Option<Descriptor>,
}

/// Descriptors taken from a file. Dropping this closes them, which may take the host long.
pub struct RevokedDescriptors(Descriptors);

impl RevokedDescriptors {
    /// The descriptor that the file was given.
    pub fn given(&self) -> Option<&OwnedFd> {
        self.0.given.as_deref()
    }
}

#[derive(Clone)]
struct Descriptor {
    fd: Arc<OwnedFd>,
    writable: bool,
    /// Opened here: it can be closed and opened anew.
    is_spare: bool,
}

/// A descriptor for a file, and the requests that it can carry out.
pub struct LentDescriptor {
    fd: Arc<OwnedFd>,
    /// The path of its requests, and whether it can write; none if it only serves to open others.
    carries: Option<(Path, bool)>,
}

impl LentDescriptor {
    /// A descriptor that other code opened, in any way, also with O_PATH. Its flags stay as they are.
    pub fn of_others(fd: impl Into<Arc<OwnedFd>>) -> Self {
        let fd = fd.into();
        // With O_NONBLOCK the ring answers 'try again' instead of waiting.
        let unusable = OFlags::PATH | OFlags::APPEND | OFlags::NONBLOCK;
        let flags = fcntl_getfl(&*fd).ok().filter(|flags| !flags.intersects(unusable));
        let carries = flags.and_then(|flags| {
            let path = if flags.contains(OFlags::DIRECT) { Path::Direct } else { Path::Buffered };
            match flags & OFlags::RWMODE {
                OFlags::RDWR => Some((path, true)),
                OFlags::RDONLY => Some((path, false)),
                _ => None,
            }
        });
        Self { fd, carries }
    }

    /// A descriptor that no other code has, `writable` or for reads only. It gets the flags for requests that go past
    /// the host's page cache, if they can, and no O_NONBLOCK, with which the ring would not wait.
    pub(super) fn prepared(fd: OwnedFd, writable: bool, past_cache: bool) -> Self {
        let set = |flags| fcntl_setfl(&fd, flags).is_ok();
        let path = match past_cache && set(OFlags::DIRECT) {
            true => Some(Path::Direct),
            false => set(OFlags::empty()).then_some(Path::Buffered),
        };
        Self { carries: path.map(|path| (path, writable)), fd: Arc::new(fd) }
    }
}

impl AsFd for LentDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Descriptors {
    /// The uses of a descriptor that was given to us.
    fn of(lent: LentDescriptor) -> Self {
        let given = lent.fd;
        let mut descriptors = Self { given: Some(Arc::clone(&given)), ..Self::default() };
        match lent.carries.map(|(path, writable)| (path, Descriptor { fd: given, writable, is_spare: false })) {
            Some((Path::Direct, found)) => descriptors.direct = Some(found),
            Some((Path::Buffered, found)) => descriptors.buffered = Some(found),
            None => {}
        }
        descriptors
    }

    /// Takes out descriptors that can be opened anew. Descriptors in use by a request or retained by a writer stay.
    fn take_spare(&mut self, carries: u8) -> Vec<Arc<OwnedFd>> {
        let idle = |found: &mut Descriptor| found.is_spare && Arc::strong_count(&found.fd) == 1;
        let (direct, buffered) = (&mut self.direct, &mut self.buffered);
        let closable = [Some(direct), Some(buffered).filter(|_| carries < CARRIES_ALL)];
        closable.into_iter().flatten().filter_map(|place| place.take_if(idle)).map(|it| it.fd).collect()
    }

    /// The writes that the given descriptor can carry out; it stays open.
    fn carries(&self, is_direct_refused: bool) -> u8 {
        let has = |place: &Option<Descriptor>| place.as_ref().is_some_and(|found| found.writable && !found.is_spare);
        match () {
            () if has(&self.buffered) => CARRIES_ALL,
            () if has(&self.direct) && !is_direct_refused => CARRIES_BLOCKS,
            () => CARRIES_NONE,
        }
    }

    fn spare_count(&self) -> usize {
        [&self.direct, &self.buffered].into_iter().flatten().filter(|found| found.is_spare).count()
    }
}

impl HostFile {
    /// The regular file behind `fd`, which may be open in any way, also with O_PATH. Other
    /// descriptors for it are opened through /proc when requests need them.
    pub fn new(fd: OwnedFd) -> Self {
        Self::with(Some(LentDescriptor::of_others(fd)), None, None)
    }

    /// A file of a tree of names, as [`HostFile::new`] and [`HostFile::pooled`], with a descriptor that others use,
    /// too. The last user of the file may be a thread that must not wait for the host: `closes` waits for it.
    pub fn of_tree(spare: &Arc<SpareDescriptors>, closes: &WorkerPool, fd: Arc<OwnedFd>) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Self>| {
            let me: Weak<Self> = me.clone();
            Self::with(Some(LentDescriptor::of_others(fd)), Some(SpareMember::new(spare, me)), Some(closes.clone()))
        })
    }

    /// A file without a descriptor; [`HostFile::lend`] gives it one. `pool` counts the descriptors that the file opens
    /// itself, and closes some when there are too many.
    pub fn pooled(pool: &Arc<SpareDescriptors>) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Self>| {
            let me: Weak<Self> = me.clone();
            Self::with(None, Some(SpareMember::new(pool, me)), None)
        })
    }

    fn with(lent: Option<LentDescriptor>, spare: Option<SpareMember>, closes: Option<WorkerPool>) -> Self {
        Self {
            descriptors: Mutex::new(lent.map(Descriptors::of).unwrap_or_default()),
            spare,
            closes,
            gate: Arc::default(),
            carries: AtomicU8::new(CARRIES_NONE),
            size_seen: AtomicU64::new(0),
            growth_refused: AtomicBool::new(false),
            direct_refused: AtomicBool::new(false),
            has_reserved: AtomicBool::new(false),
            roots: AtomicBool::new(false),
            was_read: AtomicBool::new(false),
            wholly_wanted: AtomicU64::new(0),
            wholly_synced: AtomicU64::new(0),
        }
    }

    /// Sets a fixed and known size. A block device needs this, since the host would report 0.
    pub fn note_size(&self, bytes: u64) {
        self.size_seen.store(bytes, Ordering::Relaxed);
    }

    /// Requests that a sync makes the file's current times and mode durable with its bytes. The next sync that reaches
    /// the host does so ([`HostFile::is_metadata_synced`]). Returns the number of this request.
    pub fn request_metadata_sync(&self) -> u64 {
        self.wholly_wanted.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether a sync since that request has made times and mode durable. No sync has if there were no bytes to make
    /// durable, or if it failed.
    pub fn is_metadata_synced(&self, wanted: u64) -> bool {
        self.wholly_synced.load(Ordering::SeqCst) >= wanted
    }

    /// The last request, if no completed sync has fulfilled it.
    pub(super) fn pending_metadata_sync(&self) -> Option<u64> {
        let wanted = self.wholly_wanted.load(Ordering::SeqCst);
        (!self.is_metadata_synced(wanted)).then_some(wanted)
    }

    /// Records a completed sync that began after that request.
    pub(super) fn note_metadata_synced(&self, wanted: u64) {
        self.wholly_synced.fetch_max(wanted, Ordering::SeqCst);
    }

    /// Gives the file a descriptor in place of the one it has, if any. Both refer to the same file; requests in flight
    /// go on with the old descriptor.
    pub fn lend(&self, lent: LentDescriptor) {
        let new = Descriptors::of(lent);
        let mut descriptors = self.lock();
        if descriptors.given.is_none() {
            // Another program may have cut the file while we had no descriptor.
            self.size_seen.store(0, Ordering::Relaxed);
        }
        self.carries.store(new.carries(self.is_direct_refused()), Ordering::SeqCst);
        let old = std::mem::replace(&mut *descriptors, new);
        drop(descriptors);
        self.closed(old.spare_count());
    }

    /// Takes all its descriptors, which the caller closes; those in use close after their last use. Requests fail from
    /// now on, until the file is lent another descriptor. Does not block.
    #[must_use = "they are closed where this is dropped, which may block"]
    pub fn take_back(&self) -> RevokedDescriptors {
        let mut descriptors = self.lock();
        self.carries.store(CARRIES_NONE, Ordering::SeqCst);
        let old = std::mem::take(&mut *descriptors);
        drop(descriptors);
        self.closed(old.spare_count());
        RevokedDescriptors(old)
    }

    /// Whether a program lends it its descriptor.
    fn is_lent(&self) -> bool {
        self.spare.is_some() && self.closes.is_none()
    }

    fn closed(&self, count: usize) {
        if let Some(spare) = &self.spare {
            spare.closed(count);
        }
    }

    /// Whether a descriptor is open and stays open for all writes, or for all that fill whole blocks. Takes no lock.
    pub(super) fn has_retained_writable(&self, in_blocks: bool) -> bool {
        self.carries.load(Ordering::SeqCst) >= if in_blocks { CARRIES_BLOCKS } else { CARRIES_ALL }
    }

    /// Retains the descriptor for all writes, if it is open. Returns whether it is.
    pub fn try_keep_writable(&self) -> bool {
        let descriptors = self.lock();
        let is_open = descriptors.buffered.as_ref().is_some_and(|found| found.writable);
        if is_open {
            self.carries.store(CARRIES_ALL, Ordering::SeqCst);
        }
        is_open
    }

    /// Opens a descriptor for all writes, and retains it. Blocks.
    ///
    /// # Errors
    /// The host's errors. If descriptors are short, it first closes all that can be opened anew, and tries again.
    pub fn open_writable(&self) -> std::io::Result<()> {
        // While this reference lives, the pool does not close it again.
        let _opened = self.try_open(Path::Buffered, DescriptorUse::Write)?;
        self.try_keep_writable();
        Ok(())
    }

    /// Lets the pool close the descriptor that a writer has retained. If `is_needed` then returns true, the file
    /// retains it after all.
    pub fn unkeep_writable(&self, is_needed: impl FnOnce() -> bool) {
        let descriptors = self.lock();
        let kept = self.carries.swap(descriptors.carries(self.is_direct_refused()), Ordering::SeqCst);
        // From here on, `has_retained_writable` finds nothing retained.
        if is_needed() {
            self.carries.store(kept, Ordering::SeqCst);
        }
    }

    /// Closes what is open for writing. The next writer lends the file a descriptor that can write. Blocks.
    pub fn stop_writing(&self) -> Result<(), Errno> {
        let Some(given) = self.given() else { return Ok(()) };
        make_read_only(&given)?;
        self.lend(LentDescriptor::of_others(given));
        Ok(())
    }

    /// The descriptor that the file was given.
    pub fn given(&self) -> Option<Arc<OwnedFd>> {
        self.lock().given.clone()
    }

    pub(super) fn gate(&self) -> &Arc<WriteGate> {
        &self.gate
    }

    /// Notes owner and mode, as the host has them. An access control list that lets others write shows in the group's
    /// bits.
    pub fn note_owner(&self, uid: u32, mode: u32) {
        self.roots.store(uid == 0 && mode & 0o022 == 0, Ordering::Relaxed);
    }

    /// Whether root alone may write it, as last noted.
    pub fn is_roots(&self) -> bool {
        self.roots.load(Ordering::Relaxed)
    }

    /// Whether this is the first read since the last write. For such a read the host changes the file's access time,
    /// and looks up where the file's blocks are.
    pub(super) fn take_first_read(&self) -> bool {
        !self.was_read.load(Ordering::Relaxed) && !self.was_read.swap(true, Ordering::Relaxed)
    }

    /// A write begins.
    pub(super) fn written(&self) {
        if self.was_read.load(Ordering::Relaxed) {
            self.was_read.store(false, Ordering::Relaxed);
        }
    }

    /// The effect of a write up to `end` on the file's size. Asks the host, without blocking, if the file is not known
    /// to be large enough.
    pub(super) fn growth(&self, end: u64) -> Growth {
        if end <= self.size_seen.load(Ordering::Relaxed) {
            return Growth::None;
        }
        let Some(given) = self.given() else { return Growth::WithinAPage };
        let Ok(stat) = fstat(&given) else { return Growth::WithinAPage };
        let size = stat.st_size as u64;
        self.size_seen.store(size, Ordering::Relaxed);
        match end {
            _ if end <= size => Growth::None,
            _ if size.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES) => Growth::WholePages,
            _ => Growth::WithinAPage,
        }
    }

    /// The host file's size as of the last question or change, unless another program has cut it since.
    pub(super) fn size_seen(&self) -> u64 {
        self.size_seen.load(Ordering::Relaxed)
    }

    /// The file is about to get this size.
    pub(super) fn resized(&self, size: u64) {
        self.size_seen.fetch_min(size, Ordering::Relaxed);
    }

    /// Space was reserved for bytes of it.
    pub(super) fn reserved(&self) {
        self.has_reserved.store(true, Ordering::Relaxed);
    }

    /// Whether space was ever reserved for bytes of it.
    pub(super) fn has_reserved(&self) -> bool {
        self.has_reserved.load(Ordering::Relaxed)
    }

    /// Whether the file can be made longer ahead of writes, as far as is known.
    pub(super) fn may_grow(&self) -> bool {
        !self.growth_refused.load(Ordering::Relaxed)
    }

    /// The host cannot make the file longer ahead of writes.
    pub(super) fn refuse_growth(&self) {
        self.growth_refused.store(true, Ordering::Relaxed);
    }

    /// The file's current path on this host, for people. The path of a file without a name says so.
    pub fn host_path(&self) -> Option<std::path::PathBuf> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.given()?.as_raw_fd())).ok()?;
        path.is_absolute().then_some(path)
    }

    fn lock(&self) -> MutexGuard<'_, Descriptors> {
        self.descriptors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path that a request for `wanted` takes.
    pub(super) fn path(&self, wanted: Path) -> Path {
        if self.is_direct_refused() { Path::Buffered } else { wanted }
    }

    /// Says that the host does not take O_DIRECT for this file.
    pub(super) fn refuse_direct(&self) {
        self.direct_refused.store(true, Ordering::Relaxed);
    }

    fn is_direct_refused(&self) -> bool {
        self.direct_refused.load(Ordering::Relaxed)
    }

    /// A descriptor that is open already.
    pub(super) fn opened(&self, path: Path, wanted: DescriptorUse) -> Option<Arc<OwnedFd>> {
        let descriptors = self.lock();
        let descriptor = match path {
            Path::Direct => &descriptors.direct,
            Path::Buffered => &descriptors.buffered,
        };
        let usable = descriptor.as_ref().filter(|found| wanted == DescriptorUse::Read || found.writable);
        usable.map(|found| Arc::clone(&found.fd))
    }

    /// A descriptor that is open already and goes past the host's page cache.
    pub(super) fn opened_past_cache(&self, wanted: DescriptorUse) -> Option<Arc<OwnedFd>> {
        if self.is_direct_refused() { None } else { self.opened(Path::Direct, wanted) }
    }

    /// A descriptor for a sync: if possible one that wrote the bytes, since the host reports write errors to that one.
    pub(super) fn opened_for_sync(&self) -> Option<Arc<OwnedFd>> {
        let descriptors = self.lock();
        let writable = [&descriptors.buffered, &descriptors.direct].into_iter().flatten().find(|found| found.writable);
        writable.or(descriptors.buffered.as_ref()).map(|found| Arc::clone(&found.fd))
    }

    /// Any descriptor that can change the file.
    pub(super) fn opened_for_change(&self) -> Option<Arc<OwnedFd>> {
        self.opened(Path::Buffered, DescriptorUse::Write).or_else(|| self.opened(Path::Direct, DescriptorUse::Write))
    }

    /// Opens a descriptor, or finds it open. May block. `None` is 'take the buffered path instead'.
    pub(super) fn open(&self, path: Path, wanted: DescriptorUse) -> Result<Option<Arc<OwnedFd>>, DeviceError> {
        self.try_open(path, wanted).map_err(|error| error_of(error.raw_os_error()))
    }

    fn try_open(&self, path: Path, wanted: DescriptorUse) -> Result<Option<Arc<OwnedFd>>, Errno> {
        if let Some(fd) = self.opened(path, wanted) {
            return Ok(Some(fd));
        }
        let access = if wanted == DescriptorUse::Write { OFlags::RDWR } else { OFlags::RDONLY };
        let direct = if path == Path::Direct { OFlags::DIRECT } else { OFlags::empty() };
        let given = self.given().ok_or(Errno::BADF)?;
        if let Some(spare) = &self.spare {
            spare.close_for_next();
        }
        let opened = || {
            // A client that may write has a writable descriptor open, and meanwhile no other process can hold a lease.
            open_without_waiting(CWD, &format!("/proc/self/fd/{}", given.as_raw_fd()), access | direct)
        };
        match opened() {
            Ok(fd) => {
                let writable = wanted == DescriptorUse::Write;
                Ok(Some(self.keep(path, Descriptor { fd: Arc::new(fd), writable, is_spare: true })))
            }
            Err(Errno::INVAL) if path == Path::Direct => {
                self.refuse_direct();
                Ok(None)
            }
            // A reader that a program has lent the file gets the error: reads through the host's page cache would take
            // twice the memory. A write takes the cache if it can, since the engine has accepted its bytes; so does a
            // reader of a tree's file, whose descriptor is the server's own.
            Err(error @ (Errno::MFILE | Errno::NFILE)) if self.is_lent() && wanted == DescriptorUse::Read => Err(error),
            // Perhaps no open succeeds any more but the given descriptor works: its open checked the permission.
            Err(_) if path == Path::Direct && self.opened(Path::Buffered, wanted).is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn keep(&self, path: Path, new: Descriptor) -> Arc<OwnedFd> {
        let mut descriptors = self.lock();
        let place = match path {
            Path::Direct => &mut descriptors.direct,
            Path::Buffered => &mut descriptors.buffered,
        };
        match place {
            // Another thread was faster.
            Some(found) if found.writable || !new.writable => Arc::clone(&found.fd),
            _ => {
                let fd = Arc::clone(&new.fd);
                let old = place.replace(new);
                drop(descriptors);
                if let Some(spare) = &self.spare
                    && !old.is_some_and(|old| old.is_spare)
                {
                    spare.opened();
                }
                fd
            }
        }
    }
}

impl SpareOwner for HostFile {
    fn close_spare(&self) {
        let closed = self.lock().take_spare(self.carries.load(Ordering::SeqCst));
        self.closed(closed.len());
    }

    fn has_spare(&self) -> bool {
        self.lock().spare_count() > 0
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        let descriptors = std::mem::take(&mut *self.lock());
        self.closed(descriptors.spare_count());
        if let Some(pool) = &self.closes {
            // Bounded by the inodes that the volume caches.
            pool.post_near(move || drop(descriptors));
        }
    }
}

/// A host's error number as the engine knows it.
pub(super) fn error_of(errno: i32) -> DeviceError {
    match Errno::from_raw_os_error(errno) {
        Errno::NOSPC => DeviceError::NoSpace,
        Errno::DQUOT => DeviceError::Quota,
        Errno::FBIG => DeviceError::TooLarge,
        Errno::ROFS => DeviceError::ReadOnly,
        Errno::ACCESS | Errno::PERM | Errno::TXTBSY => DeviceError::Denied,
        Errno::STALE => DeviceError::Stale,
        _ => DeviceError::Io { errno },
    }
}
