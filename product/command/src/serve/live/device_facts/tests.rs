use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{Label, identity_in, label, label_from, unused};

/// A sysfs with a stick of two partitions as `8:0`, `8:1`, `8:2`, in that place.
fn sysfs(name: &str, place: &str, serial: &str) -> PathBuf {
    let top = afflux_scratch::Scratch::new(&std::env::temp_dir(), name).unwrap().keep();
    let disk = top.join(place);
    fs::create_dir_all(disk.join("device")).unwrap();
    fs::create_dir_all(top.join("dev")).unwrap();
    fs::write(disk.join("device/model"), "Stick 3.0\n").unwrap();
    fs::write(disk.join("device/serial"), serial).unwrap();
    fs::write(disk.join("size"), "2000\n").unwrap();
    symlink(&disk, top.join("dev/8:0")).unwrap();
    for part in ["1", "2"] {
        let partition = disk.join(format!("part{part}"));
        fs::create_dir_all(&partition).unwrap();
        fs::write(partition.join("partition"), part).unwrap();
        fs::write(partition.join("size"), "900\n").unwrap();
        symlink(&partition, top.join(format!("dev/8:{part}"))).unwrap();
    }
    top
}

fn identity(top: &Path, number: &str, file_system: Option<u64>) -> Option<String> {
    identity_in(&top.join("dev"), number, file_system)
}

#[test]
fn a_stick_is_known_again_in_another_place_and_told_from_one_of_its_series() {
    let (here, there) = (sysfs("a", "usb1/sda", "11\n"), sysfs("b", "usb2/sdb", "11\n"));
    let known = identity(&here, "8:1", Some(0xab)).unwrap();
    assert_eq!(known, "fs=00000000000000ab serial=11 model=Stick 3.0 sectors=900 partition=1");
    assert_eq!(identity(&there, "8:1", Some(0xab)), Some(known.clone()));
    let other = sysfs("c", "usb1/sda", "12\n");
    for (top, number, file_system) in
        [(&here, "8:2", 0xab), (&here, "8:0", 0xab), (&here, "8:1", 0xac), (&other, "8:1", 0xab)]
    {
        assert_ne!(identity(top, number, Some(file_system)), Some(known.clone()));
    }
    for top in [here, there, other] {
        fs::remove_dir_all(top).unwrap();
    }
}

#[test]
fn what_names_itself_by_nothing_but_its_size_keeps_its_number() {
    let top = sysfs("d", "virtual/x", "");
    fs::remove_file(top.join("virtual/x/device/model")).unwrap();
    assert_eq!(identity(&top, "8:0", None).unwrap(), "sectors=2000 number=8:0");
    assert_eq!(identity(&top, "0:44", None), None, "a file system without a disk and an id");
    assert_eq!(identity(&top, "0:44", Some(1)).unwrap(), "fs=0000000000000001");
    fs::remove_dir_all(top).unwrap();
}

const MOUNTS: &str = "29 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
    36 25 0:31 / /tmp/a\\040b rw shared:3 - tmpfs tmpfs rw,size=8192k\n";

fn told(number: &str, place: Option<&str>, mapped: Option<&str>) -> (String, Option<&'static str>) {
    let Label { name, attached_by } = label_from(number, place.map(Into::into), mapped, MOUNTS);
    (name, attached_by)
}

#[test]
fn a_disk_has_its_name_and_its_bus() {
    let usb = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host0/target0/0:0/block/sda/sda1";
    assert_eq!(told("8:1", Some(usb), None), ("sda1".into(), Some("USB")));
    let nvme = "/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2";
    assert_eq!(told("259:2", Some(nvme), None), ("nvme0n1p2".into(), Some("NVMe")));
    let mapped = "/sys/devices/virtual/block/dm-0";
    assert_eq!(told("253:0", Some(mapped), Some("home\n")), ("home".into(), Some("device mapper")));
    assert_eq!(told("9:9", Some("/sys/devices/odd/block/zz"), None), ("zz".into(), None));
}

#[test]
fn what_has_no_disk_has_its_file_system_s_name() {
    assert_eq!(told("0:31", None, None), ("tmpfs".into(), None));
    assert_eq!(told("0:99", None, None), ("device-0:99".into(), None));
}

#[test]
fn the_device_of_this_directory_has_a_name() {
    use std::os::unix::fs::MetadataExt;
    assert!(!label(std::fs::metadata(".").unwrap().dev()).name.is_empty());
}

#[test]
fn names_are_told_apart() {
    let used = ["tmpfs".to_owned(), "tmpfs-2".to_owned()];
    assert_eq!(unused("sda", &used), "sda");
    assert_eq!(unused("tmpfs", &used), "tmpfs-3");
}
