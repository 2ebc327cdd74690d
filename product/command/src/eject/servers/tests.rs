use super::*;

#[test]
fn a_socket_that_listens_is_known_by_its_number() {
    let line = "0000000000000000: 00000002 00000000 00010000 0001 01 81234 /run/afflux/127.0.0.1-2049.sock";
    let path = PathBuf::from("/run/afflux/127.0.0.1-2049.sock");
    assert_eq!(listener(line), Some(("socket:[81234]".to_owned(), path)));
    for other in [
        "0000000000000000: 00000003 00000000 00000000 0001 03 81235 /run/afflux/127.0.0.1-2049.sock",
        "0000000000000000: 00000002 00000000 00010000 0001 01 81234 @abstract",
        "Num       RefCount Protocol Flags    Type St Inode Path",
    ] {
        assert_eq!(listener(other), None, "{other}");
    }
}

/// The test listens on a socket, so that it can connect to its own process.
#[test]
fn a_connection_leads_to_the_process_that_was_meant() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "socket").unwrap();
    let path = scratch.path().join("control.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let own = std::process::id();
    assert_eq!(sockets_of(own).iter().filter(|found| **found == path).count(), 1);
    assert!(connected(own, &path).is_some());
    // Process 1 may be this one, so the test starts another process.
    let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let through_other = connected(other.id(), &path);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(through_other.is_none(), "another process is behind it");
}
