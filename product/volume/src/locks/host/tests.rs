use std::sync::Mutex;

use afflux_engine::Nanos;

use super::*;
use crate::locks::{LockHolder, LockRefusal, Locks};

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
}

impl HostLocks for Arc<Bytes> {
    fn set(&self, span: Span, mode: Option<LockMode>) -> Result<(), HostRefusal> {
        if mode.is_some_and(|mode| self.conflict(span, mode).is_some()) {
            return Err(HostRefusal::Held);
        }
        let mut modes = self.modes.lock().unwrap();
        modes
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| (span.first..=span.last).contains(&(*at as u64)))
            .for_each(|it| *it.1 = mode);
        Ok(())
    }

    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)> {
        let (at, their) = (*self.program.lock().unwrap())?;
        let excludes = their == LockMode::Exclusive || mode == LockMode::Exclusive;
        (excludes && (span.first..=span.last).contains(&at)).then_some((Span { first: at, last: at }, their, 77))
    }

    fn wake_when_free(&self, _: Span, _: LockMode, waker: Arc<dyn LockWaker>) {
        self.waiting.lock().unwrap().push(waker);
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
    locks.show_on_host();
    let owners = [LockFamily::Single, LockFamily::Bytes, LockFamily::Files].map(|family| {
        let holder = locks.register(Arc::new(Client), 1);
        LockOwner { holder, number: 1, family }
    });
    (locks, host, owners)
}

#[test]
fn each_byte_has_the_strongest_mode_of_its_owners_on_the_host() {
    let mut random = 7_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let (locks, host, owners) = mirrored();
    let shown = locks.host_begins(FILE, Arc::new(Arc::clone(&host)) as _);
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
                let own = locks.conflict(FILE, &wanted, NOW).filter(|other| !is_of_program(other));
                let result = locks.lock(FILE, wanted, NOW);
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
    let shown = locks.host_begins(FILE, Arc::new(Arc::clone(&host)) as _);
    *host.program.lock().unwrap() = Some((3, LockMode::Exclusive));
    let wanted = Lock { owner: owners[0], span: Span::WHOLE, mode: LockMode::Shared, process: 0 };
    let in_the_way = Lock { owner: PROGRAMS, span: span(3, 3), mode: LockMode::Exclusive, process: 77 };
    assert_eq!(locks.conflict(FILE, &wanted, NOW), Some(in_the_way));
    let woken = Arc::new(Woken::default());
    let waker = Arc::clone(&woken) as Arc<dyn LockWaker>;
    assert_eq!(locks.lock_or_wait(FILE, wanted, &waker, NOW), Err(LockRefusal::Held(in_the_way)));
    *host.program.lock().unwrap() = None;
    std::mem::take(&mut *host.waiting.lock().unwrap()).iter().for_each(|waiter| waiter.wake());
    assert_eq!(*woken.0.lock().unwrap(), 1);
    assert_eq!(locks.lock_or_wait(FILE, wanted, &waker, NOW), Ok(()));
    drop(shown);
    locks.release_holder(owners[0].holder, NOW);
    assert_eq!(*host.modes.lock().unwrap(), [None; BYTES]);
    assert_eq!(Arc::strong_count(&host), 1, "nothing is left of a file without locks");
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
        drop(locks.host_begins(FILE, Arc::new(Arc::clone(&host)) as _));
        let shown = [2, 4, 5].map(|at: usize| host.modes.lock().unwrap()[at].is_some());
        assert_eq!(shown, [program.is_none(), true, true]);
    }
}
