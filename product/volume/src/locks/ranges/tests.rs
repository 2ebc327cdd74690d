use super::*;

const BYTES: usize = 24;

fn owner(number: u64, family: LockFamily) -> LockOwner {
    LockOwner { holder: HolderId(number), number, family }
}

fn lock(owner: LockOwner, span: Span, mode: LockMode) -> Lock {
    Lock { owner, span, mode, process: 0 }
}

fn span(first: u64, last: u64) -> Span {
    Span::between(first, last).unwrap()
}

/// The ranges of an owner.
fn of(ranges: &LockedRanges, owner: LockOwner) -> Vec<(u64, u64, LockMode)> {
    ranges.of(owner).map(|held| (held.span.first, held.span.last, held.mode)).collect()
}

#[test]
fn ranges_are_split_joined_and_changed() {
    use LockMode::{Exclusive, Shared};
    let (mut ranges, me) = (LockedRanges::default(), owner(1, LockFamily::Bytes));
    ranges.lock(lock(me, span(0, 99), Exclusive), 9).unwrap();
    ranges.unlock(me, span(10, 19), 9).unwrap();
    assert_eq!(of(&ranges, me), [(0, 9, Exclusive), (20, 99, Exclusive)]);
    ranges.lock(lock(me, span(5, 24), Shared), 9).unwrap();
    assert_eq!(of(&ranges, me), [(0, 4, Exclusive), (5, 24, Shared), (25, 99, Exclusive)]);
    ranges.lock(lock(me, span(5, 24), Exclusive), 9).unwrap();
    assert_eq!(of(&ranges, me), [(0, 99, Exclusive)], "ranges that touch are one");
    ranges.lock(lock(me, Span::WHOLE, Shared), 9).unwrap();
    ranges.unlock(me, span(u64::MAX, u64::MAX), 9).unwrap();
    assert_eq!(of(&ranges, me), [(0, u64::MAX - 1, Shared)]);
}

#[test]
fn a_split_without_room_changes_nothing() {
    let (mut ranges, me) = (LockedRanges::default(), owner(1, LockFamily::Bytes));
    ranges.lock(lock(me, span(0, 99), LockMode::Exclusive), 1).unwrap();
    assert_eq!(ranges.unlock(me, span(10, 19), 0), Err(TooManyRanges));
    assert_eq!(ranges.lock(lock(me, span(10, 19), LockMode::Shared), 1), Err(TooManyRanges));
    assert_eq!(of(&ranges, me), [(0, 99, LockMode::Exclusive)]);
    ranges.unlock(me, span(0, 9), 0).unwrap();
    assert_eq!(of(&ranges, me), [(10, 99, LockMode::Exclusive)]);
}

#[test]
fn flock_and_fcntl_of_mounts_are_blind_to_each_other_and_clients_are_to_neither() {
    let mut ranges = LockedRanges::default();
    ranges.lock(lock(owner(1, LockFamily::Bytes), Span::WHOLE, LockMode::Exclusive), 9).unwrap();
    let asks = |family| lock(owner(2, family), span(3, 3), LockMode::Shared);
    assert!(ranges.conflict(&asks(LockFamily::Files)).is_none());
    assert!(ranges.conflict(&asks(LockFamily::Bytes)).is_some());
    assert!(ranges.conflict(&asks(LockFamily::Single)).is_some());
}

/// Random locks and unlocks of four owners against a model: for each owner, the mode of each byte.
#[test]
fn any_changes_are_as_a_model_of_bytes_says() {
    let families = [LockFamily::Single, LockFamily::Bytes, LockFamily::Files, LockFamily::Bytes];
    let owners: Vec<LockOwner> = families.iter().enumerate().map(|(at, it)| owner(at as u64, *it)).collect();
    let (mut ranges, mut model) = (LockedRanges::default(), [[None::<LockMode>; BYTES]; 4]);
    let mut random = 7_u64;
    let (mut refused, mut granted) = (0, 0);
    for step in 0..50_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let choice = random >> 33;
        let at = (choice % 4) as usize;
        let (one, two) = (choice / 4 % BYTES as u64, choice / 128 % BYTES as u64);
        let wanted = span(one.min(two), one.max(two));
        let bytes = one.min(two) as usize..one.max(two) as usize + 1;
        match choice / 4096 % 4 {
            0 => {
                ranges.unlock(owners[at], wanted, usize::MAX >> 1).unwrap();
                model[at][bytes].fill(None);
            }
            1 if choice.is_multiple_of(64) => {
                while ranges.release(owners[at].holder, 3) == 3 {}
                model[at].fill(None);
            }
            kind => {
                let mode = if kind == 2 { LockMode::Shared } else { LockMode::Exclusive };
                let excludes = |other: usize, byte: usize| {
                    let is_blind = families[at] != families[other]
                        && families[at] != LockFamily::Single
                        && families[other] != LockFamily::Single;
                    let held = model[other][byte];
                    other != at && !is_blind && (held == Some(LockMode::Exclusive) || (held.is_some() && kind != 2))
                };
                let is_free = !(0..4).any(|other| bytes.clone().any(|byte| excludes(other, byte)));
                let asked = lock(owners[at], wanted, mode);
                assert_eq!(ranges.conflict(&asked).is_none(), is_free, "step {step}");
                if is_free {
                    ranges.lock(asked, usize::MAX >> 1).unwrap();
                    model[at][bytes].fill(Some(mode));
                    granted += 1;
                } else {
                    refused += 1;
                }
            }
        }
        for (owner, bytes) in owners.iter().zip(&model) {
            // Runs of equal bytes are the ranges.
            let mut expected: Vec<(u64, u64, LockMode)> = Vec::new();
            for (byte, mode) in bytes.iter().enumerate().filter_map(|(byte, mode)| Some((byte as u64, (*mode)?))) {
                match expected.last_mut() {
                    Some(last) if last.1 + 1 == byte && last.2 == mode => last.1 = byte,
                    _ => expected.push((byte, byte, mode)),
                }
            }
            assert_eq!(of(&ranges, *owner), expected, "step {step}");
            assert_eq!(ranges.count(*owner), expected.len(), "step {step}");
        }
        assert_eq!(ranges.len(), owners.iter().map(|owner| ranges.count(*owner)).sum::<usize>(), "step {step}");
    }
    assert!(refused > 1000 && granted > 1000, "{refused} refused, {granted} granted");
}
