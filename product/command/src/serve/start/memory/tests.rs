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

#[test]
fn that_memory_is_not_locked_is_said_or_an_error_if_it_was_asked_for() {
    let refused = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
    let mut notes = Vec::new();
    assert!(note_locked(Ok(()), LockMemory::On, &mut notes).is_ok() && notes.is_empty());
    assert!(note_locked(refused(), LockMemory::Auto, &mut notes).is_ok());
    assert!(notes[0].contains("CAP_IPC_LOCK"), "{notes:?}");
    assert!(note_locked(refused(), LockMemory::On, &mut notes).is_err());
}
