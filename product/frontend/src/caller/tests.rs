use super::*;

fn elsewhere(address: &str) -> Peer {
    address.parse::<IpAddr>().unwrap().into()
}

#[test]
fn a_network_of_ipv6_is_one_machine_and_a_mapped_address_is_the_ipv4_one() {
    let party = |address: &str| elsewhere(address).party();
    assert_eq!(party("2001:db8:1:2:3::1"), party("2001:db8:1:2:ffff::9"));
    assert_ne!(party("2001:db8:1:2::1"), party("2001:db8:1:3::1"));
    assert_eq!(party("::ffff:10.0.0.1"), party("10.0.0.1"));
    assert_ne!(party("10.0.0.1"), party("10.0.0.2"));
    let shown = ["2001:db8:1:2:3::1", "10.0.0.1"].map(|address| party(address).to_string());
    assert_eq!(shown, ["2001:db8:1:2::/64", "10.0.0.1"]);
}

#[test]
fn a_process_of_this_host_is_of_its_users_party_by_every_address() {
    let by = |address: &str, origin| Peer { origin, ..elsewhere(address) }.party();
    for address in ["127.0.0.1", "127.0.0.2", "::1", "192.0.2.1"] {
        assert_eq!(by(address, Origin::User(7)), Party::User(7));
        assert_eq!(by(address, Origin::Orphan), Party::Orphans);
    }
    assert_eq!(by("127.0.0.1", Origin::User(0)), Party::ROOT);
}
