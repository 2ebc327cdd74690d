mod callers;

use super::*;

const GROUP: u32 = 77;

fn peer(address: &str, port: u16, owner: Option<u32>) -> Peer {
    Peer { address: address.parse().unwrap(), port, origin: owner.map_or(Origin::Elsewhere, Origin::User) }
}

fn of_callers() -> Rules {
    Rules::of_callers(Arc::new(|uid| UserGroups { gid: Some(GROUP), further: vec![uid + 1] }))
}

fn admitted(acts: ActingUser) -> PeerRights {
    PeerRights::Admitted { acts, read_only: false }
}

#[test]
fn without_root_the_serving_user_and_root_here_are_admitted() {
    let rules = Rules::of_serving_user(1000);
    for (address, owner, expected) in [
        ("127.0.0.1", Some(0), true),
        ("127.0.0.1", Some(1000), true),
        ("127.9.9.9", Some(1000), true),
        ("::1", Some(1000), true),
        ("::ffff:127.0.0.1", Some(1000), true),
        // This is another address of this host.
        ("192.0.2.1", Some(1000), true),
        ("127.0.0.1", Some(1001), false),
        ("127.0.0.1", None, false),
        ("192.0.2.1", None, false),
        ("::ffff:192.0.2.1", None, false),
        ("::", None, false),
    ] {
        let peer = peer(address, 700, owner);
        let expected = if expected { admitted(ActingUser::AsServer) } else { PeerRights::Refused };
        assert_eq!(AdmittedPeers::from(rules.clone()).standing(&peer), expected, "{peer:?}");
        assert_eq!(AdmittedPeers::AnyPeer.standing(&peer), admitted(ActingUser::AsServer));
    }
    let squashing = Rules { squash: Squash::All, ..rules };
    assert_eq!(squashing.standing(&peer("127.0.0.1", 700, Some(1001))), admitted(ActingUser::AsServer));
    assert_eq!(squashing.standing(&peer("127.0.0.1", 700, None)), PeerRights::Refused);
}

#[test]
fn a_process_of_this_host_is_itself_and_roots_is_anybody() {
    let here = |rules: &Rules, owner| rules.standing(&peer("127.0.0.1", 40_000, Some(owner)));
    let user = |uid| admitted(ActingUser::AsUser { uid });
    let claimed = || admitted(ActingUser::AsClaimed { squash: Squash::None, has_host_groups: false });
    for squash in [Squash::Root, Squash::None] {
        let rules = Rules { squash, ..of_callers() };
        assert_eq!(here(&rules, 1000), user(1000));
        assert_eq!(here(&rules, 0), claimed(), "root here needs no server to be root");
    }
    let rules = Rules { squash: Squash::All, ..of_callers() };
    assert_eq!(
        [here(&rules, 0), here(&rules, 1000)],
        [admitted(ActingUser::Anonymously), admitted(ActingUser::Anonymously)]
    );
    let rules = Rules { networks: vec!["0.0.0.0/0".parse().unwrap()], any_port: true, ..of_callers() };
    let by_another_address = rules.standing(&peer("192.0.2.1", 40_000, Some(1000)));
    assert_eq!(by_another_address, user(1000), "a network that is allowed makes nobody here somebody else");
}

#[test]
fn whoever_is_here_and_nobodys_is_refused_by_every_rule() {
    let networks = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
    let open = Rules { networks, any_port: true, squash: Squash::None, ..of_callers() };
    for rules in [
        open.clone(),
        Rules { squash: Squash::All, read_only: true, ..open.clone() },
        Rules { serving_user: Some(1000), squash: Squash::All, ..open },
    ] {
        for address in ["127.0.0.1", "::1", "192.0.2.1"] {
            let orphan = Peer { origin: Origin::Orphan, ..peer(address, 700, None) };
            assert_eq!(rules.standing(&orphan), PeerRights::Refused, "{address}");
        }
    }
}

#[test]
fn from_elsewhere_only_named_networks_and_reserved_ports_are_believed() {
    let networks = ["192.0.2.0/24", "192.0.2.128/25=ro", "2001:db8::/32", "198.51.100.7"];
    let networks = networks.map(|text| text.parse().unwrap()).to_vec();
    let rules = Rules { networks, ..of_callers() };
    let believed = |read_only| PeerRights::Admitted {
        acts: ActingUser::AsClaimed { squash: Squash::Root, has_host_groups: false },
        read_only,
    };
    for (address, port, expected) in [
        ("192.0.2.1", 1023, believed(false)),
        ("::ffff:192.0.2.1", 1, believed(false)),
        ("192.0.2.200", 700, believed(true)),
        ("2001:db8:1::1", 700, believed(false)),
        ("198.51.100.7", 700, believed(false)),
        ("198.51.100.8", 700, PeerRights::Refused),
        ("2001:db9::1", 700, PeerRights::Refused),
        ("192.0.2.1", 1024, PeerRights::Refused),
        ("192.0.2.1", 0, PeerRights::Refused),
        // The owner of this socket is unknown.
        ("127.0.0.1", 700, PeerRights::Refused),
    ] {
        assert_eq!(rules.standing(&peer(address, port, None)), expected, "{address} {port}");
    }
    // Their order does not matter.
    let networks = rules.networks.iter().rev().cloned().collect();
    let turned = Rules { networks, ..rules.clone() };
    assert_eq!(turned.standing(&peer("192.0.2.200", 700, None)), believed(true));
    let from = |rules: &Rules| rules.standing(&peer("192.0.2.1", 40_000, None));
    assert_eq!(from(&Rules { any_port: true, ..rules.clone() }), believed(false));
    assert_eq!(from(&Rules { any_port: true, read_only: true, ..rules.clone() }), believed(true));
    let squashing = Rules { any_port: true, squash: Squash::All, ..rules.clone() };
    assert_eq!(from(&squashing), admitted(ActingUser::Anonymously));
    let without_root = Rules { any_port: true, serving_user: Some(1000), ..rules };
    assert_eq!(from(&without_root), admitted(ActingUser::AsServer));
}

#[test]
fn networks_are_read_as_people_write_them() {
    let shown = |text: &str| text.parse::<Network>().map(|network| network.to_string());
    for (text, expected) in [
        ("192.0.2.7", "192.0.2.7/32"),
        ("192.0.2.0/24=ro", "192.0.2.0/24=ro"),
        ("192.0.2.0/24=rw", "192.0.2.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
    ] {
        assert_eq!(shown(text).as_deref(), Ok(expected));
    }
    for text in [
        "192.0.2.0/+24",
        "10.0.0.0/08",
        "0.0.0.0/00",
        "0.0.0.0/+0",
        "::/+0",
        "",
        "localhost",
        "192.0.2.0/33",
        "192.0.2.0/-1",
        "192.0.2.0/24=yes",
        "::/129",
        "192.0.2.0/",
        "::ffff:0:0/95",
    ] {
        assert!(shown(text).unwrap_err().contains("such as"), "{text}");
    }
    assert!(shown("192.0.2.7/24").unwrap_err().contains("192.0.2.0/24"));
    let everywhere: Network = "::/0".parse().unwrap();
    assert!(!everywhere.has("192.0.2.1".parse().unwrap()), "IPv4 has networks of its own");
}
