use super::super::*;

const TABLE: &[u8] = b"22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,sync\n\
    40 22 0:44 / /mnt/a rw,nosuid,nodev - fuse.afflux /data rw,user_id=0,group_id=0\n\
    41 22 0:45 / /mnt/b rw,nosuid - fuse.afflux /sync,dirsync rw,dirsync,user_id=0\n\
    42 22 0:46 / /mnt/c rw - fuse.afflux /data ro,sync,dirsync,user_id=0\n";

#[test]
fn the_flags_are_those_of_the_file_system_itself() {
    let of = |file_system: &[u8]| found(TABLE, file_system).map(|it| (it.sync, it.dirsync));
    assert_eq!(of(b"0:44"), Some((false, false)));
    assert_eq!(of(b"0:45"), Some((false, true)));
    assert_eq!(of(b"0:46"), Some((true, true)));
    assert_eq!(of(b"259:2"), Some((true, false)));
    assert_eq!(of(b"0:4"), None);
}

#[test]
fn a_mount_that_is_gone_keeps_the_flags_that_were_seen() {
    let flags = MountFlags::of(b"no such".to_vec()).unwrap();
    assert_eq!(flags.now(), SyncFlags::default());
    flags.seen.lock().unwrap().flags.sync = true;
    assert!(flags.now().sync);
    assert!(flags.seen.lock().unwrap().read_at.is_some());
}
