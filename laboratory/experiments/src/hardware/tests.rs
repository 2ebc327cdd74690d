#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_scratch::Scratch;

use super::*;

/// Skips a test, with a message, if the machine lacks root or parts of the kernel.
fn or_skip<T>(made: Result<T, HardwareError>) -> Option<T> {
    made.inspect_err(|error| afflux_scratch::skipped!("{error}")).ok()
}

#[test]
fn a_slow_disk_leaves_nothing_behind() {
    let scratch = Scratch::new(&std::env::temp_dir(), "slow-disk").unwrap();
    let mounted = || {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        mounts.lines().filter(|line| line.contains(&*scratch.path().to_string_lossy())).count()
    };
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(25_000_000) };
    if let Some(disk) = or_skip(SlowDisk::new(scratch.path(), 64 << 20, rates)) {
        std::fs::write(disk.path().join("file"), b"bytes").unwrap();
        assert_eq!(mounted(), 2, "the file with the rate, and the ext4");
        drop(disk);
    }
    assert_eq!(mounted(), 0);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// The kernel has no state of a device that did not exist, and the device is gone afterwards.
#[test]
fn a_fresh_disk_has_no_past_and_leaves_none() {
    let scratch = Scratch::new(&std::env::temp_dir(), "fresh-disk").unwrap();
    if let Some(disk) = or_skip(SlowDisk::queued(scratch.path(), 64 << 20, DiskRates::default())) {
        let sys = std::path::Path::new("/sys/block").join(disk.name());
        assert!(sys.exists(), "{}", sys.display());
        drop(disk);
        assert!(!sys.exists() || command::run("perl", &["-v"]).is_err(), "{}", sys.display());
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_queued_disk_has_the_queue_of_a_disk() {
    let scratch = Scratch::new(&std::env::temp_dir(), "queued-disk").unwrap();
    if let Some(disk) = or_skip(SlowDisk::queued(scratch.path(), 64 << 20, DiskRates::default())) {
        let knob = |knob: &str| std::fs::read_to_string(format!("/sys/block/{}/queue/{knob}", disk.name())).unwrap();
        assert_eq!((knob("nr_requests").trim(), knob("max_sectors_kb").trim()), ("64", "128"));
        assert!(knob("scheduler").contains("[mq-deadline]"), "{}", knob("scheduler"));
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_disk_in_memory_leaves_nothing_behind() {
    let scratch = Scratch::new(&std::env::temp_dir(), "memory-disk").unwrap();
    if let Some(disk) = or_skip(MemoryDisk::new(scratch.path(), 32 << 20)) {
        std::fs::write(disk.path().join("file"), b"bytes").unwrap();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        assert_eq!(mounts.lines().filter(|line| line.contains(&*scratch.path().to_string_lossy())).count(), 2);
    }
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&*scratch.path().to_string_lossy()), "{mounts}");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_slow_network_joins_its_two_sides() {
    let Some(network) = or_skip(SlowNetwork::new(100_000_000)) else { return };
    let listed = network.on_server("ip").args(["-o", "addr"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.contains(&SlowNetwork::SERVER_ADDRESS.to_string()), "{listed}");
    let buckets = network.on_client("tc").args(["qdisc", "show", "dev", "vC"]).output().unwrap();
    let buckets = String::from_utf8_lossy(&buckets.stdout);
    assert!(buckets.contains("tbf") && buckets.contains("100Mbit"), "{buckets}");
    // A thread of this process on the client's side has the client's addresses, and no others.
    let bind = |address| std::net::UdpSocket::bind((address, 0)).is_ok();
    let (server, client) = (SlowNetwork::SERVER_ADDRESS, SlowNetwork::CLIENT_ADDRESS);
    assert_eq!(network.as_client(|| (bind(client), bind(server))).unwrap(), (true, false));
    assert!(!bind(client), "the thread alone was moved");
}

#[test]
fn an_error_names_the_program_and_what_it_said() {
    let error = command::run("ls", &["/no/such/place"]).unwrap_err().to_string();
    assert!(error.contains("ls /no/such/place") && error.contains("No such file"), "{error}");
    let error = command::run("no-such-program", &[]).unwrap_err().to_string();
    assert!(error.contains("no-such-program"), "{error}");
}
