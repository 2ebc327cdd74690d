use afflux_frontend::Party;

use super::super::state::clients::KnownClient;
use super::super::state::leases::Lease;
use super::ClientStatus::{self, Confirmed, Courtesy, Expired, Unconfirmed};

#[test]
fn a_silent_client_is_a_courtesy_client_until_its_lease_is_revoked() {
    const SECOND: u64 = 1_000_000_000;
    let lease = Lease::begun(5 * SECOND);
    let at = |is_confirmed, now_ns| {
        let client = KnownClient { id: 1, owner: b"", party: Party::ROOT, user: None, is_confirmed, lease: &lease };
        (ClientStatus::of(&client, now_ns), client.lease.remaining_ns(now_ns))
    };
    assert_eq!(at(false, 5 * SECOND), (Unconfirmed, 60 * SECOND));
    assert_eq!(at(true, 64 * SECOND), (Confirmed, SECOND));
    assert_eq!(at(true, 66 * SECOND), (Courtesy, 0));
    lease.revoke();
    assert_eq!(at(true, 6 * SECOND), (Expired, 0));
}
