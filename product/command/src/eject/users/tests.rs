mod own_mounts;

use super::*;

#[test]
fn a_mapped_file_is_known_by_the_number_of_its_device() {
    let numbers = BTreeSet::from([(253, 16)]);
    let line = "7f1c2a000000-7f1c2a021000 rw-s 00000000 fd:10 131 /media/usb/a file";
    assert_eq!(mapped(line, |number| numbers.contains(&number)).as_deref(), Some("/media/usb/a file"));
    for other in
        ["7f1c2a000000-7f1c2a021000 rw-s 00000000 fd:01 131 /x", "7f1c2a000000-7f1c2a021000 rw-p 00000000 fd:10 0", ""]
    {
        assert_eq!(mapped(other, |number| numbers.contains(&number)), None, "{other}");
    }
}

#[test]
fn a_thread_of_the_kernel_holds_no_disk() {
    assert!(!is_kernel_thread(Path::new("/proc/self")));
    // Only the first namespace of process numbers shows them.
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        assert!(is_kernel_thread(Path::new("/proc/2")));
    }
}
