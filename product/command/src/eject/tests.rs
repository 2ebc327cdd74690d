use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use afflux_govern::{Disk, Host};

use super::{DiskUsers, FileSystem, Process, WrittenServer, flush, found, unmount, unused, words, write_out};

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
        words(&disk(), &[], &[], 50_000_000, took),
        "Everything on sdb (Flash\\u001b[2J Drive) is written (50.0 MB in 2.0 s). It is safe to unplug."
    );
    let mounted = words(&disk(), &[PathBuf::from("/media/usb")], &[], 0, took);
    assert!(mounted.ends_with("safe to unplug once it is unmounted: umount /media/usb (or --unmount)"), "{mounted}");
    let served = words(&disk(), &[PathBuf::from("/media/usb")], &[server(7)], 0, took);
    assert!(served.contains("once afflux (process 7) has ended and it is unmounted: umount"), "{served}");
}

#[test]
fn a_mount_and_its_server_are_named_once() {
    let mounts = [PathBuf::from("/point"), PathBuf::from("/media/usb")];
    let of = |ends_with_mount| {
        let server = WrittenServer { mount: Some(PathBuf::from("/point")), ends_with_mount, ..server(7) };
        words(&disk(), &mounts, &[server], 0, Duration::ZERO)
    };
    assert!(of(true).ends_with("once it is unmounted: umount /point /media/usb (or --unmount)"), "{}", of(true));
    let goes_on = of(false);
    assert!(goes_on.contains("once afflux (process 7) has ended and it is unmounted: umount /media/usb"), "{goes_on}");
}

/// A server without a mount.
fn server(pid: u32) -> WrittenServer {
    WrittenServer { process: process(pid, "afflux"), mount: None, ends_with_mount: false }
}

fn process(pid: u32, program: &str) -> Process {
    Process { pid, program: program.to_owned(), how: "has /media/usb/a open".to_owned(), has_files: true }
}

#[test]
fn a_use_by_others_is_refused_with_the_process_and_its_number() {
    let refused = |users: DiskUsers, drained: &[WrittenServer]| {
        unused(&disk(), users, drained).map(|serving| serving.len()).map_err(|error| error.to_string())
    };
    let written = server(7);
    let server = written.process.clone();
    let both = || DiskUsers { processes: vec![server.clone(), process(8, "vi\u{1b}[2J")], ..DiskUsers::default() };
    let error = refused(both(), std::slice::from_ref(&written)).unwrap_err();
    assert!(
        error.contains("process 8 (vi\\u001b[2J) has /media/usb/a open") && !error.contains("process 7"),
        "{error}"
    );
    assert!(refused(both(), &[]).unwrap_err().contains("process 7 (afflux)"));
    let alone = DiskUsers { processes: vec![server.clone()], ..DiskUsers::default() };
    assert_eq!(refused(alone, std::slice::from_ref(&written)), Ok(1));
    let unseen = DiskUsers { some_unseen: true, ..DiskUsers::default() };
    assert!(refused(unseen, &[]).unwrap_err().contains("only root can see"));
    let swap = DiskUsers { kernel: vec!["/dev/sdb2 is swap: swapoff /dev/sdb2".to_owned()], ..DiskUsers::default() };
    assert!(refused(swap, &[]).unwrap_err().contains("/dev/sdb2 is swap"));
}

#[test]
fn what_is_no_disk_is_told() {
    for name in ["", "no-such-disk", "/proc", "../x", "/dev/null"] {
        let error = found(&Host::new("/".as_ref()), name).unwrap_err().to_string();
        assert!(error.contains("lsblk"), "{error}");
    }
}

/// A made-up machine, on which the disk may exist and may be mounted.
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
    let root = afflux_scratch::Scratch::new(&std::env::temp_dir(), "eject").unwrap().keep();
    let mount_point = PathBuf::from("/no/such/place");
    let write = |(host, disk): &(Host, Disk)| {
        let mounted = FileSystem { mount_point: mount_point.clone(), path: Some(mount_point.clone()) };
        write_out(host, disk, &[mounted], Instant::now(), true).map_err(|error| error.to_string())
    };
    let unmounted = machine(&root, true, "");
    assert_eq!(write(&unmounted), Ok(0));
    assert!(unmount(&unmounted.0, &unmounted.1, &mount_point).is_ok());

    let mounted = machine(&root, true, MOUNTED);
    assert!(write(&mounted).unwrap_err().contains("not everything could be written"));
    assert!(unmount(&mounted.0, &mounted.1, &mount_point).is_err());
    assert!(flush(&mounted.0, &mounted.1).unwrap_err().to_string().contains("its own cache"));

    let gone = machine(&root, false, MOUNTED);
    for error in [write(&gone).unwrap_err(), flush(&gone.0, &gone.1).unwrap_err().to_string()] {
        assert!(error.contains("went before everything on it was written"), "{error}");
    }
    fs::remove_dir_all(&root).unwrap();
}
