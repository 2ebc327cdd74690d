use super::Shares;
use crate::net::CONNECTIONS_MAX;

#[test]
fn the_shares_leave_room_for_everything_else() {
    // Rings, listeners, control connections, and calls in progress on every thread of a pool.
    const REST: usize = 32;
    for limit in [128, 256, 1_000, 1_024, 4_096, 20_000, 65_536, 1 << 19, 1 << 30] {
        let Shares { objects, connections } = Shares::of(limit);
        assert!(objects as u64 + connections as u64 + REST as u64 <= limit, "{limit}: {objects} {connections}");
        assert!(objects >= 64 && connections >= 32, "{limit}: {objects} {connections}");
    }
    assert_eq!(Shares::of(20_000).connections, CONNECTIONS_MAX);
}
