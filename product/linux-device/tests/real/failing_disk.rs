//! A disk that takes a small new file into its host's memory and fails when the file should become durable. Each sync
//! then reports the error, and the bytes are written once the disk works again. The disk is an ext4 in a file of a full
//! tmpfs. Skipped if nothing can be mounted.

//! rule: 2: each sync returns an error for bytes that the device took and did not make durable; they are written again
//! kept in: `product/engine/src/writeback/sync.rs`

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, DeviceError, Engine, Error};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, Reactors};
use afflux_scratch::Scratch;

const DISK_BYTES: u64 = 64 << 20;

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// The mounted disk; the drop takes it apart.
struct Disk {
    place: Scratch,
    device: String,
}

impl Disk {
    fn new(name: &str) -> Option<Self> {
        let place = Scratch::new(&std::env::temp_dir(), name).unwrap();
        let (memory, mounted) = (place.path().join("memory"), place.path().join("mounted"));
        fs::create_dir(&memory).unwrap();
        fs::create_dir(&mounted).unwrap();
        let mut disk = Self { place, device: String::new() };
        run("mount", &["-t", "tmpfs", "-o", "size=24m", "tmpfs", memory.to_str()?])?;
        let image = memory.join("image");
        File::create(&image).unwrap().set_len(DISK_BYTES).unwrap();
        // Without a journal: the loss of one would end the test.
        run("mkfs.ext4", &["-q", "-F", "-b", "4096", "-O", "^has_journal", image.to_str()?])?;
        disk.device = run("losetup", &["-f", "--show", image.to_str()?])?.trim().to_owned();
        run("mount", &[&disk.device, mounted.to_str()?])?;
        Some(disk)
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("mounted")
    }

    /// From now on the disk has no space for blocks that it never had.
    fn breaks(&self) {
        rustix::fs::syncfs(File::open(self.directory()).unwrap()).unwrap();
        let _ = fs::write(self.place.path().join("memory/other"), vec![1; 24 << 20]);
    }

    fn is_mended(&self) {
        fs::remove_file(self.place.path().join("memory/other")).unwrap();
    }

    /// Makes the host forget its memory of the disk.
    fn is_mounted_again(&self) {
        let mounted = self.directory();
        run("umount", &[mounted.to_str().unwrap()]).unwrap();
        run("mount", &[&self.device, mounted.to_str().unwrap()]).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmount = |place: &Path| run("umount", &["-l", place.to_str().unwrap()]);
        unmount(&self.directory());
        if !self.device.is_empty() {
            run("losetup", &["-d", &self.device]);
        }
        unmount(&self.place.path().join("memory"));
    }
}

#[test]
fn what_a_sync_could_not_bring_to_the_disk_is_told_and_written_again() {
    for choice in [IoChoice::Auto, IoChoice::Syscalls] {
        let Some(disk) = Disk::new("failing") else {
            return afflux_scratch::skipped!("no ext4 in a tmpfs can be mounted here");
        };
        let reactors = Reactors::start(1, choice).unwrap();
        let platform = reactors.platform();
        let engine = Engine::new(Arc::new(platform.clone()), Settings::new(), Frames::new(16 << 20).unwrap());
        let directory = File::open(disk.directory()).unwrap().into();
        let host_device = HostDevice::new(&platform, directory, Caching::Auto).unwrap();
        let device = engine.add_device("failing", Arc::clone(&host_device) as _);
        let path = disk.directory().join("file");
        let host = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let file = engine.open(device, Backing::new(Arc::new(HostFile::new(host.into()))), 0);
        // The file ends inside a page, and is small enough to go through the host's page cache as a whole.
        let bytes: Vec<u8> = (0..100_001u32).map(|at| (at * 7 / 5) as u8).collect();
        disk.breaks();
        platform.block_on(async {
            engine.write(&file, 0, &bytes).await.unwrap();
            for _ in 0..3 {
                let told = engine.sync(&file, 0..u64::MAX).await;
                assert_eq!(told, Err(Error::Device(DeviceError::NoSpace)), "{choice:?}");
            }
            disk.is_mended();
            assert_eq!(engine.sync(&file, 0..u64::MAX).await, Ok(()), "{choice:?}");
        });
        drop(file);
        drop(engine);
        drop(reactors);
        // Its threads may still ask for the free space.
        assert!(host_device.try_stop_within(Duration::from_secs(60)));
        drop(host_device);
        disk.is_mounted_again();
        assert!(fs::read(&path).unwrap() == bytes, "{choice:?}");
    }
}
