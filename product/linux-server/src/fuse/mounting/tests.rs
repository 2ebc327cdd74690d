mod mount_flags;

use super::*;

#[test]
fn paths_of_the_list_of_mounts_are_read_as_they_were_meant() {
    assert_eq!(unescaped(br"/a\040b\134c\012"), b"/a b\\c\n");
    assert_eq!(unescaped(br"/plain\4"), br"/plain\4");
    assert_eq!(unescaped(br"/not\999octal"), br"/not\999octal");
}

/// A mount that each process of this host sees. The root may be none, as after `chroot`.
const MOUNTED: &str = "/proc";

#[test]
fn a_mount_is_found_and_a_file_that_is_not_there_is_none() {
    assert!(TopMount::at(Path::new(MOUNTED)).is_some());
    assert!(TopMount::at(Path::new("/no/such/place")).is_none());
}

#[test]
fn only_the_named_mount_is_unmounted() {
    // The number is of no mount: this one stays where it is.
    unmount(Path::new(MOUNTED), u64::MAX, false).unwrap();
    assert!(TopMount::at(Path::new(MOUNTED)).is_some());
}

#[test]
fn a_file_is_no_place_to_mount() {
    let refused = |path: &str| MountTarget::at(Path::new(path)).unwrap_err().to_string();
    assert!(refused("/proc/self/status").contains("not a directory"), "{}", refused("/proc/self/status"));
    assert!(refused("/no/such/place").contains("/no/such/place does not exist"));
}
