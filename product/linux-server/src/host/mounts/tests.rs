use super::*;

#[test]
fn mount_points_are_unescaped() {
    let line = b"36 35 98:0 /mnt1 /mnt\\040two/a\\134b rw,noatime master:1 - ext3 /dev/root rw";
    assert_eq!(mount_point(line), Some((DeviceKey(makedev(98, 0)), PathBuf::from("/mnt two/a\\b"))));
    assert_eq!(mount_point(b"1 2 3"), None);
    assert_eq!(mount_point(b""), None);
}
