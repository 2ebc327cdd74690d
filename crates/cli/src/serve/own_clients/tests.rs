use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

#[test]
fn clients_of_this_host_come_by_loopback() {
    let open = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    for own in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from([127, 9, 9, 9]), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        assert!(are_served(own, LockMemory::Auto) && !are_served(own, LockMemory::Off));
    }
    assert!(!are_served(open, LockMemory::Auto) && are_served(open, LockMemory::On));
}
