//! The cache's memory: this process's own, or a file's, which a killed server leaves to the next one.
//!
//! Owns: the demands of `--arena` on other settings, the engine over a found arena, when its bytes are written home
//! before an engine works with it again, the end of the file.
//! Does not own: the file and its lock, the service manager's store, the files that bytes go home to
//! (`afflux_linux_server`), the check of the contents and the bytes (the engine), the files' return (the volume).
//! Invariants: the file is locked before the served directories are opened, since a predecessor may still have those.
//! It is removed only after everything was written. Only bytes of the last server are written home
//! (`end_to_end::passed_over`). The memory changes only after every file is home. The bytes of a file that is gone are
//! lost.

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use std::{fmt, io};

use afflux_engine::settings::Settings as Knobs;
use afflux_engine::{Engine, Nanos, Platform, Policies, Recovered};
use afflux_frames::{FILE_SLOTS, Frames, Layout};
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::{ArenaContents, ArenaFile, DescriptorStore, HostTree};
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::{output, units};
use afflux_volume::{AdoptedFiles, Directory, HandleKey, Volume, found_identities};
use tracing::{info, warn};

use crate::configuration::Configuration;
use crate::private_directory::{self, Missing, Refused};
use crate::serve::front::WantedFront;
use crate::serve::persisted::WRITE_VERIFIER;
use crate::serve::persisted::last_run::{LastRun, Standing, StartRecord};
use crate::serve::start::memory;
use crate::settings::{ArenaLocation, LockMemory};

/// Between two tries to open inherited files.
const TRY_EVERY_NS: u64 = Nanos::SECOND;

/// Descriptors of the cache's memory in the service manager's store. The front may have more there.
pub(crate) const MEMORY_IN_STORE: u64 = 1;

/// The pause after a failed start, if systemd has data for the next server. systemd starts that one at once. After too
/// many starts in a minute it gives up and drops the data (`packaging/afflux.service`).
const PAUSE: Duration = Duration::from_secs(5);

/// The memory that a configuration asks for.
pub(crate) struct WantedMemory<'a> {
    arena: Option<&'a ArenaLocation>,
    bytes: u64,
    has_store: bool,
}

impl<'a> WantedMemory<'a> {
    pub(crate) fn of(configuration: &'a Configuration) -> Self {
        let settings = &configuration.settings;
        Self { arena: settings.arena.as_ref(), bytes: configuration.cache_bytes, has_store: settings.has_store() }
    }
}

/// The memory for a cache, before there is an engine.
pub(crate) struct CacheMemory {
    bytes: u64,
    arena: Option<(ArenaFile, ArenaContents)>,
}

impl CacheMemory {
    /// Takes the memory of `--arena`, if the settings have one. Waits for a server that is about to end.
    pub(crate) fn open(wanted: &WantedMemory<'_>, store: &mut DescriptorStore, front: &WantedFront) -> Outcome<Self> {
        if wanted.arena != Some(&ArenaLocation::Systemd) {
            drop_stored(store)?;
        }
        let bytes = wanted.bytes;
        let Some((place, layout)) = demanded(wanted, front)? else { return Ok(Self { bytes, arena: None }) };
        let name = match place {
            ArenaLocation::File(path) => output::shown(path.display()),
            ArenaLocation::Systemd => "--arena systemd".to_owned(),
        };
        let mut told = |wait| warn!("{name}: {wait}");
        let opened = match place {
            ArenaLocation::File(path) => ArenaFile::open(path, layout, &mut told),
            ArenaLocation::Systemd => {
                let refusal = |error| Failure::wrong_use(format!("{name}: {error}, or name a file"));
                store.check_capacity(MEMORY_IN_STORE + front.in_store()).map_err(refusal)?;
                let mut refused =
                    |error| warn!("{name}: the memory that systemd has is not used, and made anew: {error}");
                ArenaFile::in_store(store, layout, &mut told, &mut refused)
            }
        };
        let opened = opened.map_err(|error| {
            if *place == ArenaLocation::Systemd && error.is_of_another_version() {
                pause_before_next_start();
            }
            Failure::failed(format!("{name}: {error}"))
        })?;
        Ok(Self { bytes, arena: Some(opened) })
    }

    /// Finds what [`Self::open`] and [`Self::engine`] would refuse, and changes nothing. A file may be in use by the
    /// process `own`. Only a server that systemd starts can find out whether systemd stores memory. Returns the memory
    /// that a start would inherit.
    pub(crate) fn check(
        wanted: &WantedMemory<'_>,
        lock: LockMemory,
        front: &WantedFront,
        own: Option<u32>,
    ) -> Outcome<Option<Self>> {
        let demanded = demanded(wanted, front)?;
        if lock == LockMemory::On {
            // Another process's locked memory does not count. Memory of a file counts as this does.
            let frames = frames(wanted.bytes)?;
            let locked = memory::prepare().and_then(|()| frames.arena().lock());
            memory::note_locked(locked, lock, &mut Vec::new())?;
        }
        match demanded {
            // The server that runs has its memory already.
            None if own.is_some() => Ok(None),
            None => frames(wanted.bytes).map(|_| None),
            Some((ArenaLocation::File(path), layout)) => {
                let found = ArenaFile::check(path, layout, own).or_failed(output::shown(path.display()))?;
                let inherited = |(file, memory)| Self {
                    bytes: wanted.bytes,
                    arena: Some((file, ArenaContents::Inherited(memory))),
                };
                Ok(found.map(inherited))
            }
            Some((ArenaLocation::Systemd, _)) => Ok(None),
        }
    }

    /// Finds what [`Self::unless_passed_over`] and the files' return would refuse, and changes nothing. Returns the
    /// words of a start about what it finds.
    pub(crate) fn rehearse(
        &self,
        last: &io::Result<LastRun>,
        starts: &StartRecord,
        found: impl Fn(&Recovered) -> (Vec<String>, usize),
    ) -> Outcome<Vec<String>> {
        let Some((file, ArenaContents::Inherited(memory))) = &self.arena else { return Ok(Vec::new()) };
        if self.is_passed_over(last, starts, &found)? {
            return Ok(Vec::new());
        }
        let recovered = Recovered::look(Arc::clone(memory));
        match found(&recovered) {
            (_, 0) => Ok([Some(found_words(file, &recovered)), broken_words(file, &recovered)]
                .into_iter()
                .flatten()
                .collect()),
            (_, elsewhere) => Err(files_elsewhere(elsewhere)),
        }
    }

    /// Whether systemd has data of an earlier server in it.
    pub(crate) fn is_inherited_in_store(&self) -> bool {
        matches!(&self.arena, Some((file, ArenaContents::Inherited(_))) if file.path().is_none())
    }

    /// Whether it has data of an earlier server.
    pub(crate) fn is_inherited(&self) -> bool {
        matches!(&self.arena, Some((_, ArenaContents::Inherited(_))))
    }

    /// Whether the memory outlives this process.
    pub(crate) fn is_persistent(&self) -> bool {
        self.arena.is_some()
    }

    /// The same memory, made anew if another server has served since and no bytes are unwritten.
    ///
    /// # Errors
    /// Another server has served since, and the memory has unwritten bytes. The files may have newer bytes.
    pub(crate) fn unless_passed_over(
        self,
        last: &io::Result<LastRun>,
        starts: &StartRecord,
        found: impl FnOnce(&Recovered) -> (Vec<String>, usize),
    ) -> Outcome<Self> {
        if !self.is_passed_over(last, starts, found)? {
            return Ok(self);
        }
        let Some((file, contents)) = self.arena else { return Ok(self) };
        drop(contents);
        let layout = Layout::new(self.bytes, FILE_SLOTS).map_err(Failure::failed)?;
        let shown = output::shown(&file);
        let (file, memory) = file.renewed(layout).or_failed(&shown)?;
        Ok(Self { arena: Some((file, ArenaContents::Fresh(memory))), ..self })
    }

    /// Whether another server has served since the one that left the memory. None of its bytes are unwritten then.
    ///
    /// # Errors
    /// As [`Self::unless_passed_over`].
    fn is_passed_over(
        &self,
        last: &io::Result<LastRun>,
        starts: &StartRecord,
        found: impl FnOnce(&Recovered) -> (Vec<String>, usize),
    ) -> Outcome<bool> {
        let Some((file, ArenaContents::Inherited(memory))) = &self.arena else { return Ok(false) };
        let run_id = memory.header().number();
        let why = passed_over(run_id, last).or_else(|| passed_over_elsewhere(run_id, starts));
        let Some(why) = why else { return Ok(false) };
        let recovered = Recovered::look(Arc::clone(memory));
        let shown = output::shown(file);
        if recovered.files().next().is_none() && recovered.quarantined().pages == 0 {
            return Ok(true);
        }
        let (names, elsewhere) = found(&recovered);
        if elsewhere > 0 {
            return Err(files_elsewhere(elsewhere));
        }
        let unwritten = Unwritten::of(&recovered);
        let names = names.iter().map(output::shown).map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
        let without = match file.path() {
            Some(path) => format!("rm {}", output::shown(path.display())),
            None => "systemctl stop, then start, of its unit".to_owned(),
        };
        Err(Failure::failed(format!(
            "{shown}: {why}. It has {unwritten} ({names}), which may be older than the files are now, and are not written. \
             To go on without them: {without}"
        )))
    }

    /// The engine over the memory, and the memory's file.
    pub(crate) fn engine(
        self,
        platform: &LinuxPlatform,
        knobs: Knobs,
        policies: Policies,
        write_home: impl FnOnce(&Recovered) -> Outcome,
    ) -> Outcome<(Arc<Engine<LinuxPlatform>>, Option<ArenaFile>)> {
        let own = Arc::new(platform.clone());
        let Some((file, contents)) = self.arena else {
            return Ok((Engine::with_policies(own, knobs, frames(self.bytes)?, policies), None));
        };
        let engine = match contents {
            ArenaContents::Fresh(memory) => Engine::with_policies(own, knobs, Frames::over(memory, &[]), policies),
            ArenaContents::Inherited(memory) => {
                let (recovered, verifier) = (Recovered::look(memory), platform.random_u64());
                report(&file, &recovered);
                if is_last_resort(&recovered) {
                    write_home(&recovered)?;
                    Engine::with_policies(own, knobs, recovered.written(verifier), policies)
                } else {
                    Engine::recover(own, knobs, recovered, verifier, policies)
                }
            }
        };
        let bytes = u64::from(engine.frames().total()) * afflux_frames::FRAME_BYTES as u64;
        if bytes != self.bytes {
            info!("the cache keeps its {} until the server has ended with everything written", units::data(bytes));
        }
        Ok((engine, Some(file)))
    }
}

/// The location and form of the memory of `--arena`, if the other settings go with it.
fn demanded<'a>(wanted: &WantedMemory<'a>, front: &WantedFront) -> Outcome<Option<(&'a ArenaLocation, Layout)>> {
    let Some(place) = wanted.arena else { return Ok(None) };
    if wanted.has_store {
        return Err(Failure::wrong_use(
            "--arena is for directories: bytes that a store's server has accepted are in the store",
        ));
    }
    if front.point().is_some() && *place != ArenaLocation::Systemd {
        return Err(Failure::wrong_use(
            "--arena FILE is for NFS clients: a mount ends with its server, unless systemd keeps it (--arena systemd)",
        ));
    }
    if let ArenaLocation::File(path) = place {
        refuse_others_way(path)?;
    }
    let layout = Layout::new(wanted.bytes, FILE_SLOTS).map_err(Failure::failed)?;
    Ok(Some((place, layout)))
}

/// Fails if another user could put something into the file's path.
fn refuse_others_way(path: &Path) -> Outcome {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = absolute.parent().unwrap_or(&absolute);
    match private_directory::way(folder, Missing::Leave) {
        Err(Refused::Unsafe(reason)) => Err(Failure::failed(format!(
            "--arena: {reason}; name a file on a path that only this user and root can change"
        ))),
        // The opening reports what the host refuses.
        _ => Ok(()),
    }
}

fn frames(bytes: u64) -> Outcome<Frames> {
    Frames::new(bytes)
        .map_err(|error| Failure::failed(format!("no memory for the cache: {error}; try a smaller --cache")))
}

/// Fails if the memory outlives the server, and files cannot be opened by handle.
pub(crate) fn needs_handles(is_persistent: bool, tree: &dyn Directory) -> Outcome<bool> {
    let by_handle = tree.exports().iter().all(|export| tree.may_open(&export.root.identity));
    match is_persistent && !by_handle {
        true => Err(Failure::wrong_use(
            "--arena takes the right to open files by handle: root or CAP_DAC_READ_SEARCH, a file system that has handles \
             (ext4, XFS, Btrfs), and no --subtree-check",
        )),
        false => Ok(by_handle),
    }
}

/// Whether servers end so soon and so often that the found data may be the cause.
fn is_last_resort(recovered: &Recovered) -> bool {
    let recoveries = recovered.recoveries();
    if recoveries >= RECOVERIES_MAX {
        warn!(
            "{recoveries} servers ended within a minute of their start; the data is written home first, without a cache"
        );
    }
    recoveries >= RECOVERIES_MAX
}

/// Has systemd drop what it stores of an earlier server that had other settings.
fn drop_stored(store: &mut DescriptorStore) -> Outcome {
    if ArenaFile::take_stored(store).is_empty() {
        return Ok(());
    }
    warn!("systemd has the cache of an earlier server, which is dropped: these settings have no `--arena systemd`");
    ArenaFile::forget_stored().or_failed("cannot tell systemd")
}

/// Delays the end of a server that did not start, so that systemd does not give up.
pub(crate) fn pause_before_next_start() {
    info!("systemd keeps unwritten data for the next server; this one ends in {} s", PAUSE.as_secs());
    sleep(PAUSE);
}

/// Why the memory of this run is not of the last server; none if it is.
fn passed_over(run_id: Option<u64>, last: &io::Result<LastRun>) -> Option<String> {
    match (last, run_id) {
        (Ok(LastRun::Begun { run_id: last }), Some(run_id)) if *last == run_id => None,
        // A server made the memory, and was killed before it drew a number.
        (Ok(LastRun::Unknown), None) => None,
        (Ok(LastRun::Begun { .. } | LastRun::Ended { .. }), _) => {
            Some("another server has served since the one that left this memory".to_owned())
        }
        (Ok(LastRun::Unknown), Some(_)) => Some(
            "this state directory is not of the server that left this memory (--state names that server's directory)"
                .to_owned(),
        ),
        (Err(error), _) => Some(format!(
            "whether another server has served since the one that left this memory is unknown ({WRITE_VERIFIER} in the \
             state directory: {error})"
        )),
    }
}

/// Why the memory of this run is not of the last server here, although the state directory has the run's id.
fn passed_over_elsewhere(run_id: Option<u64>, starts: &StartRecord) -> Option<String> {
    match starts.standing(run_id) {
        Ok(Standing::Last) => None,
        // A start is noted before it gives the memory its number.
        Ok(Standing::Unknown) if run_id.is_none() => None,
        Ok(Standing::Unknown) => Some(
            "whether another server has served since the one that left this memory is unknown: the record of starts \
             does not have that one"
                .to_owned(),
        ),
        Ok(Standing::PassedOver { by }) => {
            Some(format!("another server has served {by} since the one that left this memory"))
        }
        Err(error) => Some(format!(
            "whether another server has served since the one that left this memory is unknown (the record of starts: \
             {error})"
        )),
    }
}

/// How much an earlier server has not written.
struct Unwritten {
    bytes: u64,
    files: usize,
}

impl Unwritten {
    fn of(recovered: &Recovered) -> Self {
        let pages: u64 = recovered.files().map(|(_, dirty)| dirty as u64).sum();
        Self { bytes: pages * afflux_frames::FRAME_BYTES as u64, files: recovered.files().count() }
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} unwritten of {} files", units::data(self.bytes), self.files)
    }
}

fn report(arena: &ArenaFile, recovered: &Recovered) {
    info!("{}", found_words(arena, recovered));
    if let Some(broken) = broken_words(arena, recovered) {
        warn!("{broken}");
    }
}

fn found_words(arena: &ArenaFile, recovered: &Recovered) -> String {
    let Unwritten { bytes, files } = Unwritten::of(recovered);
    format!("an earlier server left {} unwritten in {}, of {files} files", units::data(bytes), output::shown(arena))
}

/// The words about what breaks a rule, if anything does.
fn broken_words(arena: &ArenaFile, recovered: &Recovered) -> Option<String> {
    let broken = recovered.quarantined();
    (broken.files + broken.pages > 0).then(|| {
        format!(
            "{} pages and {} files in {} are in a state that no kill leaves; they are not written{}",
            broken.pages,
            broken.files,
            output::shown(arena),
            if recovered.needs_new_verifier() { ", and clients send uncommitted data again" } else { "" }
        )
    })
}

/// The warning that a start like that of this command is refused, since systemd alone gives a server its memory.
pub(crate) fn only_by_unit(wanted: &WantedMemory<'_>) -> Option<String> {
    let error = DescriptorStore::default().check_capacity(MEMORY_IN_STORE).err()?;
    let is_wanted = wanted.arena == Some(&ArenaLocation::Systemd);
    is_wanted.then(|| format!("--arena systemd: {error}; a start by its unit alone succeeds"))
}

/// Fails if there are inherited files that this server does not serve.
pub(crate) fn refuse_files_elsewhere(volume: &Volume<LinuxPlatform>) -> Outcome {
    match volume.found_elsewhere() {
        0 => Ok(()),
        files => Err(files_elsewhere(files)),
    }
}

/// Opens the inherited files, in a task of the platform, until all are open.
pub(crate) fn adopt_files(engine: &Engine<LinuxPlatform>, volume: &Arc<Volume<LinuxPlatform>>) {
    if engine.found_files().is_empty() {
        return;
    }
    let (platform, volume) = (engine.platform().clone(), Arc::downgrade(volume));
    engine.platform().spawn("adopt files", async move {
        let mut is_told = false;
        while let Some(volume) = volume.upgrade() {
            let adopted = volume.adopt_found().await;
            tell(&adopted, is_told);
            if adopted.failed.is_none() {
                return;
            }
            is_told = true;
            drop(volume);
            platform.sleep_until(platform.now().after(TRY_EVERY_NS)).await;
        }
    });
}

/// Reports what became of the files.
fn tell(adopted: &AdoptedFiles, is_told: bool) {
    if adopted.files > 0 {
        info!("{} files are open again, with {} unwritten", adopted.files, units::data(adopted.dirty_bytes));
    }
    if adopted.gone > 0 {
        warn!("{} files that an earlier server had open are gone; their unwritten bytes were dropped", adopted.gone);
    }
    if let (Some((file, error)), false) = (&adopted.failed, is_told) {
        warn!("the file {file} of an earlier server cannot be opened: {error}; it is tried again each second");
    }
}

/// Waits until all files of an earlier server are open, so that their pages can be written.
pub(crate) fn adopt_rest(engine: &Engine<LinuxPlatform>, volume: &Volume<LinuxPlatform>) -> Outcome {
    if engine.found_files().is_empty() {
        return Ok(());
    }
    match engine.platform().block_on(volume.adopt_found()).failed {
        None => Ok(()),
        Some((file, error)) => {
            Err(Failure::failed(format!("the file {file} of an earlier server is not written: {error}")))
        }
    }
}

/// The end of a server that has written everything: the next one finds no file.
pub(crate) fn end(arena: &ArenaFile, engine: &Engine<LinuxPlatform>) {
    if let Err(error) = arena.remove(engine.frames().memory()) {
        info!("{} stays, without contents: {error}", output::shown(arena));
    }
}

/// The first words of a server that ends without waiting for its writes.
pub(crate) fn stopped_at_once(is_written: bool, arena: Option<&ArenaFile>) -> String {
    match (is_written, arena) {
        (true, _) => "Stopped at once; everything was written.".to_owned(),
        (false, None) => "Stopped at once; not everything was written:".to_owned(),
        (false, Some(arena)) => {
            format!("Stopped at once; the rest is in {} for the next server:", output::shown(arena))
        }
    }
}

/// After a quiet minute the next recovery is the first one again.
pub(crate) fn forget_recoveries(engine: &Engine<LinuxPlatform>) {
    engine.frames().memory().header().set_recoveries(0);
}

/// After so many recoveries, each within a minute of the one before, the found data itself may be the cause.
pub(crate) const RECOVERIES_MAX: u64 = 3;

/// The refusal of files that this server does not serve.
pub(crate) fn files_elsewhere(files: usize) -> Failure {
    Failure::failed(format!(
        "an earlier server left {files} files that are below none of these directories; serve the same directories with the \
         same --state and --arena, and stop that server in order; without its memory (`rm`, or a stop of the unit) they are \
         lost"
    ))
}

/// Most files that are named for people.
const NAMED_MAX: usize = 4;

/// The paths of some found files, for people, and the number of files that this server does not serve.
pub(crate) fn named(
    platform: &LinuxPlatform,
    tree: &HostTree,
    key: &HandleKey,
    recovered: &Recovered,
) -> (Vec<String>, usize) {
    let keys = recovered.files().map(|(key, _)| *key).collect();
    let (files, elsewhere) = found_identities(tree, key, keys);
    let path = |identity| platform.block_on(tree.path_of(identity)).map(|path| path.display().to_string());
    let mut names: Vec<String> = files.iter().take(NAMED_MAX).filter_map(|(_, identity)| path(*identity)).collect();
    if files.len() > NAMED_MAX {
        names.push("others".to_owned());
    }
    (names, elsewhere)
}

/// Writes all found files home and makes them durable.
pub(crate) fn write_home(platform: &LinuxPlatform, tree: &HostTree, key: &HandleKey, recovered: &Recovered) -> Outcome {
    let keys = recovered.files().map(|(key, _)| *key).collect();
    let (files, elsewhere) = found_identities(tree, key, keys);
    if elsewhere > 0 {
        return Err(files_elsewhere(elsewhere));
    }
    let (mut written_bytes, mut gone) = (0, 0);
    for (key, identity) in files {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("the file {identity:?} of an earlier server cannot be written: {error}"))
        };
        match platform.block_on(tree.open_to_rescue(identity)) {
            Ok(Some(mut file)) => {
                written_bytes += recovered.write_home(&key, &mut file).map_err(|error| failed(&error))?;
            }
            Ok(None) => gone += 1,
            // It is clean, and its next opening flushes at the first sync.
            Err(_) if !recovered.is_owed(&key) => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    info!("{} were written home", units::data(written_bytes));
    if gone > 0 {
        warn!("{gone} files that an earlier server had open are gone");
    }
    Ok(())
}
