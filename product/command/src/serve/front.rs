//! How programs reach a server's files: over the network, or by a mount on this host.
//!
//! Owns: the two fronts, their preparation while the process has all its rights, their end.
//! Does not own: the protocols (crates), the order of start and end (`serve`).
//! Invariants: after [`Front::finish`] no call is taken any more, and those taken before are answered.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use afflux_engine::{Engine, Nanos, Platform};
use afflux_frontend::{Peer, Recording};
use afflux_fuse::{Mount, MountOptions, Requesters};
use afflux_linux::{
    DescriptorStore, FuseMount, FuseSession, LinuxPlatform, Listener, MountPoint, OwnMounts, ServeHandle,
    acts_as_others, connections_max, is_killed, process_of, serve,
};
use afflux_nfs::{Rules, Server};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_volume::Volume;
use rustix::process::geteuid;
use tracing::info;

use super::listening::{self, cannot_listen, limits, report_refused};
use super::own_clients;
use super::signals::SignalRequest;
use crate::settings::{ArenaPlace, LockMemory, OF_MOUNT, Settings};
use crate::unmounter::{Unmounter, Unmounting};

/// Longest time for answering calls in progress once the server is stopping.
const FINISH_NS: u64 = 2 * Nanos::SECOND;

/// The front that a command asks for.
#[derive(Clone, Debug)]
pub(crate) struct WantedFront {
    /// NFS on the address in the settings.
    nfs: bool,
    /// The service manager keeps the socket.
    is_kept: bool,
    mount: Option<WantedMount>,
}

/// A mount that a command asks for.
#[derive(Clone, Debug)]
struct WantedMount {
    point: MountPoint,
    options: MountOptions,
}

/// A front that takes no calls yet. It has what takes rights that the process then gives up.
pub(super) struct PreparedFront {
    nfs: Option<(Listener, SocketAddr)>,
    is_kept: bool,
    mount: Option<PreparedMount>,
}

struct PreparedMount {
    mounted: FuseMount,
    unmounter: Unmounter,
    wanted: WantedMount,
}

/// A front in use: connections, a mount, or both over one engine.
pub(crate) struct Front {
    nfs: Option<NfsFront>,
    mount: Option<MountFront>,
}

/// Connections of NFS clients.
pub(crate) struct NfsFront {
    pub(crate) server: Arc<Server<LinuxPlatform>>,
    pub(crate) listen: SocketAddr,
    pub(crate) handle: ServeHandle,
    /// Most connections at a time.
    pub(crate) connections_max: usize,
    is_kept: bool,
}

/// A mount by this host's kernel.
pub(crate) struct MountFront {
    mount: Arc<Mount<LinuxPlatform>>,
    session: Arc<FuseSession>,
    unmounter: Mutex<Unmounter>,
    pub(crate) point: PathBuf,
}

/// Counts of a mount's state.
pub(crate) struct MountHolds {
    pub(crate) nodes: usize,
    pub(crate) open_files: usize,
    pub(crate) calls_waiting: usize,
}

impl WantedFront {
    /// NFS, with a mount if the settings have one.
    pub(crate) fn nfs(settings: &Settings) -> Outcome<Self> {
        let point = settings.mount.point.as_deref();
        if point.is_none() && (settings.mount.kernel_cache || settings.mount.sole) {
            let names = OF_MOUNT.map(|name| format!("--{}", name.replace('_', "-"))).join(" and ");
            return Err(Failure::wrong_use(format!("{names} are settings of a mount; --mount names one")));
        }
        let is_kept = settings.arena == Some(ArenaPlace::Systemd);
        let Some(point) = point else { return Ok(Self { nfs: true, is_kept, mount: None }) };
        if settings.directories.len() > 1 {
            return Err(Failure::wrong_use("--mount takes one directory"));
        }
        let point = MountPoint::at(point).map_err(|error| Failure::failed(output::shown(error)))?;
        Ok(Self { nfs: true, is_kept, ..Self::mount(point, settings)? })
    }

    /// A mount alone.
    pub(crate) fn mount(point: MountPoint, settings: &Settings) -> Outcome<Self> {
        let directory = settings.directories.first().and_then(|directory| directory.canonicalize().ok());
        let below = |directory: &PathBuf| point.path().starts_with(directory);
        if !geteuid().is_root() && directory.as_ref().is_some_and(below) {
            return Err(Failure::wrong_use(format!(
                "only root can mount over the directory itself or below it, at {}: another user's server would wait for \
                 itself on the way; name a mount point elsewhere",
                output::shown(point.path().display())
            )));
        }
        let over_itself = directory.as_deref() == Some(point.path());
        let options = MountOptions {
            acts_as_callers: false,
            kernel_cache: settings.mount.kernel_cache,
            sole: settings.mount.sole || over_itself,
        };
        Ok(Self { nfs: false, is_kept: false, mount: Some(WantedMount { point, options }) })
    }

    /// Whether this host mounts the files.
    pub(super) fn has_mount(&self) -> bool {
        self.mount.is_some()
    }

    /// For a mount: the process that unmounts, and as root a view of the host's mounts without ours. Comes before the
    /// first thread, and before the tree is opened.
    pub(super) fn separated(&self) -> Outcome<Option<(Unmounter, Option<OwnMounts>)>> {
        let Some(WantedMount { point, .. }) = &self.mount else { return Ok(None) };
        let unmounter = Unmounter::start(point.path())
            .map_err(|error| Failure::failed(format!("cannot start the process that unmounts at the end: {error}")))?;
        let own = geteuid().is_root().then(OwnMounts::separate).transpose();
        let own = own.map_err(|error| Failure::failed(format!("cannot separate the server's mounts: {error}")))?;
        Ok(Some((unmounter, own)))
    }

    /// The address where clients will come, if they come over the network. Nobody is let in yet
    /// ([`PreparedFront::start`]).
    pub(super) fn listening(&self, settings: &Settings, store: &mut DescriptorStore) -> Outcome<Option<Listener>> {
        self.nfs.then(|| listening::bound(settings.listen, store, self.is_kept)).transpose()
    }

    /// The front with all that takes rights. Calls on a mount wait until it is served.
    pub(super) fn prepared(
        &self,
        listener: Option<Listener>,
        listen: SocketAddr,
        source: Option<&PathBuf>,
        own: Option<(Unmounter, Option<OwnMounts>)>,
    ) -> Outcome<PreparedFront> {
        // `afflux eject` looks for the disk of the directory.
        let source = source.map(|source| source.canonicalize().unwrap_or_else(|_| source.clone()));
        let source = source.unwrap_or_else(|| PathBuf::from("afflux"));
        let mount = self.mount.as_ref().map(|wanted| mounted(wanted, &source, own)).transpose()?;
        Ok(PreparedFront { nfs: listener.map(|listener| (listener, listen)), is_kept: self.is_kept, mount })
    }

    /// The name of the control socket, unless the user gives one.
    pub(super) fn socket_name(&self, listen: SocketAddr) -> String {
        match &self.mount {
            Some(WantedMount { point, .. }) if !self.nfs => {
                // A path may be longer than a socket's.
                let number = fs::metadata(point.path()).map(|found| (found.dev(), found.ino())).unwrap_or_default();
                format!("mount-{}-{}.sock", number.0, number.1)
            }
            _ => format!("{}-{}.sock", listen.ip(), listen.port()),
        }
    }

    /// Whether the server's own host uses it, so that the host's reclaim waits for the server.
    pub(super) fn has_own_clients(&self, listen: SocketAddr, asked: LockMemory) -> bool {
        let by_mount = self.mount.is_some() && asked != LockMemory::Off;
        by_mount || self.nfs && own_clients::are_served(listen.ip(), asked)
    }

    /// Refuses paths of the server itself below a mount: it would call itself, and wait for itself.
    pub(super) fn refuse_below(&self, own: &[(&str, Option<&Path>)]) -> Outcome {
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
    pub(super) fn has_nfs(&self) -> bool {
        self.nfs.is_some()
    }

    /// Takes calls from now on.
    pub(super) fn start(
        self,
        platform: &LinuxPlatform,
        engine: &Arc<Engine<LinuxPlatform>>,
        volume: &Arc<Volume<LinuxPlatform>>,
        rules: Rules,
    ) -> Outcome<Front> {
        let mut front = Front { nfs: None, mount: None };
        if let Some((listener, listen)) = self.nfs {
            // Not before: a standby has waited for its store, and no client waits for a standby.
            listener.listen().map_err(|error| cannot_listen(listen, &error))?;
            if self.is_kept {
                listening::keep(&listener);
            }
            let server = Server::new(Arc::clone(volume), rules.into());
            let machines = Arc::clone(&server);
            let machine = move |peer: Peer| Box::new(machines.connection(peer)) as _;
            let handle = serve(platform, vec![listener], limits(engine), report_refused(), machine);
            let is_kept = self.is_kept;
            front.nfs = Some(NfsFront { server, listen, handle, connections_max: connections_max(), is_kept });
        }
        if let Some(mount) = self.mount {
            let recording = front.nfs.as_ref().map_or_else(Arc::default, |nfs| Arc::clone(nfs.server.recording()));
            front.mount = Some(mount.start(platform, volume, recording)?);
        }
        Ok(front)
    }
}

impl PreparedMount {
    fn start(
        self,
        platform: &LinuxPlatform,
        volume: &Arc<Volume<LinuxPlatform>>,
        recording: Arc<Recording>,
    ) -> Outcome<MountFront> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot serve the mount: {error}"));
        let root = platform.block_on(volume.mount(b"/")).map_err(|error| failed(&error))?;
        let options = MountOptions { acts_as_callers: acts_as_others(), ..self.wanted.options };
        let mount = Mount::new(Arc::clone(volume), &root, options, Threads, recording);
        let session = self.mounted.serve(platform, Arc::clone(&mount) as _).map_err(|error| failed(&error))?;
        volume.listen(Some(Arc::clone(&mount) as _));
        let (session, unmounter) = (Arc::new(session), Mutex::new(self.unmounter));
        Ok(MountFront { mount, session, unmounter, point: self.wanted.point.path().to_owned() })
    }
}

/// Mounts, with a process that unmounts at the end.
fn mounted(wanted: &WantedMount, source: &Path, own: Option<(Unmounter, Option<OwnMounts>)>) -> Outcome<PreparedMount> {
    let (mut unmounter, own) = own.ok_or_else(|| Failure::failed("nothing unmounts"))?;
    let mounted =
        wanted.point.mount(source, own.as_ref()).map_err(|error| Failure::failed(format!("cannot mount: {error}")))?;
    unmounter.is_mounted(mounted.number());
    Ok(PreparedMount { mounted, unmounter, wanted: wanted.clone() })
}

/// The threads of this host.
struct Threads;

impl Requesters for Threads {
    fn process(&self, thread: u32) -> Option<u32> {
        process_of(thread)
    }

    fn is_killed(&self, thread: u32) -> bool {
        is_killed(thread)
    }
}

impl Front {
    /// The address or the path at which programs find it.
    pub(crate) fn place(&self) -> String {
        let listen = self.nfs.as_ref().map(|nfs| nfs.listen.to_string());
        listen.or_else(|| self.mount.as_ref().map(|mount| mount.point.display().to_string())).unwrap_or_default()
    }

    pub(crate) fn nfs(&self) -> Option<&NfsFront> {
        self.nfs.as_ref()
    }

    pub(crate) fn mount(&self) -> Option<&MountFront> {
        self.mount.as_ref()
    }

    /// Name and count of each kind of call and error.
    pub(crate) fn calls(&self) -> Vec<(&'static str, u64)> {
        let of_nfs = self.nfs.iter().flat_map(|nfs| nfs.server.calls());
        of_nfs.chain(self.mount.iter().flat_map(|mount| mount.mount.calls())).collect()
    }

    /// The recording of its calls, one for both kinds; none without a front.
    pub(crate) fn recording(&self) -> Option<&Arc<Recording>> {
        let of_mount = || self.mount.as_ref().map(|mount| mount.mount.recording());
        self.nfs.as_ref().map(|nfs| nfs.server.recording()).or_else(of_mount)
    }

    /// Asks for the server's end once the mount is gone, as after umount(8). Beside NFS the server goes on.
    pub(super) fn stop_with_mount(&self, told: Sender<SignalRequest>) -> io::Result<()> {
        let Some(mount) = &self.mount else { return Ok(()) };
        let (session, point, goes_on) = (Arc::clone(&mount.session), mount.point.clone(), self.nfs.is_some());
        thread::Builder::new().name("mount end".to_owned()).spawn(move || {
            session.wait_for_end();
            if goes_on {
                info!("{} is unmounted; NFS clients are served on", output::shown(point.display()));
                return;
            }
            // Nobody listens once the server is ending.
            let _ = told.send(SignalRequest::Stop);
        })?;
        Ok(())
    }

    /// Takes no more calls, and has those in progress answered. The receiver hears of the end. NFS peers that are slow
    /// to take their last replies do not delay the caller.
    pub(super) fn finish(&self, platform: &Arc<LinuxPlatform>) -> Receiver<()> {
        let (told, finished) = mpsc::channel();
        if let Some(nfs) = &self.nfs {
            if nfs.is_kept {
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
    pub(super) fn calls(&self) -> Vec<(&'static str, u64)> {
        self.mount.calls()
    }

    /// What the kernel holds of it, and what waits.
    pub(super) fn held(&self) -> MountHolds {
        let mount = &self.mount;
        MountHolds { nodes: mount.nodes(), open_files: mount.open_files(), calls_waiting: mount.calls_waiting() }
    }

    /// Unmounts, which also writes mapped pages to the server. If programs use the mount, their further calls fail.
    fn finish(&self) {
        self.unmount();
        self.session.finish(Duration::from_nanos(FINISH_NS));
    }

    fn unmount(&self) {
        let mut unmounter = self.unmounter.lock().unwrap_or_else(PoisonError::into_inner);
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
