//! A made-up `sys` and `proc`, for tests.
//!
//! Owns: the files.
//! Does not own: their use.
//! Invariants: the tree is removed with the value.

use std::fs;
use std::path::{Path, PathBuf};

use afflux_scratch::Scratch;

use crate::host::Host;
use crate::law::Values;

pub(crate) const MB: u64 = 1_000_000;

pub(crate) struct FakeHost(Scratch);

impl FakeHost {
    pub(crate) fn new() -> Self {
        let tree = Self(Scratch::new(&std::env::temp_dir(), "govern").unwrap());
        for directory in ["sys/class/bdi", "sys/dev/block", "sys/class/block", "proc/self", "run"] {
            fs::create_dir_all(tree.path().join(directory)).unwrap();
        }
        tree.write("proc/sys/kernel/random/boot_id", "one\n");
        tree.write("proc/vmstat", "nr_dirty 5\nnr_dirty_threshold 1171875\nnr_dirty_background_threshold 585937\n");
        tree
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.path().join("run")
    }

    pub(crate) fn host(&self) -> Host {
        Host::new(self.path())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, to: &str, path: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(self.path().join(to), path).unwrap();
    }

    /// Plugs a disk in.
    pub(crate) fn disk(&self, name: &str, number: &str, sequence: u64) {
        let directory = format!("sys/devices/{name}");
        for (file, text) in [("size", "2000"), ("ro", "0"), ("dev", number), ("device/model", " Flash  Drive ")] {
            self.write(&format!("{directory}/{file}"), &format!("{text}\n"));
        }
        self.write(&format!("{directory}/diskseq"), &format!("{sequence}\n"));
        self.written(name, 0, 0);
        self.link(&directory, &format!("sys/dev/block/{number}"));
        self.link(&directory, &format!("sys/class/block/{name}"));
        self.bdi(number, Values::KERNELS);
    }

    /// Exchanges the medium, or takes it out if `size` is 0; the bdi stays.
    pub(crate) fn medium(&self, name: &str, sequence: u64, size: u64) {
        self.write(&format!("sys/devices/{name}/size"), &format!("{size}\n"));
        self.write(&format!("sys/devices/{name}/diskseq"), &format!("{sequence}\n"));
        self.written(name, 0, 0);
    }

    /// Adds a partition to it.
    pub(crate) fn partition(&self, disk: &str, name: &str, number: &str) {
        let directory = format!("sys/devices/{disk}/{name}");
        self.write(&format!("{directory}/partition"), "1\n");
        self.write(&format!("{directory}/dev"), &format!("{number}\n"));
        self.link(&directory, &format!("sys/dev/block/{number}"));
        self.link(&directory, &format!("sys/class/block/{name}"));
    }

    pub(crate) fn bdi(&self, name: &str, values: Values) {
        self.write(&format!("sys/class/bdi/{name}/max_ratio_fine"), &format!("{}\n", values.ratio_ppm));
        self.write(&format!("sys/class/bdi/{name}/max_ratio"), "100\n");
        self.write(&format!("sys/class/bdi/{name}/strict_limit"), &format!("{}\n", u32::from(values.strict)));
    }

    /// Sets the counters: all bytes written so far, and the busy time for them.
    pub(crate) fn written(&self, name: &str, megabytes: u64, busy_ms: u64) {
        let (writes, sectors) = (megabytes * 8, megabytes * MB / 512);
        let text = format!("0 0 0 0 {writes} 0 {sectors} {} 4 {busy_ms} 0 0 0 0 0 0 0\n", busy_ms * 32);
        self.write(&format!("sys/devices/{name}/stat"), &text);
    }

    /// Pulls it out.
    pub(crate) fn unplug(&self, name: &str, number: &str) {
        fs::remove_dir_all(self.path().join("sys/class/bdi").join(number)).unwrap();
        let _ = fs::remove_dir_all(self.path().join("sys/devices").join(name));
        let _ = fs::remove_file(self.path().join("sys/dev/block").join(number));
        let _ = fs::remove_file(self.path().join("sys/class/block").join(name));
    }
}
