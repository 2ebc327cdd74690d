use super::*;

fn member(number: u64, address: &str, active_ns: u64) -> Member {
    let address = counted_as(address.parse().unwrap());
    Member { number, address, idle: true, leaving: false, active_ns }
}

#[test]
fn the_oldest_idle_one_of_the_address_with_the_most_makes_room() {
    let limits =
        ServeLimits { connections_max: 4, peer_connections_max: 3, idle_ns: 0, request_bytes_max: 0, unread_ns: 0 };
    let (a, b) = ("10.0.0.1", "10.0.0.2");
    let choose = |members: &[Member], from: &str| choose(members, counted_as(from.parse().unwrap()), &limits);
    let four = [member(0, b, 1), member(1, a, 7), member(2, a, 5), member(3, a, 6)];
    assert_eq!(choose(&four[..3], b), Choice::Serve);
    // Full: the only one of `b` is older than all, and stays.
    assert_eq!(choose(&four, b), Choice::MakeRoom(2));
    assert_eq!(choose(&four, "10.0.0.3"), Choice::MakeRoom(2));
    // As many as one address may have: it makes room itself, even if there is room for others.
    assert_eq!(choose(&four[1..], a), Choice::MakeRoom(2));
    // What is at work stays.
    let busy = four.map(|member| Member { idle: member.address != four[1].address, ..member });
    assert_eq!(choose(&busy, b), Choice::MakeRoom(0));
    assert_eq!(choose(&busy, a), Choice::Refuse);
    let all = busy.map(|member| Member { idle: false, ..member });
    assert_eq!(choose(&all, b), Choice::Wait);
    // One at a time is told to go.
    let leaving = four.map(|member| Member { leaving: member.number == 3, ..member });
    assert_eq!(choose(&leaving, b), Choice::Wait);
}

#[test]
fn a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_the_ipv4_one() {
    let counted = |address: &str| counted_as(address.parse().unwrap());
    assert_eq!(counted("2001:db8:1:2:3::1"), counted("2001:db8:1:2:ffff::9"));
    assert_ne!(counted("2001:db8:1:2::1"), counted("2001:db8:1:3::1"));
    assert_eq!(counted("::ffff:10.0.0.1"), counted("10.0.0.1"));
}
