mod storing;

use super::*;

#[test]
fn no_number_stands_for_two_kinds() {
    let numbers: std::collections::BTreeSet<u32> = KINDS.iter().map(|kind| kind.magic).collect();
    assert_eq!(numbers.len(), KINDS.len());
}

/// The columns of the kinds that Debian's kernel has, by their numbers.
#[test]
fn each_kind_of_debian_has_its_columns() {
    for (magic, unsure, folding, time_unit, free) in [
        (libc::EXT4_SUPER_MAGIC as u32, Nothing, ByFlag(Some("ext4")), ByInode, OnDisk),
        (libc::XFS_SUPER_MAGIC as u32, Nothing, ByGeometry, Ns(1), OnDisk),
        (libc::BTRFS_SUPER_MAGIC as u32, Directories, Never, Ns(1), Asked),
        (libc::F2FS_SUPER_MAGIC as u32, Nothing, ByFlag(Some("f2fs")), Ns(1), OnDisk),
        (libc::TMPFS_MAGIC as u32, Nothing, ByFlag(Some("tmpfs")), Ns(1), Reported),
        (0x8584_58f6, Nothing, Never, Ns(1), Reported),
        (libc::OVERLAYFS_SUPER_MAGIC as u32, Everything, ByFlag(None), Ns(1), OnDisk),
        (0x7371_7368, Nothing, Never, Ns(1_000_000_000), OnDisk),
        (0xe0f5_e1e2, Nothing, Never, Ns(1), OnDisk),
        (libc::MSDOS_SUPER_MAGIC as u32, Everything, Always, Ns(2_000_000_000), OnDisk),
        (0x2011_bab0, Everything, Always, Ns(10_000_000), OnDisk),
        (0x7366_746e, Everything, MayBe, Ns(100), OnDisk),
        (0x482b, Everything, Always, Ns(1_000_000_000), OnDisk),
        (libc::NFS_SUPER_MAGIC as u32, Everything, MayBe, Ns(1), OnDisk),
        (libc::FUSE_SUPER_MAGIC as u32, Everything, MayBe, Ns(1), OnDisk),
        (libc::AUTOFS_SUPER_MAGIC as u32, Everything, MayBe, Ns(1), OnDisk),
    ] {
        let kind = FileSystemKind::with(magic);
        let columns = (kind.unsure, kind.folding, kind.time_unit, kind.free);
        assert_eq!(columns, (unsure, folding, time_unit, free), "{}", kind.name);
        assert!(kind.does_store_files(), "{}", kind.name);
    }
    for magic in [libc::PROC_SUPER_MAGIC as u32, libc::SYSFS_MAGIC as u32, libc::CGROUP2_SUPER_MAGIC as u32, 0] {
        assert_eq!(FileSystemKind::with(magic), FileSystemKind::unknown());
        assert!(!FileSystemKind::with(magic).does_store_files());
    }
}
