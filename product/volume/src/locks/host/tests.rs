use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Weak};

use afflux_engine::Nanos;

use super::super::holders::HostQuestion;
use super::*;
use crate::locks::of_file::SharedTable;
use crate::locks::{LockHolder, LockRefusal, Locks, Share};

const BYTES: usize = 8;
const NOW: Nanos = Nanos(1);

fn span(first: u64, last: u64) -> Span {
    Span::between(first, last).unwrap()
}

/// A host's file of some bytes, one of which a program may have locked.
#[derive(Default)]
struct Bytes {
    modes: Mutex<[Option<LockMode>; BYTES]>,
    program: Mutex<Option<(u64, LockMode)>>,
    waiting: Mutex<Vec<Arc<dyn LockWaker>>>,
    /// The file system hangs: the work stays undone.
    stands: AtomicBool,
    left: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// The table, whose lock nobody may have during a call.
    table: Mutex<Weak<SharedTable>>,
    calls: Mutex<Vec<(Span, Option<LockMode>)>>,
    /// The act of others during the next call.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Bytes {
    fn check_unlocked(&self) {
        let table = self.table.lock().unwrap().upgrade();
        assert!(table.is_none_or(|table| table.table.try_lock().is_ok()), "the host is called under a lock");
    }

    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)> {
        self.check_unlocked();
        let (at, their) = (*self.program.lock().unwrap())?;
        let excludes = their == LockMode::Exclusive || mode == LockMode::Exclusive;
        (excludes && (span.first..=span.last).contains(&at)).then_some((Span { first: at, last: at }, their, 77))
    }

    /// The file system goes on.
    fn go_on(&self) {
        self.stands.store(false, Ordering::Relaxed);
        let left = std::mem::take(&mut *self.left.lock().unwrap());
        left.into_iter().for_each(|work| work());
    }
}

/// The server's locks of the bytes.
struct OfBytes(Arc<Bytes>);

impl OfBytes {
    fn of(host: &Arc<Bytes>) -> Arc<dyn HostLocks> {
        Arc::new(Self(Arc::clone(host)))
    }
}

impl Drop for OfBytes {
    fn drop(&mut self) {
        self.0.check_unlocked();
    }
}

impl HostLocks for OfBytes {
    fn start(&self, work: Box<dyn FnOnce() + Send>) {
        let host = &self.0;
        host.check_unlocked();
        match host.stands.load(Ordering::Relaxed) {
            true => host.left.lock().unwrap().push(work),
            false => work(),
        }
    }

    fn set(&self, span: Span, mode: Option<LockMode>) -> Result<(), HostRefusal> {
        let host = &self.0;
        host.check_unlocked();
        let meanwhile = host.meanwhile.lock().unwrap().take();
        meanwhile.into_iter().for_each(|others| others());
        host.calls.lock().unwrap().push((span, mode));
        if mode.is_some_and(|mode| host.conflict(span, mode).is_some()) {
            return Err(HostRefusal::Held);
        }
        let mut modes = host.modes.lock().unwrap();
        modes
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| (span.first..=span.last).contains(&(*at as u64)))
            .for_each(|it| *it.1 = mode);
        Ok(())
    }

    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)> {
        self.0.conflict(span, mode)
    }

    fn wake_when_free(&self, span: Span, mode: LockMode, waker: Arc<dyn LockWaker>) {
        let host = &self.0;
        host.check_unlocked();
        let table = host.table.lock().unwrap().upgrade().unwrap();
        assert!(table.table.lock().unwrap().files[&FILE].queue.len() > 0, "a wake comes before its waiter");
        match host.conflict(span, mode) {
            Some(_) => host.waiting.lock().unwrap().push(waker),
            None => waker.wake(),
        }
    }
}

struct Client;

impl LockHolder for Client {
    fn has_lapsed(&self, _: Nanos) -> bool {
        false
    }

    fn try_revoke(&self, _: Nanos) -> bool {
        false
    }

    fn name(&self) -> String {
        "client".to_owned()
    }
}

#[derive(Default)]
struct Woken(Mutex<u32>);

impl LockWaker for Woken {
    fn wake(&self) {
        *self.0.lock().unwrap() += 1;
    }

    fn open(&self) -> Option<u64> {
        None
    }
}

const FILE: u64 = 5;

fn mirrored() -> (Locks, Arc<Bytes>, [LockOwner; 3]) {
    let (locks, host) = (Locks::default(), Arc::new(Bytes::default()));
    *host.table.lock().unwrap() = Arc::downgrade(&locks.shared);
    locks.show_on_host();
    let owners = [LockFamily::Single, LockFamily::Bytes, LockFamily::Files].map(|family| {
        let holder = locks.register(Arc::new(Client), 1);
        LockOwner { holder, number: 1, family }
    });
    (locks, host, owners)
}

/// The answer of a host that does not hang.
fn answer(locks: &Locks, asked: Result<(), LockRefusal>) -> Result<(), LockRefusal> {
    match asked {
        Err(LockRefusal::Asked(question)) => locks.finish(FILE, question, None, NOW),
        other => other,
    }
}

fn lock_at_once(locks: &Locks, wanted: Lock) -> Result<(), LockRefusal> {
    answer(locks, locks.lock(FILE, wanted, NOW))
}

/// The question of a lock.
fn asked(result: Result<(), LockRefusal>) -> HostQuestion {
    match result {
        Err(LockRefusal::Asked(question)) => question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_byte_has_the_strongest_mode_of_its_owners_on_the_host() {
    let mut random = 7_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let (locks, host, owners) = mirrored();
    let shown = locks.host_begins(FILE, OfBytes::of(&host));
    for step in 0..20_000 {
        let (first, second) = (below(BYTES as u64), below(BYTES as u64));
        let bytes = span(first.min(second), first.max(second));
        *host.program.lock().unwrap() = match below(3) {
            0 => {
                let at = below(BYTES as u64);
                // A program gets only what the server does not exclude.
                let own = host.modes.lock().unwrap()[at as usize];
                let mode = if below(2) == 0 { LockMode::Shared } else { LockMode::Exclusive };
                let is_free = own.is_none() || own == Some(LockMode::Shared) && mode == LockMode::Shared;
                is_free.then_some((at, mode))
            }
            _ => None,
        };
        let owner = owners[below(3) as usize];
        let mode = if below(2) == 0 { LockMode::Shared } else { LockMode::Exclusive };
        match below(3) {
            0 => locks.unlock(FILE, owner, bytes, NOW).unwrap(),
            _ => {
                let wanted = Lock { owner, span: bytes, mode, process: 0 };
                let program = host.conflict(bytes, mode);
                let own = locks.conflict(FILE, &wanted, NOW);
                let result = lock_at_once(&locks, wanted);
                match (own, program) {
                    (None, None) => assert_eq!(result, Ok(()), "step {step}"),
                    _ => assert!(matches!(result, Err(LockRefusal::Held(_))), "step {step}"),
                }
            }
        }
        let mut expected = [None; BYTES];
        for owner in owners {
            for (held, mode) in locks.ranges_of(FILE, owner) {
                for byte in &mut expected[held.first as usize..=held.last as usize] {
                    *byte = if *byte == Some(LockMode::Exclusive) { *byte } else { Some(mode) };
                }
            }
        }
        assert_eq!(*host.modes.lock().unwrap(), expected, "step {step}");
    }
    drop(shown);
}

#[test]
fn a_program_in_the_way_is_named_and_a_waiter_is_woken_when_it_lets_go() {
    let (locks, host, owners) = mirrored();
    let shown = locks.host_begins(FILE, OfBytes::of(&host));
    *host.program.lock().unwrap() = Some((3, LockMode::Exclusive));
    let wanted = Lock { owner: owners[0], span: Span::WHOLE, mode: LockMode::Shared, process: 0 };
    let in_the_way = Lock { owner: PROGRAMS, span: span(3, 3), mode: LockMode::Exclusive, process: 77 };
    assert_eq!(answer(&locks, locks.test(FILE, &wanted, NOW)), Err(LockRefusal::Held(in_the_way)));
    let woken = Arc::new(Woken::default());
    let waker = Arc::clone(&woken) as Arc<dyn LockWaker>;
    let wait = || locks.finish(FILE, asked(locks.lock_or_wait(FILE, wanted, &waker, NOW)), Some(&waker), NOW);
    assert_eq!(wait(), Err(LockRefusal::Held(in_the_way)));
    *host.program.lock().unwrap() = None;
    std::mem::take(&mut *host.waiting.lock().unwrap()).iter().for_each(|waiter| waiter.wake());
    assert_eq!(*woken.0.lock().unwrap(), 1);
    assert_eq!(wait(), Ok(()));
    drop(shown);
    locks.release_holder(owners[0].holder, NOW);
    locks.tick(NOW);
    assert_eq!(*host.modes.lock().unwrap(), [None; BYTES]);
    assert_eq!(Arc::strong_count(&host), 1, "nothing is left of a file without locks");
}

// rule: nobody calls the host under the lock of the table of locks, and a waiter is in its queue before the host may
// wake it
#[test]
fn a_program_that_unlocks_before_the_host_knows_of_a_waiter_wakes_the_waiter() {
    let (locks, host, owners) = mirrored();
    let shown = locks.host_begins(FILE, OfBytes::of(&host));
    *host.program.lock().unwrap() = Some((3, LockMode::Exclusive));
    let wanted = Lock { owner: owners[0], span: Span::WHOLE, mode: LockMode::Shared, process: 0 };
    let woken = Arc::new(Woken::default());
    let waker = Arc::clone(&woken) as Arc<dyn LockWaker>;
    let question = asked(locks.lock_or_wait(FILE, wanted, &waker, NOW));
    // The host has answered, and nobody has taken the answer yet.
    *host.program.lock().unwrap() = None;
    assert!(matches!(locks.finish(FILE, question, Some(&waker), NOW), Err(LockRefusal::Held(_))));
    assert_eq!(*woken.0.lock().unwrap(), 1);
    assert_eq!(answer(&locks, locks.lock_or_wait(FILE, wanted, &waker, NOW)), Ok(()));
    drop(shown);
}

// rule: a file's place on the host ends after the table's lock, also with a share
#[test]
fn a_place_on_the_host_without_locks_ends_with_a_share() {
    let (locks, host, owners) = mirrored();
    let share = Share { access: Share::READ, deny: 0 };
    locks.share(FILE, (owners[0].holder, 1), share, NOW).unwrap();
    for _ in 0..2 {
        // The second one finds the first.
        drop(locks.host_begins(FILE, OfBytes::of(&host)));
        assert_eq!(Arc::strong_count(&host), 2);
    }
    locks.end_share(FILE, (owners[0].holder, 1));
    assert_eq!(Arc::strong_count(&host), 1);
}

#[test]
fn locks_that_were_there_before_are_shown_where_no_program_is_in_their_way() {
    for program in [None, Some((2, LockMode::Exclusive))] {
        let (locks, host, owners) = mirrored();
        for bytes in [span(2, 2), span(4, 5)] {
            let wanted = Lock { owner: owners[0], span: bytes, mode: LockMode::Exclusive, process: 0 };
            locks.lock(FILE, wanted, NOW).unwrap();
        }
        *host.program.lock().unwrap() = program;
        drop(locks.host_begins(FILE, OfBytes::of(&host)));
        let shown = [2, 4, 5].map(|at: usize| host.modes.lock().unwrap()[at].is_some());
        assert_eq!(shown, [program.is_none(), true, true]);
    }
}

/// The owner's ranges, in the form of first byte, last byte and mode.
fn ranges(locks: &Locks, owner: LockOwner) -> Vec<(u64, u64, LockMode)> {
    locks.ranges_of(FILE, owner).into_iter().map(|(span, mode)| (span.first, span.last, mode)).collect()
}

fn modes_on(host: &Bytes) -> [Option<LockMode>; BYTES] {
    *host.modes.lock().unwrap()
}

// rule: a lock that a program of the host refuses leaves its owner what it had, in the table and on the host
#[test]
fn a_lock_that_the_host_refuses_has_changed_nothing() {
    use LockMode::{Exclusive, Shared};
    let mut random = 11_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for step in 0..5_000 {
        let (locks, host, owners) = mirrored();
        let _shown = locks.host_begins(FILE, OfBytes::of(&host));
        let mut any = |process| {
            let (first, second) = (below(BYTES as u64), below(BYTES as u64));
            let mode = if below(2) == 0 { Shared } else { Exclusive };
            let owner = owners[below(2) as usize];
            Lock { owner, span: span(first.min(second), first.max(second)), mode, process }
        };
        for process in 0..4 {
            let _ = lock_at_once(&locks, any(process));
        }
        let (wanted, unlocked) = (any(9), any(9));
        let before = owners.map(|owner| ranges(&locks, owner));
        let process = |locks: &Locks| owners.map(|owner| locks.conflict(FILE, &Lock { owner, ..wanted }, NOW));
        let (of_process, on_host) = (process(&locks), modes_on(&host));
        // A program that has a byte of the wanted ones, which the server does not exclude.
        let at = wanted.span.first;
        let theirs = on_host[at as usize].map_or(Some(Exclusive), |mode| (mode == Shared).then_some(Shared));
        let Some(theirs) = theirs.filter(|theirs| wanted.mode == Exclusive || *theirs == Exclusive) else { continue };
        host.stands.store(true, Ordering::Relaxed);
        let Err(LockRefusal::Asked(question)) = locks.lock(FILE, wanted, NOW) else { continue };
        *host.program.lock().unwrap() = Some((at, theirs));
        if step % 2 == 0 {
            // What the owner unlocks while the host is asked does not come back.
            locks.unlock(FILE, wanted.owner, unlocked.span, NOW).unwrap();
        }
        host.go_on();
        let refused = locks.finish(FILE, question, None, NOW);
        let is_whole = step % 2 != 0;
        if is_whole {
            assert!(matches!(refused, Err(LockRefusal::Held(_))), "step {step}: {refused:?}");
            assert_eq!(owners.map(|owner| ranges(&locks, owner)), before, "step {step}");
            assert_eq!((process(&locks), modes_on(&host)), (of_process, on_host), "step {step}");
        } else if refused.is_err() {
            let other = locks_alone(&before[0], owners[0], &before[1], owners[1]);
            other.unlock(FILE, wanted.owner, unlocked.span, NOW).unwrap();
            assert_eq!(owners.map(|owner| ranges(&locks, owner)), owners.map(|owner| ranges(&other, owner)), "{step}");
        }
        *host.program.lock().unwrap() = None;
        owners.iter().for_each(|owner| locks.release_holder(owner.holder, NOW));
        assert_eq!(modes_on(&host), [None; BYTES], "step {step}");
        assert!(locks.held().is_empty());
    }
}

/// A table of the ranges of two owners.
fn locks_alone(
    ranges: &[(u64, u64, LockMode)],
    owner: LockOwner,
    others: &[(u64, u64, LockMode)],
    other: LockOwner,
) -> Locks {
    let locks = Locks::default();
    for (ranges, owner) in [(ranges, owner), (others, other)] {
        for (first, last, mode) in ranges {
            locks.lock(FILE, Lock { owner, span: span(*first, *last), mode: *mode, process: 0 }, NOW).unwrap();
        }
    }
    locks
}

// rule: a file whose host stands still holds up no locks of other files
#[test]
fn a_lock_that_the_host_has_yet_to_allow_is_in_the_way_of_others_alone() {
    let (locks, host, owners) = mirrored();
    let _shown = locks.host_begins(FILE, OfBytes::of(&host));
    host.stands.store(true, Ordering::Relaxed);
    let lock = |owner: usize, bytes, mode| Lock { owner: owners[owner], span: bytes, mode, process: 0 };
    let wanted = lock(0, span(2, 3), LockMode::Exclusive);
    let question = asked(locks.lock(FILE, wanted, NOW));
    let others = lock(1, span(3, 4), LockMode::Shared);
    assert_eq!(locks.lock(FILE, others, NOW), Err(LockRefusal::Held(wanted)));
    assert_eq!(locks.test(FILE, &others, NOW), Err(LockRefusal::Held(wanted)));
    // A lock without a conflict in the table waits for the host, and so does a test.
    assert_eq!(locks.lock(FILE, lock(1, span(5, 5), LockMode::Shared), NOW), Err(LockRefusal::Busy));
    assert_eq!(locks.test(FILE, &lock(1, span(5, 5), LockMode::Shared), NOW), Err(LockRefusal::Busy));
    // A file whose host answers goes on.
    let other_host = Arc::new(Bytes::default());
    let _other = locks.host_begins(FILE + 1, OfBytes::of(&other_host));
    let other = asked(locks.lock(FILE + 1, others, NOW));
    assert_eq!(locks.finish(FILE + 1, other, None, NOW), Ok(()));
    host.go_on();
    assert_eq!(locks.finish(FILE, question, None, NOW), Ok(()));
    assert_eq!(lock_at_once(&locks, lock(1, span(5, 5), LockMode::Shared)), Ok(()));
}

#[test]
fn the_host_sees_the_calls_of_a_file_in_their_order() {
    use LockMode::{Exclusive, Shared};
    let (locks, host, owners) = mirrored();
    let _shown = locks.host_begins(FILE, OfBytes::of(&host));
    let lock = |owner: usize, mode| Lock { owner: owners[owner], span: span(1, 2), mode, process: 0 };
    host.stands.store(true, Ordering::Relaxed);
    let first = asked(locks.lock(FILE, lock(0, Exclusive), NOW));
    host.go_on();
    host.stands.store(true, Ordering::Relaxed);
    locks.finish(FILE, first, None, NOW).unwrap();
    locks.unlock(FILE, owners[0], Span::WHOLE, NOW).unwrap();
    let unlock = locks.unshown(FILE).unwrap();
    let second = asked(locks.lock(FILE, lock(1, Shared), NOW));
    let waker = std::task::Waker::noop();
    assert!(locks.poll_shown(FILE, unlock, waker).is_pending() && locks.poll_answer(FILE, second, waker).is_pending());
    host.go_on();
    assert!(locks.poll_shown(FILE, unlock, waker).is_ready() && locks.poll_answer(FILE, second, waker).is_ready());
    locks.finish(FILE, second, None, NOW).unwrap();
    let calls = host.calls.lock().unwrap().clone();
    assert_eq!(calls.first(), Some(&(span(1, 2), Some(Exclusive))));
    assert_eq!(calls.last(), Some(&(span(1, 2), Some(Shared))));
    assert_eq!(modes_on(&host)[1..3], [Some(Shared); 2]);
}

#[test]
fn a_question_that_is_given_up_or_whose_holder_ends_leaves_no_lock() {
    let ways: [fn(&Locks, HostQuestion, LockOwner); 2] = [
        |locks, question, _| locks.give_up(FILE, question, NOW),
        |locks, _, owner| locks.release_holder(owner.holder, NOW),
    ];
    for (way, moment) in ways.into_iter().flat_map(|way| (0..3).map(move |moment| (way, moment))) {
        let (locks, host, owners) = mirrored();
        let locks = Arc::new(locks);
        let shown = locks.host_begins(FILE, OfBytes::of(&host));
        let wanted = Lock { owner: owners[0], span: span(0, 4), mode: LockMode::Exclusive, process: 0 };
        host.stands.store(true, Ordering::Relaxed);
        let question = asked(locks.lock(FILE, wanted, NOW));
        let ends = {
            let locks = Arc::clone(&locks);
            move || way(&locks, question, owners[0])
        };
        // Before the host is called, during the call, and after the answer.
        match moment {
            0 => ends(),
            1 => *host.meanwhile.lock().unwrap() = Some(Box::new(ends)),
            _ => {
                host.go_on();
                ends();
            }
        }
        host.go_on();
        assert_eq!(locks.finish(FILE, question, None, NOW), Err(LockRefusal::Full));
        assert_eq!(modes_on(&host), [None; BYTES]);
        assert!(locks.ranges_of(FILE, owners[0]).is_empty());
        assert_eq!(lock_at_once(&locks, Lock { owner: owners[1], ..wanted }), Ok(()));
        drop(shown);
    }
}

#[test]
fn a_host_that_stops_refuses_what_it_was_asked() {
    let (locks, host, owners) = mirrored();
    let _shown = locks.host_begins(FILE, OfBytes::of(&host));
    host.stands.store(true, Ordering::Relaxed);
    let wanted = Lock { owner: owners[0], span: span(0, 4), mode: LockMode::Exclusive, process: 0 };
    let question = asked(locks.lock(FILE, wanted, NOW));
    let left = std::mem::take(&mut *host.left.lock().unwrap());
    drop(left);
    assert_eq!(locks.finish(FILE, question, None, NOW), Err(LockRefusal::Full));
    assert!(locks.held().is_empty());
}
