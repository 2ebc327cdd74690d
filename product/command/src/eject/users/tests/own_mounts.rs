use super::super::*;

/// Mounts by their numbers, those of their parents, mount points, kinds and sources.
fn mounts(rows: &[(u32, u32, &str, &str, &str)]) -> Vec<Mounted> {
    let line = |(id, parent, mount_point, kind, source): &(u32, u32, &str, &str, &str)| {
        format!("{id} {parent} 8:{id} / {mount_point} rw shared:1 - {kind} {source} rw\n")
    };
    Mounted::listed(&rows.iter().map(line).collect::<String>())
}

/// The mount points of the mounts that stand on the file system with this number.
fn standing(mounts: &[Mounted], on_number: u32) -> Vec<String> {
    let found = on(mounts, |mount| mount.id == on_number.to_string());
    found.iter().map(|mount| mount.mount_point.display().to_string()).collect()
}

#[test]
fn a_mount_stands_on_the_disks_of_its_directory_and_of_its_point() {
    let all = mounts(&[
        (1, 0, "/", "ext4", "/dev/sda1"),
        (2, 1, "/media/a", "ext4", "/dev/sdb1"),
        (3, 1, "/media/ab", "ext4", "/dev/sdc1"),
        (4, 1, "/point", KIND, "/media/a/data"),
        (5, 2, "/media/a/data", KIND, "/media/ab"),
        (6, 3, "/media/ab", KIND, "/media/ab"),
        (7, 1, "/other", "fuse.sshfs", "/media/a"),
    ]);
    assert_eq!(standing(&all, 1), ["/point", "/media/a/data", "/media/ab"]);
    // The directory of the first is covered by the second, which shows the third.
    assert_eq!(standing(&all, 2), ["/media/a/data"]);
    assert_eq!(standing(&all, 3), ["/point", "/media/a/data", "/media/ab"]);
    let alone = mounts(&[
        (1, 0, "/", "ext4", "/dev/sda1"),
        (2, 1, "/media/a", "ext4", "/dev/sdb1"),
        (4, 1, "/point", KIND, "/media/a/data"),
    ]);
    assert_eq!(standing(&alone, 2), ["/point"]);
}
