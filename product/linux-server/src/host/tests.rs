use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};

use afflux_engine::Engine;
use afflux_engine::settings::Settings;
use afflux_frames::Frames;
use afflux_volume::{
    AttributeChange, Attributes, CreateHow, DeviceFactory, HandleKey, Inode, Kind, Outcome, ReadBytes, Volume,
    VolumeError,
};
use bytes::Bytes;

use super::{HostOptions, HostTree, host_devices};
use afflux_linux_device::Caching;
use afflux_linux_device::pool::WorkerPool;
use afflux_linux_device::{IoChoice, LinuxPlatform, Reactors};
use afflux_scratch::TestDirectory as Scratch;

mod attributes;
mod changed_locally;
mod clones;
mod coarse_times;
mod data;
mod depth;
mod escapes;
mod folded_names;
mod frozen;
mod handles;
mod held;
mod holes;
mod in_place;
mod journal;
mod leases;
mod moved_disks;
mod names;
mod numbers;
mod renames;
mod short_of_descriptors;
mod space_limits;
mod start;
mod void;
mod xattrs;

type Object = Arc<Inode<LinuxPlatform>>;
type Files = Volume<LinuxPlatform>;

/// A server's files without a front end: real directories, device and engine.
struct World {
    scratch: Arc<Scratch>,
    options: HostOptions,
    tree: Arc<HostTree>,
    volume: Arc<Files>,
    platform: LinuxPlatform,
    _reactors: Reactors,
}

const KEY: [u8; 16] = *b"a key for tests.";

/// Threads of each device's pool.
const THREADS: usize = 8;

/// Occupies all threads of a device's pool until its drop. Until then a call that needs one of them waits.
struct Occupied(Arc<Barrier>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.wait();
    }
}

impl World {
    fn new() -> Self {
        Self::with(HostOptions::default())
    }

    fn with(options: HostOptions) -> Self {
        Self::on(Arc::new(Scratch::new()), options)
    }

    /// Exports "export" in the scratch directory; everything beside it is outside.
    fn on(scratch: Arc<Scratch>, options: HostOptions) -> Self {
        Self::doing(scratch, options, IoChoice::Auto, Caching::Auto)
    }

    fn doing(scratch: Arc<Scratch>, options: HostOptions, io: IoChoice, caching: Caching) -> Self {
        Self::over(scratch, options, io, |platform| host_devices(platform, caching))
    }

    /// With devices of that kind.
    fn over(
        scratch: Arc<Scratch>,
        options: HostOptions,
        io: IoChoice,
        devices: impl FnOnce(&LinuxPlatform) -> DeviceFactory,
    ) -> Self {
        let export = scratch.path().join("export");
        if !export.exists() {
            std::fs::create_dir(&export).unwrap();
        }
        let reactors = Reactors::start(2, io).unwrap();
        let platform = reactors.platform();
        let pool = WorkerPool::new("test-pool", THREADS, 64);
        let tree = HostTree::open(&[export], &pool, &options).unwrap();
        let settings = Settings::with([&afflux_volume::KNOBS]);
        let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(64 << 20).unwrap());
        let devices = devices(&platform);
        let volume = Volume::new(engine, Arc::clone(&tree) as _, HandleKey::new(KEY), devices).unwrap();
        Self { scratch, options, tree, volume, platform, _reactors: reactors }
    }

    /// A new server on the same directory; the old one ends first, cleanly.
    fn restarted(self) -> Self {
        let device = self.volume.engine().status().devices[0].id;
        let failed = self.run(self.volume.engine().drain(device));
        assert!(failed.is_empty());
        assert_eq!(self.run(self.volume.settle_all()), 0);
        let (scratch, options) = (Arc::clone(&self.scratch), self.options.clone());
        drop(self);
        Self::on(scratch, options)
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.platform.block_on(work)
    }

    /// A path of the host below the export.
    fn host(&self, path: &str) -> PathBuf {
        self.scratch.path().join("export").join(path)
    }

    /// A path of the host beside the export.
    fn outside(&self, path: &str) -> PathBuf {
        self.scratch.path().join(path)
    }

    /// Occupies the threads of the export's device.
    fn occupied(&self) -> Occupied {
        let pool = self.tree.core.pools.of(self.tree.exports[0].root.stat.device);
        let (begun, over) = (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS + 1)));
        for _ in 0..THREADS {
            let (begun, over) = (Arc::clone(&begun), Arc::clone(&over));
            pool.post(move || {
                begun.wait();
                over.wait();
            });
        }
        begun.wait();
        Occupied(over)
    }

    fn root(&self) -> Object {
        self.run(self.volume.mount(b"/")).unwrap()
    }

    fn lookup(&self, directory: &Object, name: &str) -> Result<(Object, Attributes), VolumeError> {
        self.run(self.volume.lookup(directory, name.as_bytes()))
    }

    fn create(&self, directory: &Object, name: &str) -> Object {
        let how = CreateHow::Guarded(AttributeChange::default());
        self.run(self.volume.create(directory, name.as_bytes(), how)).result.unwrap().0
    }

    fn make_directory(&self, directory: &Object, name: &str) -> Object {
        let made = self.volume.make_directory(directory, name.as_bytes(), AttributeChange::default());
        self.run(made).result.unwrap().0
    }

    fn write(&self, inode: &Object, offset: u64, data: &[u8]) -> Outcome<()> {
        self.run(self.volume.write(inode, offset, Bytes::copy_from_slice(data)))
    }

    fn read(&self, inode: &Object, offset: u64, len: u32) -> (Vec<u8>, bool) {
        let result = self.run(self.volume.read(inode, offset, len)).unwrap();
        (bytes_of(&result.bytes), result.end_of_file)
    }

    fn attributes(&self, inode: &Object) -> Attributes {
        self.run(self.volume.attributes(inode)).unwrap()
    }

    fn sync(&self, inode: &Object) {
        self.run(self.volume.sync(inode, 0, 0)).result.unwrap();
    }

    fn handle(&self, inode: &Object) -> Vec<u8> {
        self.volume.handle(inode).as_bytes().to_vec()
    }

    fn resolve(&self, handle: &[u8]) -> Result<Object, VolumeError> {
        self.run(self.volume.resolve(handle))
    }

    fn set(&self, inode: &Object, change: AttributeChange) -> Outcome<()> {
        self.run(self.volume.set_attributes(inode, change, None))
    }

    /// Every name below a directory, by pieces of `piece`.
    fn names(&self, directory: &Object, piece: usize) -> Vec<String> {
        let (mut cookie, mut names) = (0, Vec::new());
        loop {
            let listing = self.run(self.volume.list(directory, cookie, piece, false)).unwrap();
            assert!(listing.entries.len() <= piece);
            assert!(listing.entries.iter().all(|entry| entry.cookie > cookie && entry.cookie < 1 << 31));
            cookie = listing.entries.last().map_or(cookie, |entry| entry.cookie);
            names.extend(listing.entries.iter().map(|entry| String::from_utf8(entry.name.to_vec()).unwrap()));
            if listing.end {
                return names;
            }
        }
    }
}

fn bytes_of(bytes: &ReadBytes) -> Vec<u8> {
    match bytes {
        ReadBytes::Pages(pages) => pages.slices().flatten().copied().collect(),
        ReadBytes::Copied(bytes) => bytes.to_vec(),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn kind_of(found: &Result<(Object, Attributes), VolumeError>) -> Kind {
    found.as_ref().unwrap().0.kind()
}

/// Whether the host refuses to run a program, since somebody may write it.
fn is_busy(program: &std::path::Path) -> bool {
    let started = std::process::Command::new(program).status();
    started.is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
}

/// Whether a program of the host runs. A program that another test starts at the same time holds a
/// copy of our descriptors for an instant, so 'text file busy' counts only if it persists.
fn runs(program: &std::path::Path) -> bool {
    let mut success = false;
    afflux_scratch::eventually("nobody writes the program", || match std::process::Command::new(program).status() {
        Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => false,
        status => {
            success = status.unwrap().success();
            true
        }
    });
    success
}
