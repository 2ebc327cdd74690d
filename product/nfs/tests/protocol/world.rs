//! A server over a directory of its own, made for one test.

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_engine::Engine;
use afflux_engine::settings::Settings;
use afflux_frames::Frames;
use afflux_linux_device::{Caching, IoChoice, LinuxPlatform, Reactors, WorkerPool};
use afflux_linux_server::{HostOptions, HostTree, Listener, ServeLimits, host_devices, serve};
use afflux_nfs::{AdmittedPeers, Server};
use afflux_scratch::Scratch;
use afflux_volume::{HandleKey, Volume};
use nfs3_types::nfs3::{CREATE3args, CREATE3res, LOOKUP3args, LOOKUP3res, createhow3, diropargs3, nfs_fh3, sattr3};

use crate::peer::Peer;

/// The address of most calls.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 5);

const CACHE_BYTES: u64 = 64 << 20;
/// Threads that call the host.
pub(crate) const HOST_THREADS: usize = 4;

pub(crate) struct World {
    pub(crate) server: Arc<Server<LinuxPlatform>>,
    pub(crate) volume: Arc<Volume<LinuxPlatform>>,
    pub(crate) platform: LinuxPlatform,
    _reactors: Reactors,
    /// The threads that call the host about the directory.
    pub(crate) pool: WorkerPool,
    pub(crate) path: PathBuf,
    /// The last field: it goes after everything else is gone.
    _directory: Scratch,
}

impl World {
    /// Over an empty directory.
    pub(crate) fn new() -> Self {
        Self::over(|_| {})
    }

    /// Over a directory that `fill` fills first. The server need not notice at once what a test adds later behind its
    /// back.
    pub(crate) fn over(fill: impl FnOnce(&Path)) -> Self {
        Self::on(IoChoice::Auto, fill)
    }

    /// As [`World::over`], with this kind of input and output.
    pub(crate) fn on(io: IoChoice, fill: impl FnOnce(&Path)) -> Self {
        let directory = Scratch::new(&std::env::temp_dir(), "nfs").unwrap();
        // Calls come from other users, too.
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let path = directory.path().to_owned();
        fill(&path);
        let reactors = Reactors::start(1, io).unwrap();
        let platform = reactors.platform();
        let frames = Frames::new(CACHE_BYTES).unwrap();
        let engine = Engine::new(
            Arc::new(platform.clone()),
            Settings::with([&afflux_volume::KNOBS, &afflux_nfs::KNOBS]),
            frames,
        );
        let pool = WorkerPool::new("afflux-test", HOST_THREADS, 4096);
        let tree = HostTree::open(std::slice::from_ref(&path), &pool, &HostOptions::default()).unwrap();
        let pool = tree.pool(0).unwrap();
        let devices = host_devices(&platform, Caching::Auto);
        let volume = Volume::new(engine, tree, HandleKey::new([7; 16]), devices).unwrap();
        let server = Server::new(Arc::clone(&volume), AdmittedPeers::AnyPeer);
        Self { server, volume, platform, _reactors: reactors, pool, path, _directory: directory }
    }

    /// Serves it over sockets from now on. Returns the address.
    pub(crate) fn serve(&self) -> SocketAddr {
        self.serve_another(&self.server)
    }

    /// As [`World::serve`], by another server of the same volume.
    pub(crate) fn serve_another(&self, server: &Arc<Server<LinuxPlatform>>) -> SocketAddr {
        let listener = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.internet_address().unwrap();
        let server = Arc::clone(server);
        let limits = || ServeLimits {
            connections_max: 16,
            peer_connections_max: 16,
            idle_ns: 0,
            request_bytes_max: 64 << 20,
            unread_ns: 0,
        };
        serve(&self.platform, vec![listener], limits, |_| {}, move |peer| Box::new(server.connection(peer)));
        address
    }

    /// The handle of an existing name.
    pub(crate) fn lookup(&self, peer: &mut Peer, directory: &nfs_fh3, name: &[u8]) -> nfs_fh3 {
        let what = diropargs3 { dir: directory.clone(), name: name.to_vec().into() };
        match peer.nfs(3, &LOOKUP3args { what }) {
            LOOKUP3res::Ok(ok) => ok.object,
            LOOKUP3res::Err((status, _)) => panic!("{status}"),
        }
    }

    /// The handle of a new file.
    pub(crate) fn create(&self, peer: &mut Peer, directory: &nfs_fh3, name: &[u8]) -> nfs_fh3 {
        let where_ = diropargs3 { dir: directory.clone(), name: name.to_vec().into() };
        match peer.nfs(8, &CREATE3args { where_, how: createhow3::GUARDED(sattr3::default()) }) {
            CREATE3res::Ok(ok) => ok.obj.unwrap(),
            CREATE3res::Err((status, _)) => panic!("{status}"),
        }
    }
}
