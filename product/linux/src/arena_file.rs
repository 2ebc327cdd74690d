//! A file that holds an engine's memory beyond the life of the process.
//!
//! Owns: making the file, which files are refused, the lock that keeps a second server away.
//! Does not own: the contents (`afflux_frames`), their use by a successor (the engine).
//! Invariants: one process at a time has a file open with the lock, from before it looks at the contents until it is gone
//! with all its requests. So no request of a predecessor can still write to a disk. Files of other users, and files
//! with rights for others, are never used. The memory has room from the start: a full file system shows when the file is
//! made, not as a fault in the middle of a write. A start that fails leaves no file that it made, and each file that it
//! found.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use afflux_frames::{ArenaError, ArenaState, HEADER_BYTES, HeaderBytes, HeaderError, Layout, Memory};
use rustix::fs::{
    FallocateFlags, FileType, Mode, OFlags, StatFs, fallocate, fstat, fstatfs, ftruncate, open, stat, statfs, unlink,
};
use rustix::io::{Errno, pread};
use rustix::process::geteuid;

use crate::claim::{Claim, claim};

mod holder;
#[cfg(test)]
mod tests;

use holder::HolderState;

/// The type of a tmpfs (statfs(2)).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Between two tries to get the lock.
const TRY_EVERY: Duration = Duration::from_millis(1);

/// A process that runs and does not end within this time is not about to end: a signal shows sooner.
const ENDS_WITHIN: Duration = Duration::from_millis(100);

/// Between two reports of a wait.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Why a file cannot hold the memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaFileError {
    /// The host refuses a call.
    #[error("{call}: {source}")]
    Host {
        /// The call.
        call: &'static str,
        /// The host's answer.
        source: io::Error,
    },
    /// The file system has too little room.
    #[error("its file system has no room for {bytes} bytes")]
    NoRoom {
        /// The bytes of the memory.
        bytes: u64,
    },
    /// The file is not of a kind that can hold memory.
    #[error("{0}")]
    Unfit(&'static str),
    /// It belongs to another user.
    #[error("it belongs to user {owner}, and this server runs as user {user}")]
    Owner {
        /// The file's owner.
        owner: u32,
        /// This process's user.
        user: u32,
    },
    /// Others may open it.
    #[error("its mode is {mode:o}, so that others may change the cache: chmod 600")]
    Mode {
        /// The mode bits.
        mode: u32,
    },
    /// Another server uses it.
    #[error("process {process} uses it")]
    InUse {
        /// That server.
        process: u32,
    },
    /// Its contents are no arena for this program.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// It was made for a header's sizes, and has another length.
    #[error("it has {found} bytes, and its header says {wanted}")]
    Length {
        /// The file's length.
        found: u64,
        /// The length that belongs to the header.
        wanted: u64,
    },
    /// It cannot be mapped.
    #[error(transparent)]
    Memory(#[from] ArenaError),
}

/// The reason of a wait for the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArenaWait {
    /// A server that was killed and has not ended yet. A request of it to a disk that hangs may be the reason.
    Ending {
        /// Its process.
        process: u32,
    },
    /// A server that was stopped (SIGSTOP, a debugger) was killed: only one server may have the file.
    Killed {
        /// Its process.
        process: u32,
    },
}

impl fmt::Display for ArenaWait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ending { process } => {
                write!(out, "waiting for process {process} to end; a disk that hangs may hold it up")
            }
            Self::Killed { process } => write!(out, "process {process} was stopped and had the memory; it is killed"),
        }
    }
}

/// The memory in a file.
pub enum ArenaContents {
    /// Nobody has used it.
    Fresh(Arc<Memory>),
    /// A server was killed with it.
    Left(Arc<Memory>),
}

/// A file with an engine's memory, locked by this process. A file whose contents this process made is removed by the drop
/// until [`Self::keep`].
pub struct ArenaFile {
    path: PathBuf,
    /// Has the lock. No child gets it.
    file: OwnedFd,
    /// Nobody was told of the contents yet.
    is_fresh: bool,
}

impl ArenaFile {
    /// Opens the file at `path`, a tmpfs's, or makes it for an arena of this form. An arena that a server left is used in its
    /// own form. Waits for a server that is about to end, and tells so. Blocks also for the time that the host takes to
    /// find room for the memory.
    ///
    /// # Errors
    /// The file is used by a server that runs, is not this user's alone, is no arena of this program, or has no room.
    pub fn open(
        path: &Path,
        layout: Layout,
        told: &mut dyn FnMut(ArenaWait),
    ) -> Result<(Self, ArenaContents), ArenaFileError> {
        let boot = boot()?;
        // Before an empty file is made there.
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        refuse_disks(statfs(directory).map_err(host("statfs"))?)?;
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let file = open(path, flags, Mode::RUSR | Mode::WUSR).map_err(host("open"))?;
            refuse_unfit(&file)?;
            lock(&file, told)?;
            if !is_at(&file, path)? {
                // Its last user has removed it.
                continue;
            }
            let mut opened = Self { path: path.to_path_buf(), file, is_fresh: false };
            let contents = opened.contents(layout, boot)?;
            return Ok((opened, contents));
        }
    }

    fn contents(&mut self, layout: Layout, boot: [u8; 16]) -> Result<ArenaContents, ArenaFileError> {
        let bytes = fstat(&self.file).map_err(host("stat"))?.st_size as u64;
        let header = read_header(&self.file)?;
        if bytes == 0 || header.is_unused() {
            return self.make(layout, boot).map(ArenaContents::Fresh);
        }
        let left = header.layout(boot)?;
        let wanted = left.bytes() as u64;
        if bytes != wanted {
            return Err(ArenaFileError::Length { found: bytes, wanted });
        }
        let memory = self.map(left)?;
        match memory.header().state() {
            ArenaState::Serving | ArenaState::Recovering => Ok(ArenaContents::Left(memory)),
            // Everything was written.
            ArenaState::Fresh | ArenaState::Clean => {
                drop(memory);
                self.make(layout, boot).map(ArenaContents::Fresh)
            }
        }
    }

    /// Fills the file with zeros and makes an arena of it.
    fn make(&mut self, layout: Layout, boot: [u8; 16]) -> Result<Arc<Memory>, ArenaFileError> {
        self.is_fresh = true;
        let bytes = layout.bytes() as u64;
        ftruncate(&self.file, 0).map_err(host("truncate"))?;
        ftruncate(&self.file, bytes).map_err(host("truncate"))?;
        if let Err(errno) = fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            let is_full = matches!(errno, Errno::NOSPC | Errno::NOMEM);
            return Err(if is_full { ArenaFileError::NoRoom { bytes } } else { host("fallocate")(errno) });
        }
        let memory = self.map(layout)?;
        memory.header().begin(boot, 0);
        Ok(memory)
    }

    fn map(&self, layout: Layout) -> Result<Arc<Memory>, ArenaFileError> {
        // SAFETY: the file has these bytes, this process has the lock, and other users cannot open the file. Programs of
        // this user and of root could change any memory of the process anyway.
        let memory = unsafe { Memory::in_file(self.file.as_fd(), layout) }?;
        memory.header().set_holder(std::process::id());
        Ok(memory)
    }

    /// Clients may learn of the contents from now on: the file stays until [`Self::remove`].
    pub fn keep(&mut self) {
        self.is_fresh = false;
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file. Its memory stays until it is dropped. Call it when everything is written.
    ///
    /// # Errors
    /// The host's.
    pub fn remove(&self, memory: &Memory) -> io::Result<()> {
        memory.header().set_state(ArenaState::Clean);
        Ok(unlink(&self.path)?)
    }
}

impl Drop for ArenaFile {
    fn drop(&mut self) {
        if self.is_fresh {
            // A file that stays holds nothing but room.
            let _ = unlink(&self.path);
        }
    }
}

fn host(call: &'static str) -> impl Fn(Errno) -> ArenaFileError {
    move |errno| ArenaFileError::Host { call, source: errno.into() }
}

/// The number of the host's start.
fn boot() -> Result<[u8; 16], ArenaFileError> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let text = text.map_err(|source| ArenaFileError::Host { call: "read the boot id", source })?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    Ok(u128::from_str_radix(&digits, 16).unwrap_or_default().to_le_bytes())
}

fn refuse_unfit(file: &OwnedFd) -> Result<(), ArenaFileError> {
    let found = fstat(file).map_err(host("stat"))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(ArenaFileError::Unfit("it is no regular file"));
    }
    let user = geteuid().as_raw();
    if found.st_uid != user {
        return Err(ArenaFileError::Owner { owner: found.st_uid, user });
    }
    if found.st_mode & 0o077 != 0 {
        return Err(ArenaFileError::Mode { mode: found.st_mode & 0o777 });
    }
    if found.st_nlink > 1 {
        return Err(ArenaFileError::Unfit("it has a second name"));
    }
    refuse_disks(fstatfs(file).map_err(host("statfs"))?)
}

fn refuse_disks(file_system: StatFs) -> Result<(), ArenaFileError> {
    if file_system.f_type != TMPFS_MAGIC {
        return Err(ArenaFileError::Unfit(
            "it is not on a tmpfs, such as /dev/shm or /run; on a disk each page would be written twice",
        ));
    }
    Ok(())
}

/// Whether the path still names the file.
fn is_at(file: &OwnedFd, path: &Path) -> Result<bool, ArenaFileError> {
    let opened = fstat(file).map_err(host("stat"))?;
    match stat(path) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(host("stat")(errno)),
    }
}

fn read_header(file: &OwnedFd) -> Result<HeaderBytes, ArenaFileError> {
    let mut bytes = [0; HEADER_BYTES];
    let mut filled = 0;
    while filled < HEADER_BYTES {
        match pread(file, &mut bytes[filled..], filled as u64).map_err(host("read"))? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(HeaderBytes(bytes))
}

/// Takes the lock of the file, from a server that is about to end or is stopped, too.
fn lock(file: &OwnedFd, told: &mut dyn FnMut(ArenaWait)) -> Result<(), ArenaFileError> {
    let began = Instant::now();
    let mut told_at: Option<Instant> = None;
    let mut running_since = began;
    while !claim(file, Claim::Alone).map_err(|source| ArenaFileError::Host { call: "lock", source })? {
        let process = read_header(file)?.holder();
        let state = HolderState::of(process, file).map_err(host("stat"))?;
        if state != HolderState::Runs {
            running_since = Instant::now();
        }
        match state {
            HolderState::Runs if running_since.elapsed() > ENDS_WITHIN => {
                return Err(ArenaFileError::InUse { process });
            }
            HolderState::Stopped => {
                holder::kill(process).map_err(host("kill"))?;
                told(ArenaWait::Killed { process });
            }
            HolderState::Ends if began.elapsed() > TELL_EVERY && told_at.is_none_or(|at| at.elapsed() > TELL_EVERY) => {
                told(ArenaWait::Ending { process });
                told_at = Some(Instant::now());
            }
            HolderState::Runs | HolderState::Ends => {}
        }
        sleep(TRY_EVERY);
    }
    Ok(())
}
