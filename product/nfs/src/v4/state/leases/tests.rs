mod silence;

use super::*;

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_lease_ends_after_its_time_and_a_word_renews_it() {
    let lease = Lease::begun(5 * SECOND);
    assert!(!lease.has_ended(65 * SECOND));
    assert!(lease.has_ended(66 * SECOND));
    lease.try_renew(66 * SECOND);
    assert!(!lease.has_ended(126 * SECOND));
    assert!(!may_be_forgotten(lease.heard_ns(), (24 * 3600 + 66) * SECOND));
    assert!(may_be_forgotten(lease.heard_ns(), (24 * 3600 + 67) * SECOND));
    // Another reactor's clock may be a moment behind.
    assert!(!lease.has_ended(0));
}

#[test]
fn a_revoked_lease_stays_revoked() {
    let lease = Lease::begun(5 * SECOND);
    assert!(!lease.try_revoke_ended(65 * SECOND));
    assert!(lease.try_revoke_ended(66 * SECOND) && !lease.try_revoke_ended(67 * SECOND));
    assert!(!lease.try_renew(500 * SECOND));
    assert!(lease.is_revoked() && lease.has_ended(0));
    assert!(Lease::begun(0).try_renew(1));
}
