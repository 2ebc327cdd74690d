mod callers;

use super::*;
use crate::tree::attributes::{DeviceKey, Timestamp};

const OWNER: u32 = 1000;
const GROUP: u32 = 100;

fn stat(kind: Kind, mode: u32) -> Stat {
    let time = Timestamp::default();
    Stat {
        kind,
        mode,
        links: 1,
        uid: OWNER,
        gid: GROUP,
        size: 0,
        used: 0,
        device_major: 0,
        device_minor: 0,
        device: DeviceKey(1),
        fileid: 1,
        atime: time,
        mtime: time,
        ctime: time,
    }
}

fn user(uid: u32, gid: u32, groups: &[u32]) -> Credentials {
    Credentials { uid, gid, groups: groups.into() }
}

#[test]
fn the_first_class_that_a_user_is_in_decides() {
    // The owner has fewer rights than the others, but still the owner's bits count.
    let (owner, member) = (user(OWNER, 1, &[]), user(1, 1, &[3, GROUP]));
    let (first, other) = (user(1, GROUP, &[]), user(1, 1, &[]));
    for (mode, expected) in [
        (0o421, [READ, WRITE, WRITE, EXECUTE]),
        (0o077, [0, 7, 7, 7]),
        (0o707, [7, 0, 0, 7]),
        (0o640, [READ | WRITE, READ, READ, 0]),
    ] {
        let stat = stat(Kind::Regular, mode);
        let rights = [&owner, &member, &first, &other].map(|user| by_mode_alone(&stat, user));
        assert_eq!(rights, expected, "{mode:o}");
    }
}

#[test]
fn root_executes_what_anybody_may() {
    let root = user(0, 0, &[]);
    for (kind, mode, expected) in [
        (Kind::Regular, 0o000, READ | WRITE),
        (Kind::Regular, 0o001, READ | WRITE | EXECUTE),
        (Kind::Directory, 0o000, READ | WRITE | EXECUTE),
    ] {
        assert_eq!(by_mode(&stat(kind, mode), &root), Some(expected), "{kind:?} {mode:o}");
    }
}

#[test]
fn mode_bits_decide_only_where_no_list_can() {
    for (mode, who, certain) in [
        (0o660, user(OWNER, 1, &[]), true),
        (0o660, user(0, 0, &[]), true),
        (0o660, user(1, GROUP, &[]), false),
        (0o664, user(1, 1, &[]), false),
        (0o604, user(1, 1, &[]), true),
        (0o604, user(1, GROUP, &[]), true),
    ] {
        assert_eq!(by_mode(&stat(Kind::Regular, mode), &who).is_some(), certain, "{mode:o} {who:?}");
    }
}

#[test]
fn owners_use_their_files_and_programs_are_read() {
    let all = [Use::Read, Use::Write, Use::Search, Use::Commit];
    let allowed = |kind, mode, who: &Credentials| {
        let stat = stat(kind, mode);
        let uses = uses(&stat, who, by_mode_alone(&stat, who));
        all.map(|one| uses & one as u8 != 0)
    };
    let (owner, other) = (user(OWNER, GROUP, &[]), user(1, 1, &[]));
    assert_eq!(allowed(Kind::Regular, 0o000, &owner), [true, true, false, true]);
    assert_eq!(allowed(Kind::Regular, 0o001, &other), [true, false, true, true]);
    assert_eq!(allowed(Kind::Regular, 0o002, &other), [false, true, false, true]);
    assert_eq!(allowed(Kind::Regular, 0o770, &other), [false; 4]);
    assert_eq!(allowed(Kind::Directory, 0o000, &owner), [false; 4], "no file is open in a directory");
    assert_eq!(allowed(Kind::Directory, 0o001, &other), [false, false, true, false]);
}

#[test]
fn what_is_remembered_is_of_one_caller_and_one_epoch() {
    let remembered = Remembered::default();
    assert_eq!(remembered.allows(1, 0, Use::Read), None);
    remembered.keep(7, 3, Use::Read as u8);
    assert_eq!(remembered.allows(7, 3, Use::Read), Some(true));
    assert_eq!(remembered.allows(7, 3, Use::Write), Some(false));
    assert_eq!(remembered.allows(8, 3, Use::Read), None);
    assert_eq!(remembered.allows(7, 4, Use::Read), None);
    let huge = 7 | 1 << ID_BITS;
    remembered.keep(huge, 3, Use::Write as u8);
    assert_eq!(remembered.allows(huge, 3, Use::Write), None, "its number does not fit");
    remembered.forget();
    assert_eq!(remembered.allows(7, 3, Use::Read), None);
}

#[test]
fn the_answers_of_the_host_are_bounded() {
    let mut asked = CachedRights::default();
    for caller in 0..2 * ASKED_MAX as u64 {
        asked.keep(caller, 1, 0);
        asked.keep(caller, 5, 0);
    }
    assert_eq!((asked.get(0), asked.get(2 * ASKED_MAX as u64 - 1)), (None, Some(5)));
    assert_eq!(asked.answers.len(), ASKED_MAX);
    let before = asked.forgotten();
    asked.forget();
    assert_eq!(asked.get(2 * ASKED_MAX as u64 - 1), None);
    asked.keep(1, 7, before);
    assert_eq!(asked.get(1), None, "it is the answer to an older question");
}
