use std::collections::BTreeMap;

use super::super::persisted::ServerMemory;
use super::super::stateids::StateidKind;
use super::*;

const READ: u8 = Share::READ;
const WRITE: u8 = Share::WRITE;

const PARTY: Party = Party::User(5);
/// A limit of files that bounds nobody.
const FILES_MAX: usize = usize::MAX;

fn by(clientid: u64, owner: &[u8]) -> Opener<'_> {
    let number = clientid << 8 | u64::from(owner[0]);
    Opener { clientid, party: PARTY, owner, number, handle: b"", mark: 0 }
}

/// Closes an open by its stateid.
fn close<H>(opens: &mut Opens<H>, clientid: u64, at: StateidOther, seqid: u32) -> Result<HeldFile<H>, NfsStatus> {
    opens.find(clientid, at, seqid)?;
    opens.end(at.id).ok_or(NfsStatus::BadStateid)
}

/// Ends all that a client has open.
fn end_all<H>(opens: &mut Opens<H>, clientid: u64) -> Vec<H> {
    std::iter::from_fn(|| opens.end(opens.first_of(clientid)?)).map(|it| it.held).collect()
}

/// No share reservation conflicts.
fn free(_: u32, _: Share) -> bool {
    true
}

fn share(access: u8, deny: u8) -> Share {
    Share { access, deny }
}

fn id(stateid: Stateid) -> StateidOther {
    match stateid.meaning() {
        Ok(StateidKind::State(id)) => id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stateid_works_for_its_client_in_its_order_and_not_after_the_close() {
    let mut opens = Opens::new(&ServerMemory::new(3, 0, None));
    let first = opens.open(by(1, b"a"), 10, share(READ, 0), free, || Ok("holder")).unwrap();
    let at = id(first);
    assert_eq!(opens.find(1, at, 1), Ok((10, share(READ, 0))));
    assert_eq!(opens.find(2, at, 1), Err(NfsStatus::BadStateid), "another client's");
    let more = opens.open(by(1, b"a"), 10, share(WRITE, 0), free, || panic!("it is held")).unwrap();
    assert_eq!((more.other, more.seqid), (first.other, 2));
    assert_eq!(opens.find(1, at, 0), Ok((10, share(READ | WRITE, 0))));
    assert_eq!(opens.find(1, at, 1), Err(NfsStatus::OldStateid));
    assert_eq!(opens.find(1, at, 3), Err(NfsStatus::BadStateid));
    assert_eq!(close(&mut opens, 1, at, 2).map(|closed| closed.held), Ok("holder"));
    assert_eq!(opens.find(1, at, 2), Err(NfsStatus::BadStateid));
    // The entry is used again, and the old stateid does not name it.
    let next = opens.open(by(1, b"b"), 11, share(READ, 0), free, || Ok("next")).unwrap();
    assert_eq!(id(next).id, at.id);
    assert_eq!(opens.find(1, at, 0), Err(NfsStatus::BadStateid));
    // Neither does one of an earlier server, nor a forged one.
    assert_eq!(opens.find(1, StateidOther { memory: 2, ..id(next) }, 0), Err(NfsStatus::BadStateid));
    assert_eq!(opens.find(1, StateidOther { id: 900, ..id(next) }, 0), Err(NfsStatus::BadStateid));
}

#[test]
fn rights_are_given_up_only_to_what_was_asked_for_at_once() {
    let mut opens = Opens::new(&ServerMemory::new(3, 0, None));
    let at = id(opens.open(by(1, b"a"), 10, share(READ | WRITE, 0), free, || Ok(())).unwrap());
    assert_eq!(opens.downgrade(1, at, 1, share(READ, 0), 0).map(|it| it.seqid), Err(NfsStatus::Inval));
    opens.open(by(1, b"a"), 10, share(READ, 0), free, || Ok(())).unwrap();
    assert_eq!(opens.downgrade(1, at, 2, share(READ, 1), 0).map(|it| it.seqid), Err(NfsStatus::Inval));
    assert_eq!(opens.downgrade(1, at, 2, share(READ, 0), 0).map(|it| it.seqid), Ok(3));
    assert_eq!(opens.find(1, at, 3), Ok((10, share(READ, 0))));
}

#[test]
fn rights_that_are_taken_back_leave_an_open_as_it_was() {
    let mut opens = Opens::new(&ServerMemory::new(3, 0, None));
    let at = id(opens.open(by(1, b"a"), 10, share(READ, 0), free, || Ok(())).unwrap());
    let before = opens.rights(&by(1, b"a"), 10).unwrap();
    let more = opens.open(by(1, b"a"), 10, share(WRITE, 1), free, || Ok(())).unwrap();
    assert_eq!(opens.go_back(at.id, more.seqid, before), Some(share(READ, 0)));
    assert_eq!(opens.find(1, at, 1), Ok((10, share(READ, 0))), "the client never heard of a second step");
    let more = opens.open(by(1, b"a"), 10, share(WRITE, 0), free, || Ok(())).unwrap();
    opens.open(by(1, b"a"), 10, share(READ, 0), free, || Ok(())).unwrap();
    assert_eq!(opens.go_back(at.id, more.seqid, before), None, "another step was told since");
    assert_eq!(opens.find(1, at, 3), Ok((10, share(READ | WRITE, 0))));
}

#[test]
fn opens_are_bounded_by_the_files_that_may_be_open() {
    let mut opens = Opens::new(&ServerMemory::new(3, 0, None));
    for file in 0..10 {
        assert_eq!(opens.check_quota(&by(1, b"a"), file, 20 - file as usize, 20), Ok(()));
        opens.open(by(1, b"a"), file, share(READ, 0), free, || Ok(())).unwrap();
    }
    assert_eq!(opens.check_quota(&by(1, b"a"), 10, 10, 20), Err(TableFull::OfParty), "half of them");
    // A second owner's open of the same file takes no further file. After the first CLOSE the second open holds the
    // file.
    assert_eq!(opens.check_quota(&by(1, b"b"), 9, 10, 20), Ok(()));
    let second = opens.open(by(1, b"b"), 9, share(READ, 0), free, || Ok(())).unwrap();
    let first = opens.id_of_owner(&by(1, b"a"), 9).unwrap();
    opens.end(first).unwrap();
    assert_eq!(opens.check_quota(&by(1, b"a"), 10, 10, 20), Err(TableFull::OfParty));
    close(&mut opens, 1, id(second), 0).unwrap();
    assert_eq!(opens.check_quota(&by(1, b"a"), 10, 11, 20), Ok(()));
    let other = Opener { party: Party::Orphans, ..by(2, b"a") };
    assert_eq!(opens.check_quota(&other, 10, 10, 20), Ok(()));
    assert_eq!(opens.check_quota(&other, 10, 0, 20), Err(TableFull::OfAll { most: PARTY }));
}

#[test]
fn a_party_that_opens_all_files_leaves_room_to_others() {
    let mut opens = Opens::new(&ServerMemory::new(3, 0, None));
    for file in 0..OPENS_MAX as u64 / 2 {
        opens.open(by(1, b"a"), file, share(READ, 0), free, || Ok(())).unwrap();
    }
    assert_eq!(opens.check_quota(&by(1, b"a"), 1 << 40, FILES_MAX, FILES_MAX), Err(TableFull::OfParty));
    assert_eq!(
        opens.check_quota(&by(1, b"a"), 7, FILES_MAX, FILES_MAX),
        Ok(()),
        "an open that is there gets more rights"
    );
    let other = Opener { party: Party::Orphans, ..by(2, b"a") };
    assert_eq!(opens.check_quota(&other, 1 << 40, FILES_MAX, FILES_MAX), Ok(()));
    assert!(opens.open(other, 1 << 40, share(READ, 0), free, || Ok(())).is_ok());
    assert_eq!(end_all(&mut opens, 1).len(), OPENS_MAX / 2);
    assert_eq!((opens.len(), opens.has_any(1), opens.has_any(2)), (1, false, true));
}

/// Random opens and closes of two clients and three files against a model: a map of owners and files.
#[test]
fn any_opens_and_closes_are_as_the_model_says() {
    let mut opens = Opens::new(&ServerMemory::new(3, 0, None));
    let mut model: BTreeMap<(u64, u8, u64), (Share, Stateid)> = BTreeMap::new();
    let mut random = 1_u64;
    for step in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let choice = random >> 33;
        let (clientid, owner, file) = (choice % 2, (choice / 2 % 2) as u8, choice / 4 % 3);
        let key = (clientid, owner, file);
        match choice / 12 % 3 {
            0 => {
                let known = model.remove(&key);
                if let Some((_, stateid)) = known {
                    let closed = close(&mut opens, clientid, id(stateid), stateid.seqid);
                    assert_eq!(closed.map(|it| (it.held, it.file)), Ok((key, file)), "step {step}");
                }
            }
            1 if (choice / 36).is_multiple_of(50) => {
                let mut released = end_all(&mut opens, clientid);
                released.sort_unstable();
                let expected: Vec<_> = model.keys().filter(|key| key.0 == clientid).copied().collect();
                assert_eq!(released, expected, "step {step}");
                model.retain(|key, _| key.0 != clientid);
            }
            _ => {
                let wanted = share((choice / 36 % 3 + 1) as u8, (choice / 108 % 8).saturating_sub(4) as u8);
                let is_free = !(choice / 864).is_multiple_of(5);
                let before = model.get(&key).map_or(share(0, 0), |(share, _)| *share);
                let union = share(before.access | wanted.access, before.deny | wanted.deny);
                let mut reserved = None;
                let reserve = |_, share| {
                    reserved = Some(share);
                    is_free
                };
                let opened = opens.open(by(clientid, &[owner]), file, wanted, reserve, || Ok(key));
                assert_eq!((opened.is_ok(), reserved), (is_free, Some(union)), "step {step}");
                if let Ok(stateid) = opened {
                    model.insert(key, (union, stateid));
                }
            }
        }
        assert_eq!(opens.len(), model.len());
        for ((clientid, _, file), (share, stateid)) in &model {
            assert_eq!(opens.find(*clientid, id(*stateid), stateid.seqid), Ok((*file, *share)), "step {step}");
        }
    }
}
