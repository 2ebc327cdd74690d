use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;
use afflux_scratch::TestDirectory as Scratch;

fn limits_of(kind: &str, options: &str) -> Option<HiddenLimits> {
    let disk = Scratch::mounted(kind, 400 << 20, options)?;
    Some(HiddenLimits::on(disk.descriptor().as_fd()))
}

#[test]
fn quotas_are_seen_by_kind() {
    for (kind, options, expected) in [
        ("ext4", "", HiddenLimits::None),
        ("ext4", "usrquota", HiddenLimits::Reservable),
        ("xfs", "", HiddenLimits::None),
        ("xfs", "uquota", HiddenLimits::Reservable),
        ("xfs", "gquota", HiddenLimits::Reservable),
        ("xfs", "pquota", HiddenLimits::Reservable),
        ("btrfs", "", HiddenLimits::AtRewriting),
        ("tmpfs", "", HiddenLimits::None),
    ] {
        if let Some(found) = limits_of(kind, options) {
            assert_eq!(found, expected, "{kind} {options}");
        }
    }
}

#[test]
fn limits_of_subvolumes_are_seen() {
    let Some(disk) = Scratch::mounted("btrfs", 400 << 20, "") else { return };
    let enabled = Command::new("btrfs").args(["quota", "enable"]).arg(disk.path()).status();
    if !enabled.is_ok_and(|status| status.success()) {
        return afflux_scratch::skipped!("no btrfs command");
    }
    assert_eq!(HiddenLimits::on(disk.descriptor().as_fd()), HiddenLimits::AtWriting);
}

#[test]
fn limits_of_subvolumes_that_come_later_are_seen() {
    let Some(disk) = Scratch::mounted("btrfs", 400 << 20, "") else { return };
    let limits = HiddenLimits::on(disk.descriptor().as_fd());
    assert_eq!(limits.again(disk.descriptor().as_fd()), HiddenLimits::AtRewriting);
    let enabled = Command::new("btrfs").args(["quota", "enable"]).arg(disk.path()).status();
    if !enabled.is_ok_and(|status| status.success()) {
        return afflux_scratch::skipped!("no btrfs command");
    }
    assert_eq!(limits.again(disk.descriptor().as_fd()), HiddenLimits::AtWriting);
}

#[test]
fn a_disk_on_a_pool_is_seen_through_the_disks_between() {
    let scratch = Scratch::new();
    let disk = |name: &str, id: &str, below: Option<&str>| {
        let place = scratch.path().join(name);
        std::fs::create_dir_all(place.join("dm")).unwrap();
        std::fs::create_dir_all(place.join("slaves")).unwrap();
        std::fs::write(place.join("dm/uuid"), format!("{id}\n")).unwrap();
        if let Some(below) = below {
            symlink(scratch.path().join(below), place.join("slaves").join(below)).unwrap();
        }
        place
    };
    let plain = disk("dm-0", "LVM-abc", None);
    let pool = disk("dm-1", "LVM-def-tpool", Some("dm-0"));
    let thin = disk("dm-2", "LVM-ghi", Some("dm-1"));
    let encrypted = disk("dm-3", "CRYPT-LUKS2-jkl", Some("dm-2"));
    assert_eq!([plain, pool, thin, encrypted].map(|disk| is_on_pool(&disk)), [false, true, true, true]);
}
