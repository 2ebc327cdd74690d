use super::super::*;

const MIB: u64 = 1 << 20;

/// For each cgroup, in MiB: under writeback, and written so far.
fn backlog(flows: &[(u64, u64)]) -> Backlog {
    let flow = |(cgroup, (writeback, written)): (usize, &(u64, u64))| Flow {
        cgroup: cgroup as u64,
        writeback_bytes: writeback * MIB,
        written_bytes: written * MIB,
    };
    Backlog::new(flows.iter().enumerate().map(flow).collect())
}

#[test]
fn what_a_backlog_says() {
    use Since::{FallsBehind, MayBeDry, NeverDry};
    let cases: [(&[_], &[_], _); 11] = [
        // More was under writeback than was written.
        (&[(30, 100)], &[(20, 112)], NeverDry),
        (&[(12, 100)], &[(0, 112)], NeverDry),
        // All of it may have been written long before the next look.
        (&[(8, 100)], &[(8, 112)], MayBeDry),
        (&[(8, 100)], &[(0, 112)], MayBeDry),
        // A stream begins, on a fast disk, and below a limit.
        (&[(0, 0)], &[(8, 500)], MayBeDry),
        (&[(0, 0)], &[(500, 12)], FallsBehind),
        (&[], &[(500, 12)], FallsBehind),
        // No byte is written.
        (&[(0, 100)], &[(0, 100)], MayBeDry),
        (&[(30, 100)], &[(30, 100)], FallsBehind),
        // One cgroup is throttled. The other writes a little, or more than the first.
        (&[(30, 0), (0, 0)], &[(20, 20), (0, 2)], NeverDry),
        (&[(30, 0), (0, 0)], &[(20, 10), (0, 30)], MayBeDry),
    ];
    for (before, now, says) in cases {
        assert_eq!(backlog(now).since(&backlog(before)), says, "{before:?} {now:?}");
    }
}
