use std::path::PathBuf;
use std::time::Duration;

use govern::{Disk, Host};

use super::{found, words};

fn disk() -> Disk {
    Disk {
        name: "sdb".to_owned(),
        number: "8:16".to_owned(),
        model: Some("Flash\u{1b}[2J Drive".to_owned()),
        directory: PathBuf::new(),
        sequence: None,
    }
}

#[test]
fn it_is_safe_only_once_nothing_is_mounted() {
    let took = Duration::from_secs(2);
    assert_eq!(
        words(&disk(), &[], 50_000_000, took),
        "Everything on sdb (Flash\\u001b[2J Drive) is written (50.0 MB in 2.0 s). It is safe to unplug."
    );
    let mounted = words(&disk(), &[PathBuf::from("/media/usb")], 0, took);
    assert!(mounted.ends_with("safe to unplug once it is unmounted: umount /media/usb (or --unmount)"), "{mounted}");
}

#[test]
fn what_is_no_disk_is_told() {
    for name in ["", "no-such-disk", "/proc", "../x", "/dev/null"] {
        let error = found(&Host::new("/".as_ref()), name).unwrap_err().to_string();
        assert!(error.contains("lsblk"), "{error}");
    }
}
