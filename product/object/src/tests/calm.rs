//! Single rules in a store without faults.
//!
//! Owns: checks of bounds, counts of requests, reports.
//! Does not own: crashes and races (`scenarios`).
//! Invariants: none besides those of the world.

use std::collections::BTreeSet;
use std::pin::pin;

use bytes::Bytes;
use futures_util::future::{Either, join_all, select};

use super::log::Log;
use super::run::{LIMITS, Volume, open, open_after, open_beside};
use super::store::{MS, Store};
use crate::format::extent::{ExtentSource, StoredExtent};
use crate::{
    CheckReport, Clock, DatedObject, DatedObjects, EndedWriter, FileRange, Holder, ObjectError, ObjectVersion,
    ObjectVolumeError, PreviousClients, RecordDatabase, RecordsError, ReplaceOutcome, check,
};

/// The checker of the world leaves this file alone.
const INO: u64 = 100;
const SECOND: u64 = 1_000 * MS;

fn new_volume() -> (Store, Volume) {
    let store = Store::new(0);
    let volume = store.finish(open(&store, None)).unwrap();
    (store, volume)
}

fn bytes(byte: u8, length: usize) -> Bytes {
    Bytes::from(vec![byte; length])
}

/// Writes single bytes with holes between them, and makes them durable.
fn scatter(store: &Store, volume: &Volume, ino: u64, count: u64) {
    (0..count).for_each(|at| volume.write(ino, 2 * at, bytes(at as u8 | 1, 1)).unwrap());
    store.finish(volume.commit(ino)).unwrap();
}

fn extents(store: &Store) -> Vec<StoredExtent> {
    let world = store.world();
    let records = world.checker.durable.range(vec![b'x']..vec![b'x' + 1]);
    records.map(|(key, value)| StoredExtent::decode(key, value).unwrap().1).collect()
}

fn is_sound(store: &Store) {
    let log = store.finish(Log::open(store.clone())).unwrap();
    let report = store.finish(check(store, &log, store)).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(store.world().checker.violations, Vec::<String>::new());
}

#[test]
fn a_successor_waits_unless_a_lock_shows_that_the_last_writer_is_gone() {
    let (store, volume) = new_volume();
    drop(volume);
    for (is_alone, waits) in [(false, true), (true, false), (false, true)] {
        let began_ns = store.now_ns();
        drop(store.finish(open_beside(&store, None, is_alone)).unwrap());
        let took_ns = store.now_ns() - began_ns;
        assert_eq!(took_ns >= 3 * SECOND, waits);
        // What an opening reads, it reads during the wait, which begins with the fence.
        assert!(!waits || store.now_ns() == store.world().fenced_at_ns + 3 * SECOND, "{took_ns} ns");
    }
}

// rule: A successor waits for no answer of a writer that has surely ended.
#[test]
fn a_successor_that_knows_the_end_of_the_last_writer_does_not_wait() {
    let (store, first) = new_volume();
    let ended = |volume: &Volume| EndedWriter { epoch: volume.records().epoch(), verifier: volume.verifier() };
    let opens = |known: EndedWriter, waits: bool| {
        let began_ns = store.now_ns();
        let volume = store.finish(open_after(&store, None, false, Some(known))).unwrap();
        assert_eq!(store.now_ns() - began_ns >= 3 * SECOND, waits, "{known:?}");
        ended(&volume)
    };
    let first = ended(&first);
    let second = opens(first, false);
    // The first one is not the last one any more.
    let third = opens(first, true);
    assert_ne!(second, third);
    // The volume may be a copy, in which another writer had this epoch.
    let fourth = opens(EndedWriter { verifier: third.verifier ^ 1, ..third }, true);
    opens(fourth, false);
}

// rule: A writer that answers many calls proves ahead of them that it may, and an idle one sends nothing.
#[test]
fn a_busy_writer_waits_for_no_proof_and_an_idle_one_sends_none() {
    let (store, volume) = new_volume();
    let work = async {
        for _ in 0..100 {
            let began_ns = store.now_ns();
            volume.wait_to_answer().await.unwrap();
            assert_eq!(store.now_ns(), began_ns, "the answer waited");
            store.sleep_ns(SECOND / 10).await;
        }
        let sent = store.world().requests;
        store.sleep_ns(2 * SECOND).await;
        let after_the_last_call = store.world().requests;
        store.sleep_ns(100 * SECOND).await;
        assert!(after_the_last_call <= sent + 2 && store.world().requests == after_the_last_call);
    };
    let (proofs, work) = (pin!(volume.keep_answering()), pin!(work));
    assert!(matches!(store.finish(select(proofs, work)), Either::Right(_)), "the proofs ended");
}

#[test]
fn a_map_in_memory_has_a_bound() {
    let (store, volume) = new_volume();
    for ino in INO..INO + 8 {
        scatter(&store, &volume, ino, 100);
        assert!(store.world().log.iter().map(|entry| entry.batches.len()).sum::<usize>() >= 8, "one batch was enough");
    }
    drop(volume);
    let volume = store.finish(open(&store, None)).unwrap();
    for ino in INO..INO + 8 {
        for at in [0, 150, 20, 198, 90] {
            let read = store.finish(volume.read(ino, at, 2)).unwrap();
            assert_eq!(read, [(at / 2) as u8 | 1, 0], "file {ino} at {at}");
            let state = volume.state();
            assert!(state.files.values().all(|file| file.extents() <= LIMITS.map_extents + LIMITS.window_extents + 1));
            let all: usize = state.files.values().map(|file| file.extents()).sum();
            assert!(all <= LIMITS.memory_extents + LIMITS.map_extents, "{all} extents in memory");
        }
    }
    is_sound(&store);
}

#[test]
fn a_cut_and_a_removal_of_many_extents_leave_nothing() {
    let (store, volume) = new_volume();
    scatter(&store, &volume, INO, 100);
    volume.set_size(INO, 11).unwrap();
    volume.set_size(INO, 300).unwrap();
    store.finish(volume.commit(INO)).unwrap();
    let body = store.finish(volume.body(INO)).unwrap();
    assert_eq!((body.size, body.used), (300, 6));
    assert_eq!(extents(&store).len(), 6);
    is_sound(&store);
    let volume = store.finish(open(&store, None)).unwrap();
    store.finish(volume.reap(INO)).unwrap();
    assert_eq!(extents(&store), []);
    is_sound(&store);
}

#[test]
fn a_write_counts_at_once_and_a_hole_grows_nothing() {
    let (store, volume) = new_volume();
    volume.write(INO, 10, bytes(1, 5)).unwrap();
    volume.punch(INO, 12, 100).unwrap();
    let newest = store.finish(volume.body(INO)).unwrap();
    assert_eq!((newest.size, newest.used), (15, 5));
    store.finish(volume.commit(INO)).unwrap();
    let body = store.finish(volume.body(INO)).unwrap();
    assert_eq!((body.size, body.used, body.changed_ns), (15, 2, newest.changed_ns));
    let error = volume.set_size(INO, 1 << 63).unwrap_err().to_string();
    assert_eq!(error, format!("the size of a file is {} instead of 0 to {}", 1_u64 << 63, i64::MAX));
}

#[test]
fn inline_bytes_leave_their_records() {
    let (store, volume) = new_volume();
    let inline =
        |store: &Store| extents(store).iter().filter(|extent| matches!(extent.source, ExtentSource::Inline(_))).count();
    for at in 0..7 {
        volume.write(INO + at % 3, at * 30, bytes(at as u8 + 1, 20)).unwrap();
        store.finish(volume.commit(INO + at % 3)).unwrap();
    }
    assert_eq!((inline(&store), store.world().objects.len()), (7, 0));
    store.finish(volume.pack()).unwrap();
    assert_eq!((inline(&store), store.world().objects.len()), (0, 1));
    for at in 0..7 {
        let read = store.finish(volume.read(INO + at % 3, at * 30, 20)).unwrap();
        assert_eq!(read, bytes(at as u8 + 1, 20));
    }
    // The COMMIT that fills a segment moves them without being asked.
    for at in 0..8 {
        volume.write(INO, 1_000 + at * 30, bytes(1, 20)).unwrap();
        store.finish(volume.commit(INO)).unwrap();
    }
    assert_eq!((inline(&store), store.world().objects.len()), (0, 2));
    is_sound(&store);
}

#[test]
fn small_writes_share_segments_while_two_are_on_their_way() {
    let (store, volume) = new_volume();
    store.finish(async {
        let writes = (0..32_u64).map(|at| {
            let (store, volume) = (&store, &volume);
            async move {
                store.sleep_ns(at * MS / 10).await;
                volume.write(INO, at * 20, bytes(1, 10)).unwrap();
                volume.flush().await.unwrap();
            }
        });
        join_all(writes).await;
    });
    let puts = store.world().objects.len();
    assert!(puts <= 8, "32 writes of 10 bytes made {puts} segments");
    volume.write(INO, 0, bytes(2, 20)).unwrap();
    volume.write(INO, 30, bytes(2, 20)).unwrap();
    store.finish(volume.flush()).unwrap();
    assert_eq!(store.world().objects.len(), puts + 2, "large writes are segments of their own");
}

#[test]
fn half_empty_segments_are_joined() {
    let (store, volume) = new_volume();
    for round in 0..4 {
        (0..15).for_each(|at| volume.write(INO, round * 200 + at * 10, bytes(round as u8 + 1, 10)).unwrap());
        store.finish(volume.flush()).unwrap();
        volume.punch(INO, round * 200 + 30, 170).unwrap();
    }
    store.finish(volume.commit(INO)).unwrap();
    assert_eq!(store.world().objects.len(), 4);
    store.finish(select(Box::pin(volume.upkeep(|error| panic!("{error}"))), Box::pin(store.sleep_ns(600 * SECOND))));
    assert_eq!(store.world().objects.len(), 1);
    for round in 0..4 {
        assert_eq!(store.finish(volume.read(INO, round * 200, 30)).unwrap(), bytes(round as u8 + 1, 30));
    }
    is_sound(&store);
}

#[test]
fn an_upkeep_that_may_not_delete_goes_on_and_deletes_later() {
    let (store, volume) = new_volume();
    for byte in 1..=2 {
        volume.write(INO, 0, bytes(byte, 150)).unwrap();
        store.finish(volume.flush()).unwrap();
        store.finish(volume.commit(INO)).unwrap();
    }
    store.world().refuses_deletes = true;
    let mut failures = Vec::new();
    let upkeep = Box::pin(volume.upkeep(|error| failures.push(error.clone())));
    let end = store.finish(select(upkeep, Box::pin(store.sleep_ns(1_200 * SECOND))));
    assert!(matches!(end, Either::Right(_)), "the volume is not lost");
    drop(end);
    assert_eq!(store.world().objects.len(), 2);
    assert!(failures.len() > 5, "each pass tries again: {failures:?}");
    assert!(failures.iter().all(|error| *error == ObjectVolumeError::Refused("AccessDenied".to_owned())));
    store.world().refuses_deletes = false;
    store.finish(select(Box::pin(volume.upkeep(|error| panic!("{error}"))), Box::pin(store.sleep_ns(120 * SECOND))));
    assert_eq!(store.world().objects.len(), 1);
    is_sound(&store);
}

#[test]
fn an_upkeep_ends_when_another_writer_has_the_volume() {
    let (store, volume) = new_volume();
    let upkeep = volume.upkeep(|error| panic!("{error}"));
    drop(store.finish(open_beside(&store, None, true)).unwrap());
    assert_eq!(store.finish(upkeep).unwrap_err(), ObjectVolumeError::Records(RecordsError::Fenced));
}

#[test]
fn a_check_names_the_bytes_of_damaged_segments() {
    let (store, volume) = new_volume();
    for at in 0..3 {
        volume.write(INO, at * 200, bytes(at as u8 + 1, 150)).unwrap();
        store.finish(volume.flush()).unwrap();
    }
    volume.punch(INO, 150, 10).unwrap();
    volume.punch(INO, 220, 30).unwrap();
    store.finish(volume.commit(INO)).unwrap();
    let names: Vec<String> = store.world().objects.keys().cloned().collect();
    let mut damaged = store.world().objects[&names[1]].to_vec();
    damaged[5] ^= 1;
    store.world().objects.insert(names[1].clone(), Bytes::from(damaged));
    store.world().objects.remove(&names[2]);
    store.world().objects.insert("data/07/000001-0000000007".to_owned(), Bytes::new());

    let log = store.finish(Log::open(store.clone())).unwrap();
    let report: CheckReport = store.finish(check(&store, &log, &store)).unwrap();
    assert_eq!((report.segments, report.extents), (3, 4));
    let ranges: Vec<Vec<FileRange>> = report.damaged.values().map(|(_, ranges)| ranges.clone()).collect();
    let range = |start, end| FileRange { ino: INO, start, end };
    assert_eq!(ranges, [vec![range(200, 220), range(250, 350)], vec![range(400, 550)]]);
    assert!(report.damaged.values().any(|(error, _)| matches!(error, ObjectVolumeError::Missing(_))));
    assert_eq!(report.orphans.len(), 1);
    assert!(report.miscounted.is_empty() && report.misfits.is_empty());

    let volume = store.finish(open(&store, None)).unwrap();
    assert_eq!(store.finish(volume.read(INO, 0, 150)).unwrap(), bytes(1, 150));
    assert_eq!(store.finish(volume.read(INO, 220, 30)).unwrap(), bytes(0, 30));
    assert!(matches!(store.finish(volume.read(INO, 210, 5)), Err(ObjectVolumeError::Damaged(_))));
    assert!(matches!(store.finish(volume.read(INO, 500, 5)), Err(ObjectVolumeError::Missing(_))));
    store.finish(select(Box::pin(volume.upkeep(|error| panic!("{error}"))), Box::pin(store.sleep_ns(600 * SECOND))));
    assert_eq!(store.finish(volume.read(INO, 0, 150)).unwrap(), bytes(1, 150));
}

#[test]
fn bytes_that_were_damaged_on_their_way_are_asked_for_once_more() {
    let (store, volume) = new_volume();
    volume.write(INO, 0, bytes(1, 150)).unwrap();
    store.finish(volume.flush()).unwrap();
    store.world().damaged_gets = 1;
    assert_eq!(store.finish(volume.read(INO, 0, 100)).unwrap(), bytes(1, 100));
    store.world().damaged_gets = 2;
    assert!(matches!(store.finish(volume.read(INO, 0, 100)), Err(ObjectVolumeError::Damaged(_))));
}

#[test]
fn a_check_counts_live_bytes_and_used_bytes() {
    let (store, volume) = new_volume();
    volume.write(INO, 0, bytes(1, 150)).unwrap();
    store.finish(volume.flush()).unwrap();
    store.finish(volume.commit(INO)).unwrap();
    let lost = StoredExtent::key(INO, 150);
    let sequence = volume.records().apply(vec![crate::RecordChange::Remove(lost)]).unwrap();
    store.finish(volume.records().durable(sequence)).unwrap();
    let log = store.finish(Log::open(store.clone())).unwrap();
    let report = store.finish(check(&store, &log, &store)).unwrap();
    assert_eq!(report.miscounted.values().collect::<Vec<_>>(), [&(150, 0)]);
    assert!(!report.is_sound());
}

#[test]
fn a_second_host_waits_for_the_holder() {
    let store = Store::new(0);
    let (first, second) = (host("a", 1), host("b", 2));
    assert_eq!(store.finish(Holder::alive(&store, &store, None)).unwrap(), None);
    let held = store.finish(select(Box::pin(first.hold(&store, &store)), Box::pin(store.sleep_ns(95 * SECOND))));
    assert!(matches!(held, Either::Right(_)));
    let (alive, age_ns) = store.finish(Holder::alive(&store, &store, None)).unwrap().unwrap();
    assert!(alive == first && age_ns < 12 * SECOND, "{alive:?}, {age_ns} ns");
    let before_ns = store.world().now_ns;
    store.finish(Holder::standby(&store, &store)).unwrap();
    assert!(store.world().now_ns - before_ns + age_ns >= 30 * SECOND);
    // A host that took over is not overwritten by the one before.
    let held = store.finish(select(Box::pin(second.hold(&store, &store)), Box::pin(store.sleep_ns(SECOND))));
    assert!(matches!(held, Either::Right(_)));
    assert_eq!(store.finish(first.hold(&store, &store)).unwrap(), second);
    store.finish(first.release(&store, &store)).unwrap();
    assert!(store.finish(Holder::alive(&store, &store, None)).unwrap().is_some());
    store.finish(second.release(&store, &store)).unwrap();
    assert_eq!(store.finish(Holder::alive(&store, &store, None)).unwrap(), None);
    // A host that ended does not record again that it serves the volume.
    assert_eq!(store.finish(second.hold(&store, &store)).unwrap(), host("-", 2));
    let error = store.finish(host("", 3).hold(&store, &store)).unwrap_err();
    assert!(error.to_string().contains("\"3 \\n\" instead of an epoch"), "{error}");
}

/// A store in which the second server writes before each change of the first one.
struct SecondFirst(Store);

impl SecondFirst {
    async fn second(&self) {
        PreviousClients { epoch: 2, names: vec![22] }.keep(&self.0, &self.0).await.unwrap();
        let second = host("b", 2);
        let held = select(Box::pin(second.hold(&self.0, &self.0)), Box::pin(self.0.sleep_ns(SECOND))).await;
        assert!(matches!(held, Either::Right(_)));
    }
}

impl DatedObjects for SecondFirst {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        self.second().await;
        self.0.put(name, bytes).await
    }

    async fn replace(
        &self,
        name: &str,
        bytes: Bytes,
        version: Option<&ObjectVersion>,
    ) -> Result<ReplaceOutcome, ObjectError> {
        self.second().await;
        self.0.replace(name, bytes, version).await
    }

    async fn dated(&self, name: &str, bytes_max: u64) -> Result<DatedObject, ObjectError> {
        self.0.dated(name, bytes_max).await
    }
}

fn host(host: &str, epoch: u32) -> Holder {
    Holder { host: host.to_owned(), epoch }
}

// rule: A change of an earlier server that comes late replaces nothing of a later server.
#[test]
fn a_late_change_of_an_earlier_server_replaces_nothing() {
    for was_there in [false, true] {
        let store = Store::new(0);
        let (late, first) = (SecondFirst(store.clone()), PreviousClients { epoch: 1, names: vec![1, 2] });
        if was_there {
            store.finish(first.keep(&store, &store)).unwrap();
            assert_eq!(store.finish(PreviousClients::read(&store, &store)).unwrap(), first);
        }
        store.finish(first.keep(&late, &store)).unwrap();
        let left = store.finish(PreviousClients::read(&store, &store)).unwrap();
        assert_eq!(left, PreviousClients { epoch: 2, names: vec![22] });
        assert_eq!(store.finish(host("a", 1).hold(&late, &store)).unwrap(), host("b", 2));
        store.finish(host("a", 1).release(&late, &store)).unwrap();
        let (alive, _) = store.finish(Holder::alive(&store, &store, None)).unwrap().unwrap();
        assert_eq!(alive, host("b", 2));
    }
}

/// A try without an answer may have its effect much later.
#[test]
fn the_last_list_of_a_server_stays_though_requests_come_late() {
    for seed in 0..200 {
        let store = Store::new(seed);
        store.world().is_calm = false;
        let lists = async {
            for last in 1..=5 {
                PreviousClients { epoch: 1, names: (1..=last).collect() }.keep(&store, &store).await.unwrap();
            }
        };
        store.finish_with_faults(lists);
        let rest = store.sleep_ns(60 * SECOND);
        store.finish(rest);
        assert_eq!(store.finish(PreviousClients::read(&store, &store)).unwrap().names, [1, 2, 3, 4, 5], "seed {seed}");
    }
}

#[test]
fn an_object_that_is_no_list_of_clients_is_no_empty_list() {
    let store = Store::new(0);
    let left = || store.finish(PreviousClients::read(&store, &store));
    let put = |text: &str| store.finish(DatedObjects::put(&store, "clients", Bytes::from(text.to_owned()))).unwrap();
    assert_eq!(left(), Ok(PreviousClients::default()));
    for text in ["", "\n", "<html>away</html>\n", "1\nxyz\n", "1\n0000000000000001", "1\n00000000000000011\n", "1\n\n"]
    {
        put(text);
        assert!(left().unwrap_err().to_string().contains("no list of clients"), "{text:?}");
        let kept = store.finish(PreviousClients { epoch: 9, names: Vec::new() }.keep(&store, &store));
        assert!(kept.is_err(), "{text:?} is lost");
    }
    put("7\n0000000000000001\n00000000000000ff\n");
    assert_eq!(left(), Ok(PreviousClients { epoch: 7, names: vec![1, 255] }));
    // A list has a bound, when it is persisted and when it is read.
    let longest = |more: usize| PreviousClients { epoch: u32::MAX, names: vec![u64::MAX; 65_536 + more] };
    assert!(
        store.finish(longest(1).keep(&store, &store)).unwrap_err().to_string().contains("65537 instead of 0 to 65536")
    );
    store.finish(longest(0).keep(&store, &store)).unwrap();
    assert_eq!(left(), Ok(longest(0)));
    put(&format!("1\n{}", "0000000000000001\n".repeat(65_537)));
    assert!(matches!(left(), Err(ObjectVolumeError::Refused(_))));
}

#[test]
fn a_shared_range_moves_no_byte_and_stays_when_its_source_goes() {
    let (store, volume) = new_volume();
    let whole: Vec<u8> = (0..1_000_u32).map(|at| at as u8 | 1).collect();
    for (at, piece) in (0..).step_by(100).zip(whole.chunks(100)) {
        volume.write(INO, at, Bytes::copy_from_slice(piece)).unwrap();
    }
    volume.punch(INO, 400, 50).unwrap();
    store.finish(volume.commit(INO)).unwrap();
    let mut expected = whole;
    expected[400..450].fill(0);
    let segments = || extents(&store).iter().filter_map(StoredExtent::segment).collect::<BTreeSet<_>>();
    let before = segments();
    store.finish(volume.share(INO, 0..1_000, INO + 1, 0)).unwrap();
    store.finish(volume.share(INO, 300..450, INO + 1, 2_000)).unwrap();
    assert_eq!(segments(), before, "no byte has moved");
    volume.set_size(INO, 0).unwrap();
    store.finish(volume.commit(INO)).unwrap();
    store.finish(volume.reap(INO)).unwrap();
    for _ in 0..3 {
        store.finish(volume.mark_dead()).unwrap();
        store.finish(store.sleep_ns(10 * SECOND));
        store.finish(volume.delete_dead()).unwrap();
        store.finish(volume.compact()).unwrap();
    }
    let read = |start, length| store.finish(volume.read(INO + 1, start, length)).unwrap();
    assert!(read(0, 1_000) == expected && read(1_000, 1_000) == vec![0; 1_000]);
    assert!(read(2_000, 150) == expected[300..450]);
    assert_eq!(store.finish(volume.body(INO + 1)).unwrap().size, 2_150, "it ends with a hole");
    is_sound(&store);
}

#[test]
fn bytes_that_a_segment_can_share_no_more_are_copied() {
    let (store, volume) = new_volume();
    volume.write(INO, 0, bytes(7, 160)).unwrap();
    store.finish(volume.commit(INO)).unwrap();
    let first = extents(&store)[0].segment().unwrap();
    for copy in 1..60 {
        store.finish(volume.share(INO, 0..160, INO, copy * 160)).unwrap();
    }
    let live: u64 = extents(&store).iter().filter(|it| it.segment() == Some(first)).map(StoredExtent::bytes).sum();
    assert_eq!(live, LIMITS.shared_bytes / 160 * 160 + 160);
    assert!(store.finish(volume.read(INO, 0, 9_600)).unwrap() == vec![7; 9_600]);
    is_sound(&store);
}
