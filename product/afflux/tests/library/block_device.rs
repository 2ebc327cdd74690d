//! A block device as a file, if this host has one for tests.

use std::io::ErrorKind;
use std::process::Command;

use afflux::{Cache, OpenOptions};

const BYTES: usize = 8 << 20;

/// A loop device over a file, detached when dropped.
struct Loop(String);

impl Loop {
    fn over(path: &std::path::Path) -> Option<Self> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(path).output().ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !name.is_empty()).then_some(Self(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

#[test]
fn a_block_device_is_one_file_of_its_size() {
    let place = tempfile::tempdir().unwrap();
    let image = place.path().join("image");
    std::fs::write(&image, vec![1; BYTES]).unwrap();
    let Some(device) = Loop::over(&image) else {
        afflux_scratch::skipped!("no loop device here");
        return;
    };
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cache.open(&device.0, OpenOptions::new().read(true).write(true)).unwrap();
    assert_eq!(file.len(), BYTES as u64);
    assert_eq!(cache.stats().devices.len(), 1);
    let mut model = vec![1; BYTES];
    for number in 0..60 {
        let (at, len) = (number * 131_071, 1 + number * 997);
        model[at..at + len].fill(number as u8);
        file.write_at(&vec![number as u8; len], at as u64).unwrap();
    }
    file.sync_all().unwrap();
    cache.drop_clean_pages();
    let mut back = vec![0; BYTES];
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(back == model);
    let error = file.write_at(&[1; 10], BYTES as u64 - 5).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
    assert_eq!(file.len(), BYTES as u64);
    drop(file);
    cache.close().unwrap();
    drop(device);
    assert!(std::fs::read(&image).unwrap() == model);
}
