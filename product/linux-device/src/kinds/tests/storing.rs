use std::fs::File;
use std::os::fd::AsFd;

use super::super::*;

fn is_storing(object: &File) -> bool {
    stores_files(major(fstat(object).unwrap().st_dev), object.as_fd()).unwrap()
}

fn stores(path: &str) -> bool {
    is_storing(&File::open(path).unwrap())
}

#[test]
fn kernels_orders_are_no_files() {
    for path in
        ["/proc", "/proc/version", "/proc/self/mem", "/proc/sys/kernel/hostname", "/sys", "/sys/kernel/uevent_seqnum"]
    {
        assert!(!stores(path), "{path}");
    }
    let proc = File::open("/proc/self").unwrap();
    assert_eq!(file_system_kind(proc.as_fd()), "proc");
    // No path of the file system shows this one.
    let namespace = File::open("/proc/self/ns/uts").unwrap();
    assert!(!is_storing(&namespace));
    assert_eq!(file_system_kind(namespace.as_fd()), "0x6e736673");
}

#[test]
fn disks_and_memory_store_files() {
    for path in [env!("CARGO_MANIFEST_DIR"), "/dev/shm"] {
        assert!(stores(path), "{path}");
    }
}

#[test]
fn a_kind_is_found_by_its_device() {
    let mounts = "22 27 0:21 / /proc rw - proc proc rw\n27 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n";
    assert_eq!(kind_in(mounts, rustix::fs::makedev(254, 0)), Some("ext4"));
    assert_eq!(kind_in(mounts, rustix::fs::makedev(0, 21)), Some("proc"));
    assert_eq!(kind_in(mounts, rustix::fs::makedev(0, 2)), None);
}
