use super::{HostMemory, limit_files};

const MEMINFO: &str = "MemTotal:       24684092 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n";

fn host(total_mib: u64, available_mib: u64) -> HostMemory {
    HostMemory { total_bytes: total_mib << 20, available_bytes: available_mib << 20 }
}

#[test]
fn the_default_is_a_quarter_of_memory_but_leaves_half_of_what_is_free() {
    assert_eq!(host(8192, 8000).default_cache_bytes(), 2048 << 20);
    assert_eq!(host(8192, 1024).default_cache_bytes(), 512 << 20);
    assert_eq!(host(128, 10).default_cache_bytes(), 64 << 20);
    assert_eq!(host(32, 10).default_cache_bytes(), 32 << 20);
}

#[test]
fn the_host_is_asked_and_a_lower_group_limit_counts() {
    let whole = HostMemory::from_texts(MEMINFO, None);
    assert_eq!((whole.total_bytes, whole.available_bytes), (24_684_092 << 10, 20_000_000 << 10));
    let limited = HostMemory::from_texts(MEMINFO, Some(1 << 30));
    assert_eq!((limited.total_bytes, limited.available_bytes), (1 << 30, 1 << 30));
    assert_eq!(HostMemory::from_texts("nonsense", None).total_bytes, 1 << 30);
}

#[test]
fn a_size_is_whole_frames_in_range() {
    let host = host(1024, 1024);
    assert_eq!(host.cache_bytes("--cache", "64MiB"), Ok(64 << 20));
    assert_eq!(host.cache_bytes("--cache", "64 mib"), Ok(64 << 20));
    assert_eq!(host.cache_bytes("--cache", "100MB"), Ok(100_000_000 / 4096 * 4096));
}

#[test]
fn a_bad_size_is_told_with_value_and_range() {
    for text in ["", "much", "-1", "12 parsecs", "1MiB", "0", "99999TiB", "15.9MiB"] {
        let error = host(1024, 1024).cache_bytes("--cache", text).unwrap_err();
        assert!(error.starts_with(&format!("--cache: '{text}'")), "{error}");
        assert!(error.contains("16.0 MiB to 1.00 GiB"), "{error}");
    }
}

#[test]
fn the_limits_are_those_of_the_services_own_group_and_of_all_above() {
    let shown = |membership| {
        let files = limit_files(membership).into_iter();
        files.map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    let service = ["/sys/fs/cgroup/system.slice/a.service/memory.max", "/sys/fs/cgroup/system.slice/memory.max"];
    assert_eq!(shown("0::/system.slice/a.service\n")[..2], service);
    assert_eq!(shown("0::/\n"), ["/sys/fs/cgroup/memory.max"]);
    let first = "/sys/fs/cgroup/memory/x/memory.limit_in_bytes";
    assert_eq!(shown("3:cpu,cpuacct:/\n2:memory:/x\n")[..], [first, "/sys/fs/cgroup/memory/memory.limit_in_bytes"]);
    assert!(shown("nonsense\n1:name=systemd\n").is_empty());
}
