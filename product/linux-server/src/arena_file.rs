//! A file that holds an engine's memory beyond the life of the process: on a tmpfs, or a memory file that the service
//! manager stores.
//!
//! Owns: which contents are refused, the lock that excludes a second server, the end of the file.
//! Does not own: the contents (`afflux_frames`), their use by a successor (the engine).
//! Invariants: one process at a time has a file open with the lock, from before it reads the contents until it and all
//! its requests have ended. So no request of a predecessor can still write to a disk. Files of other users, and files
//! with rights for others, are never used. The memory is reserved from the start: a full file system is found when the
//! file is made, not by a fault in the middle of a write. A failed start removes a file that it made. A file of an
//! earlier server stays.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fmt, io};

use afflux_frames::{ArenaState, HEADER_BYTES, HeaderBytes, Layout, Memory};
use rustix::fs::{fstat, ftruncate, unlink};
use rustix::io::pread;

use crate::descriptor_store::DescriptorStore;
use afflux_linux_device::{FileClaim, claim};

pub(crate) mod backing_file;
mod owner;
#[cfg(test)]
mod tests;

pub use backing_file::ArenaFileError;
use backing_file::{MemoryReservation, host, reserve_memory};
use owner::OwnerState;
pub use owner::is_ending;

/// The name of the memory in the service manager's store.
const IN_STORE: &str = "arena";

/// Between two tries to get the lock.
const TRY_EVERY: Duration = Duration::from_millis(1);

/// A process that runs and does not end within this time is not about to end: a signal shows sooner.
const ENDS_WITHIN: Duration = Duration::from_millis(100);

/// Between two reports of a wait.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// The reason of a wait for the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArenaWait {
    /// A server that was killed and has not ended yet. A request of it to a disk that hangs may be the reason.
    Ending {
        /// Process number of the server that has the file.
        process: u32,
    },
    /// A server that was stopped (SIGSTOP, a debugger) was killed: only one server may have the file.
    Killed {
        /// Process number of the server that has the file.
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
    Inherited(Arc<Memory>),
}

/// A file with an engine's memory, locked by this process. If this process made its contents, the drop removes it until
/// [`Self::keep`].
pub struct ArenaFile {
    location: FoundAt,
    /// Has the lock. No child gets it, nor does the service manager.
    file: OwnedFd,
    /// Nobody has been notified of the contents yet.
    is_fresh: bool,
}

/// Where the next server finds the memory.
enum FoundAt {
    Path(PathBuf),
    /// In the service manager's store, by this description.
    Store(OwnedFd),
}

impl ArenaFile {
    /// Opens the file at `path`, a tmpfs's, or makes it for an arena of this form. An inherited arena is used in its
    /// own form. Waits for a server that is about to end, and reports this. Blocks also while the host reserves the
    /// memory.
    ///
    /// # Errors
    /// The file is used by a server that runs, is not this user's alone, is no arena of this program, or lacks free
    /// space.
    pub fn open(
        path: &Path,
        layout: Layout,
        told: &mut dyn FnMut(ArenaWait),
    ) -> Result<(Self, ArenaContents), ArenaFileError> {
        let boot = boot()?;
        loop {
            let file = backing_file::opened(path)?;
            lock(&file, told)?;
            if !backing_file::is_at(&file, path)? {
                // Its last user has removed it.
                continue;
            }
            let mut opened = Self { location: FoundAt::Path(path.to_path_buf()), file, is_fresh: false };
            if let Some(inherited) = opened.inherited(boot)? {
                return Ok((opened, ArenaContents::Inherited(inherited)));
            }
            let memory = opened.emptied(layout, boot)?;
            return Ok((opened, ArenaContents::Fresh(memory)));
        }
    }

    /// Makes the file's contents anew, for an arena of this form.
    fn emptied(&mut self, layout: Layout, boot: [u8; 16]) -> Result<Arc<Memory>, ArenaFileError> {
        self.is_fresh = true;
        ftruncate(&self.file, 0).map_err(host("truncate"))?;
        reserve_memory(&self.file, layout.bytes() as u64)?;
        self.begun(layout, boot)
    }

    /// Drops the memory of an earlier server, which is not mapped and holds no unwritten bytes. Makes memory for an
    /// arena of this form.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn renewed(mut self, layout: Layout) -> Result<(Self, Arc<Memory>), ArenaFileError> {
        let boot = boot()?;
        if self.path().is_none() {
            Self::forget_stored().map_err(tell)?;
            backing_file::give_back(&self.file);
            return Self::made_for_store(layout, boot);
        }
        let memory = self.emptied(layout, boot)?;
        Ok((self, memory))
    }

    /// Finds what [`Self::open`] would refuse, and changes nothing. The file may be in use by the process `own`. The
    /// result is the memory of an earlier server that [`Self::open`] would return.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn check(path: &Path, layout: Layout, own: Option<u32>) -> Result<Option<(Self, Arc<Memory>)>, ArenaFileError> {
        let wanted = layout.bytes() as u64;
        let Some(file) = backing_file::found(path)? else {
            return backing_file::check_free_space(path, wanted).map(|()| None);
        };
        if !claim(&file, FileClaim::Alone).map_err(|source| ArenaFileError::Host { call: "lock", source })? {
            let process = read_header(&file)?.holder();
            let runs = OwnerState::of(process, &file).map_err(host("stat"))? == OwnerState::Runs;
            return if runs && own != Some(process) { Err(ArenaFileError::InUse { process }) } else { Ok(None) };
        }
        let found = Self { location: FoundAt::Path(path.to_path_buf()), file, is_fresh: false };
        if let Some(memory) = found.unwritten(boot()?)? {
            return Ok(Some((found, memory)));
        }
        let bytes = fstat(&found.file).map_err(host("stat"))?.st_size as u64;
        backing_file::check_free_space(path, wanted.saturating_sub(bytes)).map(|()| None)
    }

    /// Takes the memory that the service manager has of an earlier server, or makes one for an arena of this form. A
    /// file that cannot be used is `refused`, and leaves the store. Waits as [`Self::open`].
    ///
    /// # Errors
    /// A server that runs uses the memory, another version made it, or the host refuses.
    pub fn in_store(
        store: &mut DescriptorStore,
        layout: Layout,
        told: &mut dyn FnMut(ArenaWait),
        refused: &mut dyn FnMut(ArenaFileError),
    ) -> Result<(Self, ArenaContents), ArenaFileError> {
        let boot = boot()?;
        let passed = Self::take_stored(store);
        let (count, mut found) = (passed.len(), None);
        for file in passed {
            match Self::inherited_in_store(file, boot, told) {
                Ok(Some(inherited)) if found.is_none() => found = Some(inherited),
                Ok(Some(_)) => refused(ArenaFileError::Unfit("the service manager has two")),
                Ok(None) => {}
                Err(error) if error.is_of_file() => refused(error),
                Err(error) => return Err(error),
            }
        }
        let has_others = count > usize::from(found.is_some());
        if has_others {
            Self::forget_stored().map_err(tell)?;
        }
        if let Some((opened, memory)) = found {
            if has_others {
                opened.offer().map_err(tell)?;
            }
            return Ok((opened, ArenaContents::Inherited(memory)));
        }
        let (opened, memory) = Self::made_for_store(layout, boot)?;
        Ok((opened, ArenaContents::Fresh(memory)))
    }

    /// New memory for the service manager.
    fn made_for_store(layout: Layout, boot: [u8; 16]) -> Result<(Self, Arc<Memory>), ArenaFileError> {
        let made = backing_file::made("afflux-arena", layout.bytes() as u64, MemoryReservation::Taken)?;
        let opened = Self { file: backing_file::reopened(&made)?, location: FoundAt::Store(made), is_fresh: true };
        lock(&opened.file, &mut |_| {})?;
        let memory = opened.begun(layout, boot)?;
        Ok((opened, memory))
    }

    /// A file of the manager, if an earlier server wrote something to it.
    fn inherited_in_store(
        file: OwnedFd,
        boot: [u8; 16],
        told: &mut dyn FnMut(ArenaWait),
    ) -> Result<Option<(Self, Arc<Memory>)>, ArenaFileError> {
        backing_file::refuse_foreign(&file)?;
        let opened = Self { file: backing_file::reopened(&file)?, location: FoundAt::Store(file), is_fresh: false };
        lock(&opened.file, told)?;
        match opened.inherited(boot) {
            Ok(Some(memory)) => Ok(Some((opened, memory))),
            // Its data is for that version.
            Err(error) if error.is_of_another_version() => Err(error),
            nothing => {
                backing_file::give_back(&opened.file);
                nothing.map(|_| None)
            }
        }
    }

    /// The memory of an earlier server, if the file has its data. This process is its holder from now on.
    fn inherited(&self, boot: [u8; 16]) -> Result<Option<Arc<Memory>>, ArenaFileError> {
        let found = self.unwritten(boot)?;
        found.iter().for_each(|memory| memory.header().set_holder(std::process::id()));
        Ok(found)
    }

    /// The memory of an earlier server, if the file has its data.
    fn unwritten(&self, boot: [u8; 16]) -> Result<Option<Arc<Memory>>, ArenaFileError> {
        let bytes = fstat(&self.file).map_err(host("stat"))?.st_size as u64;
        let header = read_header(&self.file)?;
        if bytes == 0 || header.is_unused() {
            return Ok(None);
        }
        let inherited = header.layout(boot)?;
        let wanted = inherited.bytes() as u64;
        if bytes != wanted {
            return Err(ArenaFileError::Length { found: bytes, wanted });
        }
        let memory = self.map(inherited)?;
        Ok(match memory.header().state() {
            ArenaState::Serving | ArenaState::Recovering => Some(memory),
            // Everything was written.
            ArenaState::Fresh | ArenaState::Clean => None,
        })
    }

    /// Makes an arena of the zeros in the file.
    fn begun(&self, layout: Layout, boot: [u8; 16]) -> Result<Arc<Memory>, ArenaFileError> {
        let memory = self.map(layout)?;
        memory.header().set_holder(std::process::id());
        memory.header().begin(boot, 0);
        Ok(memory)
    }

    fn map(&self, layout: Layout) -> Result<Arc<Memory>, ArenaFileError> {
        // SAFETY: the file has these bytes, this process has the lock, and other users cannot open the file. Programs
        // of this user and of root could change any memory of the process anyway.
        Ok(unsafe { Memory::in_file(self.file.as_fd(), layout) }?)
    }

    /// Has the service manager store new memory, if it is to store this one. Call it before a client is answered.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn offer(&self) -> io::Result<()> {
        match &self.location {
            FoundAt::Path(_) => Ok(()),
            FoundAt::Store(memory) => DescriptorStore::put(IN_STORE, memory.as_fd()),
        }
    }

    /// Clients may learn of the contents from now on: the file stays until [`Self::remove`].
    pub fn keep(&mut self) {
        self.is_fresh = false;
    }

    /// The path; `None` if the service manager stores the file.
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            FoundAt::Path(path) => Some(path),
            FoundAt::Store(_) => None,
        }
    }

    /// Removes the file. Its memory stays until it is dropped. Call it when everything is written.
    ///
    /// # Errors
    /// The host's.
    pub fn remove(&self, memory: &Memory) -> io::Result<()> {
        memory.header().set_state(ArenaState::Clean);
        self.forget()
    }

    /// The next server does not find the file.
    fn forget(&self) -> io::Result<()> {
        match &self.location {
            FoundAt::Path(path) => Ok(unlink(path)?),
            FoundAt::Store(_) => Self::forget_stored(),
        }
    }

    /// Takes the service manager's copies of earlier servers' memory, unchecked.
    pub fn take_stored(store: &mut DescriptorStore) -> Vec<OwnedFd> {
        store.take(IN_STORE)
    }

    /// Has the service manager close all memory that it stores.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn forget_stored() -> io::Result<()> {
        DescriptorStore::remove(IN_STORE)
    }
}

impl fmt::Display for ArenaFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            FoundAt::Path(path) => path.display().fmt(out),
            FoundAt::Store(_) => out.write_str("the memory that systemd keeps"),
        }
    }
}

impl Drop for ArenaFile {
    fn drop(&mut self) {
        if self.is_fresh {
            // A file that stays holds no data, only memory.
            let _ = self.forget();
        }
    }
}

fn tell(source: io::Error) -> ArenaFileError {
    ArenaFileError::Host { call: "tell the service manager", source }
}

/// The number of the host's start.
fn boot() -> Result<[u8; 16], ArenaFileError> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let text = text.map_err(|source| ArenaFileError::Host { call: "read the boot id", source })?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    Ok(u128::from_str_radix(&digits, 16).unwrap_or_default().to_le_bytes())
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
    while !claim(file, FileClaim::Alone).map_err(|source| ArenaFileError::Host { call: "lock", source })? {
        let process = read_header(file)?.holder();
        let state = OwnerState::of(process, file).map_err(host("stat"))?;
        if state != OwnerState::Runs {
            running_since = Instant::now();
        }
        match state {
            OwnerState::Runs if running_since.elapsed() > ENDS_WITHIN => {
                return Err(ArenaFileError::InUse { process });
            }
            OwnerState::Stopped => {
                owner::kill(process).map_err(host("kill"))?;
                told(ArenaWait::Killed { process });
            }
            OwnerState::Ends if began.elapsed() > TELL_EVERY && told_at.is_none_or(|at| at.elapsed() > TELL_EVERY) => {
                told(ArenaWait::Ending { process });
                told_at = Some(Instant::now());
            }
            OwnerState::Runs | OwnerState::Ends => {}
        }
        sleep(TRY_EVERY);
    }
    Ok(())
}
