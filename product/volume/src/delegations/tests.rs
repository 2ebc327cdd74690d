use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::*;

const LIMIT_NS: u64 = 60 * Nanos::SECOND;

/// A client's delegation: how often it was recalled, whether it was revoked.
#[derive(Default)]
struct Held {
    recalled: AtomicUsize,
    is_revoked: AtomicBool,
    has_lapsed: AtomicBool,
}

impl DelegationHolder for Held {
    fn recall(self: Arc<Self>) {
        self.recalled.fetch_add(1, Ordering::Relaxed);
    }

    fn has_lapsed(&self, _: Nanos) -> bool {
        self.has_lapsed.load(Ordering::Relaxed)
    }

    fn revoke(&self) {
        assert!(!self.is_revoked.swap(true, Ordering::Relaxed), "revoked once");
    }
}

fn on() -> Delegations {
    let all = Delegations::default();
    all.turn_on(LIMIT_NS);
    all
}

fn grant(all: &Delegations, file: u64, client: u64) -> Option<Arc<Held>> {
    let held = Arc::new(Held::default());
    all.try_grant(file, client, Arc::clone(&held) as _, || true).then_some(held)
}

// rule: while a change of a file is in progress, nobody else gets or has a delegation of it
#[test]
fn nobody_has_a_delegation_while_another_changes_the_file() {
    let all = on();
    let change = all.begin_change(1, Changer::Other, Nanos(0)).unwrap();
    assert!(grant(&all, 1, 7).is_none());
    drop(change);
    let held = grant(&all, 1, 7).unwrap();
    assert!(grant(&all, 1, 7).is_none(), "one of a client");
    assert!(!all.try_grant(2, 7, Arc::new(Held::default()), || false));
    assert!(all.begin_change(2, Changer::Other, Nanos(0)).is_ok(), "another file");
    assert!(all.begin_change(1, Changer::Holder(7), Nanos(0)).is_ok(), "its own change");
    assert!(all.begin_change(1, Changer::Opener, Nanos(0)).is_ok(), "recalled for the open");
    assert_eq!(held.recalled.load(Ordering::Relaxed), 0);
    assert_eq!(all.begin_change(1, Changer::Holder(8), Nanos(5)).err(), Some(Nanos(5 + LIMIT_NS)));
    assert_eq!(held.recalled.load(Ordering::Relaxed), 1);
    assert!(grant(&all, 1, 8).is_none(), "a recalled file");
    all.end(1, 7);
    all.end(1, 7);
    assert!(all.begin_change(1, Changer::Other, Nanos(9)).is_ok());
    assert_eq!(all.counts(), DelegationCounts { held: 0, recalled: 1, revoked: 0 });
    assert!(grant(&all, 1, 8).is_some());
}

// rule: a holder that returns nothing delays a change for the time limit at most, and one without a lease for none
#[test]
fn the_time_limit_of_a_recall_counts_from_the_first_and_a_lapsed_holder_has_none() {
    let all = on();
    let (slow, lapsed) = (grant(&all, 1, 7).unwrap(), grant(&all, 1, 8).unwrap());
    lapsed.has_lapsed.store(true, Ordering::Relaxed);
    let until = Nanos(1 + LIMIT_NS);
    assert_eq!(all.begin_change(1, Changer::Other, Nanos(1)).err(), Some(until));
    assert!(lapsed.is_revoked.load(Ordering::Relaxed));
    assert_eq!(
        all.begin_change(1, Changer::Other, Nanos(LIMIT_NS)).err(),
        Some(until),
        "not put off by a second change"
    );
    assert!(!slow.is_revoked.load(Ordering::Relaxed));
    assert!(all.begin_change(1, Changer::Other, until).is_ok());
    assert!(slow.is_revoked.load(Ordering::Relaxed));
    all.end(1, 7);
    assert_eq!(all.counts(), DelegationCounts { held: 0, recalled: 1, revoked: 2 });
    assert!(all.files.lock().unwrap().is_empty(), "no memory is left behind");
}

#[test]
fn a_waiting_change_is_woken_by_each_return() {
    let all = on();
    let _held = (grant(&all, 1, 7).unwrap(), grant(&all, 1, 8).unwrap());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(!all.try_wait(2, &waker));
    for (client, count) in [(7, 1), (8, 2)] {
        assert!(all.try_wait(1, &waker) && all.try_wait(1, &waker));
        all.end(1, client);
        assert_eq!(woken.0.load(Ordering::Relaxed), count);
    }
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn without_delegations_a_change_counts_nothing() {
    let all = Delegations::default();
    assert!(grant(&all, 1, 7).is_none());
    assert!(all.begin_change(1, Changer::Other, Nanos(0)).unwrap().0.is_none());
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A client of the model: the copy of each file that it may read without asking, and how far its delegation has come.
#[derive(Default)]
struct Reader {
    copies: BTreeMap<u64, (u64, Arc<Held>)>,
    never_returns: bool,
}

// rule: whatever clients and changes do, a copy under a delegation is the file as it is
#[test]
fn random_readers_and_writers_never_see_an_old_copy_under_a_delegation() {
    const FILES: u64 = 3;
    const CLIENTS: u64 = 2;
    for seed in 1..=200 {
        let (mut random, all) = (Random(seed), on());
        let mut versions = [0_u64; FILES as usize];
        let mut readers: Vec<Reader> = (0..CLIENTS).map(|_| Reader::default()).collect();
        readers[1].never_returns = seed % 2 == 0;
        let mut changes: Vec<(u64, ChangeInProgress)> = Vec::new();
        let mut now = Nanos(0);
        for _ in 0..400 {
            let (file, client) = (random.below(FILES), random.below(CLIENTS));
            match random.below(6) {
                0 => {
                    if let Some(held) = grant(&all, file, client) {
                        assert!(changes.iter().all(|(of, _)| *of != file), "seed {seed}: a grant in a change");
                        readers[client as usize].copies.insert(file, (versions[file as usize], held));
                    }
                }
                1 => {
                    let by = if random.below(3) == 0 { Changer::Holder(client) } else { Changer::Other };
                    if let Ok(change) = all.begin_change(file, by, now) {
                        versions[file as usize] += 1;
                        if let (Changer::Holder(own), Some(copy)) = (by, readers[client as usize].copies.get_mut(&file))
                        {
                            assert_eq!(own, client);
                            copy.0 = versions[file as usize];
                        }
                        changes.push((file, change));
                    }
                }
                2 => _ = changes.pop(),
                3 if !readers[client as usize].never_returns => {
                    readers[client as usize].copies.remove(&file);
                    all.end(file, client);
                }
                4 => now = now.after(random.below(LIMIT_NS / 4)),
                _ => {
                    for reader in &mut readers {
                        reader.copies.retain(|_, (_, held)| !held.is_revoked.load(Ordering::Relaxed));
                        for (file, (version, _)) in &reader.copies {
                            assert_eq!(*version, versions[*file as usize], "seed {seed}: file {file}");
                        }
                    }
                }
            }
        }
        let held: usize = readers.iter().map(|reader| reader.copies.len()).sum();
        let lost =
            |reader: &Reader| reader.copies.values().filter(|it| it.1.is_revoked.load(Ordering::Relaxed)).count();
        assert_eq!(all.counts().held as usize, held - readers.iter().map(lost).sum::<usize>(), "seed {seed}");
    }
}
