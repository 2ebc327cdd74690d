//! A disk that takes a small new file into its host's memory and fails when it is to be durable: the sync says so, each
//! time, and the bytes are written once that works again. It is an ext4 in a file of a full tmpfs. Skipped where nothing
//! can be mounted.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use engine::settings::Settings;
use engine::{Backing, DeviceError, Engine, Error};
use frames::Frames;
use platform_linux::{Caching, HostDevice, HostFile, IoChoice, Reactors};
use scratch::Scratch;

const DISK_BYTES: u64 = 64 << 20;

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// The disk, mounted; taken apart when it is dropped.
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
        // Without a journal, whose loss would end all.
        run("mkfs.ext4", &["-q", "-F", "-b", "4096", "-O", "^has_journal", image.to_str()?])?;
        disk.device = run("losetup", &["-f", "--show", image.to_str()?])?.trim().to_owned();
        run("mount", &[&disk.device, mounted.to_str()?])?;
        Some(disk)
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("mounted")
    }

    /// From now on it has no room for what it never had.
    fn breaks(&self) {
        rustix::fs::syncfs(File::open(self.directory()).unwrap()).unwrap();
        let _ = fs::write(self.place.path().join("memory/other"), vec![1; 24 << 20]);
    }

    fn is_mended(&self) {
        fs::remove_file(self.place.path().join("memory/other")).unwrap();
    }

    /// Has its host forget what it has in memory.
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
            return println!("skipped: no ext4 in a tmpfs can be mounted here");
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
        // It ends inside a page, and is small enough to go through the host's page cache as a whole.
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
        drop(host_device);
        disk.is_mounted_again();
        assert!(fs::read(&path).unwrap() == bytes, "{choice:?}");
    }
}
