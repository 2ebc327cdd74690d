use super::*;

#[test]
fn own_user_and_root_on_loopback_are_admitted() {
    let peer = |address: &str, socket_owner| Peer { address: address.parse().unwrap(), socket_owner };
    let table = [
        ("127.0.0.1", Some(0), true),
        ("127.0.0.1", Some(1000), true),
        ("127.9.9.9", Some(1000), true),
        ("::1", Some(1000), true),
        ("::ffff:127.0.0.1", Some(1000), true),
        ("127.0.0.1", Some(1001), false),
        ("127.0.0.1", None, false),
        ("192.0.2.1", Some(0), false),
        ("192.0.2.1", None, false),
        ("::ffff:192.0.2.1", Some(0), false),
        ("::", Some(0), false),
    ];
    for (address, owner, expected) in table {
        let peer = peer(address, owner);
        assert_eq!(Admission::OwnUserAndRoot { uid: 1000 }.admits(&peer), expected, "{peer:?}");
        assert!(Admission::AnyPeer.admits(&peer));
    }
    assert!(!Admission::OwnUserAndRoot { uid: 0 }.admits(&peer("127.0.0.1", Some(1000))));
}
