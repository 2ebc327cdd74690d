use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use govern::{Disk, Host};

use super::{flush, found, unmount, words, write_out};

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

/// A made-up machine, whose disk may be there and may be mounted.
fn machine(root: &Path, is_there: bool, mountinfo: &str) -> (Host, Disk) {
    for directory in ["sys/dev/block", "sys/devices/sdb", "proc/self"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::write(root.join("proc/self/mountinfo"), mountinfo).unwrap();
    let link = root.join("sys/dev/block/8:16");
    let _ = fs::remove_file(&link);
    if is_there {
        symlink(root.join("sys/devices/sdb"), &link).unwrap();
    }
    (Host::new(root), Disk { name: "no-such-disk".to_owned(), ..disk() })
}

#[test]
fn what_others_do_meanwhile_is_no_failure_and_a_disk_that_goes_is_one() {
    const MOUNTED: &str = "30 1 8:16 / /no/such/place rw - ext4 /dev/none rw\n";
    let root = std::env::temp_dir().join(format!("afflux-eject-{}", std::process::id()));
    let place = PathBuf::from("/no/such/place");
    let write = |(host, disk): &(Host, Disk)| {
        write_out(host, disk, std::slice::from_ref(&place), Instant::now(), true).map_err(|error| error.to_string())
    };
    let unmounted = machine(&root, true, "");
    assert_eq!(write(&unmounted), Ok(0));
    assert!(unmount(&unmounted.0, &unmounted.1, &place).is_ok());

    let mounted = machine(&root, true, MOUNTED);
    assert!(write(&mounted).unwrap_err().contains("not everything could be written"));
    assert!(unmount(&mounted.0, &mounted.1, &place).is_err());
    assert!(flush(&mounted.0, &mounted.1).unwrap_err().to_string().contains("its own cache"));

    let gone = machine(&root, false, MOUNTED);
    for error in [write(&gone).unwrap_err(), flush(&gone.0, &gone.1).unwrap_err().to_string()] {
        assert!(error.contains("went before everything on it was written"), "{error}");
    }
    fs::remove_dir_all(&root).unwrap();
}
