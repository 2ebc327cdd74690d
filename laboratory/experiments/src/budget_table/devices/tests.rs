#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

#[test]
fn every_device_is_one_of_the_catalogue() {
    for one in DEVICES {
        one.model().unwrap();
        assert!(one.seconds.1 <= one.seconds.0, "{}", one.name);
    }
    assert!(device("tape").unwrap_err().contains("25MB/s"));
}

#[test]
fn stalls_and_hangs_come_when_they_should() {
    let stalls = Script::Stalls { every_ns: 100, ns: 10 };
    assert_eq!(
        (stalls.next(0), stalls.next(100), stalls.next(101)),
        (Some((100, 110)), Some((100, 110)), Some((200, 210)))
    );
    assert_eq!((stalls.stood_ns(100), stalls.stood_ns(105), stalls.stood_ns(500)), (0, 5, 40));
    let hang = Script::Hang { from_ns: 50, ns: 20 };
    assert_eq!((hang.next(0), hang.next(51)), (Some((50, 70)), None));
    assert_eq!((hang.stood_ns(60), hang.stood_ns(1000)), (10, 20));
}
