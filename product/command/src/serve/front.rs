//! How programs reach a server's files: over the network, or by a mount on this host.
//!
//! Owns: the two fronts, their preparation while the process has all its rights, their rehearsal for `--check`, their
//! end; the refusal of mount points that can only be a mistake.
//! Does not own: the protocols (crates), the order of start, check and end (`serve`).
//! Invariants: after [`Front::finish`] no call is taken any more, and those taken before are answered. Nobody but this
//! process sees the mount of a rehearsal, and it is gone at once. An error about a mount point names the point, the
//! files that the mount would hide, and the remedy.

pub(crate) mod admission;
pub(crate) mod banner;
pub(crate) mod listening;
pub(crate) mod rpcbind;
pub(crate) mod tls;

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io, thread};

use afflux_engine::{Engine, Nanos, Platform, lock};
use afflux_frames::{Part, REPLY_BYTES};
use afflux_frontend::{CountedRow, Peer, Recording};
use afflux_fuse::{
    Mount, MountOptions, MountState, MountStateError, PERSISTED_WORDS, Requesters, SyncedChanges, ThreadRights,
};
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::{
    DescriptorStore, FuseMount, FuseSession, HostTree, Listener, MOUNT_DESCRIPTORS, MountFlags, MountMemory,
    MountTarget, OwnMounts, PersistedMount, ServeHandle, SyncFlags, connections_max, is_killed, is_over,
    may_act_as_others, process_of, rights_of, serve,
};
use afflux_nfs::{Rules, Server};
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::output;
use afflux_tls::TlsMachine;
use afflux_volume::Volume;
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::private_directory::Missing;
use crate::serve::front::listening::{cannot_listen, limits, report_refused};
use crate::serve::front::tls::Tls;
use crate::serve::persisted::StateDirectory;
use crate::serve::persisted::client_state::{self, ClientState, PersistedClients};
use crate::serve::persisted::last_run::StartRecord;
use crate::serve::persisted::persisted_mount::{NOT_SEPARATED, Taken, own_view, unmounter};
use crate::serve::start::memory;
use crate::service::SignalRequest;
use crate::settings::{LockMemory, NfsVersion, OF_MOUNT, ServeSettings};
use crate::unmounter::{Unmounter, Unmounting};

const NOT_MOUNTED: &str = "cannot mount";

/// Longest time for answering calls in progress once the server is stopping.
const FINISH_NS: u64 = 2 * Nanos::SECOND;

/// The front that a command asks for.
#[derive(Clone, Debug)]
pub(crate) struct WantedFront {
    /// NFS on the address in the settings, and the newest version that clients get.
    nfs: Option<NfsVersion>,
    /// Clients of version 4 get delegations.
    delegates: bool,
    /// The service manager stores the socket and the mount.
    is_persistent: bool,
    mount: Option<WantedMount>,
}

/// A mount that a command asks for.
#[derive(Clone, Debug)]
struct WantedMount {
    point: MountTarget,
    options: MountOptions,
    flags: SyncFlags,
    /// The tree is one of the host, and the mount must not hide it from the server.
    is_of_host: bool,
    /// The point is the directory that is served.
    over_itself: bool,
}

/// The parts of a mount that this process has before it opens the served tree.
pub(crate) struct Separated(Option<SeparatedMount>);

struct SeparatedMount {
    unmounter: Unmounter,
    /// For root's mount of a host's directory: a view of the mounts without ours.
    own: Option<OwnMounts>,
    /// The mount of an earlier server, with the contents of its memory.
    persisted: Option<(PersistedMount, MountState)>,
}

/// The facts about a tree that its mount depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfTree {
    /// The tree checks each user's rights by itself. The server's own rights do not matter.
    pub(crate) checks_rights: bool,
    /// Only this server changes the tree.
    pub(crate) is_sole: bool,
}

/// A front that takes no calls yet. It has what takes rights that the process then gives up.
pub(crate) struct PreparedFront {
    nfs: Option<(Listener, SocketAddr, NfsVersion)>,
    /// Clients of version 4 get delegations.
    delegates: bool,
    pub(crate) tls: Option<Tls>,
    is_persistent: bool,
    mount: Option<PreparedMount>,
}

struct PreparedMount {
    mounted: FuseMount,
    unmounter: Unmounter,
    wanted: WantedMount,
    memory: Option<PreparedMemory>,
}

/// Memory for a mount that outlives its server.
struct PreparedMemory {
    memory: MountMemory,
    contents: MountState,
    /// It is from an earlier server.
    is_inherited: bool,
}

/// A front in use: connections, a mount, or both over one engine.
pub(crate) struct Front {
    pub(crate) nfs: Option<NfsFront>,
    pub(crate) mount: Option<MountFront>,
}

/// Connections of NFS clients.
pub(crate) struct NfsFront {
    pub(crate) server: Arc<Server<LinuxPlatform>>,
    pub(crate) listen: SocketAddr,
    pub(crate) handle: ServeHandle,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) connections_max: usize,
    is_persistent: bool,
    /// The state of clients of version 4, if it is persisted here.
    persisted_state: Option<ClientState>,
}

impl NfsFront {
    /// Persists the clients of version 4 for the next server, after the last answer.
    pub(crate) fn keep_clients(&self) {
        self.persisted_state.iter().for_each(ClientState::keep);
    }
}

/// A mount by this host's kernel.
pub(crate) struct MountFront {
    pub(crate) mount: Arc<Mount<LinuxPlatform>>,
    session: Arc<FuseSession>,
    unmounter: Mutex<Unmounter>,
    pub(crate) point: PathBuf,
    is_persistent: bool,
}

impl WantedFront {
    /// NFS up to this version, and a mount if the settings have one.
    pub(crate) fn of(nfs: Option<NfsVersion>, settings: &ServeSettings, is_persistent: bool) -> Outcome<Self> {
        let (places, is_read_only, delegates) =
            (&settings.directories, settings.at_once.read_only, settings.delegations);
        let settings = &settings.mount;
        let Some(point) = &settings.point else {
            if settings.needs_point(delegates) {
                let names = OF_MOUNT.map(|name| format!("--{}", name.replace('_', "-"))).join(", ");
                return Err(Failure::wrong_use(format!("{names} are settings of a mount; --mount names one")));
            }
            return Ok(Self { nfs, delegates, is_persistent, mount: None });
        };
        if places.len() > 1 {
            return Err(Failure::wrong_use("--mount takes one directory"));
        }
        let directory = places.first().and_then(|place| host_path(place).canonicalize().ok());
        let point = at(point, directory.as_deref())?;
        if is_persistent && !geteuid().is_root() {
            return Err(Failure::wrong_use(
                "--arena systemd with a mount takes root: the next server must hide it from itself",
            ));
        }
        let over_itself = directory.as_deref() == Some(point.path());
        let options = MountOptions {
            acts_as_callers: false,
            kernel_cache: settings.kernel_cache,
            sole: settings.sole || over_itself,
            shares_locks: nfs == Some(NfsVersion::V4),
            is_read_only,
        };
        let is_of_host = directory.is_some();
        let flags = SyncFlags { sync: settings.sync, dirsync: settings.dirsync };
        let mount = WantedMount { point, options, flags, is_of_host, over_itself };
        Ok(Self { nfs, delegates, is_persistent, mount: Some(mount) })
    }

    /// Refuses a mount over a directory that is mounted already: this server would serve the other server's mount.
    pub(crate) fn refuse_mounted(&self) -> Outcome {
        match &self.mount {
            Some(WantedMount { point, over_itself: true, .. }) if !self.is_persistent && point.is_mounted() => {
                let point = output::shown(point.path().display());
                Err(Failure::failed(format!(
                    "{point} is mounted by Afflux already: `afflux umount {point}` ends that mount and its server"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The number of its descriptors in the service manager's store.
    pub(crate) fn in_store(&self) -> u64 {
        u64::from(self.nfs.is_some()) + if self.mount.is_some() { MOUNT_DESCRIPTORS } else { 0 }
    }

    pub(crate) fn point(&self) -> Option<&Path> {
        self.mount.as_ref().map(|mount| mount.point.path())
    }

    /// Whether NFS clients can come.
    pub(crate) fn has_clients(&self) -> bool {
        self.nfs.is_some()
    }

    /// Whether the service manager stores the front over a kill of the server.
    pub(crate) fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// The process that unmounts and the views of the host's mounts, as far as this process does not have them yet.
    pub(crate) fn separated(&self, taken: Taken) -> Outcome<Separated> {
        let Some(WantedMount { point, is_of_host, .. }) = &self.mount else { return Ok(Separated(None)) };
        let unmounter = match (taken.unmounter, &taken.own) {
            (Some(unmounter), _) => unmounter,
            (None, Some(own)) => own.in_common(|| unmounter(point.path())).or_failed(NOT_SEPARATED)??,
            (None, None) => unmounter(point.path())?,
        };
        let own = match taken.own {
            Some(own) => Some(own),
            None => (geteuid().is_root() && *is_of_host).then(own_view).transpose()?,
        };
        Ok(Separated(Some(SeparatedMount { unmounter, own, persisted: taken.persisted })))
    }

    /// The address where clients will come, if they come over the network. Nobody is let in yet
    /// ([`PreparedFront::start`]).
    pub(crate) fn listening(&self, listen: SocketAddr, store: &mut DescriptorStore) -> Outcome<Option<Listener>> {
        self.has_clients().then(|| listening::bound(listen, store, self.is_persistent)).transpose()
    }

    /// The front with all that takes rights. Calls on a mount wait until it is served.
    pub(crate) fn prepared(
        &self,
        listening: Option<(Listener, SocketAddr)>,
        source: Option<&PathBuf>,
        Separated(separated): Separated,
        own_places: &[PathBuf],
    ) -> Outcome<PreparedFront> {
        if let (Some(SeparatedMount { own: Some(own), .. }), Some(source)) = (&separated, source) {
            let persisted = own.keep_only(&needed(own_places), &[host_path(source).to_owned()]);
            persisted.or_failed("cannot give up other disks' mounts")?;
        }
        // `afflux eject` searches for the disk of the directory.
        let source = source.map(|source| source.canonicalize().unwrap_or_else(|_| source.clone()));
        let source = source.unwrap_or_else(|| PathBuf::from("afflux"));
        let mount = self.mount.as_ref().zip(separated);
        let mount = mount.map(|(wanted, separated)| mounted(wanted, &source, separated, self.is_persistent));
        Ok(PreparedFront {
            nfs: listening.zip(self.nfs).map(|((listener, listen), version)| (listener, listen, version)),
            delegates: self.delegates,
            tls: None,
            is_persistent: self.is_persistent,
            mount: mount.transpose()?,
        })
    }

    /// The name of the control socket, unless the user gives one.
    pub(crate) fn socket_name(&self, listen: SocketAddr) -> String {
        match &self.mount {
            Some(WantedMount { point, .. }) if !self.has_clients() => {
                // A path may be longer than a socket's.
                let number = fs::metadata(point.path()).map(|found| (found.dev(), found.ino())).unwrap_or_default();
                format!("mount-{}-{}.sock", number.0, number.1)
            }
            _ => format!("{}-{}.sock", listen.ip(), listen.port()),
        }
    }

    /// Whether the server's own host uses it, so that the host's reclaim waits for the server.
    pub(crate) fn has_own_clients(&self, listen: SocketAddr, asked: LockMemory) -> bool {
        let by_mount = self.mount.is_some() && asked != LockMemory::Off;
        by_mount || self.has_clients() && memory::are_served(listen.ip(), asked)
    }

    /// The record of starts. Its directory must not be below the mount.
    pub(crate) fn start_record(
        &self,
        tree: Option<&HostTree>,
        state: &StateDirectory,
        missing: Missing,
    ) -> StartRecord {
        StartRecord::of(tree, state, missing, |directory| {
            self.refuse_below(&[("the record of starts", Some(directory))])
        })
    }

    /// Refuses paths of the server itself below a mount: it would call itself, and wait for itself.
    pub(crate) fn refuse_below(&self, own: &[(&str, Option<&Path>)]) -> Outcome {
        let Some(WantedMount { point, .. }) = &self.mount else { return Ok(()) };
        for (what, path) in own.iter().filter_map(|(what, path)| Some((what, (*path)?))) {
            let real = path.ancestors().find_map(|part| part.canonicalize().ok());
            if real.is_some_and(|real| real.starts_with(point.path())) {
                return Err(Failure::wrong_use(format!(
                    "{what} {} would be below the mount {}, and the server would wait for itself; name another place",
                    output::shown(path.display()),
                    output::shown(point.path().display())
                )));
            }
        }
        Ok(())
    }
}

impl PreparedFront {
    pub(crate) fn has_nfs(&self) -> bool {
        self.nfs.is_some()
    }

    /// Whether clients of version 4 can come.
    pub(crate) fn has_version_4(&self) -> bool {
        self.nfs.as_ref().is_some_and(|(_, _, version)| *version == NfsVersion::V4)
    }

    /// Takes calls from now on.
    pub(crate) fn start(
        self,
        platform: &LinuxPlatform,
        engine: &Arc<Engine<LinuxPlatform>>,
        volume: &Arc<Volume<LinuxPlatform>>,
        rules: Rules,
        tree: OfTree,
        clients: impl FnOnce() -> Outcome<PersistedClients>,
    ) -> Outcome<Front> {
        let mut front = Front { nfs: None, mount: None };
        if let Some((listener, listen, version)) = self.nfs {
            // Not before: a standby has waited for its store, and no client waits for a standby.
            listener.listen().map_err(|error| cannot_listen(listen, &error))?;
            if self.is_persistent {
                listening::keep(&listener);
            }
            let memory = engine.frames().memory();
            let replies = memory
                .may_outlive_process()
                .then(|| Arc::new(memory.table::<[AtomicU64; REPLY_BYTES / 8]>(Part::Replies)) as _);
            let server = Server::keeping(Arc::clone(volume), rules.into(), replies);
            let mut persisted_state = None;
            if version == NfsVersion::V4 {
                if self.delegates {
                    server.offer_delegations();
                }
                let (persisted, left) = ClientState::taken(memory, clients()?);
                server.offer_version_4(left);
                // A mount begins after this, too: its programs must not pass the locks of clients.
                platform.block_on(server.recovered());
                persisted_state = persisted;
                client_state::report(&server);
            }
            let tls = self.tls.map(Arc::new);
            tls.iter().for_each(|tls| server.offer_tls(tls.how));
            let (machines, secured) = (Arc::clone(&server), tls.as_ref().map(|tls| Arc::clone(&tls.server)));
            let machine = move |peer: Peer| {
                let machine = machines.connection(peer);
                match &secured {
                    Some(tls) => Box::new(TlsMachine::new(machine, Arc::clone(tls), peer)) as _,
                    None => Box::new(machine) as _,
                }
            };
            let handle = serve(platform, vec![listener], limits(engine), report_refused(), machine);
            let is_persistent = self.is_persistent;
            let connections_max = connections_max();
            front.nfs = Some(NfsFront { server, listen, handle, tls, connections_max, is_persistent, persisted_state });
        }
        if let Some(mount) = self.mount {
            let recording = front.nfs.as_ref().map_or_else(Arc::default, |nfs| Arc::clone(nfs.server.recording()));
            front.mount = Some(mount.start(platform, volume, recording, tree)?);
        }
        Ok(front)
    }
}

impl PreparedMount {
    fn start(
        mut self,
        platform: &LinuxPlatform,
        volume: &Arc<Volume<LinuxPlatform>>,
        recording: Arc<Recording>,
        tree: OfTree,
    ) -> Outcome<MountFront> {
        const NOT_SERVED: &str = "cannot serve the mount";
        let root = platform.block_on(volume.mount(b"/")).or_failed(NOT_SERVED)?;
        let options = MountOptions {
            acts_as_callers: tree.checks_rights || may_act_as_others(),
            sole: self.wanted.options.sole || tree.is_sole,
            ..self.wanted.options
        };
        let volume_of_mount = Arc::clone(volume);
        let requesters = HostRequesters { flags: self.mounted.take_flags() };
        let mount = match &self.memory {
            Some(PreparedMemory { contents, is_inherited: true, .. }) => {
                let resumed = Mount::resumed(volume_of_mount, &root, options, requesters, recording, contents.clone());
                match platform.block_on(resumed) {
                    Ok((mount, lost)) => told(mount, lost),
                    Err(error) => return Err(self.given_up(&error)),
                }
            }
            memory => {
                let persisted = memory.as_ref().map(|fresh| fresh.contents.clone());
                Mount::new(volume_of_mount, &root, options, requesters, recording, persisted)
            }
        };
        self.mounted.begin(&*mount).or_failed(NOT_SERVED)?;
        if let Some(PreparedMemory { memory, .. }) = &self.memory {
            if !mount.can_outlive() {
                return Err(Failure::wrong_use(
                    "--arena systemd with a mount takes Linux 6.9 or later: an older kernel does not send again the calls \
                     that a killed server had taken; leave out --arena or the mount",
                ));
            }
            self.mounted.offer(memory).or_failed(NOT_SERVED)?;
            self.unmounter.keep();
        }
        let session = self.mounted.serve(platform, Arc::clone(&mount) as _).or_failed(NOT_SERVED)?;
        volume.listen(Some(Arc::clone(&mount) as _));
        let (session, unmounter) = (Arc::new(session), Mutex::new(self.unmounter));
        let (point, is_persistent) = (self.wanted.point.path().to_owned(), self.memory.is_some());
        Ok(MountFront { mount, session, unmounter, point, is_persistent })
    }

    /// Ends the mount of an earlier server. This process has no right to mount any more, but the next one has.
    fn given_up(mut self, error: &MountStateError) -> Failure {
        let reason = format!("the mount that systemd has is given up: {error}; the next server mounts anew");
        if let Err(error) = self.unmounter.unmount(Unmounting::Lazily) {
            warn!("it could not be unmounted: {error}");
        }
        forget_mount();
        Failure::failed(reason)
    }
}

/// The server's own paths, and the working directory if one of them is relative.
fn needed(own_places: &[PathBuf]) -> Vec<PathBuf> {
    let by_working_directory = own_places.iter().any(|place| place.is_relative());
    let directory = by_working_directory.then(std::env::current_dir).and_then(Result::ok);
    own_places.iter().cloned().chain(directory).collect()
}

/// The path of a served directory on the host. The URL of a store may name one, too (`file://`).
fn host_path(place: &Path) -> &Path {
    place.to_str().and_then(|address| address.strip_prefix("file://")).map_or(place, Path::new)
}

/// Reports the open files that ended with the earlier server.
fn told(mount: Arc<Mount<LinuxPlatform>>, lost: usize) -> Arc<Mount<LinuxPlatform>> {
    info!("the mount goes on with {} nodes and {} open files", mount.nodes(), mount.open_files());
    if lost > 0 {
        warn!("{lost} open files without a name ended with the earlier server; calls on them fail with ESTALE");
    }
    mount
}

/// Has the service manager close what it stores of the mount.
fn forget_mount() {
    if let Err(error) = PersistedMount::forget() {
        warn!("systemd keeps the mount: {error}");
    }
}

/// Mounts, with a process that unmounts at the end, or takes the mount of an earlier server.
fn mounted(
    wanted: &WantedMount,
    source: &Path,
    separated: SeparatedMount,
    is_persistent: bool,
) -> Outcome<PreparedMount> {
    let SeparatedMount { mut unmounter, own, persisted } = separated;
    let wanted = wanted.clone();
    if let Some((persisted, contents)) = persisted {
        let (mounted, memory) = persisted.into_mount();
        let memory = Some(PreparedMemory { memory, contents, is_inherited: true });
        return Ok(PreparedMount { mounted, unmounter, wanted, memory });
    }
    let memory = is_persistent.then(|| MountMemory::made(PERSISTED_WORDS)).transpose().or_failed(NOT_MOUNTED)?;
    let mut mounted = wanted.point.mount(source, wanted.flags, own.as_ref()).or_failed(NOT_MOUNTED)?;
    unmounter.set_mounted(mounted.mount_id());
    let memory = memory.map(|memory| {
        mounted.keep(&memory).or_failed(NOT_MOUNTED)?;
        let contents = MountState::fresh(memory.words()).or_failed(NOT_MOUNTED)?;
        Ok(PreparedMemory { memory, contents, is_inherited: false })
    });
    let memory = memory.transpose()?;
    Ok(PreparedMount { mounted, unmounter, wanted, memory })
}

/// The threads of this host, and the mount's flags.
struct HostRequesters {
    flags: Option<MountFlags>,
}

impl Requesters for HostRequesters {
    fn synced_changes(&self) -> SyncedChanges {
        match self.flags.as_ref().map(MountFlags::now).unwrap_or_default() {
            SyncFlags { sync: true, .. } => SyncedChanges::All,
            SyncFlags { dirsync: true, .. } => SyncedChanges::Names,
            _ => SyncedChanges::None,
        }
    }

    fn process(&self, thread: u32) -> Option<u32> {
        process_of(thread)
    }

    fn is_killed(&self, thread: u32) -> bool {
        is_killed(thread)
    }

    fn rights(&self, thread: u32, user: u32) -> Option<ThreadRights> {
        rights_of(thread, user).map(|(groups, capabilities)| ThreadRights { groups, capabilities })
    }

    fn is_over(&self, thread: u32, uid: u32, gid: u32) -> bool {
        is_over(thread, uid, gid)
    }
}

impl Front {
    /// Refuses changes by programs on the mount from here on, or no longer.
    pub(crate) fn set_mount_read_only(&self, is_read_only: bool) {
        self.mount.iter().for_each(|mount| mount.mount.set_read_only(is_read_only));
    }

    /// The address or the path at which programs find it.
    pub(crate) fn address(&self) -> String {
        let listen = self.nfs.as_ref().map(|nfs| nfs.listen.to_string());
        listen.or_else(|| self.mount.as_ref().map(|mount| mount.point.display().to_string())).unwrap_or_default()
    }

    /// What NFS has answered.
    pub(crate) fn calls_of_nfs(&self) -> Vec<CountedRow> {
        self.nfs.iter().flat_map(|nfs| nfs.server.calls()).collect()
    }

    /// What the mount has answered.
    pub(crate) fn calls_of_mount(&self) -> Vec<CountedRow> {
        self.mount.iter().flat_map(|mount| mount.mount.calls()).collect()
    }

    /// The recording of its calls, one for both kinds; none without a front.
    pub(crate) fn recording(&self) -> Option<&Arc<Recording>> {
        let of_mount = || self.mount.as_ref().map(|mount| mount.mount.recording());
        self.nfs.as_ref().map(|nfs| nfs.server.recording()).or_else(of_mount)
    }

    /// Asks for the server's end once the mount is gone, as after umount(8). Beside NFS the server goes on.
    pub(crate) fn stop_with_mount(&self, told: Sender<SignalRequest>) -> io::Result<()> {
        let Some(mount) = &self.mount else { return Ok(()) };
        let (session, point, goes_on) = (Arc::clone(&mount.session), mount.point.clone(), self.nfs.is_some());
        let is_persistent = mount.is_persistent;
        thread::Builder::new().name("mount end".to_owned()).spawn(move || {
            session.wait_for_end();
            if is_persistent {
                forget_mount();
            }
            if goes_on {
                info!("{} is unmounted; NFS clients are served on", output::shown(point.display()));
                return;
            }
            // Nobody listens once the server is ending.
            let _ = told.send(SignalRequest::Stop);
        })?;
        Ok(())
    }

    /// Takes no more calls, and has those in progress answered. The receiver is notified of the end. NFS peers that are
    /// slow to take their last replies do not delay the caller.
    pub(crate) fn finish(&self, platform: &Arc<LinuxPlatform>) -> Receiver<()> {
        let (told, finished) = mpsc::channel();
        if let Some(nfs) = &self.nfs {
            if nfs.is_persistent {
                listening::forget();
            }
            let (clock, handle) = (Arc::clone(platform), nfs.handle.clone());
            platform.spawn("finish", async move {
                handle.finish(clock.now().after(FINISH_NS)).await;
                let _ = told.send(());
            });
        }
        if let Some(mount) = &self.mount {
            mount.finish();
        }
        finished
    }
}

impl MountFront {
    /// Unmounts, which also writes mapped pages to the server. If programs use the mount, their further calls fail.
    fn finish(&self) {
        self.unmount();
        if self.is_persistent {
            forget_mount();
        }
        self.session.finish(Duration::from_nanos(FINISH_NS));
    }

    fn unmount(&self) {
        let mut unmounter = lock(&self.unmounter);
        let Err(reason) = unmounter.unmount(Unmounting::Unused) else { return };
        output::remark(format_args!(
            "{} is in use ({reason}): programs that use it get errors from now on.",
            output::shown(self.point.display())
        ));
        if let Err(reason) = unmounter.unmount(Unmounting::Lazily) {
            output::remark(format_args!("It could not be unmounted: {reason}."));
        }
    }
}

impl WantedFront {
    /// As [`Self::separated`], for a rehearsal: root will mount for this process alone. The mount of the server that is
    /// to be reloaded is out of sight.
    pub(crate) fn separated_for_rehearsal(&self) -> Outcome<Separated> {
        let mut separated = self.separated(Taken::default())?;
        if let (Some(WantedMount { point, .. }), Some(mount)) = (&self.mount, &mut separated.0)
            && geteuid().is_root()
        {
            let own = mount.own.take().map_or_else(own_view, Ok)?;
            point.uncover().or_failed(NOT_SEPARATED)?;
            mount.own = Some(own.rehearsing().or_failed(NOT_SEPARATED)?);
        }
        Ok(separated)
    }

    /// Finds what [`Self::prepared`] would refuse of a mount, and leaves none. The host's helper would mount for
    /// everybody, so it does not mount here.
    pub(crate) fn rehearse_mount(
        &self,
        source: Option<&PathBuf>,
        separated: Separated,
        own_places: &[PathBuf],
    ) -> Outcome {
        let Some(WantedMount { point, .. }) = &self.mount else { return Ok(()) };
        if !geteuid().is_root() {
            return point.check_helper().or_failed(NOT_MOUNTED);
        }
        let mount_alone = Self { nfs: None, ..self.clone() };
        mount_alone.prepared(None, source, separated, own_places).map(drop)
    }
}

/// Directories with the kernel's tables and devices.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// The one below them that has files of programs.
const SHARED_MEMORY: &str = "/dev/shm";

/// The mount point at this path, for a mount of this directory of the host.
fn at(path: &Path, directory: Option<&Path>) -> Outcome<MountTarget> {
    let point = MountTarget::at(path).map_err(|error| Failure::failed(output::shown(error)))?;
    match mistake(point.path(), directory, geteuid().is_root()) {
        Some(mistake) => Err(Failure::wrong_use(mistake)),
        None => Ok(point),
    }
}

/// What is wrong with a mount point, for people.
fn mistake(point: &Path, directory: Option<&Path>, is_root: bool) -> Option<String> {
    let shown = output::shown(point.display());
    let hides = |what: &str| {
        format!(
            "a mount at {shown} would hide {what} from the programs of this host; name an empty directory elsewhere"
        )
    };
    if point == Path::new("/") {
        return Some(hides("all files"));
    }
    let is_of_kernel = OF_KERNEL.iter().any(|table| point.starts_with(table));
    let is_of_programs = point.starts_with(SHARED_MEMORY) && point != Path::new(SHARED_MEMORY);
    if is_of_kernel && !is_of_programs {
        return Some(hides("what the kernel and programs have there"));
    }
    let directory = directory?;
    (!is_root && point.starts_with(directory)).then(|| {
        format!(
            "only root can mount over the directory itself or below it, at {shown}: another user's server would wait for \
             itself on the way; name a mount point elsewhere"
        )
    })
}

#[cfg(test)]
mod tests;
