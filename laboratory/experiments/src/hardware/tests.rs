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

/// The kernel keeps no state of a device that did not exist, and the device is gone afterwards.
#[test]
fn a_fresh_disk_has_no_past_and_leaves_none() {
    let scratch = Scratch::new(&std::env::temp_dir(), "fresh-disk").unwrap();
    if let Some(disk) = or_skip(SlowDisk::fresh(scratch.path(), 64 << 20, DiskRates::default())) {
        let sys = std::path::Path::new("/sys/block").join(disk.name());
        assert!(sys.exists(), "{}", sys.display());
        drop(disk);
        assert!(!sys.exists() || command::run("perl", &["-v"]).is_err(), "{}", sys.display());
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// The mounted device has the queue, and the one behind it the throttle.
#[test]
fn a_throttled_disk_has_a_queue_before_the_throttle() {
    let scratch = Scratch::new(&std::env::temp_dir(), "queued-disk").unwrap();
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(23_000_000) };
    if let Some(disk) = or_skip(SlowDisk::throttled(scratch.path(), 64 << 20, rates)) {
        let knob = |knob: &str| std::fs::read_to_string(format!("/sys/block/{}/queue/{knob}", disk.name())).unwrap();
        assert_eq!((knob("nr_requests").trim(), knob("max_sectors_kb").trim()), ("64", "128"));
        assert!(knob("scheduler").contains("[mq-deadline]"), "{}", knob("scheduler"));
        let table = std::fs::read_to_string("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").unwrap();
        let line = table.lines().find(|line| line.ends_with(" 23000000")).unwrap();
        assert!(!line.starts_with(&format!("{} ", disk.number())), "{line}");
        std::fs::write(disk.path().join("file"), b"bytes").unwrap();
    }
    let table = std::fs::read_to_string("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").unwrap_or_default();
    assert!(!table.contains(" 23000000"), "{table}");
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

/// The limit is so high that it does not matter to other tests, which write meanwhile.
#[test]
fn limits_of_the_machine_are_as_before_afterwards() {
    let look = || {
        let files = ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"];
        files.map(|file| std::fs::read_to_string(format!("/proc/sys/vm/{file}")).unwrap())
    };
    let before = look();
    if let Some(limits) = or_skip(DirtyLimits::set(1 << 40, 1 << 39)) {
        assert_eq!((look()[0].trim(), look()[2].trim()), ("1099511627776", "549755813888"));
        drop(limits);
    }
    assert_eq!(look(), before);
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

#[test]
fn a_bucket_lets_through_its_rate_and_one_burst() {
    let bucket = limited_relay::Bucket::new(100_000_000);
    let begun = std::time::Instant::now();
    // A second of 100 Mbit Ethernet is 11.95 MB of TCP payload.
    let (payload, burst) = (11_955_000, 16 << 10);
    let mut due = begun;
    for _ in 0..payload / 1000 {
        due = bucket.due(1000, begun);
    }
    let expected = bucket.time(payload);
    assert!(due.duration_since(begun).abs_diff(expected).as_micros() < 1000, "{:?}", due - begun);
    assert!(bucket.time(payload).as_secs_f64() > 0.9999 && bucket.time(payload).as_secs_f64() < 1.0001);
    // An hour without use adds a burst of tokens, not an hour's worth.
    let later = begun + std::time::Duration::from_secs(3600);
    let free = bucket.due(burst, later);
    assert!(free.max(later).duration_since(later).as_micros() < 10, "{:?}", free - begun);
    assert!(bucket.due(burst, later) > later);
}

#[test]
fn a_relay_passes_bytes_both_ways_and_ends_with_its_server() {
    use std::io::{Read, Write};
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = LimitedRelay::new(server.local_addr().unwrap(), 100_000_000).unwrap();
    let mut client = std::net::TcpStream::connect(relay.address()).unwrap();
    let (mut served, _) = server.accept().unwrap();
    let begun = std::time::Instant::now();
    let sent: Vec<u8> = (0..100_000_u32).map(|at| at as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| client.write_all(&sent).unwrap());
        let mut got = vec![0; sent.len()];
        served.read_exact(&mut got).unwrap();
        assert_eq!(got, sent);
    });
    // All bytes beyond a burst take their time: 7 ms at 100 Mbit.
    assert!(begun.elapsed().as_millis() >= 6, "{:?}", begun.elapsed());
    served.write_all(b"back").unwrap();
    drop(served);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"back");
}

/// Another test may hold such a copy, in a process during its start. The test asks the socket whether it listens, since
/// another program may have its port by then.
#[test]
fn a_relay_that_is_dropped_takes_no_connection_though_its_listener_was_copied() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = LimitedRelay::new(server.local_addr().unwrap(), 100_000_000).unwrap();
    let copy = relay.listener.try_clone().unwrap();
    assert_eq!(rustix::net::sockopt::socket_acceptconn(&copy), Ok(true));
    drop(relay);
    assert_eq!(rustix::net::sockopt::socket_acceptconn(&copy), Ok(false));
}

/// Seconds for 64 MiB by writes of 1 MiB, and the median of syncs of 4 KiB beside nothing.
fn speeds(disk: &SlowDisk) -> (f64, f64) {
    use std::io::Write;
    use std::time::Instant;
    let sized = |name: &str| std::fs::File::create(disk.path().join(name)).unwrap();
    let (mut large, piece) = (sized("large"), vec![7; 1 << 20]);
    let began = Instant::now();
    (0..64).for_each(|_| large.write_all(&piece).unwrap());
    large.sync_all().unwrap();
    let seconds = began.elapsed().as_secs_f64();
    let mut small = sized("small");
    let mut syncs: Vec<f64> = (0..21)
        .map(|_| {
            small.write_all(&[1; 4096]).unwrap();
            let began = Instant::now();
            small.sync_all().unwrap();
            began.elapsed().as_secs_f64()
        })
        .collect();
    syncs.sort_by(f64::total_cmp);
    (seconds, syncs[10])
}

#[test]
#[ignore = "compares the two ways to make a slow disk, in half a minute"]
fn our_disk_beside_the_kernels_throttle() {
    let scratch = Scratch::new(&std::env::temp_dir(), "beside").unwrap();
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(25_000_000) };
    for _ in 0..3 {
        let made = [
            ("own", SlowDisk::queued(scratch.path(), 256 << 20, rates)),
            ("throttle", SlowDisk::throttled(scratch.path(), 256 << 20, rates)),
        ];
        for (name, disk) in made {
            let Some(disk) = or_skip(disk) else { continue };
            let (seconds, sync) = speeds(&disk);
            eprintln!("{name}: {:.2} MB/s, sync {:.1} ms", 67.108_864 / seconds, sync * 1e3);
        }
    }
}
