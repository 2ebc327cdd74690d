//! The site of workloads in virtual time: a simulated machine's engine, its devices, the files by path.
//!
//! Owns: files (created at first use, shared by all clones that name them), the checks of their contents, the total of
//! bytes moved.
//! Does not own: the time of operations (`runner`), the devices.
//! Invariants: a path is one file. The first mismatch or misuse is recorded and ends the run.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use afflux_engine::counters::Counter;
use afflux_engine::{Backing, Client, Device, DeviceId, Engine, Error, File, PastCache, Platform};

use afflux_reference::{Ending, Mismatch};
use afflux_simulator::{Disk, DiskFileId, SimMachine, SimPlatform};

use crate::caller::Copies;
use crate::contents::{Contents, Exact, FileContents, Stamped};
use crate::locking::lock;
use crate::outcome::CallWaits;
use crate::sequence::Direction;
use crate::site::{Site, WaitsFor};

/// Distance between the versions of two files, so that their contents differ.
const VERSIONS_EACH: u64 = 1 << 14;
/// Most bytes laid out with exact contents.
const EXACT_BYTES_MAX: u64 = 1 << 30;
/// Largest file with checked contents: at the end of a run all of it is compared.
const CHECKED_BYTES_MAX: u64 = 64 << 30;
const PAGE_BYTES: usize = 4096;

/// A device and the directory on it.
pub(crate) struct Volume {
    /// Empty: all paths that are on no other device.
    pub(crate) directory: String,
    pub(crate) name: String,
    pub(crate) disk: Arc<Disk>,
    pub(crate) device: DeviceId,
    /// Bytes accepted from writers.
    pub(crate) accepted_bytes: AtomicU64,
    pub(crate) last_accepted_ns: AtomicU64,
}

/// A file that workloads use.
pub(crate) struct WorkFile {
    pub(crate) path: String,
    pub(crate) file: File,
    pub(crate) volume: usize,
    pub(crate) disk_file: DiskFileId,
    /// The same file, as the disk's backing.
    pub(crate) backing: Backing,
    /// Identifies it among the run's files.
    number: u32,
    pub(crate) contents: Option<Mutex<Box<dyn FileContents>>>,
    /// The file was written past the cache, so the cache's pages are stale.
    pub(crate) changed_behind: AtomicBool,
    /// The file was written past the cache and not flushed since.
    pub(crate) unflushed: AtomicBool,
    /// The file is no longer needed.
    removed: AtomicBool,
    /// A job has used it, so the cache may hold some of its pages.
    pub(crate) used: AtomicBool,
}

/// A simulated machine, as jobs see it.
pub(crate) struct SimulatedSite {
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) kind: Contents,
    /// CPU time of a read call and of a write call, in nanoseconds.
    call_ns: [u64; 2],
    /// Costs of copies beyond those from the CPU's cache, if there are any.
    copies: Option<Mutex<Copies>>,
    files: Mutex<BTreeMap<String, Arc<WorkFile>>>,
    /// Files that are laid out as holes.
    sparse: Mutex<BTreeSet<String>>,
    /// Files whose contents are not checked.
    unchecked: Mutex<BTreeSet<String>>,
    /// Memory of requests past the cache.
    pub(crate) past_cache: OnceLock<PastCache>,
    pub(crate) moved_bytes: AtomicU64,
    /// The time at which jobs have to stop.
    pub(crate) stop_ns: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<String>>,
    /// For each task its last paused write: the end of the write, and the length of the pause.
    paused: Mutex<BTreeMap<Client, (u64, u64)>>,
}

/// Whether a path is below a directory, at any depth.
pub(crate) fn is_under(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a path is a directory or below it.
fn is_at_or_under(path: &str, directory: &str) -> bool {
    path == directory || is_under(path, directory)
}

/// The error for a path without a device, and its remedy.
pub(crate) fn on_no_device(path: &str) -> String {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    match directory {
        "" => format!("'{path}' is on no device: add a device for everything, --device NAME"),
        directory => {
            format!(
                "'{path}' is on no device: add --device {directory}=NAME, or a device for everything, --device NAME"
            )
        }
    }
}

impl WorkFile {
    /// Whether the file is no longer needed.
    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }
}

impl SimulatedSite {
    pub(crate) fn new(
        machine: &SimMachine,
        volumes: Vec<Volume>,
        kind: Contents,
        call_ns: [u64; 2],
        copies: Option<Copies>,
        stop_ns: u64,
    ) -> Self {
        Self {
            platform: Arc::clone(&machine.platform),
            engine: Arc::clone(&machine.engine),
            volumes,
            kind,
            call_ns,
            copies: copies.map(Mutex::new),
            files: Mutex::default(),
            sparse: Mutex::default(),
            unchecked: Mutex::default(),
            past_cache: OnceLock::new(),
            moved_bytes: AtomicU64::new(0),
            stop_ns: AtomicU64::new(stop_ns),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
            paused: Mutex::default(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.platform.now().0
    }

    /// Records an error; the first one counts.
    pub(crate) fn fail(&self, what: String) {
        lock(&self.failure).get_or_insert(what);
        self.failed.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// The device of a path: that of the longest directory above it.
    pub(crate) fn volume_of(&self, path: &str) -> Option<usize> {
        let above = self.volumes.iter().enumerate().filter(|(_, volume)| is_at_or_under(path, &volume.directory));
        above.max_by_key(|(_, volume)| volume.directory.trim_end_matches('/').len()).map(|(at, _)| at)
    }

    /// The file at `path`. If there is none it is created, empty or laid out with `bytes`. An existing file retains its
    /// size.
    pub(crate) fn file(&self, path: &str, bytes: u64) -> Result<Arc<WorkFile>, String> {
        let mut files = lock(&self.files);
        if let Some(file) = files.get(path) {
            return Ok(Arc::clone(file));
        }
        let volume = self.volume_of(path).ok_or_else(|| on_no_device(path))?;
        let Volume { disk, device, .. } = &self.volumes[volume];
        let disk_file = disk.create_file();
        let number = files.len() as u64;
        let unchecked = bytes > CHECKED_BYTES_MAX || lock(&self.unchecked).contains(path);
        let mut laid_out = Vec::new();
        let contents: Option<Box<dyn FileContents>> = match self.kind {
            _ if unchecked => None,
            Contents::Exact => {
                let version = number * VERSIONS_EACH + 1;
                laid_out = vec![0; bytes as usize];
                afflux_reference::pattern(version, 0, &mut laid_out);
                Some(Box::new(Exact::new(bytes, version)))
            }
            Contents::Stamped => Some(Box::new(Stamped::new(number as u32 + 1, bytes))),
            Contents::Unchecked => None,
        };
        match bytes > 0 && self.is_sparse(path) {
            true => disk.make_sparse(disk_file, bytes),
            false if bytes > 0 => disk.change_behind(disk_file, bytes, 0, &laid_out),
            false => {}
        }
        let backing = disk.backing(disk_file);
        let file = Arc::new(WorkFile {
            path: path.to_owned(),
            file: self.engine.open(*device, backing.clone(), bytes),
            volume,
            disk_file,
            backing,
            number: number as u32,
            contents: contents.map(Mutex::new),
            changed_behind: AtomicBool::new(false),
            unflushed: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            used: AtomicBool::new(false),
        });
        files.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    /// Exact contents are stored bytes, never holes.
    fn is_sparse(&self, path: &str) -> bool {
        self.kind != Contents::Exact && lock(&self.sparse).contains(path)
    }

    /// All files, in the order of their paths.
    pub(crate) fn files(&self) -> Vec<Arc<WorkFile>> {
        lock(&self.files).values().cloned().collect()
    }

    /// Writes `buffer` at `offset`, filled with bytes of a new version if contents are stored.
    #[inline]
    pub(crate) async fn write(
        &self,
        task: &Client,
        to: &WorkFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        self.after_others(to).await;
        let mark = to.contents.as_ref().map(|contents| lock(contents).begin_write(offset, buffer));
        let result = self.noting_pauses(task, self.engine.write_for(Some(task), &to.file, offset, buffer)).await;
        if let (Some(contents), Some(mark)) = (&to.contents, mark) {
            lock(contents).end_write(mark, if result.is_ok() { Ending::Done } else { Ending::Failed });
        }
        if result.is_ok() {
            self.charge_copy(to, offset, buffer.len() as u64, true);
            self.accepted(to.volume, buffer.len() as u64);
        }
        result
    }

    /// Runs a write and notes the length of its pause. While the write is polled, no other task can end a pause.
    async fn noting_pauses<T>(&self, task: &Client, write: impl Future<Output = T>) -> T {
        let (mut write, mut ns) = (pin!(write), 0);
        let counted = || self.platform.local().counted(Counter::ThrottleNs);
        let result = poll_fn(|cx| {
            let before_ns = counted();
            let polled = write.as_mut().poll(cx);
            ns += counted() - before_ns;
            polled
        })
        .await;
        if ns > 0 {
            lock(&self.paused).insert(task.clone(), (self.now_ns(), ns));
        }
        result
    }

    #[inline]
    fn charge_copy(&self, file: &WorkFile, offset: u64, len: u64, writes: bool) {
        if let Some(copies) = &self.copies {
            let ns = lock(copies).copied_ns(file.number, offset, len, writes);
            self.platform.charge_ns(ns);
        }
    }

    /// Counts bytes accepted from a writer to this volume.
    #[inline]
    pub(crate) fn accepted(&self, volume: usize, bytes: u64) {
        let volume = &self.volumes[volume];
        add(&volume.accepted_bytes, bytes);
        volume.last_accepted_ns.store(self.now_ns(), Ordering::Relaxed);
        add(&self.moved_bytes, bytes);
    }

    /// Reads into `buffer`; returns the number of bytes.
    #[inline]
    pub(crate) async fn read(
        &self,
        task: &Client,
        from: &WorkFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        self.after_others(from).await;
        let mark = from.contents.as_ref().map(|contents| lock(contents).begin_read());
        let result = self.engine.read_for(Some(task), &from.file, offset, buffer).await;
        if let (Some(contents), Some(mark)) = (&from.contents, mark) {
            let got = result.as_ref().ok().map(|count| &buffer[..*count]);
            let checked = lock(contents).end_read(mark, offset, buffer.len() as u64, got);
            self.note(from, checked);
        }
        let count = result.unwrap_or(0) as u64;
        self.charge_copy(from, offset, count, false);
        add(&self.moved_bytes, count);
        result
    }

    /// Counts bytes read.
    #[inline]
    pub(crate) fn moved(&self, bytes: u64) {
        add(&self.moved_bytes, bytes);
    }

    /// Makes the file durable.
    pub(crate) async fn sync(&self, task: &Client, file: &WorkFile) -> Result<(), Error> {
        let mark = file.contents.as_ref().map(|contents| lock(contents).begin_sync());
        let mut result = self.engine.sync_for(Some(task), &file.file, 0..u64::MAX).await;
        if result.is_ok() {
            result = self.flush_past_cache(file).await;
        }
        if let (Some(contents), Some(mark)) = (&file.contents, mark) {
            lock(contents).end_sync(mark, result.is_ok());
        }
        result
    }

    /// Drops the file's clean pages, as a job asks of the kernel before it reads.
    pub(crate) async fn forget_clean(&self, file: &WorkFile) {
        let seen = file.file.change_count();
        self.engine.try_invalidate(&file.file, file.file.size(), seen).await;
    }

    /// Checks that the disks hold the right bytes: everything, or, if `crashed`, everything that survives a power loss.
    pub(crate) fn check_disks(&self, crashed: bool) {
        for file in self.files() {
            if let (Some(contents), false) = (&file.contents, file.is_removed()) {
                let disk = &self.volumes[file.volume].disk;
                let mut contents = lock(contents);
                let checked = match crashed {
                    false => contents.check_disk(disk, file.disk_file),
                    true => contents.check_crashed(disk, file.disk_file),
                };
                self.note(&file, checked);
            }
        }
    }

    /// The files for which the disks lack accepted bytes, with the number of those bytes.
    pub(crate) fn lost_bytes(&self) -> Vec<(String, u64)> {
        let lost = self.files().into_iter().filter_map(|file| {
            let contents = file.contents.as_ref().filter(|_| !file.is_removed())?;
            let disk = &self.volumes[file.volume].disk;
            Some((file.path.clone(), lock(contents).lost_bytes(disk, file.disk_file)))
        });
        lost.filter(|(_, bytes)| *bytes > 0).collect()
    }

    pub(crate) fn note(&self, file: &WorkFile, checked: Result<(), Mismatch>) {
        if let Err(mismatch) = checked {
            self.fail(format!("{}: {mismatch}", file.path));
        }
    }
}

impl Site for SimulatedSite {
    type World = SimPlatform;
    type File = WorkFile;

    fn world(&self) -> &Arc<SimPlatform> {
        &self.platform
    }

    /// The path is a device's whole name, or a device node of the disk for everything.
    fn device_bytes(&self, path: &str) -> Option<u64> {
        let volume = &self.volumes[self.volume_of(path)?];
        let whole = volume.directory == path && !path.ends_with('/');
        let node = volume.directory.is_empty() && path.starts_with("/dev/");
        (whole || node).then(|| volume.disk.capacity_bytes())
    }

    fn leave_unchecked(&self, path: &str) {
        lock(&self.unchecked).insert(path.to_owned());
    }

    fn leave_holes(&self, path: &str) {
        lock(&self.sparse).insert(path.to_owned());
    }

    fn lay_out(&self, layout: &BTreeMap<String, u64>) -> Result<(), String> {
        let mut needed = vec![0_u64; self.volumes.len()];
        for (path, bytes) in layout {
            let volume = self.volume_of(path).ok_or_else(|| on_no_device(path))?;
            // A device as a whole already has its space.
            let placed = if self.is_sparse(path) || self.device_bytes(path).is_some() { 0 } else { *bytes };
            needed[volume] = needed[volume].saturating_add(placed);
        }
        for (volume, needed) in self.volumes.iter().zip(&needed) {
            let free = volume.disk.free_bytes_hint();
            if *needed > free {
                let name = &volume.name;
                return Err(format!("the files that jobs read need {needed} bytes, and {name} has {free}: no space"));
            }
            if self.kind == Contents::Exact && *needed > EXACT_BYTES_MAX {
                let what = format!("{needed} bytes of files to read are too much for exact contents");
                return Err(format!("{what} ({EXACT_BYTES_MAX})"));
            }
        }
        layout.iter().try_for_each(|(path, bytes)| self.file(path, *bytes).map(|_| ()))
    }

    fn file(&self, path: &str, bytes: u64) -> Result<Arc<WorkFile>, String> {
        Self::file(self, path, bytes)
    }

    fn device_name(&self, file: &WorkFile) -> String {
        self.volumes[file.volume].name.clone()
    }

    fn stop_ns(&self) -> u64 {
        self.stop_ns.load(Ordering::Relaxed)
    }

    fn has_failed(&self) -> bool {
        Self::has_failed(self)
    }

    fn charge_calls(&self, calls: u64, direction: Direction) {
        // At least 1 ns: otherwise a job limited by time would never end if nothing costs anything.
        self.platform.charge_ns((self.call_ns[direction.sizes()] * calls).max(1));
    }

    fn charge_ns(&self, ns: u64) {
        self.platform.charge_ns(ns);
    }

    fn begin_use(&self, file: &WorkFile) -> bool {
        file.used.swap(true, Ordering::Relaxed)
    }

    fn forget_clean(&self, file: &WorkFile) -> impl Future<Output = ()> + Send {
        Self::forget_clean(self, file)
    }

    fn read(
        &self,
        task: &Client,
        file: &WorkFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<usize, Error>> + Send {
        Self::read(self, task, file, offset, buffer)
    }

    fn write(
        &self,
        task: &Client,
        file: &WorkFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        Self::write(self, task, file, offset, buffer)
    }

    fn direct(
        &self,
        task: &Client,
        file: &WorkFile,
        direction: Direction,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<usize, Error>> + Send {
        Self::direct(self, task, file, direction, offset, buffer)
    }

    async fn trim(&self, file: &WorkFile, offset: u64, bytes: u64) -> Result<(), Error> {
        self.engine.punch(&file.file, offset..offset + bytes).await
    }

    fn remove(&self, file: &WorkFile) {
        file.removed.store(true, Ordering::Relaxed);
        self.engine.discard(&file.file);
    }

    async fn fault(&self, task: &Client, file: &WorkFile, offset: u64) -> Result<(), Error> {
        fault(&self.engine, task, &file.file, offset).await
    }

    fn sync(&self, task: &Client, file: &WorkFile) -> impl Future<Output = Result<(), Error>> + Send {
        Self::sync(self, task, file)
    }

    fn waits(
        &self,
        task: &Client,
        file: &WorkFile,
        waits_for: WaitsFor,
        began_ns: u64,
        ended_ns: u64,
    ) -> Option<CallWaits> {
        let disk = &self.volumes[file.volume].disk;
        let waited = disk.waited(file.disk_file, waits_for == WaitsFor::Reads, began_ns, ended_ns);
        let paused = lock(&self.paused)
            .get(task)
            .filter(|(pause_end_ns, _)| (began_ns..=ended_ns).contains(pause_end_ns))
            .copied();
        Some(CallWaits { pause_ns: paused.map_or(0, |(_, ns)| ns), ..CallWaits::at_disk(waited) })
    }
}

/// Reads an absent page that lies within the file.
pub(crate) async fn fault<P: Platform>(
    engine: &Arc<Engine<P>>,
    task: &Client,
    file: &File,
    offset: u64,
) -> Result<(), Error> {
    let mut page = [0; PAGE_BYTES];
    if offset < file.size() && engine.try_read(file, offset, &mut page).is_none() {
        engine.read_for(Some(task), file, offset, &mut page).await?;
    }
    Ok(())
}

/// Only one thread adds, so no atomic read-modify-write is needed.
fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}
