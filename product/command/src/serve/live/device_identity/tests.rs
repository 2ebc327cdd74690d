use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::identity_from_host;

mod device_label;

/// A sysfs with a stick of two partitions as `8:0`, `8:1`, `8:2`, in that directory.
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
    identity_from_host(&top.join("dev"), number, file_system)
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
