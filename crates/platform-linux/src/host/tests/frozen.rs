//! A file system that hangs stops calls about itself alone.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use volume::Directory;

use super::*;

const IMAGE_BYTES: u64 = 32 << 20;
const DIRECTORIES: usize = 40;
/// The file system is thawed after this long, whatever is still waiting, so that a server that hangs
/// with it ends the test.
const FROZEN_MAX: Duration = Duration::from_secs(30);

/// An ext4 of its own on a loop device, that can be frozen. Thawed and unmounted when dropped.
struct Loop {
    device: String,
    mount: PathBuf,
    mounted: bool,
    frozen: AtomicBool,
}

fn run(program: &str, arguments: &[&Path]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(text) } else { Err(format!("{program}: {errors}")) }
}

impl Loop {
    fn new(scratch: &Path) -> Result<Self, String> {
        let (image, mount) = (scratch.join("image"), scratch.join("frozen"));
        std::fs::create_dir(&mount).unwrap();
        std::fs::File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        run("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), &image])?;
        let device = run("losetup", &["-f".as_ref(), "--show".as_ref(), &image])?;
        let mut made = Self { device, mount, mounted: false, frozen: AtomicBool::new(false) };
        run("mount", &["-t".as_ref(), "ext4".as_ref(), made.device.as_ref(), &made.mount])?;
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
            // The server's descriptors go a moment after it; lazily, the mount goes with the last.
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
        println!("skipped: freezing a file system takes root");
        return;
    }
    let file_system = match Loop::new(scratch.path()) {
        Ok(file_system) => file_system,
        Err(error) => return println!("skipped: {error}"),
    };
    let works = scratch.path().join("works");
    std::fs::create_dir(&works).unwrap();
    let reactors = Reactors::start(2, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let pool = WorkerPool::new("test-pool", 8, 64);
    let tree = HostTree::open(&[file_system.mount.clone(), works.clone()], &pool, &HostOptions::default()).unwrap();
    let device = tree.exports()[0].root.stat.device;
    let engine = Engine::new(Arc::new(platform.clone()), Settings::new(), Frames::new(16 << 20).unwrap());
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
            engine::Platform::spawn(&platform, "create", async move {
                let how = CreateHow::Guarded(AttributeChange::default());
                volume.create(&directory, b"file", how).await.result.unwrap();
                made.fetch_add(1, Ordering::SeqCst);
            });
        }
        // Every thread hangs, and the rest is queued.
        while tree.core.pools.of(device).queued() < DIRECTORIES - 8 && file_system.frozen.load(Ordering::SeqCst) {
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
        // What hung goes on.
        while made.load(Ordering::SeqCst) < DIRECTORIES {
            std::thread::yield_now();
        }
    });
}
