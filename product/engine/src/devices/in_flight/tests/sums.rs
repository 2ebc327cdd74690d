use super::super::*;
use super::*;

/// A read of one page begins; returns its number.
fn read(device: &InFlight, file: u32) -> u64 {
    device.begin(file, Load::read(0, 1), Nanos(7))
}

#[test]
fn a_request_is_set_aside_once_and_only_while_it_is_in_flight() {
    let device = InFlight::new(2, false);
    let number = read(&device, 1);
    let is_set_aside = || device.try_set_aside(number, Nanos(8)).is_some();
    assert!(is_set_aside() && !is_set_aside());
    let ended = device.end(number, true, Nanos(9));
    assert!(ended.was_aside && ended.load.kind == TransferKind::Read && ended.latency_ns == 2);
    assert!(!is_set_aside(), "it has ended");
    for file in 2..10 {
        let other = read(&device, file);
        assert!(other > number && !is_set_aside(), "another request has another number");
        assert!(!device.end(other, true, Nanos(9)).was_aside);
    }
}

#[test]
fn as_many_requests_are_set_aside_as_there_are_slots() {
    let device = InFlight::new(3, false);
    let is_set_aside = |number| device.try_set_aside(number, Nanos(8)).is_some();
    let begun = [0, 1, 2].map(|file| read(&device, file));
    assert!(begun.into_iter().all(is_set_aside));
    let more = [3, 4, 5].map(|file| read(&device, file));
    assert!(!more.into_iter().any(is_set_aside), "a device has not more requests than twice its slots");
    assert!(device.end(begun[1], true, Nanos(9)).was_aside);
    assert!(is_set_aside(more[2]));
    assert!(!is_set_aside(read(&device, 6)));
}

#[test]
fn a_request_is_overdue_by_the_time_for_which_it_was_watched() {
    let device = InFlight::new(3, false);
    let overdue = |from, ns| device.overdue(from, ns).map(|(number, request)| (number, request.file));
    let (early, aside, _call) = (read(&device, 1), read(&device, 2), device.begin(3, Load::CALL, Nanos(7)));
    assert_eq!(device.watched(500), 0, "it is seen for the first time");
    let late = read(&device, 4);
    assert_eq!(device.watched(500), 500);
    assert_eq!((overdue(0, 500), overdue(aside, 500), overdue(late, 500)), (Some((early, 1)), Some((aside, 2)), None));
    device.try_set_aside(aside, Nanos(8)).unwrap();
    assert_eq!((device.watched(100), overdue(aside, 100)), (600, Some((late, 4))));
    device.end(early, true, Nanos(9));
    assert_eq!(device.watched(0), 100);
}

/// What is in flight, as a test knows it.
#[derive(Clone, Copy)]
struct Known {
    number: u64,
    load: Load,
    submitted: Nanos,
    is_aside: bool,
}

/// The sums over these requests: reads, writes and calls in flight, the bytes and runs of the writes, the pages of
/// writes set aside, the oldest transfer.
fn sums(known: &[Known]) -> ([u32; 3], [u64; 3], Option<Nanos>) {
    let [here, aside] = [false, true].map(|is| known.iter().filter(move |one| one.is_aside == is));
    let count = |kind| here.clone().filter(|one| one.load.kind == kind).count() as u32;
    let written =
        |of: fn(&Load) -> u64| here.clone().filter(|one| one.load.kind == WRITE).map(|one| of(&one.load)).sum();
    let aside_pages = aside.filter(|one| one.load.kind == WRITE).map(|one| one.load.pages).sum();
    let oldest = here.clone().filter(|one| one.load.kind != TransferKind::Other).map(|one| one.submitted).min();
    (KINDS.map(count), [written(|load| load.bytes), written(|load| load.runs), aside_pages], oldest)
}

const WRITE: TransferKind = TransferKind::Write;
const KINDS: [TransferKind; 3] = [TransferKind::Read, WRITE, TransferKind::Other];

/// The same as the device counts it.
fn counted(device: &InFlight) -> ([u32; 3], [u64; 3], Option<Nanos>) {
    let counted = device.counted();
    let counts = KINDS.map(|kind| counted.usage.clocks.count(kind));
    (counts, [counted.write_bytes, counted.runs, counted.aside_pages], counted.oldest())
}

/// Random steps, the same for each seed.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    }
}

// rule: a request that ends in any state leaves all sums over the requests of its device at zero
// kept in: `product/engine/src/devices/in_flight.rs`
#[test]
fn a_request_that_ends_in_any_state_leaves_all_sums_at_zero() {
    for seed in 0..200 {
        let (mut random, device) = (random(seed), InFlight::new(4, false));
        let (mut known, mut waits, mut now): (Vec<Known>, Vec<SyncWaits<'_>>, _) = (Vec::new(), Vec::new(), 0);
        for step in 0..300 {
            now += random(3);
            let (may_begin, at) = (step < 250 && known.len() < 12, random(known.len().max(1) as u64) as usize);
            match random(8) {
                0..3 if may_begin => {
                    let (pages, bytes, runs) = (random(9), random(9) * 512, random(2));
                    let write = Load { kind: WRITE, first: 0, pages, bytes, runs, for_sync: random(2) == 0 };
                    let load = [Load::read(random(9), 1 + random(9)), write, Load::CALL][random(3) as usize];
                    let number = device.begin(random(3) as u32, load, Nanos(now));
                    known.push(Known { number, load, submitted: Nanos(now), is_aside: false });
                }
                3 if !known.is_empty() && known[at].load.kind != TransferKind::Other => {
                    let is_set_aside = device.try_set_aside(known[at].number, Nanos(now)).is_some();
                    let count = known.iter().filter(|one| one.is_aside).count();
                    assert_eq!(is_set_aside, !known[at].is_aside && count < 4);
                    known[at].is_aside |= is_set_aside;
                }
                4 => set(&device, Flight { sync_lead: [Cost::MAX, Cost(300)][random(2) as usize], ..Flight::BY_KNOBS }),
                5 if waits.is_empty() => waits.push(device.sync_waits(random(3) as u32)),
                6 => waits.clear(),
                _ if !known.is_empty() => {
                    let Known { number, load, submitted, is_aside } = known.remove(at);
                    let (succeeds, before) = (random(2) == 0, moved(&device));
                    let ended = device.end(number, succeeds, Nanos(now));
                    let bytes = if succeeds { load.bytes } else { 0 };
                    assert_eq!((ended.was_aside, ended.bytes, ended.latency_ns), (is_aside, bytes, now - submitted.0));
                    assert_eq!(moved(&device) - before, bytes);
                }
                _ => {}
            }
            assert_eq!(counted(&device), sums(&known), "seed {seed}, step {step}");
        }
        for one in &known {
            device.end(one.number, true, Nanos(now));
        }
        assert_eq!(counted(&device), sums(&[]), "seed {seed}");
        let counted = device.counted();
        assert_eq!((counted.aside, counted.awaited, counted.requests.is_empty()), (0, 0, true), "seed {seed}");
        assert_eq!(counted.usage.clocks.stalled_since(), None, "seed {seed}: a request has ended last");
    }
}

/// Bytes read and written.
fn moved(device: &InFlight) -> u64 {
    let usage = &device.counted().usage;
    usage.read_bytes + usage.written_bytes
}
