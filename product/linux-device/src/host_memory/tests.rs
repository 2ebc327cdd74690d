use super::{HostMemory, limit_files};

const MEMINFO: &str = "MemTotal:       24684092 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n";

#[test]
fn the_host_is_asked_and_a_lower_group_limit_counts() {
    let whole = HostMemory::from_texts(MEMINFO, None);
    assert_eq!((whole.total_bytes, whole.available_bytes), (24_684_092 << 10, 20_000_000 << 10));
    let limited = HostMemory::from_texts(MEMINFO, Some(1 << 30));
    assert_eq!((limited.total_bytes, limited.available_bytes), (1 << 30, 1 << 30));
    assert_eq!(HostMemory::from_texts("nonsense", None).total_bytes, 1 << 30);
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
