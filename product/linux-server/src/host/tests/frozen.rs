//! A file system that hangs stops calls about itself alone.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use afflux_volume::Directory;

use super::*;

const IMAGE_BYTES: u64 = 32 << 20;
const DIRECTORIES: usize = 40;
/// The file system is thawed after this long in any case, so that a server that hangs with it ends the test.
const FROZEN_MAX: Duration = Duration::from_secs(30);

/// A file system of its own on a loop device, that can be frozen. Thawed and unmounted when dropped.
pub(super) struct Loop {
    device: String,
    pub(super) image: PathBuf,
    mount: PathBuf,
    mounted: bool,
    frozen: AtomicBool,
}

pub(super) fn run(program: &str, arguments: &[&Path]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(text) } else { Err(format!("{program}: {errors}")) }
}

impl Loop {
    fn new(scratch: &Path) -> Result<Self, String> {
        Self::made(&scratch.join("frozen"), IMAGE_BYTES, &["mkfs.ext4", "-q", "-F"])
    }

    /// A file system of `bytes` bytes, made by `mkfs` and its arguments, mounted at a new directory.
    pub(super) fn made(mount: &Path, bytes: u64, mkfs: &[&str]) -> Result<Self, String> {
        let image = mount.with_extension("image");
        std::fs::File::create(&image).unwrap().set_len(bytes).unwrap();
        let arguments: Vec<&Path> = mkfs[1..].iter().map(Path::new).chain([image.as_path()]).collect();
        run(mkfs[0], &arguments)?;
        Self::mounted(image, mount.to_owned(), "rw")
    }

    /// Mounts an image at a new directory with these options.
    pub(super) fn mounted(image: PathBuf, mount: PathBuf, options: &str) -> Result<Self, String> {
        std::fs::create_dir(&mount).unwrap();
        let device = run("losetup", &["-f".as_ref(), "--show".as_ref(), &image])?;
        let mut made = Self { device, image, mount, mounted: false, frozen: AtomicBool::new(false) };
        run("mount", &["-o".as_ref(), options.as_ref(), made.device.as_ref(), &made.mount])?;
        made.mounted = true;
        Ok(made)
    }

    fn freeze(&self) -> Result<(), String> {
        run("fsfreeze", &["-f".as_ref(), &self.mount]).map(|_| self.frozen.store(true, Ordering::SeqCst))
    }

    fn thaw(&self) {
        if self.frozen.swap(false, Ordering::SeqCst) {
            run("fsfreeze", &["-u".as_ref(), &self.mount]).unwrap();
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if self.frozen.swap(false, Ordering::SeqCst) {
            let _ = run("fsfreeze", &["-u".as_ref(), &self.mount]);
        }
        if self.mounted {
            // The server's descriptors are closed a moment later; a lazy unmount ends with the last of them.
            let _ = run("umount", &["-l".as_ref(), &self.mount]);
        }
        let _ = run("losetup", &["-d".as_ref(), self.device.as_ref()]);
    }
}

/// Ends a freeze that lasts too long.
#[derive(Default)]
struct Watch {
    over: Mutex<bool>,
    told: Condvar,
}

impl Watch {
    /// True if it had to end the freeze.
    fn guard(&self, file_system: &Loop) -> bool {
        let until = Instant::now() + FROZEN_MAX;
        let mut over = self.over.lock().unwrap();
        while !*over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                file_system.thaw();
                return true;
            }
            over = self.told.wait_timeout(over, left).unwrap().0;
        }
        false
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

impl Watch {
    fn end(&self) {
        *self.over.lock().unwrap() = true;
        self.told.notify_all();
    }
}

/// Ends the watch also when the test panics, so that its thread ends.
struct EndOf<'a>(&'a Watch);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[test]
fn a_frozen_file_system_does_not_hold_up_another() {
    let scratch = Scratch::new();
    if !is_root() {
        afflux_scratch::skipped!("freezing a file system takes root");
        return;
    }
    let file_system = match Loop::new(scratch.path()) {
        Ok(file_system) => file_system,
        Err(error) => return afflux_scratch::skipped!("{error}"),
    };
    let works = scratch.path().join("works");
    std::fs::create_dir(&works).unwrap();
    let reactors = Reactors::start(2, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let pool = WorkerPool::new("test-pool", THREADS, 64);
    let tree = HostTree::open(&[file_system.mount.clone(), works.clone()], &pool, &HostOptions::default()).unwrap();
    let device = tree.exports()[0].root.stat.device;
    let engine = Engine::new(
        Arc::new(platform.clone()),
        Settings::with([&afflux_volume::KNOBS]),
        Frames::new(16 << 20).unwrap(),
    );
    let devices = host_devices(&platform, Caching::Auto);
    let volume = Volume::new(engine, Arc::clone(&tree) as _, HandleKey::new(KEY), devices).unwrap();
    let run = |work| platform.block_on(work);
    let hanging = run(volume.mount(b"/frozen")).unwrap();
    let directories: Vec<_> = (0..DIRECTORIES)
        .map(|number| {
            let name = format!("d{number}").into_bytes();
            platform.block_on(volume.make_directory(&hanging, &name, AttributeChange::default())).result.unwrap().0
        })
        .collect();
    let working = run(volume.mount(b"/works")).unwrap();
    let watch = Watch::default();
    let made = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch.guard(&file_system));
        let _end = EndOf(&watch);
        file_system.freeze().unwrap();
        for directory in directories {
            let (volume, made) = (Arc::clone(&volume), Arc::clone(&made));
            afflux_engine::Platform::spawn(&platform, "create", async move {
                let how = CreateHow::Guarded(AttributeChange::default());
                volume.create(&directory, b"file", how).await.result.unwrap();
                made.fetch_add(1, Ordering::SeqCst);
            });
        }
        // Every thread hangs, and the rest is queued.
        while tree.core.pools.of(device).queued() < DIRECTORIES - THREADS && file_system.frozen.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let how = || CreateHow::Guarded(AttributeChange::default());
        for number in 0..100 {
            let name = format!("file-{number}").into_bytes();
            let file = platform.block_on(volume.create(&working, &name, how())).result.unwrap().0;
            platform.block_on(volume.write(&file, 0, Bytes::from_static(b"bytes"))).result.unwrap();
            platform.block_on(volume.sync(&file, 0, 0)).result.unwrap();
            assert!(Arc::ptr_eq(&platform.block_on(volume.lookup(&working, &name)).unwrap().0, &file));
        }
        let listed = platform.block_on(volume.list(&working, 0, 1_000, true)).unwrap();
        assert_eq!(listed.entries.len(), 102);
        platform.block_on(volume.space(&working)).unwrap();
        let status = volume.engine().status();
        assert_eq!(status.devices.len(), 2);
        assert_eq!(platform.block_on(volume.engine().drain(status.devices[1].id)).len(), 0);
        assert_eq!(made.load(Ordering::SeqCst), 0, "the other file system was frozen all the time");
        watch.end();
        assert!(!watching.join().unwrap(), "the other export waited for the frozen one");
        file_system.thaw();
        // The calls that hung go on.
        while made.load(Ordering::SeqCst) < DIRECTORIES {
            std::thread::yield_now();
        }
    });
}

/// A mount whose server answers nothing. Gone when dropped, and calls that wait for it fail.
struct Silent(PathBuf);

impl Silent {
    fn mounted(mount: PathBuf) -> Result<Self, String> {
        std::fs::create_dir(&mount).unwrap();
        let device = std::fs::File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        // The command passes its standard input to the kernel.
        let mut command = Command::new("mount");
        command.args(["-i", "-t", "fuse", "-o", "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other", "silent"]);
        let output = command.arg(&mount).stdin(device.try_clone().unwrap()).output();
        // The mount lives as long as somebody has the device.
        std::mem::forget(device);
        match output {
            Ok(output) if output.status.success() => Ok(Self(mount)),
            Ok(output) => Err(format!("mount: {}", String::from_utf8_lossy(&output.stderr))),
            Err(error) => Err(format!("mount: {error}")),
        }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = run("umount", &["-f".as_ref(), "-l".as_ref(), &self.0]);
    }
}

/// A handle names its file system. A new server searches all mounts below the exports for it.
// rule: a handle of an earlier server waits for no other file system than its own
// kept in: `product/linux-server/src/host/filesystems.rs`
#[test]
fn a_handle_is_found_beside_a_mount_that_does_not_answer() {
    if !is_root() {
        afflux_scratch::skipped!("mounting takes root");
        return;
    }
    let scratch = Arc::new(Scratch::new());
    let export = scratch.path().join("export");
    std::fs::create_dir(&export).unwrap();
    let made = Silent::mounted(export.join("a silent one"))
        .and_then(|silent| Ok((silent, Loop::made(&export.join("well"), IMAGE_BYTES, &["mkfs.ext4", "-q", "-F"])?)));
    let (silent, well) = match made {
        Ok(made) => made,
        Err(error) => return afflux_scratch::skipped!("{error}"),
    };
    std::fs::write(well.mount.join("file"), b"bytes").unwrap();
    let world = World::on(scratch, HostOptions::default());
    let directory = world.lookup(&world.root(), "well").unwrap().0;
    let file = world.lookup(&directory, "file").unwrap().0;
    let handle = world.volume.handle(&file);
    drop((directory, file));
    let world = world.restarted();
    let (told, tells) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| told.send(world.run(world.volume.resolve(handle.as_bytes())).map(drop)));
        let found = tells.recv_timeout(FROZEN_MAX);
        drop(silent);
        assert_eq!(found, Ok(Ok(())), "the handle's own file system answers");
    });
}

/// Whether a thread of this process waits for the disk in an uninterruptible call.
fn waits(name: &str) -> bool {
    std::fs::read_dir("/proc/self/task").unwrap().flatten().any(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.contains(&format!("({name}) D"))
    })
}

/// Every method by which a client makes a name in a directory.
fn make(volume: &Files, platform: &LinuxPlatform, way: usize, from: &Object, to: &Object) -> Result<(), VolumeError> {
    let none = AttributeChange::default();
    let file = || platform.block_on(volume.lookup(from, b"file")).unwrap().0;
    match way {
        0 => platform.block_on(volume.create(to, b"made", CreateHow::Guarded(none))).result.map(drop),
        1 => platform.block_on(volume.make_directory(to, b"made", none)).result.map(drop),
        2 => platform.block_on(volume.symlink(to, b"made", b"target", none)).result.map(drop),
        3 => platform.block_on(volume.link(&file(), to, b"made")).result.map(drop),
        _ => platform.block_on(volume.rename(from, b"file", to, b"made")).0.result,
    }
}

/// While the file system is frozen, a directory is moved out and an object is made in it. Both calls wait for the thaw
/// after their checks, and then go on in either order.
#[test]
fn nothing_stays_in_a_directory_that_was_moved_out_meanwhile() {
    let scratch = Arc::new(Scratch::new());
    if !is_root() {
        afflux_scratch::skipped!("freezing a file system takes root");
        return;
    }
    let file_system = match Loop::new(scratch.path()) {
        Ok(file_system) => file_system,
        Err(error) => return afflux_scratch::skipped!("{error}"),
    };
    let (export, outside) = (file_system.mount.join("export"), file_system.mount.join("outside"));
    std::fs::create_dir(&export).unwrap();
    std::fs::create_dir(&outside).unwrap();
    let reactors = Reactors::start(2, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let pool = WorkerPool::new("makes", 8, 64);
    let tree = HostTree::open(std::slice::from_ref(&export), &pool, &HostOptions::default()).unwrap();
    let engine = Engine::new(
        Arc::new(platform.clone()),
        Settings::with([&afflux_volume::KNOBS]),
        Frames::new(16 << 20).unwrap(),
    );
    let volume = Volume::new(engine, tree, HandleKey::new(KEY), host_devices(&platform, Caching::Auto)).unwrap();
    let root = platform.block_on(volume.mount(b"/")).unwrap();
    let mut counts = [0; 3];
    for round in 0..100 {
        let way = round % 5;
        let name = format!("d{round}");
        let made = volume.make_directory(&root, name.as_bytes(), AttributeChange::default());
        let directory = platform.block_on(made).result.unwrap().0;
        let how = CreateHow::Unchecked(AttributeChange::default());
        platform.block_on(volume.create(&root, b"file", how)).result.unwrap();
        let (inside, moved) = (export.join(&name), outside.join(&name));
        let (first, told) = std::thread::scope(|scope| {
            file_system.freeze().unwrap();
            let _thawed = ThawedWith(&file_system);
            let mover = std::thread::Builder::new().name("moves".to_owned());
            let mover = mover.spawn_scoped(scope, || {
                std::fs::rename(&inside, &moved).unwrap();
                moved.join("made").symlink_metadata().is_ok()
            });
            let mover = mover.unwrap();
            until(|| waits("moves"));
            let maker = scope.spawn(|| make(&volume, &platform, way, &root, &directory));
            until(|| waits("makes"));
            file_system.thaw();
            (mover.join().unwrap(), maker.join().unwrap())
        });
        let stays = moved.join("made").symlink_metadata().is_ok();
        match told {
            // As far as can be seen, it was made before the move, and moved with the directory.
            _ if first => counts[0] += 1,
            Ok(()) => panic!("round {round}, way {way}: made outside"),
            Err(VolumeError::Stale) => {
                assert!(!stays, "round {round}, way {way}: refused, and there");
                counts[1] += 1;
            }
            Err(error) => panic!("round {round}, way {way}: {error}"),
        }
        assert!(first || way != 4 || export.join("file").exists(), "round {round}: the file is gone");
        counts[2] += std::fs::read_dir(&moved).unwrap().count() - usize::from(stays);
    }
    println!("{} times made first, {} times refused", counts[0], counts[1]);
    assert!(counts[1] > 0, "the move was never first");
    assert_eq!(counts[2], 0, "something of ours was left behind");
}

/// Thaws also when the test panics, since otherwise the waiting threads cannot end.
struct ThawedWith<'a>(&'a Loop);

impl Drop for ThawedWith<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

fn until(done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < FROZEN_MAX, "nothing waits for the frozen file system");
        std::thread::yield_now();
    }
}
