use super::super::{Label, label_from_host, label_of, unused};

const MOUNTS: &str = "29 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
    36 25 0:31 / /tmp/a\\040b rw shared:3 - tmpfs tmpfs rw,size=8192k\n";

fn label(number: &str, place: Option<&str>, mapped: Option<&str>) -> (String, Option<&'static str>) {
    let Label { name, attached_by } = label_from_host(number, place.map(Into::into), mapped, MOUNTS);
    (name, attached_by)
}

#[test]
fn a_disk_has_its_name_and_its_bus() {
    let usb = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host0/target0/0:0/block/sda/sda1";
    assert_eq!(label("8:1", Some(usb), None), ("sda1".into(), Some("USB")));
    let nvme = "/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2";
    assert_eq!(label("259:2", Some(nvme), None), ("nvme0n1p2".into(), Some("NVMe")));
    let mapped = "/sys/devices/virtual/block/dm-0";
    assert_eq!(label("253:0", Some(mapped), Some("home\n")), ("home".into(), Some("device mapper")));
    assert_eq!(label("9:9", Some("/sys/devices/odd/block/zz"), None), ("zz".into(), None));
}

#[test]
fn what_has_no_disk_has_its_file_system_s_name() {
    assert_eq!(label("0:31", None, None), ("tmpfs".into(), None));
    assert_eq!(label("0:99", None, None), ("device-0:99".into(), None));
}

#[test]
fn the_device_of_this_directory_has_a_name() {
    use std::os::unix::fs::MetadataExt;
    assert!(!label_of(std::fs::metadata(".").unwrap().dev()).name.is_empty());
}

#[test]
fn names_are_told_apart() {
    let used = ["tmpfs".to_owned(), "tmpfs-2".to_owned()];
    assert_eq!(unused("sda", &used), "sda");
    assert_eq!(unused("tmpfs", &used), "tmpfs-3");
}
