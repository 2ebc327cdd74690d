//! A server over a directory of its own, made for one test.

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::Engine;
use engine::settings::Settings;
use frames::Frames;
use frontend_nfs::{Admission, Server};
use nfs3_types::nfs3::{CREATE3args, CREATE3res, LOOKUP3args, LOOKUP3res, createhow3, diropargs3, nfs_fh3, sattr3};
use platform_linux::{
    Caching, HostOptions, HostTree, IoChoice, LinuxPlatform, Listener, Reactors, ServeLimits, WorkerPool, host_devices,
    serve,
};
use scratch::Scratch;
use volume::{HandleKey, Volume};

use crate::peer::Peer;

/// Where most calls come from.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 5);

const CACHE_BYTES: u64 = 64 << 20;

pub(crate) struct World {
    pub(crate) server: Arc<Server<LinuxPlatform>>,
    pub(crate) volume: Arc<Volume<LinuxPlatform>>,
    pub(crate) platform: LinuxPlatform,
    _reactors: Reactors,
    pub(crate) path: PathBuf,
    /// The last field: it goes after everything else is gone.
    _directory: Scratch,
}

impl World {
    /// Over an empty directory.
    pub(crate) fn new() -> Self {
        Self::over(|_| {})
    }

    /// Over a directory that `fill` puts something into first: what is put there later, behind the
    /// server's back, it need not notice at once.
    pub(crate) fn over(fill: impl FnOnce(&Path)) -> Self {
        Self::on(IoChoice::Auto, fill)
    }

    /// As [`World::over`], with such input and output.
    pub(crate) fn on(io: IoChoice, fill: impl FnOnce(&Path)) -> Self {
        let directory = Scratch::new(&std::env::temp_dir(), "nfs").unwrap();
        // Calls come from other users, too.
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let path = directory.path().to_owned();
        fill(&path);
        let reactors = Reactors::start(1, io).unwrap();
        let platform = reactors.platform();
        let frames = Frames::new(CACHE_BYTES).unwrap();
        let engine =
            Engine::new(Arc::new(platform.clone()), Settings::with([&volume::KNOBS, &frontend_nfs::KNOBS]), frames);
        let pool = WorkerPool::new("afflux-test", 4, 4096);
        let tree = HostTree::open(std::slice::from_ref(&path), &pool, &HostOptions::default()).unwrap();
        let devices = host_devices(&platform, Caching::Auto);
        let volume = Volume::new(engine, tree, HandleKey::new([7; 16]), devices).unwrap();
        let server = Server::new(Arc::clone(&volume), Admission::AnyPeer);
        Self { server, volume, platform, _reactors: reactors, path, _directory: directory }
    }

    /// Where it is served over sockets from now on.
    pub(crate) fn serve(&self) -> SocketAddr {
        let listener = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.internet_address().unwrap();
        let server = Arc::clone(&self.server);
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

    /// The handle of a name that is there.
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
