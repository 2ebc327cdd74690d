use super::*;
use crate::tests::fake_host::FakeHost;

const OF_TWO: &str = "WbCgIno:                    1
WbWriteback:           120 kB
WbReclaimable:           0 kB
WbWritten:            4000 kB
state:                   5

WbCgIno:                   77
WbWriteback:             8 kB
WbWritten:              16 kB
";
const OF_ALL: &str = "BdiWriteback:              128 kB
BdiReclaimable:              0 kB
BdiWritten:               4016 kB
";

fn flow(cgroup: u64, writeback: u64, written: u64) -> Flow {
    Flow { cgroup, writeback_bytes: writeback * KIB, written_bytes: written * KIB }
}

#[test]
fn a_backlog_is_told_cgroup_by_cgroup_or_as_a_sum() {
    let tree = FakeHost::new();
    assert_eq!(tree.host().backlogs().of("8:16"), None, "no debugfs");
    tree.write("sys/kernel/debug/bdi/8:16/stats", OF_ALL);
    let backlogs = tree.host().backlogs();
    assert_eq!(backlogs.of("8:16"), Some(Backlog::new(vec![flow(0, 128, 4016)])));
    tree.write("sys/kernel/debug/bdi/8:16/wb_stats", OF_TWO);
    assert_eq!(backlogs.of("8:16"), Some(Backlog::new(vec![flow(1, 120, 4000), flow(77, 8, 16)])));
    tree.write("sys/kernel/debug/bdi/8:16/wb_stats", "WbCgIno: 1\nWbWriteback: much\n");
    assert_eq!(backlogs.of("8:16"), None, "nonsense");
    assert_eq!(backlogs.of("8:32"), None, "another device");
}
