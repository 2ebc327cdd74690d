//! Bytes that a program withholds from the disk, or orders after others.

use std::fs;
use std::io::ErrorKind;

use afflux::{Cache, Error, Knob};

fn cache() -> Cache {
    Cache::builder().memory(8 << 20).build().unwrap()
}

#[test]
fn withheld_bytes_are_not_in_the_hosts_file_until_they_are_let_go() {
    let place = tempfile::tempdir().unwrap();
    let (path, cache) = (place.path().join("table"), cache());
    let table = cache.create(&path).unwrap();
    table.write_at(&[1; 8192], 0).unwrap();
    table.sync_data().unwrap();
    let withheld = table.withhold(0..100).unwrap();
    table.write_at(&[2; 8192], 0).unwrap();
    let refused = table.sync_data().unwrap_err();
    assert!(matches!(Error::of(&refused), Some(Error::Withheld { .. })), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    table.sync_range(4096..8192).unwrap();
    assert!(cache.drain().is_err(), "everything else is written");
    assert_eq!(fs::read(&path).unwrap(), [[1; 4096], [2; 4096]].concat());
    let mut now = [0; 1];
    table.read_exact_at(&mut now, 0).unwrap();
    assert_eq!(now, [2], "readers of the cache see them");
    withheld.let_go();
    table.sync_data().unwrap();
    assert_eq!(fs::read(&path).unwrap(), [2; 8192]);
}

#[test]
fn bytes_that_are_withheld_at_the_end_are_reported_as_unwritten() {
    let place = tempfile::tempdir().unwrap();
    let (path, cache) = (place.path().join("table"), cache());
    let table = cache.create(&path).unwrap();
    let withheld = table.withhold(0..u64::MAX).unwrap();
    table.write_at(b"not yet", 0).unwrap();
    let unwritten = cache.close().unwrap_err();
    assert!(unwritten.to_string().contains("withheld"), "{unwritten}");
    assert_eq!(fs::read(&path).unwrap(), b"");
    drop(withheld);
}

#[tokio::test]
async fn a_sync_of_the_data_makes_the_log_durable_before_it() {
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    let (log, table) =
        (cache.create(place.path().join("log")).unwrap(), cache.create(place.path().join("table")).unwrap());
    for row in 0..100_u64 {
        let at = log.append_async(&row.to_le_bytes()).await.unwrap();
        table.order_after_async(row * 8..row * 8 + 8, &log, at..at + 8).await.unwrap();
        table.write_at_async(&row.to_le_bytes(), row * 8).await.unwrap();
    }
    assert_eq!(fs::read(place.path().join("table")).unwrap(), b"");
    table.sync_data_async().await.unwrap();
    let written = ["log", "table"].map(|name| fs::read(place.path().join(name)).unwrap());
    assert_eq!(written[0], written[1]);
    assert_eq!((log.dirty_bytes(), table.dirty_bytes()), (0, 0));
    let circle = async {
        log.append_async(b"more").await?;
        table.order_after_async(0..8, &log, 800..804).await?;
        table.write_at_async(b"more", 0).await?;
        log.order_after_async(800..804, &table, 0..8).await
    };
    let refused = circle.await.unwrap_err();
    assert!(matches!(Error::of(&refused), Some(Error::OrderCycle { .. })), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::Deadlock);
}

#[test]
fn misuse_is_refused_with_its_reason() {
    let place = tempfile::tempdir().unwrap();
    let (cache, other) = (cache(), cache());
    let (table, log) =
        (cache.create(place.path().join("table")).unwrap(), other.create(place.path().join("log")).unwrap());
    let elsewhere = table.order_after(0..1, &log, 0..1).unwrap_err();
    assert!(matches!(Error::of(&elsewhere), Some(Error::OtherCache { .. })), "{elsewhere}");
    #[expect(clippy::reversed_empty_ranges, reason = "it is refused")]
    let range = table.withhold(2..1).unwrap_err();
    assert_eq!(range.kind(), ErrorKind::InvalidInput);
    let reader = cache.open_read(place.path().join("table")).unwrap();
    assert_eq!(reader.withhold(0..1).unwrap_err().kind(), ErrorKind::PermissionDenied);
    cache.set(Knob::DirtyBytes, 1 << 20).unwrap();
    let withheld = table.withhold(0..u64::MAX).unwrap();
    let refused = (0..1024).find_map(|page| table.write_at(&[1; 4096], page * 4096).err()).unwrap();
    let Some(Error::TooMuchWithheld { max_bytes, .. }) = Error::of(&refused) else { panic!("{refused}") };
    assert!(*max_bytes <= 1 << 18, "{refused}");
    drop(withheld);
    table.sync_data().unwrap();
}
