use afflux_volume::Timestamp;

use super::*;
use crate::format::acl::NamedEntry;

const OWNER: u32 = 10;
const GROUP: u32 = 20;
const OK: Result<(), VolumeError> = Ok(());
const DENIED: Result<(), VolumeError> = Err(VolumeError::Denied);
const NOT_OWN: Result<(), VolumeError> = Err(VolumeError::NotPermitted);

fn user(uid: u32, gid: u32, groups: &[u32]) -> Credentials {
    Credentials { uid, gid, groups: groups.into() }
}

fn object(kind: Kind, mode: u32) -> Owned<'static> {
    Owned { kind, mode, uid: OWNER, gid: GROUP, access: None }
}

/// The owner, a member by the first group, one by a further group, another user, root.
fn people() -> [Credentials; 5] {
    [user(OWNER, 1, &[]), user(11, GROUP, &[]), user(12, 1, &[5, GROUP]), user(13, 1, &[5]), user(0, 0, &[])]
}

// rule: 10: a call has its caller's rights
// kept in: `product/object/src/tree/permission.rs`
#[test]
fn rights_follow_the_first_class_that_a_user_is_in() {
    let table = [
        (Kind::Regular, 0o000, [0, 0, 0, 0, 3]),
        (Kind::Regular, 0o751, [7, 5, 5, 4, 7]),
        (Kind::Regular, 0o640, [3, 1, 1, 0, 3]),
        (Kind::Regular, 0o001, [0, 0, 0, 4, 7]),
        // The owner is no member of the group for this, and a member no other.
        (Kind::Regular, 0o077, [0, 7, 7, 7, 7]),
        (Kind::Regular, 0o707, [7, 0, 0, 7, 7]),
        (Kind::Directory, 0o000, [0, 0, 0, 0, 7]),
        (Kind::Directory, 0o1730, [7, 6, 6, 0, 7]),
        (Kind::Symlink, 0o000, [7, 7, 7, 7, 7]),
    ];
    for (kind, mode, expected) in table {
        for (who, expected) in people().iter().zip(expected) {
            assert_eq!(rights(object(kind, mode), Some(who)), expected, "{kind:?} {mode:o} {who:?}");
        }
        assert_eq!(rights(object(kind, mode), None), expected[4], "the server is root: {kind:?} {mode:o}");
    }
}

fn entry(is_group: bool, id: u32, rights: u8) -> NamedEntry {
    NamedEntry { is_group, id, rights }
}

// The table is Linux's (tmpfs): `lists_do_what_a_host_does` compares more of them with it.
#[test]
fn rights_follow_a_list_where_the_mask_gives_any() {
    // User 13 is named; users 11 and 12 are in the object's group, user 13 in a named one.
    let access = AccessAcl {
        group: 0o5,
        named: vec![entry(false, 13, 0o6), entry(false, OWNER, 0o7), entry(true, 5, 0o2), entry(true, GROUP, 0o2)],
    };
    let table = [
        // Rights are 1 for reading, 2 for writing, 4 for executing; the mask is the group's class.
        (0o070, [0, 7, 7, 3, 7]),
        (0o677, [3, 7, 7, 3, 7]),
        (0o040, [0, 1, 1, 1, 3]),
        (0o727, [7, 2, 2, 2, 7]),
        // A mask without rights leaves the list out.
        (0o705, [7, 0, 0, 5, 7]),
        (0o000, [0, 0, 0, 0, 3]),
    ];
    for (mode, expected) in table {
        let object = Owned { access: Some(&access), ..object(Kind::Regular, mode) };
        for (who, expected) in people().iter().zip(expected) {
            assert_eq!(rights(object, Some(who)), expected, "{mode:o} {who:?}");
        }
    }
    let object = Owned { access: Some(&access), ..object(Kind::Directory, 0o777) };
    let member = &people()[1];
    assert_eq!(rights(object, Some(member)), 7, "by two entries");
    assert!(!has_rights(object, Some(member), READ | WRITE), "no entry gives both");
    assert!(has_rights(object, Some(member), READ | EXECUTE));
    assert_eq!(check_change_entries(object, Some(member)), DENIED);
    let stranger = user(14, 1, &[]);
    assert_eq!(rights(Owned { mode: 0o774, ..object }, Some(&stranger)), 1);
    assert_eq!(rights(Owned { mode: 0o770, ..object }, Some(&stranger)), 0);
}

#[test]
fn only_the_owner_changes_a_list_and_the_setgid_bit_follows_the_group() {
    let (file, owner, member) = (object(Kind::Regular, 0o2755), &people()[0], user(OWNER, GROUP, &[]));
    let may = people().map(|who| check_change_acl(file, Some(&who)));
    assert_eq!(may, [OK, NOT_OWN, NOT_OWN, NOT_OWN, OK]);
    assert_eq!(check_change_acl(object(Kind::Symlink, 0o777), None), Err(VolumeError::NotSupported));
    assert_eq!(mode_by_acl(file, Some(owner), 0o640), 0o640);
    assert_eq!(mode_by_acl(file, Some(&member), 0o640), 0o2640);
    assert_eq!(mode_by_acl(file, None, 0o640), 0o2640);
}

#[test]
fn names_are_taken_from_a_sticky_directory_by_the_owners_only() {
    // The object is the last user's but one.
    let table = [
        (0o777, [OK, OK, OK, OK, OK]),
        (0o775, [OK, OK, OK, DENIED, OK]),
        (0o755, [OK, DENIED, DENIED, DENIED, OK]),
        (0o766, [OK, DENIED, DENIED, DENIED, OK]),
        (0o1777, [OK, NOT_OWN, NOT_OWN, OK, OK]),
        (0o1775, [OK, NOT_OWN, NOT_OWN, DENIED, OK]),
    ];
    for (mode, expected) in table {
        let (directory, theirs) = (object(Kind::Directory, mode), Owned { uid: 13, ..object(Kind::Regular, 0) });
        for (who, expected) in people().iter().zip(expected) {
            assert_eq!(check_unname(directory, theirs, Some(who)), expected, "{mode:o} {who:?}");
            let enters = check_change_entries(directory, Some(who));
            assert_eq!(enters.is_ok(), expected != DENIED, "{mode:o} {who:?}");
        }
    }
    assert_eq!(check_change_parent(object(Kind::Regular, 0), Some(&people()[3])), OK);
    assert_eq!(check_change_parent(object(Kind::Directory, 0o755), Some(&people()[3])), DENIED);
    assert_eq!(check_change_parent(object(Kind::Directory, 0o755), Some(&people()[0])), OK);
}

#[test]
fn new_objects_belong_to_their_users_and_to_the_group_of_a_setgid_directory() {
    let (plain, setgid) = (object(Kind::Directory, 0o777), object(Kind::Directory, 0o2777));
    let wanted =
        |mode, uid, gid| AttributeChange { mode: Some(mode), uid: Some(uid), gid: Some(gid), ..Default::default() };
    let nothing = AttributeChange::default();
    let other = user(13, 1, &[5]);
    let member = user(12, 1, &[5, GROUP]);
    let root = user(0, 0, &[]);
    let table = [
        (plain, &other, Kind::Regular, nothing, (13, 1, 0o644)),
        (plain, &other, Kind::Directory, nothing, (13, 1, 0o755)),
        (plain, &other, Kind::Symlink, wanted(0o600, 9, 9), (13, 1, 0o777)),
        // Nobody but root gives objects away.
        (plain, &other, Kind::Regular, wanted(0o4755, 9, 9), (13, 1, 0o4755)),
        (plain, &root, Kind::Regular, wanted(0o6755, 9, 8), (9, 8, 0o6755)),
        (setgid, &other, Kind::Regular, wanted(0o2755, 13, 1), (13, GROUP, 0o755)),
        (setgid, &member, Kind::Regular, wanted(0o2755, 12, 1), (12, GROUP, 0o2755)),
        (setgid, &other, Kind::Regular, wanted(0o2745, 13, 1), (13, GROUP, 0o2745)),
        // A directory inherits the bit, too.
        (setgid, &other, Kind::Directory, wanted(0o700, 13, 1), (13, GROUP, 0o2700)),
        (setgid, &root, Kind::Regular, nothing, (0, GROUP, 0o644)),
        (setgid, &root, Kind::Regular, wanted(0o600, 9, 8), (9, 8, 0o600)),
        (plain, &member, Kind::Directory, wanted(0o2755, 0, 0), (12, 1, 0o2755)),
    ];
    for (directory, who, kind, wanted, (uid, gid, mode)) in table {
        let made = of_new(directory, Some(who), kind, &wanted);
        assert_eq!(made, Owned { kind, mode, uid, gid, access: None }, "{directory:?} {who:?} {wanted:?}");
    }
    let by_server = of_new(setgid, None, Kind::Regular, &wanted(0o2640, 9, 8));
    assert_eq!(by_server, Owned { kind: Kind::Regular, mode: 0o2640, uid: 9, gid: 8, access: None });
}

fn owner_and_group(uid: Option<u32>, gid: Option<u32>) -> AttributeChange {
    AttributeChange { uid, gid, ..Default::default() }
}

#[test]
fn owners_change_the_group_and_root_the_owner_and_both_take_privileges_away() {
    const REFUSED: Result<u32, VolumeError> = Err(VolumeError::NotPermitted);
    let [_, _, _, other, root] = people();
    let owner = user(OWNER, 1, &[5]);
    let (file, plain, directory) = (Kind::Regular, 0o644, Kind::Directory);
    let table = [
        (file, plain, &owner, owner_and_group(Some(11), None), REFUSED),
        (file, plain, &owner, owner_and_group(Some(OWNER), None), Ok(plain)),
        (file, plain, &other, owner_and_group(Some(OWNER), None), REFUSED),
        (file, plain, &root, owner_and_group(Some(11), Some(99)), Ok(plain)),
        (file, plain, &owner, owner_and_group(None, Some(5)), Ok(plain)),
        (file, plain, &owner, owner_and_group(None, Some(GROUP)), Ok(plain)),
        (file, plain, &owner, owner_and_group(None, Some(99)), REFUSED),
        (file, plain, &other, owner_and_group(None, Some(5)), REFUSED),
        // The bits go, also for root, but a directory's.
        (file, 0o6755, &owner, owner_and_group(None, Some(5)), Ok(0o755)),
        (file, 0o6755, &root, owner_and_group(Some(11), None), Ok(0o755)),
        (file, 0o6745, &root, owner_and_group(Some(11), None), Ok(0o2745)),
        (file, 0o6745, &owner, owner_and_group(None, Some(5)), Ok(0o745)),
        (directory, 0o6755, &root, owner_and_group(Some(11), None), Ok(0o6755)),
    ];
    for (kind, mode, who, change, expected) in table {
        let after = changed(object(kind, mode), Some(who), &change);
        assert_eq!(after.clone().map(|after| after.mode), expected, "{mode:o} {who:?} {change:?}");
        if let Ok(after) = after {
            let (uid, gid) = (change.uid.unwrap_or(OWNER), change.gid.unwrap_or(GROUP));
            assert_eq!((after.uid, after.gid), (uid, gid), "{change:?}");
        }
    }
    // A mode in the same call counts after the owner.
    let both = AttributeChange { mode: Some(0o4755), ..owner_and_group(Some(11), None) };
    assert_eq!(changed(object(file, 0o644), Some(&root), &both).unwrap().mode, 0o4755);
}

#[test]
fn owners_set_the_mode_and_the_setgid_bit_for_their_groups_only() {
    const REFUSED: Result<u32, VolumeError> = Err(VolumeError::NotPermitted);
    let [owner, member, further, other, root] = people();
    let owner_in_group = user(OWNER, GROUP, &[]);
    let table = [
        (&owner, Kind::Regular, 0o7755, Ok(0o5755)),
        (&owner_in_group, Kind::Regular, 0o7755, Ok(0o7755)),
        (&owner, Kind::Directory, 0o2755, Ok(0o755)),
        (&root, Kind::Directory, 0o2755, Ok(0o2755)),
        (&member, Kind::Regular, 0o644, REFUSED),
        (&further, Kind::Regular, 0o644, REFUSED),
        (&other, Kind::Regular, 0o644, REFUSED),
        // No error, and no effect.
        (&other, Kind::Symlink, 0o644, Ok(0o600)),
    ];
    for (who, kind, mode, expected) in table {
        let change = AttributeChange { mode: Some(mode), ..Default::default() };
        let after = changed(object(kind, 0o600), Some(who), &change);
        assert_eq!(after.map(|after| after.mode), expected, "{who:?} {kind:?} {mode:o}");
    }
    // The bit is for the new group.
    let change = AttributeChange { mode: Some(0o2755), ..owner_and_group(None, Some(1)) };
    assert_eq!(changed(object(Kind::Regular, 0o600), Some(&owner), &change).unwrap().mode, 0o2755);
}

#[test]
fn owners_set_any_times_and_writers_the_current_one() {
    let [owner, member, further, other, root] = people();
    let file = object(Kind::Regular, 0o464);
    let (now, to, keep) = (SetTime::ServerNow, SetTime::To(Timestamp::default()), SetTime::Keep);
    let (ok, refused, denied) = (Ok(file), Err(VolumeError::NotPermitted), Err(VolumeError::Denied));
    let table = [
        (now, now, [&ok, &ok, &ok, &denied, &ok]),
        (keep, now, [&ok, &ok, &ok, &denied, &ok]),
        (now, keep, [&ok, &ok, &ok, &denied, &ok]),
        (keep, to, [&ok, &refused, &refused, &refused, &ok]),
        (to, now, [&ok, &refused, &refused, &refused, &ok]),
        (keep, keep, [&ok; 5]),
    ];
    for (atime, mtime, expected) in table {
        for (who, expected) in [&owner, &member, &further, &other, &root].into_iter().zip(expected) {
            let change = AttributeChange { atime, mtime, ..Default::default() };
            assert_eq!(&changed(file, Some(who), &change), expected, "{atime:?} {mtime:?} {who:?}");
        }
    }
}

#[test]
fn devices_are_made_by_root_and_other_objects_by_everybody() {
    let [owner, .., root] = people();
    let (major, minor) = (254, 0);
    let nothing = Content::CharDevice { major: 0, minor: 0 };
    let table = [
        (Content::BlockDevice { major, minor }, NOT_OWN),
        (Content::BlockDevice { major: 0, minor: 0 }, NOT_OWN),
        (Content::CharDevice { major, minor }, NOT_OWN),
        (Content::CharDevice { major: 0, minor: 1 }, NOT_OWN),
        (nothing, OK),
        (Content::Fifo, OK),
        (Content::Socket, OK),
        (Content::Regular, OK),
    ];
    for (content, expected) in table {
        assert_eq!(check_make(&content, Some(&owner)), expected, "{content:?}");
        assert_eq!((check_make(&content, Some(&root)), check_make(&content, None)), (OK, OK));
    }
}

#[test]
fn another_users_object_gets_a_further_name_only_from_those_who_may_change_it() {
    let [owner, member, _, other, root] = people();
    let table = [
        (Kind::Regular, 0o600, [OK, NOT_OWN, NOT_OWN]),
        (Kind::Regular, 0o000, [OK, NOT_OWN, NOT_OWN]),
        (Kind::Regular, 0o660, [OK, OK, NOT_OWN]),
        (Kind::Regular, 0o644, [OK, NOT_OWN, NOT_OWN]),
        (Kind::Regular, 0o622, [OK, NOT_OWN, NOT_OWN]),
        (Kind::Regular, 0o666, [OK, OK, OK]),
        (Kind::Regular, 0o4666, [OK, NOT_OWN, NOT_OWN]),
        (Kind::Regular, 0o2676, [OK, NOT_OWN, NOT_OWN]),
        (Kind::Regular, 0o2666, [OK, OK, OK]),
        (Kind::Fifo, 0o666, [OK, NOT_OWN, NOT_OWN]),
        (Kind::Symlink, 0o777, [OK, NOT_OWN, NOT_OWN]),
    ];
    for (kind, mode, expected) in table {
        for (who, expected) in [&owner, &member, &other].into_iter().zip(expected) {
            assert_eq!(check_link(object(kind, mode), Some(who)), expected, "{kind:?} {mode:o} {who:?}");
        }
        assert_eq!((check_link(object(kind, mode), Some(&root)), check_link(object(kind, mode), None)), (OK, OK));
    }
}
