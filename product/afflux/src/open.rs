//! Opening a host's file in the cache.
//!
//! Owns: the options, the opening on the host, the kinds of files that are accepted.
//! Does not own: the file's identity in the cache (`files`), its device (`devices`).
//! Invariants: opening changes nothing on the host except that it may make a file. The engine carries out `truncate`,
//! since it may have newer bytes than the host. A pipe is refused without waiting for its other end.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use afflux_engine::Platform;
use rustix::fs::{FileType, OFlags, fcntl_getfl, makedev};
use rustix::io::Errno;

use crate::coherence::{EngineSnapshot, Stamp, look_at};
use crate::core::Core;
use crate::devices::{CacheDevice, DeviceNumber};
use crate::error::Error;
use crate::files::{CachedFile, HostFileKey, OpenOutcome, OpenRequest};

use afflux_linux_device::{LentDescriptor, file_system_kind, stores_files};

/// Longest wait of an open for the writing of another file that is in its way. On a device that hangs the wait would
/// never end.
const RELEASE_PATIENCE: Duration = Duration::from_secs(1);

/// How a file is opened, as in [`std::fs::OpenOptions`].
///
/// On the host, a file for writing is opened for reading, too: a partial write of a page reads the rest of the page.
///
/// ```
/// use afflux::{Cache, OpenOptions};
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let cache = Cache::builder().memory(16 << 20).build()?;
/// let path = place.path().join("log");
/// let file = cache.open(&path, OpenOptions::new().read(true).write(true).create(true))?;
/// assert_eq!(file.len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    create: bool,
    create_new: bool,
    pub(crate) truncate: bool,
    mode: u32,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// No rights yet.
    pub fn new() -> Self {
        Self { read: false, write: false, create: false, create_new: false, truncate: false, mode: 0o666 }
    }

    /// Sets whether the handle can read.
    #[must_use]
    pub fn read(mut self, read: bool) -> Self {
        self.read = read;
        self
    }

    /// Sets whether the handle can write.
    #[must_use]
    pub fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Sets whether a missing file is made. Needs `write`.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets whether the file must be new. Needs `write`.
    #[must_use]
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Sets whether the file is cut to 0 bytes, for all its handles in this cache. Needs `write`.
    #[must_use]
    pub fn truncate(mut self, truncate: bool) -> Self {
        self.truncate = truncate;
        self
    }

    /// Sets the mode of a new file, before the process's umask. The default is 0o666.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Refuses options that contradict each other.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let changes = self.create || self.create_new || self.truncate;
        let what = match (self.read, self.write) {
            (_, true) => return Ok(()),
            (true, false) if !changes => return Ok(()),
            (true, false) => "create, create_new and truncate need write",
            (false, false) => "opened neither for reading nor for writing",
        };
        Err(Error::Setting { what: format!("{}: {what}", path.display()) })
    }

    fn opened(&self, path: &Path) -> io::Result<File> {
        let mut options = std::fs::OpenOptions::new();
        options.read(self.read || self.write).write(self.write).create(self.create).create_new(self.create_new);
        // Without NONBLOCK, the open of a pipe would wait for its other end, only to be refused.
        options.mode(self.mode).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
    }
}

/// The rights of a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rights {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// A file that is being opened: its descriptor, and its name for messages.
pub(crate) struct Entering {
    fd: OwnedFd,
    path: PathBuf,
    /// Whether nobody else has the descriptor, so that its flags may be set.
    own: bool,
    pub(crate) rights: Rights,
}

/// An open file, and whether others may have changed it.
pub(crate) struct OpenedFile {
    pub(crate) file: Arc<CachedFile>,
    pub(crate) rights: Rights,
    /// The host's state of a file that was in the cache already.
    pub(crate) look: Option<(EngineSnapshot, Stamp)>,
}

impl Core {
    /// Opens a file on the host. Blocks.
    pub(crate) fn open_path(&self, path: &Path, options: &OpenOptions) -> io::Result<Entering> {
        options.check(path)?;
        let opened = match options.opened(path) {
            Err(error) if error.raw_os_error().is_some_and(is_short) => {
                self.files.spare.close_all();
                options.opened(path)
            }
            result => result,
        };
        let fd: OwnedFd = opened.map_err(|error| self.named(error, path))?.into();
        let rights = Rights { read: options.read, write: options.write };
        Ok(Entering { fd, path: path.to_owned(), own: true, rights })
    }

    /// Takes a descriptor that the caller opened.
    pub(crate) fn open_fd(fd: OwnedFd) -> io::Result<Entering> {
        use std::os::fd::AsRawFd;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
            .unwrap_or_else(|_| format!("descriptor {}", fd.as_raw_fd()).into());
        let flags = fcntl_getfl(&fd)?;
        let (read, write) = match flags & OFlags::RWMODE {
            OFlags::RDWR => (true, true),
            OFlags::RDONLY if !flags.contains(OFlags::PATH) => (true, false),
            _ => return Err(Error::NotOpenedFor { path, wanted: "reading" }.into()),
        };
        Ok(Entering { fd, path, own: false, rights: Rights { read, write } })
    }

    /// Identifies the file and opens it in the cache. Blocks.
    pub(crate) fn take_in(&self, entering: Entering) -> io::Result<OpenedFile> {
        let Entering { fd, path, own, rights } = entering;
        let named = |error: io::Error| self.named(error, &path);
        let stat = look_at(&fd).map_err(named)?;
        let device = match FileType::from_raw_mode(stat.stx_mode.into()) {
            FileType::RegularFile => DeviceNumber::Files(makedev(stat.stx_dev_major, stat.stx_dev_minor)),
            FileType::BlockDevice => DeviceNumber::Block(makedev(stat.stx_rdev_major, stat.stx_rdev_minor)),
            other => return Err(Error::NotAFile { what: name_of(other), path }.into()),
        };
        if let DeviceNumber::Files(_) = device
            && !stores_files(stat.stx_dev_major, fd.as_fd()).map_err(|errno| named(errno.into()))?
        {
            return Err(Error::StoresNothing { kind: file_system_kind(fd.as_fd()), path }.into());
        }
        let key = HostFileKey { device, inode: if let DeviceNumber::Block(_) = device { 0 } else { stat.stx_ino } };
        let device = self.devices.of(device, &fd, &path, &self.engine).map_err(named)?;
        let fd = match own {
            true => device.host.prepare(fd, rights.write),
            false => LentDescriptor::of_others(fd),
        };
        let stamp = Stamp::from(&stat);
        let wanted = OpenRequest { fd, key, path, device, stamp, write: rights.write };
        let (file, was_held) = self.enter_file(wanted)?;
        // Another check, since the first may be older than a change of ours.
        let look = || {
            let before = file.before_look();
            Some((before, Stamp::of(file.host.given()?).ok()?))
        };
        let look = if was_held { look() } else { None };
        Ok(OpenedFile { file, rights, look })
    }

    fn enter_file(&self, mut wanted: OpenRequest) -> io::Result<(Arc<CachedFile>, bool)> {
        loop {
            let claimed = self.files.claim_first(&wanted, || self.gate.check())?;
            // The end closes the gate and then forgets the files: no file may be added in between.
            let _inside = self.gate.enter(wanted.key.inode)?;
            let make = |device: &CacheDevice, backing, size| self.engine.open(device.id, backing, size);
            match self.files.open(wanted, claimed, make)? {
                OpenOutcome::In { file, was_held } => return Ok((file, was_held)),
                OpenOutcome::TooLate(again) => wanted = again,
            }
        }
    }

    /// If too many files without a handle are unwritten, has some of them written, so that descriptors stay available.
    pub(crate) async fn release_surplus(self: &Arc<Self>) -> Result<(), Error> {
        while let Some(file) = self.files.file_to_release() {
            if !self.try_release_within(&file, RELEASE_PATIENCE).await {
                // The file retains its descriptor until it can be written.
                self.files.later(&file);
                break;
            }
        }
        Ok(())
    }

    /// Whether the file was made durable and given up within `patience`.
    async fn try_release_within(self: &Arc<Self>, file: &Arc<CachedFile>, patience: Duration) -> bool {
        let let_go = async {
            let synced = self.sync(file).await.is_ok();
            if synced {
                self.release_file(file).await;
            }
            synced
        };
        let deadline = self.platform().now().after(patience.as_nanos() as u64);
        let (mut let_go, mut too_late) = (pin!(let_go), pin!(self.platform().sleep_until(deadline)));
        poll_fn(|cx| match let_go.as_mut().poll(cx) {
            Poll::Ready(is_gone) => Poll::Ready(is_gone),
            Poll::Pending => too_late.as_mut().poll(cx).map(|()| false),
        })
        .await
    }

    /// Gives up a file without a handle, on a thread of its device, since the host may take long.
    pub(crate) async fn release_file(self: &Arc<Self>, file: &Arc<CachedFile>) {
        let (core, own) = (Arc::downgrade(self), Arc::clone(file));
        let rest = move || core.upgrade().into_iter().for_each(|core| core.files.release_descriptors(&own));
        file.device.calls.run(rest).await;
    }

    /// The host's error with the file's name; a lack of descriptors is reported with the number of ours.
    pub(crate) fn named(&self, error: io::Error, path: &Path) -> io::Error {
        if error.get_ref().is_some() {
            return error;
        }
        match error.raw_os_error() {
            Some(errno) => self.refused(errno, path).into(),
            // The path has a form that cannot be passed to the host.
            None => Error::Setting { what: format!("{}: {error}", path.display()) }.into(),
        }
    }

    /// The error for the host's error number.
    pub(crate) fn refused(&self, errno: i32, path: &Path) -> Error {
        let path = path.to_owned();
        if is_short(errno) {
            return Error::OutOfDescriptors { path, held: self.files.descriptors() };
        }
        Error::Host { path, errno }
    }
}

fn is_short(errno: i32) -> bool {
    [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).contains(&errno)
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "it is a directory",
        FileType::CharacterDevice => "it is a character device",
        FileType::Fifo => "it is a pipe",
        FileType::Socket => "it is a socket",
        FileType::Symlink => "it is a symbolic link",
        _ => "it is no regular file",
    }
}
