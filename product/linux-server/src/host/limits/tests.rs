use super::DescriptorBounds;
use crate::net::CONNECTIONS_MAX;

#[test]
fn the_shares_leave_room_for_everything_else() {
    // Rings, listeners, control connections, and calls in progress on every thread of a pool.
    const REST: usize = 32;
    for limit in [128, 256, 1_000, 1_024, 4_096, 20_000, 65_536, 1 << 19, 1 << 30] {
        let DescriptorBounds { objects, spare, connections } = DescriptorBounds::of(limit);
        let all = objects as u64 + spare as u64 + connections as u64 + REST as u64;
        assert!(all <= limit, "{limit}: {objects} {spare} {connections}");
        assert!(objects >= 56 && spare >= 4 && connections >= 32, "{limit}: {objects} {spare} {connections}");
    }
    assert_eq!(DescriptorBounds::of(20_000).connections, CONNECTIONS_MAX);
}
