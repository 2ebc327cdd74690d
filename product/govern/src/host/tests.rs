use std::fs;
use std::path::PathBuf;

use super::{BdiKind, FileUseError};
use crate::law::Values;
use crate::tests::fake_host::FakeHost;

fn why(tree: &FakeHost, bdi: &str) -> String {
    match tree.host().kind(bdi) {
        Some(BdiKind::Alone { why, .. }) => why.to_owned(),
        other => panic!("{bdi}: {other:?}"),
    }
}

#[test]
fn what_is_no_disk_has_a_reason() {
    let tree = FakeHost::new();
    tree.write(
        "proc/self/mountinfo",
        "garbage\n30 1 0:45 / /net rw - nfs4 server:/x rw\n31 1 0:46 / /f rw shared:1 - fuse.sshfs ssh rw\n",
    );
    tree.disk("ram0", "1:0", 1);
    tree.disk("sr0", "11:0", 2);
    tree.write("sys/devices/sr0/size", "0\n");
    tree.disk("sdr", "8:32", 3);
    tree.write("sys/devices/sdr/ro", "1\n");
    for (bdi, word) in [
        ("0:45", "network"),
        ("0:46", "FUSE"),
        ("0:99", "not a block device"),
        ("1:0", "memory"),
        ("11:0", "no medium"),
        ("8:32", "cannot be written"),
        ("ubifs_0_0", "pages of its own"),
        ("8:1-fuseblk", "pages of its own"),
        ("btrfs-1", "several"),
    ] {
        assert!(why(&tree, bdi).contains(word), "{bdi}: {}", why(&tree, bdi));
    }
    assert_eq!(tree.host().kind("8:99"), None, "it has gone");
}

#[test]
fn a_disk_is_found_by_its_parts_and_by_its_btrfs() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 4);
    tree.partition("sdb", "sdb1", "8:17");
    let host = tree.host();
    for name in ["sdb", "sdb1", "/dev/sdb1"] {
        assert_eq!(host.whole(name).as_deref(), Some("8:16"), "{name}");
    }
    for name in ["", "..", "/dev/", "a/b", "sdz"] {
        assert_eq!(host.whole(name), None, "{name}");
    }
    let Some(BdiKind::Disk(disk)) = host.kind("8:16") else { panic!("a disk") };
    assert_eq!((disk.name.as_str(), disk.model.as_deref(), disk.sequence), ("sdb", Some("Flash Drive"), Some(4)));
    tree.bdi("btrfs-1", Values::KERNELS);
    tree.write("sys/fs/btrfs/some-uuid/devices/sdb1", "");
    std::os::unix::fs::symlink(
        tree.path().join("sys/class/bdi/btrfs-1"),
        tree.path().join("sys/fs/btrfs/some-uuid/bdi"),
    )
    .unwrap();
    assert!(matches!(host.kind("btrfs-1"), Some(BdiKind::Disk(disk)) if disk.name == "sdb"));
    tree.write("sys/fs/btrfs/some-uuid/devices/sdc1", "");
    assert!(why(&tree, "btrfs-1").contains("several"));
}

#[test]
fn mounts_of_a_disk_are_those_of_its_parts_and_of_what_is_made_from_them() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 4);
    tree.partition("sdb", "sdb1", "8:17");
    tree.disk("dm-0", "253:0", 5);
    tree.write("sys/devices/sdb/sdb1/holders/dm-0/dev", "253:0\n");
    tree.write(
        "proc/self/mountinfo",
        "1 0 8:17 / /a\\040b rw - ext4 /dev/sdb1 rw\n2 0 8:17 /x /bind rw - ext4 /dev/sdb1 rw\n\
         3 0 253:0 / /crypt rw - xfs /dev/mapper/c rw\n4 0 0:50 / /b rw - btrfs /dev/sdb1 rw\n\
         5 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
    );
    let places: Vec<PathBuf> = ["/a b", "/crypt", "/b"].map(PathBuf::from).to_vec();
    assert_eq!(tree.host().mounts_of("8:16"), places);
}

#[test]
fn values_that_make_no_sense_and_kernels_that_are_too_old_are_told() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 4);
    let host = tree.host();
    assert_eq!(host.values("8:16").unwrap(), Some(Values::KERNELS));
    assert_eq!(host.values("8:99").unwrap(), None);
    tree.write("sys/class/bdi/8:16/max_ratio_fine", "many\u{1b}[2J\n");
    assert!(matches!(host.values("8:16"), Err(FileUseError::Nonsense { .. })));
    fs::remove_file(tree.path().join("sys/class/bdi/8:16/max_ratio_fine")).unwrap();
    let error = host.values("8:16").unwrap_err();
    assert!(error.is_general() && error.to_string().contains("6.2"), "{error}");
    tree.write("proc/vmstat", "nr_dirty_threshold none\n");
    assert!(host.machine().is_err());
}

#[test]
fn counters_that_make_no_sense_are_none() {
    for text in ["", "1 2 3", "1 2 3 4 5 6 7 8 9 10 x", "-1 0 0 0 0 0 0 0 0 0 0"] {
        assert_eq!(super::block::counters(text), None, "{text}");
    }
    let most = format!("{} ", u64::MAX).repeat(17);
    assert!(super::block::counters(&most).is_some(), "nothing overflows");
    let counters = super::block::counters("1 0 8 20 2 0 16 30 4 50 60\n").unwrap();
    assert_eq!((counters.reads, counters.read_bytes, counters.writes, counters.write_bytes), (1, 4096, 2, 8192));
    assert_eq!((counters.write_ns, counters.in_flight, counters.busy_ns), (30_000_000, 4, 50_000_000));
}
