//! Tests of the device's parts.

use std::pin::Pin;
use std::sync::Arc;

use afflux_engine::DeviceError;

use crate::device::fetch::{LineCache, ReadsAhead};
use crate::device::put::InlineBytes;
use crate::error::{ObjectVolumeError, device_error};
use crate::format::extent::SegmentId;
use crate::seams::ObjectError;
use bytes::Bytes;
use futures_util::FutureExt;

#[test]
fn bytes_that_wait_for_a_sync_are_bounded() {
    let mut inline = InlineBytes::default();
    assert!(inline.try_defer(1, 60 << 10) && inline.try_defer(1, 4 << 10) && !inline.try_defer(1, 1));
    (2..=16).for_each(|ino| assert!(inline.try_defer(ino, 64 << 10)));
    assert!(!inline.try_defer(17, 1), "a mebibyte of all files waits");
    let carried = inline.sync_begins(1);
    assert_eq!((carried, inline.syncs()), (64 << 10, 1));
    assert!(inline.try_defer(1, 0) && !inline.try_defer(17, 1), "the bytes wait until the sync has ended");
    inline.sync_ends(carried);
    assert!(inline.try_defer(17, 64 << 10) && inline.syncs() == 0);
}

fn waits(turn: &mut Pin<Box<impl Future>>) -> bool {
    turn.as_mut().now_or_never().is_none()
}

#[test]
fn reads_ahead_begin_in_their_order_as_others_end() {
    let reads = Arc::new(ReadsAhead::default());
    let alone = reads.begin(100 << 20).now_or_never();
    assert!(alone.is_some(), "a read alone has room");
    let [mut second, mut third, mut large, mut small] = [63, 1, 8, 1].map(|mib| Box::pin(reads.begin(mib << 20)));
    assert!(waits(&mut second) && waits(&mut third) && waits(&mut large) && waits(&mut small));
    drop(alone);
    let (second, third) = (second.now_or_never(), third.now_or_never());
    assert!(second.is_some() && third.is_some(), "both have room");
    drop(third);
    assert!(waits(&mut large) && waits(&mut small), "a small read does not overtake the large one");
    let second = second.unwrap();
    second.arrivals().note(7 << 20);
    assert!(!waits(&mut large), "bytes that have come make room");
}

#[test]
fn bytes_that_come_again_make_no_room() {
    let reads = Arc::new(ReadsAhead::default());
    let (first, mut second) = (reads.begin(64 << 20).now_or_never().unwrap(), Box::pin(reads.begin(64 << 20)));
    let mut third = Box::pin(reads.begin(1 << 20));
    assert!(waits(&mut second) && waits(&mut third));
    (0..2).for_each(|_| first.arrivals().note(64 << 20));
    drop(first);
    let second = second.now_or_never();
    assert!(second.is_some() && waits(&mut third));
    drop(second);
    assert!(!waits(&mut third));
}

#[test]
fn parts_are_fetched_once_and_the_oldest_go() {
    let (lines, mut fetched) = (LineCache::default(), 0);
    let mut part = |number: u64, bytes: Result<Bytes, ObjectError>| {
        let segment = SegmentId::new(1, number).unwrap();
        let fetch = async {
            fetched += 1;
            bytes
        };
        let part = lines.part(segment, 0, fetch).now_or_never().unwrap();
        (part.is_ok(), std::mem::take(&mut fetched))
    };
    assert_eq!(part(0, Err(ObjectError::Missing)), (false, 1));
    assert_eq!(part(0, Ok(Bytes::new())), (true, 1), "a failure is not kept");
    assert_eq!(part(0, Ok(Bytes::new())), (true, 0));
    (1..64).for_each(|number| assert_eq!(part(number, Ok(Bytes::new())), (true, 1)));
    assert_eq!(part(0, Ok(Bytes::new())), (true, 0), "the last used stays");
    assert_eq!(part(64, Ok(Bytes::new())), (true, 1));
    assert_eq!(part(0, Ok(Bytes::new())), (true, 0));
    assert_eq!(part(1, Ok(Bytes::new())), (true, 1), "the oldest went");
}

// rule: A refusal of the store is no lack of a user's rights, and each error has an errno that programs know.
#[test]
fn a_refusal_of_the_store_is_an_error_of_the_device() {
    let segment = SegmentId::new(1, 2).unwrap();
    let io = |errno| DeviceError::Io { errno };
    for (error, expected) in [
        (ObjectVolumeError::Refused("AccessDenied".to_owned()), io(5)),
        (ObjectVolumeError::NotOurs(segment), io(5)),
        (ObjectVolumeError::Missing(segment), io(117)),
        (ObjectVolumeError::Full("no space".to_owned()), DeviceError::NoSpace),
    ] {
        assert_eq!(device_error(&error), expected, "{error}");
    }
}
