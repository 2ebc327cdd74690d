use super::*;

fn entry(netid: &str, address: &str) -> NamedService {
    NamedService { program: NFS, version: 3, netid: netid.to_owned(), address: address.to_owned() }
}

#[test]
fn addresses_have_the_form_of_rpc_both_ways() {
    for (address, written) in
        [("0.0.0.0:2049", "0.0.0.0.8.1"), ("192.0.2.10:65535", "192.0.2.10.255.255"), ("[::]:2049", "::.8.1")]
    {
        let address: SocketAddr = address.parse().unwrap();
        assert_eq!(universal(address), written);
        assert_eq!(socket_address(written), Some(address));
    }
    for wrong in ["", "8.1", "0.0.0.0.8.256", "0.0.0.0", "/run/rpcbind.sock"] {
        assert_eq!(socket_address(wrong), None, "{wrong}");
    }
}

#[test]
fn a_server_of_both_families_is_named_for_both() {
    let named = |listen: &str, has_version_4| {
        let entries = entries(listen.parse().unwrap(), has_version_4);
        entries
            .into_iter()
            .map(|it| format!("{}.{} {} {}", it.program, it.version, it.netid, it.address))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named("192.0.2.10:2049", false),
        ["100003.3 tcp 192.0.2.10.8.1", "100005.3 tcp 192.0.2.10.8.1", "100021.4 tcp 192.0.2.10.8.1"]
    );
    assert_eq!(named("[::]:2049", true).len(), 8);
    assert!(named("[::]:2049", true).contains(&"100003.4 tcp 0.0.0.0.8.1".to_owned()));
}

#[test]
fn only_a_server_that_answers_is_another() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let there = universal(listener.local_addr().unwrap());
    let own: SocketAddr = "192.0.2.10:2049".parse().unwrap();
    assert!(is_others(&entry("tcp", &there), own));
    assert!(is_others(&entry("udp", "0.0.0.0.8.1"), own), "nobody knows");
    // Its killed predecessor had the same port.
    assert!(!is_others(&entry("tcp", "0.0.0.0.8.1"), own));
    assert!(!is_others(&entry("tcp", "192.0.2.10.8.1"), own));
    drop(listener);
    assert!(!is_others(&entry("tcp", &there), own));
}
