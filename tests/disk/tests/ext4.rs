//! A real ext4 on the disk, as root.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::{self, File};
use std::io::{Read, Write};

use afflux_disk::{Disk, DiskOptions, Ext4};
use afflux_scratch::Scratch;

const BYTES: u64 = 64 << 20;

/// A disk with an ext4; none, with a message, if this machine cannot have one.
fn disk(options: DiskOptions) -> Option<(Scratch, Disk, Ext4)> {
    let scratch = Scratch::new(&std::env::temp_dir(), "ext4").unwrap();
    let point = scratch.path().join("mounted");
    fs::create_dir(&point).unwrap();
    let made = Disk::new(scratch.path(), options).and_then(|disk| Ext4::format(&disk, &point).map(|ext4| (disk, ext4)));
    match made {
        Ok((disk, ext4)) => Some((scratch, disk, ext4)),
        Err(error) => {
            afflux_scratch::skipped!("no disk: {error}");
            None
        }
    }
}

fn contents(number: u8) -> Vec<u8> {
    vec![number; 100_000]
}

#[test]
fn synced_files_survive_power_cuts_and_others_may_not() {
    let Some((_scratch, mut disk, mut ext4)) = disk(DiskOptions::new(BYTES)) else { return };
    for round in 1..=3 {
        let (synced, loose) = (format!("synced-{round}"), format!("loose-{round}"));
        let mut file = File::create(ext4.path().join(&synced)).unwrap();
        file.write_all(&contents(round)).unwrap();
        file.sync_all().unwrap();
        fs::write(ext4.path().join(&loose), contents(round)).unwrap();
        disk.cut_power(u64::from(round)).unwrap();
        assert!(File::open(ext4.path().join(&loose)).and_then(|file| file.sync_all()).is_err(), "the power is off");
        let point = ext4.path().to_owned();
        drop((file, ext4));
        disk.restart().unwrap();
        ext4 = Ext4::mount(&disk, &point).unwrap();
        for earlier in 1..=round {
            let path = ext4.path().join(format!("synced-{earlier}"));
            assert_eq!(fs::read(path).unwrap(), contents(earlier), "synced before power cut {earlier}");
        }
        assert_ne!(fs::read(ext4.path().join(loose)).unwrap_or_default(), contents(round));
    }
}

#[test]
fn damaged_bytes_cannot_be_read() {
    let Some((_scratch, disk, ext4)) = disk(DiskOptions::new(BYTES)) else { return };
    drop(ext4);
    disk.damage(1 << 20..(1 << 20) + 1);
    let mut device = File::open(disk.device()).unwrap();
    let mut bytes = vec![0; 512 << 10];
    device.read_exact(&mut bytes).unwrap();
    assert!(std::io::copy(&mut device, &mut std::io::sink()).is_err());
}
