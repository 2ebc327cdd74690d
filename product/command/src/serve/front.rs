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
    FuseMount, FuseSession, LinuxPlatform, Listener, MountPoint, OwnMounts, ServeHandle, acts_as_others,
    connections_max, process_of, serve,
};
use afflux_nfs::{Rules, Server};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_volume::Volume;
use rustix::process::geteuid;

use super::listening::{cannot_listen, limits, report_refused};
use super::own_clients;
use super::signals::SignalRequest;
use crate::settings::{LockMemory, Settings};
use crate::unmounter::{Unmounter, Unmounting};

/// Longest time for answering calls in progress once the server is stopping.
const FINISH_NS: u64 = 2 * Nanos::SECOND;

/// The front that a command asks for.
#[derive(Clone, Debug)]
pub(crate) enum WantedFront {
    /// NFS on the address in the settings.
    Nfs,
    /// A mount.
    Mount(MountPoint),
}

/// A front that takes no calls yet. It has what takes rights that the process then gives up.
pub(super) enum PreparedFront {
    Nfs { listener: Listener, listen: SocketAddr },
    Mount { mounted: FuseMount, unmounter: Unmounter, point: PathBuf },
}

/// A front in use.
pub(crate) enum Front {
    /// NFS.
    Nfs(NfsFront),
    /// A mount.
    Mount(MountFront),
}

/// Connections of NFS clients.
pub(crate) struct NfsFront {
    pub(crate) server: Arc<Server<LinuxPlatform>>,
    pub(crate) listen: SocketAddr,
    pub(crate) handle: ServeHandle,
    /// Most connections at a time.
    pub(crate) connections_max: usize,
}

/// A mount by this host's kernel.
pub(crate) struct MountFront {
    mount: Arc<Mount<LinuxPlatform>>,
    session: Arc<FuseSession>,
    unmounter: Mutex<Unmounter>,
    pub(crate) point: PathBuf,
}

impl WantedFront {
    /// For a mount: the process that unmounts, and as root a view of the host's mounts without ours. Comes before the
    /// first thread, and before the tree is opened.
    pub(super) fn separated(&self) -> Outcome<Option<(Unmounter, Option<OwnMounts>)>> {
        let Self::Mount(point) = self else { return Ok(None) };
        let unmounter = Unmounter::start(point.path())
            .map_err(|error| Failure::failed(format!("cannot start the process that unmounts at the end: {error}")))?;
        let own = geteuid().is_root().then(OwnMounts::separate).transpose();
        let own = own.map_err(|error| Failure::failed(format!("cannot separate the server's mounts: {error}")))?;
        Ok(Some((unmounter, own)))
    }

    /// The address where clients will come, if they come over the network. Nobody is let in yet
    /// ([`PreparedFront::start`]).
    pub(super) fn listening(&self, settings: &Settings) -> Outcome<Option<Listener>> {
        match self {
            Self::Nfs => {
                let listener = Listener::tcp_bound(settings.listen);
                listener.map(Some).map_err(|error| cannot_listen(settings.listen, &error))
            }
            Self::Mount(_) => Ok(None),
        }
    }

    /// The front with all that takes rights. Calls on a mount wait until it is served.
    pub(super) fn prepared(
        &self,
        listener: Option<Listener>,
        listen: SocketAddr,
        source: Option<&PathBuf>,
        own: Option<(Unmounter, Option<OwnMounts>)>,
    ) -> Outcome<PreparedFront> {
        match (self, listener) {
            (Self::Mount(point), _) => mounted(point, source.map_or(Path::new("afflux"), PathBuf::as_path), own),
            (Self::Nfs, Some(listener)) => Ok(PreparedFront::Nfs { listener, listen }),
            (Self::Nfs, None) => Err(Failure::failed("nothing listens")),
        }
    }

    /// The name of the control socket, unless the user gives one.
    pub(super) fn socket_name(&self, listen: SocketAddr) -> String {
        match self {
            Self::Nfs => format!("{}-{}.sock", listen.ip(), listen.port()),
            // A path may be longer than a socket's.
            Self::Mount(point) => {
                let number = fs::metadata(point.path()).map(|found| (found.dev(), found.ino())).unwrap_or_default();
                format!("mount-{}-{}.sock", number.0, number.1)
            }
        }
    }

    /// Whether the server's own host uses it, so that the host's reclaim waits for the server.
    pub(super) fn has_own_clients(&self, listen: SocketAddr, asked: LockMemory) -> bool {
        match self {
            Self::Nfs => own_clients::are_served(listen.ip(), asked),
            Self::Mount(_) => asked != LockMemory::Off,
        }
    }

    /// Refuses paths of the server itself below a mount: it would call itself, and wait for itself.
    pub(super) fn refuse_below(&self, own: &[(&str, Option<&Path>)]) -> Outcome {
        let Self::Mount(point) = self else { return Ok(()) };
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
    /// Takes calls from now on.
    pub(super) fn start(
        self,
        platform: &LinuxPlatform,
        engine: &Arc<Engine<LinuxPlatform>>,
        volume: &Arc<Volume<LinuxPlatform>>,
        rules: Rules,
    ) -> Outcome<Front> {
        match self {
            Self::Nfs { listener, listen } => {
                // Not before: a standby has waited for its store, and no client waits for a standby.
                listener.listen().map_err(|error| cannot_listen(listen, &error))?;
                let server = Server::new(Arc::clone(volume), rules.into());
                let machines = Arc::clone(&server);
                let machine = move |peer: Peer| Box::new(machines.connection(peer)) as _;
                let handle = serve(platform, vec![listener], limits(engine), report_refused(), machine);
                Ok(Front::Nfs(NfsFront { server, listen, handle, connections_max: connections_max() }))
            }
            Self::Mount { mounted, unmounter, point } => {
                let failed =
                    |error: &dyn std::fmt::Display| Failure::failed(format!("cannot serve the mount: {error}"));
                let root = platform.block_on(volume.mount(b"/")).map_err(|error| failed(&error))?;
                let options = MountOptions { acts_as_callers: acts_as_others() };
                let mount = Mount::new(Arc::clone(volume), &root, options, Threads);
                let session = mounted.serve(platform, Arc::clone(&mount) as _).map_err(|error| failed(&error))?;
                volume.listen(Some(Arc::clone(&mount) as _));
                let (session, unmounter) = (Arc::new(session), Mutex::new(unmounter));
                Ok(Front::Mount(MountFront { mount, session, unmounter, point }))
            }
        }
    }
}

/// Mounts, with a process that unmounts at the end.
fn mounted(point: &MountPoint, source: &Path, own: Option<(Unmounter, Option<OwnMounts>)>) -> Outcome<PreparedFront> {
    let (mut unmounter, own) = own.ok_or_else(|| Failure::failed("nothing unmounts"))?;
    let mounted =
        point.mount(source, own.as_ref()).map_err(|error| Failure::failed(format!("cannot mount: {error}")))?;
    unmounter.is_mounted(mounted.number());
    Ok(PreparedFront::Mount { mounted, unmounter, point: point.path().to_owned() })
}

/// The threads of this host.
struct Threads;

impl Requesters for Threads {
    fn process(&self, thread: u32) -> Option<u32> {
        process_of(thread)
    }
}

impl Front {
    /// The address or the path at which programs find it.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Nfs(nfs) => nfs.listen.to_string(),
            Self::Mount(mount) => mount.point.display().to_string(),
        }
    }

    pub(crate) fn nfs(&self) -> Option<&NfsFront> {
        match self {
            Self::Nfs(nfs) => Some(nfs),
            Self::Mount(_) => None,
        }
    }

    /// Name and count of each kind of call and error.
    pub(crate) fn calls(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Nfs(nfs) => nfs.server.calls(),
            Self::Mount(mount) => mount.mount.calls(),
        }
    }

    /// The recording of its calls.
    pub(crate) fn recording(&self) -> &Arc<Recording> {
        match self {
            Self::Nfs(nfs) => nfs.server.recording(),
            Self::Mount(mount) => mount.mount.recording(),
        }
    }

    /// Asks for the server's end once the mount is gone, as after umount(8).
    pub(super) fn stop_with_mount(&self, told: Sender<SignalRequest>) -> io::Result<()> {
        let Self::Mount(mount) = self else { return Ok(()) };
        let session = Arc::clone(&mount.session);
        thread::Builder::new().name("mount end".to_owned()).spawn(move || {
            session.wait_for_end();
            // Nobody listens once the server is ending.
            let _ = told.send(SignalRequest::Stop);
        })?;
        Ok(())
    }

    /// Takes no more calls, and has those in progress answered. The receiver hears of the end. NFS peers that are slow
    /// to take their last replies do not delay the caller.
    pub(super) fn finish(&self, platform: &Arc<LinuxPlatform>) -> Receiver<()> {
        let (told, finished) = mpsc::channel();
        match self {
            Self::Nfs(nfs) => {
                let (clock, handle) = (Arc::clone(platform), nfs.handle.clone());
                platform.spawn("finish", async move {
                    handle.finish(clock.now().after(FINISH_NS)).await;
                    let _ = told.send(());
                });
            }
            Self::Mount(mount) => mount.finish(),
        }
        finished
    }
}

impl MountFront {
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
