use std::sync::atomic::AtomicU64;

use super::*;

const PARTY: Party = Party::User(7);

fn words(pieces: usize) -> PersistedWords {
    Arc::new((0..4 + pieces * 16).map(|_| AtomicU64::new(0)).collect::<Vec<_>>())
}

fn records(owner: &[u8]) -> Vec<Record<'_>> {
    let channel = ChannelAttrs {
        maxrequestsize: 1,
        maxresponsesize: 2,
        maxresponsesize_cached: 3,
        maxoperations: 4,
        maxrequests: 5,
    };
    let clientid = |party, user| Record::Client {
        clientid: 7 << 32 | 9,
        owner,
        verifier: [3; 8],
        party,
        user,
        sequenceid: 5,
        created: b"results",
        has_reclaimed: true,
    };
    let span = |first, last| Span::between(first, last).unwrap();
    let ranges = vec![(span(0, 9), LockMode::Shared), (span(10, u64::MAX), LockMode::Exclusive)];
    let share = Share { access: 3, deny: 1 };
    let step = |mode| Record::LockStep { id: 1, generation: 2, seqid: 3, by: 4, step: (span(5, 6), mode) };
    let wait = |mode| Record::Wait { clientid: 1, open: 2, owner, span: span(5, u64::MAX), mode };
    vec![
        Record::Server { memory: 1, run: 2, next_client: 3, is_grace_over: true },
        clientid(Party::User(3), Some(0)),
        clientid(Party::Orphans, None),
        clientid(Party::Machine(Ipv4Addr::new(192, 0, 2, 7).into()), Some(9)),
        clientid(Party::Machine("2001:db8::7".parse::<Ipv6Addr>().unwrap().into()), None),
        Record::Session {
            id: [9; 16],
            clientid: 1,
            channel,
            calling: CallbackSecurity { program: 8, user: Some((9, 10)) },
            minor: 2,
            is_wanted: true,
        },
        Record::BackChannel { sequenceid: 77 },
        Record::Delegation { clientid: 1, file: 2, generation: 3, is_revoked: true, handle: b"handle" },
        Record::Open {
            clientid: 1,
            file: 2,
            generation: 3,
            seqid: 4,
            share,
            asked: 0x8001,
            by: 5,
            owner,
            handle: b"h",
        },
        Record::Locks {
            clientid: 1,
            file: 2,
            generation: 3,
            seqid: 4,
            open: 5,
            by: 6,
            owner,
            ranges: Cow::Owned(ranges),
        },
        step(None),
        step(Some(LockMode::Shared)),
        step(Some(LockMode::Exclusive)),
        wait(LockMode::Shared),
        wait(LockMode::Exclusive),
    ]
}

#[test]
fn each_record_is_read_as_it_was_written_and_has_the_room_that_was_asked_for() {
    let owner = [5; OWNER_BYTES_MAX];
    for owner in [&owner[..0], &owner[..29], &owner] {
        for (id, record) in records(owner).iter().enumerate() {
            let mut writer = Writer::default();
            record.write(&mut writer);
            let bytes = match record {
                Record::Open { owner, handle, .. } => open_bytes(owner, handle),
                Record::Locks { owner, ranges, .. } => locks_bytes(owner, ranges.len()),
                Record::LockStep { .. } => STEP_BYTES,
                Record::Wait { owner, .. } => wait_bytes(owner),
                Record::Delegation { handle, .. } => delegation_bytes(handle),
                Record::Client { owner, .. } => owner.len() + CLIENT_BYTES_MAX,
                _ => CLIENT_BYTES_MAX,
            };
            let len = writer.len();
            assert!(len <= bytes && (len == bytes || record.kind() < 4), "{record:?}");
            let memory = words(40);
            let (records, _) = PersistedRecords::new(Arc::clone(&memory), 0);
            let (kept, mut item) = (ServerMemory::new(3, 0, Some(&records)), PersistedItem::default());
            kept.put(id as u32, &mut item, PARTY, record);
            let found = PersistedRecords::new(memory, 0).1.unwrap();
            assert_eq!(Record::read(found[0].kind, &found[0].bytes).as_ref(), Some(record));
            // A record that is cut off is none.
            assert_eq!(Record::read(record.kind(), &writer.since(0)[..len - 4]), None);
        }
    }
    assert_eq!(Record::read(99, &[0; 64]), None);
}

#[test]
fn an_open_and_a_lock_of_a_linux_client_take_one_piece_each() {
    assert!(
        open_bytes(&[0; 28], &[0; 29]) <= PERSISTED_PIECE_BYTES && locks_bytes(&[0; 28], 1) <= PERSISTED_PIECE_BYTES
    );
}

#[test]
fn a_party_that_takes_all_room_leaves_half_to_others() {
    let (records, _) = PersistedRecords::new(words(64), 0);
    let memory = ServerMemory::new(3, 0, Some(&records));
    let mut kept = Vec::new();
    while memory.check_quota(&PersistedItem::default(), PARTY, 100).is_ok() {
        let mut item = PersistedItem::default();
        memory.put(kept.len() as u32, &mut item, PARTY, &Record::BackChannel { sequenceid: 1 });
        kept.push(item);
    }
    assert_eq!(kept.len(), 28, "half of all, without the eighth that changes need");
    assert!(memory.check_quota(&kept[0], PARTY, 100).is_ok(), "what is there may change");
    assert!(memory.check_quota(&PersistedItem::default(), Party::Orphans, 20 * PERSISTED_PIECE_BYTES).is_ok());
    memory.remove(&mut kept[0], PARTY);
    assert!(memory.check_quota(&PersistedItem::default(), PARTY, 100).is_ok());
}
