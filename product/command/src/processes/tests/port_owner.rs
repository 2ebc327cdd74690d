use std::net::{SocketAddr, TcpListener};

use super::super::{PortOwner, address, in_the_way, of, unseen};

const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0801 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0
   1: 0100007F:0801 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 0 10 -1
   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1 0 100 0 0 10 0
   nonsense
   3: 010000:0801 00000000:0000 0A
";

#[cfg(target_endian = "little")]
#[test]
fn who_listens_is_in_the_way_at_the_same_address_or_at_all_of_them() {
    let at = |text: &str| in_the_way(TABLE, text.parse::<SocketAddr>().unwrap());
    assert_eq!(at("127.0.0.1:2049"), [101]);
    assert_eq!(at("0.0.0.0:2049"), [101]);
    assert!(at("127.0.0.2:2049").is_empty());
    assert_eq!(at("192.0.2.1:80"), [103]);
    assert!(at("127.0.0.1:81").is_empty());
    let v6 = address("00000000000000000000000001000000:0050").unwrap();
    assert_eq!(v6.to_string(), "[::1]:80");
    let mapped = address("0000000000000000FFFF00000100007F:0801").unwrap();
    assert_eq!(mapped.ip().to_canonical().to_string(), "127.0.0.1");
}

#[test]
fn the_kernels_server_is_guessed_at_the_port_of_nfs_alone() {
    assert!(unseen(2049).contains("nfs-server"));
    assert_eq!(unseen(80), "");
}

#[test]
fn a_listener_of_this_process_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let Some(PortOwner { process, program }) = of(listener.local_addr().unwrap()) else { panic!("not found") };
    assert_eq!(process, std::process::id());
    assert!(!program.is_empty());
}
