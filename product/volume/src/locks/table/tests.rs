use std::sync::atomic::AtomicBool;

use super::super::holders::{FILE_GROUP_LOCKS_MAX, FILE_LOCKS_MAX, FILE_WAITERS_MAX, LAPSED_LOOKS_MAX, WAITERS_MAX};
use super::super::owner::{LockFamily, LockMode};
use super::*;
use crate::locks::index::steps_of;

const NOW: Nanos = Nanos(1);
const LATER: Nanos = Nanos(1 + 10 * Nanos::SECOND);

/// A holder that can be silent.
#[derive(Default)]
struct Client {
    is_silent: AtomicBool,
}

impl LockHolder for Client {
    fn has_lapsed(&self, _: Nanos) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    fn try_revoke(&self, now: Nanos) -> bool {
        self.has_lapsed(now)
    }

    fn name(&self) -> String {
        "a client".to_owned()
    }
}

/// The open that clients elsewhere wait with.
const OPEN: u64 = 3;

struct CountingWaker {
    woken: AtomicU64,
    is_local: bool,
}

impl CountingWaker {
    fn of(is_local: bool) -> (Arc<Self>, Arc<dyn LockWaker>) {
        let waker = Arc::new(Self { woken: AtomicU64::new(0), is_local });
        (Arc::clone(&waker), waker)
    }

    fn woken(&self) -> u64 {
        self.woken.load(Ordering::Relaxed)
    }
}

impl LockWaker for CountingWaker {
    fn wake(&self) {
        self.woken.fetch_add(1, Ordering::Relaxed);
    }

    fn open(&self) -> Option<u64> {
        (!self.is_local).then_some(OPEN)
    }
}

struct Rig {
    locks: Locks,
    clients: Vec<Arc<Client>>,
    holders: Vec<HolderId>,
}

impl Rig {
    fn new(count: usize) -> Self {
        let locks = Locks::default();
        let clients: Vec<_> = (0..count).map(|_| Arc::new(Client::default())).collect();
        let holders = clients.iter().enumerate().map(|(at, it)| locks.register(Arc::clone(it) as _, at as u64));
        let holders = holders.collect();
        Self { locks, clients, holders }
    }

    fn lock(&self, at: usize, first: u64, last: u64, mode: LockMode) -> Lock {
        let owner = LockOwner { holder: self.holders[at], number: 7, family: LockFamily::Single };
        Lock { owner, span: Span::between(first, last).unwrap(), mode, process: 0 }
    }

    /// Ends a holder, as far as the world goes on.
    fn release(&self, holder: HolderId) {
        self.locks.release_holder(holder, NOW);
        while lock(&self.locks.shared.table).next_look(NOW) == Some(NOW) {
            self.locks.go_on(NOW);
        }
    }

    /// Locks bytes. A front end ends the conflicting holder that has lapsed.
    fn lock_after_ends(&self, file: u64, wanted: Lock) -> Result<(), LockRefusal> {
        loop {
            match self.locks.lock(file, wanted, NOW) {
                Err(LockRefusal::Ending(holder)) => self.release(holder),
                result => return result,
            }
        }
    }

    fn whole(&self, at: usize) -> Lock {
        self.lock(at, 0, u64::MAX, LockMode::Exclusive)
    }
}

#[test]
fn those_who_wait_get_the_bytes_in_their_order() {
    for is_local in [true, false] {
        let rig = Rig::new(4);
        let (locks, of) = (&rig.locks, |at| rig.whole(at));
        locks.lock(5, of(0), NOW).unwrap();
        let wakers: Vec<_> = (0..4).map(|_| CountingWaker::of(is_local)).collect();
        for at in [1, 2] {
            assert_eq!(locks.lock_or_wait(5, of(at), &wakers[at].1, NOW), Err(LockRefusal::Held(of(0))));
        }
        locks.unlock(5, of(0).owner, Span::WHOLE, NOW).unwrap();
        assert_eq!((wakers[1].0.woken(), wakers[2].0.woken()), (1, 0));
        // Neither a later waiter nor an owner that only tries takes the bytes before the first.
        assert_eq!(locks.lock_or_wait(5, of(2), &wakers[2].1, NOW), Err(LockRefusal::Held(of(1))));
        assert_eq!(locks.lock_or_wait(5, of(3), &wakers[3].1, NOW), Err(LockRefusal::Held(of(1))));
        assert_eq!(locks.lock(5, of(0), NOW), Err(LockRefusal::Held(of(1))));
        assert_eq!(locks.lock_or_wait(5, of(1), &wakers[1].1, NOW), Ok(()));
        locks.unlock(5, of(1).owner, Span::WHOLE, NOW).unwrap();
        assert_eq!((wakers[2].0.woken(), wakers[3].0.woken()), (1, 0));
        assert_eq!(locks.lock_or_wait(5, of(2), &wakers[2].1, NOW), Ok(()));
    }
}

#[test]
fn a_writer_that_waits_is_not_passed_by_readers_but_by_an_owner_that_is_in_its_way() {
    let rig = Rig::new(3);
    let read = |at, first| rig.lock(at, first, first, LockMode::Shared);
    rig.locks.lock(5, read(0, 1), NOW).unwrap();
    let (writer, writer_waker) = CountingWaker::of(true);
    let (_, reader_waker) = CountingWaker::of(true);
    rig.locks.lock_or_wait(5, rig.whole(1), &writer_waker, NOW).unwrap_err();
    assert_eq!(rig.locks.lock_or_wait(5, read(2, 9), &reader_waker, NOW), Err(LockRefusal::Held(rig.whole(1))));
    // The writer waits for this owner, which must not wait for the writer.
    assert_eq!(rig.locks.lock_or_wait(5, read(0, 9), &reader_waker, NOW), Ok(()));
    rig.locks.unlock(5, read(0, 1).owner, Span::WHOLE, NOW).unwrap();
    assert_eq!(writer.woken(), 1);
}

#[test]
fn two_owners_that_would_wait_for_each_other_are_told() {
    let rig = Rig::new(2);
    let share = |at| rig.lock(at, 0, 9, LockMode::Shared);
    let change = |at| rig.lock(at, 0, 9, LockMode::Exclusive);
    let wakers = [CountingWaker::of(true), CountingWaker::of(true)];
    for at in [0, 1] {
        rig.locks.lock(5, share(at), NOW).unwrap();
    }
    assert_eq!(rig.locks.lock_or_wait(5, change(0), &wakers[0].1, NOW), Err(LockRefusal::Held(share(1))));
    assert_eq!(rig.locks.lock_or_wait(5, change(1), &wakers[1].1, NOW), Err(LockRefusal::Deadlock));
    rig.locks.unlock(5, share(1).owner, Span::WHOLE, NOW).unwrap();
    assert_eq!(rig.locks.lock_or_wait(5, change(0), &wakers[0].1, NOW), Ok(()));
}

#[test]
fn a_turn_that_nobody_takes_goes_to_the_next_after_a_time_and_a_local_one_when_the_caller_leaves() {
    for is_local in [true, false] {
        let rig = Rig::new(3);
        rig.locks.lock(5, rig.whole(0), NOW).unwrap();
        let (first, first_waker) = CountingWaker::of(is_local);
        let (second, second_waker) = CountingWaker::of(is_local);
        rig.locks.lock_or_wait(5, rig.whole(1), &first_waker, NOW).unwrap_err();
        rig.locks.lock_or_wait(5, rig.whole(2), &second_waker, NOW).unwrap_err();
        rig.locks.release_holder(rig.holders[0], NOW);
        assert_eq!((first.woken(), second.woken()), (1, 0));
        rig.locks.tick(NOW);
        assert_eq!(second.woken(), 0);
        rig.locks.tick(LATER);
        assert_eq!(second.woken(), u64::from(!is_local));
        rig.locks.leave(5, &rig.whole(1), &first_waker, LATER);
        assert_eq!(second.woken(), 1);
        assert_eq!(rig.locks.lock_or_wait(5, rig.whole(2), &second_waker, LATER), Ok(()));
    }
}

#[test]
fn a_silent_holder_gives_way_with_all_it_has_and_only_to_one_who_asks() {
    let rig = Rig::new(2);
    let denies = Share { access: Share::READ, deny: Share::WRITE };
    assert!(rig.locks.share(6, (rig.holders[0], 1), denies, NOW).is_ok());
    rig.locks.lock(5, rig.whole(0), NOW).unwrap();
    assert_eq!(rig.locks.lock(5, rig.whole(1), NOW), Err(LockRefusal::Held(rig.whole(0))));
    rig.clients[0].is_silent.store(true, Ordering::Relaxed);
    rig.locks.tick(NOW);
    assert!(rig.locks.has(5, rig.whole(0).owner), "nobody wants it");
    assert_eq!(rig.locks.conflict(5, &rig.whole(1), NOW), None);
    // Nobody gets the locks of the silent client before its end is durable.
    for _ in 0..2 {
        assert_eq!(rig.locks.lock(5, rig.whole(1), NOW), Err(LockRefusal::Ending(rig.holders[0])));
        let writes = Share { access: Share::WRITE, deny: 0 };
        assert_eq!(rig.locks.check_use(6, Share::WRITE, NOW), Err(ShareRefusal::Ending(rig.holders[0])));
        assert_eq!(rig.locks.share(6, (rig.holders[1], 1), writes, NOW), Err(ShareRefusal::Ending(rig.holders[0])));
    }
    assert!(rig.locks.has(5, rig.whole(0).owner));
    assert_eq!(rig.lock_after_ends(5, rig.whole(1)), Ok(()));
    assert!(!rig.locks.has_denials());
    assert!(rig.locks.check_share(6, None, Share { access: Share::WRITE, deny: 0 }, NOW).is_ok());
    // A waiter gets the locks of a silent holder with the next tick.
    let rig = Rig::new(2);
    rig.locks.lock(5, rig.whole(0), NOW).unwrap();
    let (waiter, waker) = CountingWaker::of(true);
    rig.locks.lock_or_wait(5, rig.whole(1), &waker, NOW).unwrap_err();
    rig.clients[0].is_silent.store(true, Ordering::Relaxed);
    rig.locks.tick(NOW);
    assert_eq!(waiter.woken(), 0);
    rig.locks.release_holder(rig.holders[0], NOW);
    assert_eq!(waiter.woken(), 1);
}

// rule: after a restart nobody gets a new lock, and nobody makes a use that may be denied, before the clients of the
// earlier server have reclaimed theirs
#[test]
fn in_the_grace_period_locks_are_reclaimed_and_no_new_one_is_given() {
    let rig = Rig::new(2);
    rig.locks.begin_grace(true);
    rig.locks.reclaim(5, rig.lock(0, 0, 9, LockMode::Exclusive), NOW).unwrap();
    let free = rig.lock(1, 20, 29, LockMode::Exclusive);
    assert_eq!(rig.locks.lock(5, free, NOW), Err(LockRefusal::Grace));
    let (waiter, waker) = CountingWaker::of(true);
    assert_eq!(rig.locks.lock_or_wait(5, free, &waker, NOW), Err(LockRefusal::Grace));
    assert!(rig.locks.has_denials());
    assert_eq!(rig.locks.check_use(6, Share::READ, NOW), Err(ShareRefusal::Grace));
    // A reclaimed open denies as it did.
    let denies = Share { access: Share::READ, deny: Share::WRITE };
    rig.locks.share(6, (rig.holders[0], 1), denies, NOW).unwrap();
    assert_eq!(waiter.woken(), 0);
    rig.locks.end_grace(NOW);
    assert_eq!(waiter.woken(), 1);
    assert_eq!(rig.locks.lock_or_wait(5, free, &waker, NOW), Ok(()));
    assert_eq!(rig.locks.check_use(6, Share::READ, NOW), Ok(()));
    assert_eq!(rig.locks.check_use(6, Share::WRITE, NOW), Err(ShareRefusal::Denied));
    // Without earlier denials, uses go on.
    rig.locks.begin_grace(false);
    assert_eq!(rig.locks.check_use(7, Share::WRITE, NOW), Ok(()));
    assert!(rig.locks.is_in_grace());
}

#[test]
fn shares_keep_others_out_until_they_end() {
    let rig = Rig::new(2);
    let [one, two] = [(rig.holders[0], 1), (rig.holders[1], 1)];
    let reads = Share { access: Share::READ, deny: Share::WRITE };
    let writes = Share { access: Share::WRITE, deny: 0 };
    assert!(rig.locks.share(5, one, reads, NOW).is_ok() && rig.locks.has_denials());
    assert!(rig.locks.share(5, two, writes, NOW).is_err());
    assert!(rig.locks.share(6, two, writes, NOW).is_ok(), "another file");
    assert!(rig.locks.share(6, one, reads, NOW).is_err(), "the other way round");
    assert!(rig.locks.share(5, one, Share { deny: 0, ..reads }, NOW).is_ok() && !rig.locks.has_denials());
    assert!(rig.locks.share(5, two, writes, NOW).is_ok());
    rig.locks.end_share(6, two);
    assert!(rig.locks.share(6, one, reads, NOW).is_ok());
    rig.locks.release_holder(one.0, NOW);
    assert!(!rig.locks.has_denials());
}

#[test]
fn one_file_one_group_and_all_have_bounds_that_leave_room_to_others() {
    let rig = Rig::new(3);
    let byte = |at, byte: usize| rig.lock(at, 2 * byte as u64, 2 * byte as u64, LockMode::Shared);
    let fill = |at, file: u64, count| (0..count).try_for_each(|it| rig.locks.lock(file, byte(at, it), NOW));
    fill(0, 1, FILE_GROUP_LOCKS_MAX).unwrap();
    assert_eq!(rig.locks.lock(1, byte(0, FILE_GROUP_LOCKS_MAX), NOW), Err(LockRefusal::Full));
    // Another group has the other half of the file, and a third finds no free range.
    fill(1, 1, FILE_GROUP_LOCKS_MAX).unwrap();
    assert_eq!(rig.locks.lock(1, byte(2, 0), NOW), Err(LockRefusal::Crowded));
    assert_eq!(rig.locks.unlock(1, byte(0, 0).owner, Span::WHOLE, NOW), Ok(()));
    assert_eq!(rig.locks.lock(1, byte(2, 0), NOW), Ok(()));
    (0..3).for_each(|at| rig.locks.unlock(1, byte(at, 0).owner, Span::WHOLE, NOW).unwrap());
    assert_eq!(rig.locks.held(), []);
    for file in 1..=2 {
        fill(0, file, FILE_GROUP_LOCKS_MAX).unwrap();
    }
    assert_eq!(rig.locks.lock(3, byte(0, 0), NOW), Err(LockRefusal::Full), "half of all");
    for file in 3..=4 {
        fill(1, file, FILE_GROUP_LOCKS_MAX).unwrap();
    }
    assert_eq!(rig.locks.lock(5, byte(2, 0), NOW), Err(LockRefusal::Crowded));
    rig.release(rig.holders[0]);
    assert_eq!(rig.locks.lock(5, byte(2, 0), NOW), Ok(()));
    assert_eq!(lock(&rig.locks.shared.table).files.len(), 3);
}

#[test]
fn a_silent_holder_gives_its_room_to_one_who_finds_none() {
    let rig = Rig::new(3);
    let byte = |at, byte: usize| rig.lock(at, 2 * byte as u64, 2 * byte as u64, LockMode::Shared);
    let fill =
        |at, file: u64| (0..FILE_GROUP_LOCKS_MAX).for_each(|it| rig.locks.lock(file, byte(at, it), NOW).unwrap());
    for (at, file) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
        fill(at, file);
    }
    assert_eq!(rig.locks.lock(3, byte(2, 0), NOW), Err(LockRefusal::Crowded));
    rig.clients[1].is_silent.store(true, Ordering::Relaxed);
    assert_eq!(rig.locks.lock(3, byte(0, 0), NOW), Err(LockRefusal::Full), "it is of another group");
    assert_eq!(rig.locks.lock(3, byte(2, 0), NOW), Err(LockRefusal::Ending(rig.holders[1])));
    assert_eq!(rig.lock_after_ends(3, byte(2, 0)), Ok(()));
    assert!(!rig.locks.has(1, byte(1, 0).owner));
    assert!(rig.locks.has(1, byte(0, 0).owner));
}

#[test]
fn a_file_has_a_bound_of_those_who_wait_and_one_group_leaves_half_to_others() {
    let rig = Rig::new(3);
    rig.locks.lock(5, rig.whole(0), NOW).unwrap();
    let wait = |at: usize| rig.locks.lock_or_wait(5, rig.whole(at), &CountingWaker::of(true).1, NOW);
    for at in [1, 2] {
        for _ in 0..FILE_WAITERS_MAX / 2 {
            assert_eq!(wait(at), Err(LockRefusal::Held(rig.whole(0))));
        }
        assert_eq!(wait(at), Err(LockRefusal::Full));
    }
    let (_, elsewhere) = CountingWaker::of(false);
    assert_eq!(rig.locks.lock_or_wait(5, rig.whole(1), &elsewhere, NOW), Err(LockRefusal::Held(rig.whole(0))));
    assert_eq!(rig.locks.held().iter().map(|row| row.waiting).sum::<usize>(), FILE_WAITERS_MAX);
}

#[test]
fn all_files_together_have_a_bound_of_those_who_wait_and_one_group_leaves_half_to_others() {
    const OF_A_FILE: usize = FILE_WAITERS_MAX / 2;
    let rig = Rig::new(3);
    let wait = |at: usize, file: u64, owner: usize| {
        let wanted = rig.whole(at);
        let wanted = Lock { owner: LockOwner { number: owner as u64, ..wanted.owner }, ..wanted };
        rig.locks.lock_or_wait(file, wanted, &CountingWaker::of(false).1, NOW).unwrap_err();
    };
    let waiting = |at: usize| {
        let rows = rig.locks.held();
        rows.iter().find(|row| row.holder == rig.holders[at]).map_or(0, |row| row.waiting)
    };
    let files = 0..(WAITERS_MAX / 2 / OF_A_FILE) as u64 + 2;
    for file in files.clone() {
        rig.locks.lock(file, rig.whole(0), NOW).unwrap();
        (0..OF_A_FILE).for_each(|owner| wait(1, file, owner));
    }
    assert_eq!(waiting(1), WAITERS_MAX / 2);
    // The first files take no more waiters of this group. One that waits already stays, and another group finds a slot.
    wait(1, 0, 3);
    wait(2, files.end - 1, 3);
    assert_eq!((waiting(1), waiting(2)), (WAITERS_MAX / 2, 1));
    // What ends frees slots.
    rig.release(rig.holders[0]);
    for file in files.clone().take(3) {
        rig.locks.unlock(file, LockOwner { number: 3, ..rig.whole(1).owner }, Span::WHOLE, NOW).unwrap();
    }
    assert_eq!(waiting(1), WAITERS_MAX / 2 - 3);
    rig.locks.lock(99, rig.whole(2), NOW).unwrap();
    (0..OF_A_FILE).for_each(|owner| wait(1, 99, owner));
    assert_eq!(waiting(1), WAITERS_MAX / 2);
    rig.release(rig.holders[1]);
    assert_eq!(waiting(1), 0);
}

#[test]
fn each_holder_is_named_with_what_it_has() {
    let rig = Rig::new(3);
    rig.locks.lock(5, rig.lock(0, 0, 1, LockMode::Shared), NOW).unwrap();
    rig.locks.lock(5, rig.lock(0, 9, 9, LockMode::Shared), NOW).unwrap();
    rig.locks.share(5, (rig.holders[1], 3), Share { access: Share::READ, deny: Share::WRITE }, NOW).unwrap();
    rig.locks.lock_or_wait(5, rig.whole(1), &CountingWaker::of(false).1, NOW).unwrap_err();
    let rows: Vec<_> = rig.locks.held().iter().map(|row| (row.holder, row.ranges, row.denying, row.waiting)).collect();
    assert_eq!(rows, [(rig.holders[0], 2, 0, 0), (rig.holders[1], 0, 1, 1)]);
}

/// Most steps of a call that frees no bytes for others: some searches, and some accesses to each waiter of a file.
const STEPS_MAX: u64 = 8 * FILE_WAITERS_MAX as u64;
/// Most steps of a call that frees bytes: some searches for each waiter.
const FREEING_STEPS_MAX: u64 = 40 * FILE_WAITERS_MAX as u64;

/// The owner of a number, and a byte of its.
fn byte_of(rig: &Rig, at: usize, number: u64, mode: LockMode) -> Lock {
    let wanted = rig.lock(at, 2 * number, 2 * number, mode);
    Lock { owner: LockOwner { number, ..wanted.owner }, ..wanted }
}

// rule: no lock, unlock or question walks a full table of locks
#[test]
fn a_call_on_a_file_full_of_owners_and_waiters_takes_few_steps() {
    for parties in [1, 2] {
        let rig = Rig::new(4);
        for at in 0..parties {
            for number in 0..FILE_GROUP_LOCKS_MAX as u64 - 2 {
                let number = number + (at * FILE_GROUP_LOCKS_MAX) as u64;
                let (steps, taken) =
                    steps_of(|| rig.locks.lock(1, byte_of(&rig, at, number, LockMode::Exclusive), NOW));
                assert_eq!(taken, Ok(()));
                assert!(steps < STEPS_MAX, "{steps} steps");
            }
            let last = byte_of(&rig, at, (at * FILE_GROUP_LOCKS_MAX) as u64, LockMode::Exclusive);
            for number in 0..FILE_WAITERS_MAX as u64 / 2 {
                let wanted = Lock { owner: LockOwner { number: 1 << 40 | number, ..last.owner }, ..last };
                let (_, waker) = CountingWaker::of(false);
                let (steps, _) = steps_of(|| rig.locks.lock_or_wait(1, wanted, &waker, NOW).unwrap_err());
                assert!(steps < STEPS_MAX, "{steps} steps");
            }
        }
        let of_all = |lock: Lock| Lock { span: Span::WHOLE, ..lock };
        let known = byte_of(&rig, 0, 7, LockMode::Exclusive);
        let (_, waker) = CountingWaker::of(false);
        let calls: [(&str, u64, &dyn Fn()); 6] = [
            ("a refused lock of all", STEPS_MAX, &|| assert!(rig.locks.lock(1, of_all(rig.whole(3)), NOW).is_err())),
            ("a circle", STEPS_MAX, &|| _ = rig.locks.lock_or_wait(1, of_all(known), &waker, NOW)),
            ("a question", STEPS_MAX, &|| assert!(rig.locks.conflict(1, &rig.whole(3), NOW).is_some())),
            ("an unlock", STEPS_MAX, &|| rig.locks.unlock(1, known.owner, Span::WHOLE, NOW).unwrap()),
            ("a lock", STEPS_MAX, &|| rig.locks.lock(1, known, NOW).unwrap()),
            ("a freed byte", FREEING_STEPS_MAX, &|| {
                let last = byte_of(&rig, 0, 0, LockMode::Exclusive);
                rig.locks.unlock(1, last.owner, Span::WHOLE, NOW).unwrap();
            }),
        ];
        for (name, most, call) in calls {
            let (steps, ()) = steps_of(call);
            assert!(steps < most, "{name}: {steps} steps");
        }
    }
}

// rule: a change of an owner's many ranges takes two steps for each, and one for each range of the file
#[test]
fn a_change_of_many_own_ranges_goes_through_each_once() {
    let rig = Rig::new(2);
    let byte = |at, first| rig.lock(at, first, first, LockMode::Shared);
    let all = rig.lock(0, 0, u64::MAX, LockMode::Shared);
    let calls: [(&str, &dyn Fn()); 3] = [
        ("an unlock", &|| rig.locks.unlock(1, all.owner, Span::WHOLE, NOW).unwrap()),
        ("a lock of all", &|| rig.locks.lock(1, all, NOW).unwrap()),
        ("a smaller unlock", &|| rig.locks.unlock(1, all.owner, Span::between(1, u64::MAX).unwrap(), NOW).unwrap()),
    ];
    for (name, call) in calls {
        for (at, number) in (0..FILE_GROUP_LOCKS_MAX as u64).flat_map(|number| [(0, number), (1, number)]) {
            rig.locks.lock(1, byte(at, 4 * number + 2 * at as u64), NOW).unwrap();
        }
        let (steps, ()) = steps_of(call);
        assert!(steps < (2 * FILE_GROUP_LOCKS_MAX + FILE_LOCKS_MAX) as u64 + 100, "{name}: {steps} steps");
        assert_eq!(rig.locks.count_of(1, byte(1, 0).owner), FILE_GROUP_LOCKS_MAX);
        rig.locks.unlock(1, all.owner, Span::WHOLE, NOW).unwrap();
    }
}

#[test]
fn the_end_of_a_holder_takes_steps_for_what_it_had_alone() {
    let rig = Rig::new(2);
    let share = Share { access: Share::READ, deny: 0 };
    for open in 0..32_767 {
        rig.locks.share(1, (rig.holders[0], open), share, NOW).unwrap();
        rig.locks.share(2 + open, (rig.holders[1], open), share, NOW).unwrap();
    }
    let (steps, ()) = steps_of(|| rig.release(rig.holders[0]));
    assert!(steps < 2 * 32_767 + 100, "{steps} steps");
    let (steps, open) = steps_of(|| rig.locks.check_share(1, None, Share { access: 1, deny: 3 }, NOW));
    assert_eq!(open, Ok(()));
    assert!(steps < 100, "{steps} steps");
}

// rule: a holder with locks of many files, or many of one, ends in short looks, and those who wait for its end are told
// after the last one
#[test]
fn the_end_of_a_holder_goes_in_short_looks() {
    const COUNT: u64 = 4 * WAITERS_A_LOOK as u64;
    for of_one_file in [true, false] {
        let rig = Rig::new(2);
        let file_of = |number| if of_one_file { 1 } else { number };
        let denies = Share { access: Share::READ, deny: Share::WRITE };
        for number in 0..COUNT {
            rig.locks.lock(file_of(number), byte_of(&rig, 0, number, LockMode::Exclusive), NOW).unwrap();
            rig.locks.share(file_of(number), (rig.holders[0], number), denies, NOW).unwrap();
        }
        let told = Arc::new(AtomicU64::new(0));
        let tell = Arc::clone(&told);
        rig.locks.tell_offers(Box::new(move |at| tell.store(at.0, Ordering::Relaxed)));
        let mut looks = 0;
        loop {
            told.store(0, Ordering::Relaxed);
            let (steps, ()) = steps_of(|| match looks {
                0 => rig.locks.release_holder(rig.holders[0], NOW),
                _ => rig.locks.go_on(NOW),
            });
            assert!(steps < 40 * WAITERS_A_LOOK as u64, "{steps} steps");
            looks += 1;
            if told.load(Ordering::Relaxed) != NOW.0 {
                break;
            }
            assert!(rig.locks.poll_end(rig.holders[0], Waker::noop()).is_pending());
            if looks == 1 {
                let refused = rig.locks.check_use(file_of(COUNT - 1), Share::WRITE, NOW);
                assert_eq!(refused, Err(ShareRefusal::Ending(rig.holders[0])));
            }
            assert!(looks < COUNT, "no look is the last one");
        }
        assert!(looks >= 2 * COUNT / WAITERS_A_LOOK as u64);
        assert!(rig.locks.poll_end(rig.holders[0], Waker::noop()).is_ready() && !rig.locks.has_denials());
        assert!(rig.locks.held().is_empty() && lock(&rig.locks.shared.table).files.is_empty());
    }
}

// rule: a tick and the end of a turn look at few waiters at a time, however many files have some
#[test]
fn a_tick_over_many_files_with_waiters_goes_in_short_looks() {
    const FILES: u64 = 4096;
    let (rig, told) = (Rig::new(2), Arc::new(AtomicU64::new(0)));
    let tell = Arc::clone(&told);
    rig.locks.tell_offers(Box::new(move |at| tell.store(at.0, Ordering::Relaxed)));
    let waiting = || rig.locks.held().iter().map(|it| it.waiting).sum::<usize>();
    for file in 0..FILES {
        rig.locks.lock(file, rig.whole(0), NOW).unwrap();
        rig.locks.lock_or_wait(file, rig.whole(1), &CountingWaker::of(false).1, NOW).unwrap_err();
    }
    rig.locks.unlock(7, rig.whole(0).owner, Span::WHOLE, NOW).unwrap();
    assert!(told.load(Ordering::Relaxed) > NOW.0);
    let (steps, ()) = steps_of(|| rig.locks.go_on(LATER));
    assert!(steps < 50, "{steps} steps for the end of one turn");
    assert_eq!(waiting(), FILES as usize - 1);
    // The client of all waits is silent: a tick ends them, one round after the other.
    rig.clients[1].is_silent.store(true, Ordering::Relaxed);
    let mut looks = 0;
    loop {
        told.store(0, Ordering::Relaxed);
        let (steps, ()) = steps_of(|| if looks == 0 { rig.locks.tick(LATER) } else { rig.locks.go_on(LATER) });
        assert!(steps < 8 * WAITERS_A_LOOK as u64, "{steps} steps");
        looks += 1;
        if told.load(Ordering::Relaxed) != LATER.0 {
            break;
        }
        assert!(looks < FILES, "no look is the last one");
    }
    assert_eq!((looks, waiting()), (FILES * 2 / WAITERS_A_LOOK as u64, 0));
}

#[test]
fn a_search_for_a_lapsed_holder_looks_at_few_and_goes_on_with_the_next_call() {
    const CLIENTS: usize = 3 * LAPSED_LOOKS_MAX;
    let locks = Locks::default();
    let clients: Vec<_> = (0..CLIENTS).map(|_| Arc::new(Client::default())).collect();
    let holders: Vec<_> = clients.iter().map(|it| locks.register(Arc::clone(it) as _, 0)).collect();
    let byte = |at: usize, first| Lock {
        owner: LockOwner { holder: holders[at], number: 7, family: LockFamily::Single },
        span: Span::between(first, first).unwrap(),
        mode: LockMode::Exclusive,
        process: 0,
    };
    (0..FILE_GROUP_LOCKS_MAX as u64).for_each(|at| locks.lock(1, byte(0, 2 * at), NOW).unwrap());
    (1..CLIENTS).for_each(|at| locks.lock(2, byte(at, 2 * at as u64), NOW).unwrap());
    clients[CLIENTS - 1].is_silent.store(true, Ordering::Relaxed);
    let mut refusals = Vec::new();
    for _ in 0..3 {
        let (steps, refused) = steps_of(|| locks.lock(1, byte(0, u64::MAX), NOW).unwrap_err());
        assert!(steps < LAPSED_LOOKS_MAX as u64 + 100, "{steps} steps");
        refusals.push(refused);
    }
    assert_eq!(refusals, [LockRefusal::Full, LockRefusal::Full, LockRefusal::Ending(holders[CLIENTS - 1])]);
}

// rule: the end of an open or of an owner ends the waits of clients elsewhere, and an unlock those for its bytes
#[test]
fn an_owner_elsewhere_that_has_ended_delays_nobody() {
    for end in 0..4 {
        let rig = Rig::new(3);
        rig.locks.lock(5, rig.whole(0), NOW).unwrap();
        let dead = rig.lock(1, 10, 19, LockMode::Exclusive);
        rig.locks.lock_or_wait(5, dead, &CountingWaker::of(false).1, NOW).unwrap_err();
        let (living, waker) = CountingWaker::of(false);
        rig.locks.lock_or_wait(5, rig.whole(2), &waker, NOW).unwrap_err();
        let end_it = || match end {
            0 => rig.locks.stop_waiting_with(5, (rig.holders[1], OPEN), NOW),
            1 => rig.locks.stop_waiting(5, dead.owner, NOW),
            2 => rig.locks.unlock(5, dead.owner, Span::between(19, 30).unwrap(), NOW).unwrap(),
            // Another open ends, another owner stops, and the same owner unlocks other bytes.
            _ => {
                rig.locks.stop_waiting_with(5, (rig.holders[1], OPEN + 1), NOW);
                rig.locks.stop_waiting(5, LockOwner { number: 8, ..dead.owner }, NOW);
                rig.locks.unlock(5, dead.owner, Span::between(20, 30).unwrap(), NOW).unwrap();
            }
        };
        // Before its offer, and within it.
        if end % 2 == 0 {
            end_it();
        }
        rig.locks.unlock(5, rig.whole(0).owner, Span::WHOLE, NOW).unwrap();
        if end % 2 == 1 {
            end_it();
        }
        assert_eq!(living.woken(), u64::from(end < 3), "{end}");
    }
}

// rule: an owner that waited at an earlier server goes on waiting, and has its turn once the way is free
#[test]
fn an_owner_that_waits_again_has_a_turn_with_the_next_tick() {
    let rig = Rig::new(3);
    rig.locks.lock(5, rig.lock(0, 0, 9, LockMode::Exclusive), NOW).unwrap();
    let wakers: Vec<_> = (1..3).map(|_| CountingWaker::of(false)).collect();
    rig.locks.wait_again(5, rig.lock(1, 0, 9, LockMode::Exclusive), Arc::clone(&wakers[0].1));
    rig.locks.wait_again(5, rig.lock(2, 10, 19, LockMode::Exclusive), Arc::clone(&wakers[1].1));
    let woken = || wakers.iter().map(|waker| waker.0.woken()).collect::<Vec<_>>();
    assert_eq!(woken(), [0, 0]);
    rig.locks.tick(NOW);
    assert_eq!(woken(), [0, 1]);
    rig.locks.unlock(5, rig.whole(0).owner, Span::WHOLE, NOW).unwrap();
    assert_eq!(woken(), [1, 1]);
}

#[test]
fn a_try_is_refused_for_an_offer_as_long_as_that_lasts_and_never_for_a_waiter_without_one() {
    let rig = Rig::new(3);
    rig.locks.lock(5, rig.lock(0, 0, 9, LockMode::Exclusive), NOW).unwrap();
    rig.locks.lock_or_wait(5, rig.whole(1), &CountingWaker::of(false).1, NOW).unwrap_err();
    assert_eq!(rig.locks.lock(5, rig.lock(2, 20, 29, LockMode::Exclusive), NOW), Ok(()));
    rig.locks.unlock(5, rig.whole(2).owner, Span::WHOLE, NOW).unwrap();
    rig.locks.unlock(5, rig.whole(0).owner, Span::WHOLE, NOW).unwrap();
    assert_eq!(rig.locks.lock(5, rig.whole(2), NOW), Err(LockRefusal::Held(rig.whole(1))));
    assert_eq!(rig.locks.lock(5, rig.whole(2), LATER), Ok(()), "nobody has looked after the table since");
}

#[test]
fn many_dead_waiters_delay_a_living_one_by_one_turn() {
    let rig = Rig::new(3);
    rig.locks.lock(5, rig.whole(0), NOW).unwrap();
    for number in 0..10 {
        let wanted = rig.whole(1);
        let dead = Lock { owner: LockOwner { number, ..wanted.owner }, ..wanted };
        rig.locks.lock_or_wait(5, dead, &CountingWaker::of(false).1, NOW).unwrap_err();
    }
    let (living, waker) = CountingWaker::of(false);
    rig.locks.lock_or_wait(5, rig.whole(2), &waker, NOW).unwrap_err();
    rig.locks.unlock(5, rig.whole(0).owner, Span::WHOLE, NOW).unwrap();
    assert_eq!(living.woken(), 0);
    rig.locks.tick(LATER);
    assert_eq!(living.woken(), 1);
    assert_eq!(rig.locks.lock(5, rig.whole(2), LATER), Ok(()));
}

/// Has each party do something to some files with the numbers from 0 on, until the table refuses it or `most` are done.
fn fill(rig: &Rig, files: u64, most: u64, act: impl Fn(u64, usize, u64) -> bool) {
    for (file, at) in (0..files).flat_map(|file| (0..rig.holders.len() - PROBERS).map(move |at| (file, at))) {
        let _ = (0..most).try_for_each(|number| act(file, at, number).then_some(()));
    }
}

/// Holders that a rig adds last. They ask a full table.
const PROBERS: usize = 2;

/// A table, and the function that fills it.
type Table = (&'static str, fn(&Rig));

/// Each bounded table of locks.
const TABLES: [Table; 8] = [
    ("ranges of a file, by many owners", |rig| {
        fill(rig, 1, u64::MAX, |file, at, number| {
            let number = number * rig.holders.len() as u64 + at as u64;
            rig.locks.lock(file, byte_of(rig, at, number, LockMode::Exclusive), NOW).is_ok()
        });
    }),
    ("ranges of a file, by one owner each", |rig| {
        fill(rig, 1, u64::MAX, |file, at, number| {
            let first = 2 * (number * rig.holders.len() as u64 + at as u64);
            rig.locks.lock(file, rig.lock(at, first, first, LockMode::Exclusive), NOW).is_ok()
        });
    }),
    ("ranges of all files", |rig| {
        fill(rig, 64, 1024, |file, at, number| {
            rig.locks.lock(file, byte_of(rig, at, number, LockMode::Shared), NOW).is_ok()
        });
    }),
    ("waiters of a file", |rig| {
        rig.locks.lock(0, rig.whole(0), NOW).unwrap();
        fill(rig, 1, FILE_WAITERS_MAX as u64, |file, at, number| has_waited(rig, file, at, number));
    }),
    ("waiters of all files", |rig| {
        let files = (WAITERS_MAX / FILE_WAITERS_MAX) as u64 + 1;
        (0..files).for_each(|file| rig.locks.lock(file, rig.whole(0), NOW).unwrap());
        let of_each = (FILE_WAITERS_MAX / (rig.holders.len() - PROBERS).max(2)) as u64;
        fill(rig, files, of_each, |file, at, number| has_waited(rig, file, at, number));
    }),
    ("opens of a file", |rig| {
        fill(rig, 1, OPENS / (rig.holders.len() - PROBERS) as u64, |file, at, number| {
            has_opened(rig, file, at, number)
        });
    }),
    ("opens of all files", |rig| {
        fill(rig, OPENS / 4, 1, |file, at, number| has_opened(rig, file, at, number));
    }),
    ("holders", |rig| {
        for number in 0..CLIENTS {
            let holder = rig.locks.register(Arc::new(Client::default()), number % rig.holders.len() as u64);
            let wanted = byte_of(rig, 0, number, LockMode::Shared);
            let owner = LockOwner { holder, ..wanted.owner };
            rig.locks.lock(number % 64, Lock { owner, ..wanted }, NOW).unwrap();
        }
    }),
];

/// The limits of opens and clients in version 4 of NFS.
const OPENS: u64 = 65_536;
const CLIENTS: u64 = 4096;

/// An owner waits for all bytes.
fn has_waited(rig: &Rig, file: u64, at: usize, number: u64) -> bool {
    let wanted = rig.whole(at);
    let wanted = Lock { owner: LockOwner { number: 1 << 40 | number, ..wanted.owner }, ..wanted };
    rig.locks.lock_or_wait(file, wanted, &CountingWaker::of(false).1, NOW).is_err()
}

fn has_opened(rig: &Rig, file: u64, at: usize, number: u64) -> bool {
    rig.locks.share(file, (rig.holders[at], number), Share { access: Share::READ, deny: 0 }, NOW).is_ok()
}

/// A call of each kind by the last holders, with its most steps.
type Probe<'a> = (&'a str, u64, &'a dyn Fn());

fn check_each_call(rig: &Rig, table: &str) {
    let (one, other) = (rig.holders.len() - 2, rig.holders.len() - 1);
    let far = |at| rig.lock(at, u64::MAX - 9, u64::MAX - 9, LockMode::Exclusive);
    let full = rig.lock(0, 0, u64::MAX, LockMode::Exclusive);
    let writes = Share { access: Share::WRITE, deny: Share::READ };
    let (_, waker) = CountingWaker::of(false);
    let locks = &rig.locks;
    let calls: [Probe<'_>; 19] = [
        ("a lock", STEPS_MAX, &|| _ = locks.lock(0, far(one), NOW)),
        ("a lock of another file", STEPS_MAX, &|| _ = locks.lock(u64::MAX, far(one), NOW)),
        ("a lock of all bytes", STEPS_MAX, &|| _ = locks.lock(0, rig.whole(one), NOW)),
        ("a wait", STEPS_MAX, &|| _ = locks.lock_or_wait(0, rig.whole(one), &waker, NOW)),
        ("a question", STEPS_MAX, &|| _ = locks.conflict(0, &rig.whole(one), NOW)),
        ("a question of an owner with many ranges", STEPS_MAX, &|| _ = locks.conflict(0, &full, NOW)),
        ("a test", STEPS_MAX, &|| _ = locks.test(0, &rig.whole(one), NOW)),
        ("the end of a wait", STEPS_MAX, &|| locks.stop_waiting(0, rig.whole(one).owner, NOW)),
        ("an unlock", STEPS_MAX, &|| _ = locks.unlock(0, far(one).owner, Span::WHOLE, NOW)),
        ("an open", STEPS_MAX, &|| _ = locks.share(0, (rig.holders[one], 1), Share { access: 1, deny: 0 }, NOW)),
        ("an open that is refused", STEPS_MAX, &|| _ = locks.share(0, (rig.holders[other], 1), writes, NOW)),
        ("a use", STEPS_MAX, &|| _ = locks.check_use(0, Share::WRITE, NOW)),
        ("a close", STEPS_MAX, &|| locks.end_share(0, (rig.holders[one], 1))),
        ("the beginning of an end", STEPS_MAX, &|| locks.begin_end(rig.holders[one])),
        ("the end of a holder with little", STEPS_MAX, &|| locks.release_holder(rig.holders[one], NOW)),
        ("a new holder", STEPS_MAX, &|| _ = locks.register(Arc::new(Client::default()), 0)),
        ("a list of holders", FREEING_STEPS_MAX, &|| _ = locks.held()),
        ("a tick", FREEING_STEPS_MAX, &|| locks.tick(NOW)),
        ("the end of a holder with much", FREEING_STEPS_MAX, &|| locks.release_holder(rig.holders[0], NOW)),
    ];
    for (name, most, call) in calls {
        let (steps, ()) = steps_of(call);
        assert!(steps < most, "{table}, {} parties: {name} takes {steps} steps", rig.holders.len() - PROBERS);
    }
}

// rule: with any table of locks at its bound, filled by one party or by many, no call takes more than a fixed number of
// steps
#[test]
fn each_table_of_locks_at_its_bound_leaves_each_call_few_steps() {
    for (parties, (name, fill)) in [1, 4].into_iter().flat_map(|parties| TABLES.map(|table| (parties, table))) {
        let rig = Rig::new(parties + PROBERS);
        fill(&rig);
        check_each_call(&rig, name);
    }
}
