use nfs3_types::rpc::{auth_unix, call_body, opaque_auth, rpc_msg};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};

use super::*;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A call of GETATTR: number 5, NFS version 3, followed by these words, from the credential on.
fn call(rest: &[u32]) -> Vec<u8> {
    [words(&[5, 0, 2, 100_003, 3, 1]), words(rest)].concat()
}

fn refusal(record: &[u8]) -> Refusal {
    match parse(record) {
        Incoming::Refused { refusal, .. } => refusal,
        Incoming::Call(call) => claimed(&call, record).unwrap_err(),
        other => panic!("{other:?}"),
    }
}

fn claimed(call: &Call, record: &[u8]) -> Result<CallerClaim, Refusal> {
    claim(&record[call.credential.0..call.credential.1])
}

#[test]
fn reads_a_call_without_credentials() {
    let record = call(&[0, 0, 0, 0, 0xdead]);
    let Incoming::Call(call) = parse(&record) else { panic!() };
    assert_eq!((call.xid, call.program, call.version, call.procedure), (5, 100_003, 3, 1));
    assert_eq!((claimed(&call, &record), call.arguments_at), (Ok(CallerClaim::Anonymous), record.len() - 4));
}

#[test]
fn reads_what_another_implementation_writes() {
    let unix =
        auth_unix { stamp: 77, machinename: Opaque::borrowed(b"client"), uid: 1000, gid: 100, gids: vec![4, 24, 27] };
    let message = rpc_msg {
        xid: 0xfeed,
        body: nfs3_types::rpc::msg_body::CALL(call_body {
            rpcvers: 2,
            prog: 100_005,
            vers: 3,
            proc: 1,
            cred: opaque_auth::auth_unix(&unix),
            verf: opaque_auth::default(),
        }),
    };
    let mut record = Vec::new();
    message.pack(&mut record).unwrap();
    let Incoming::Call(call) = parse(&record) else { panic!() };
    assert_eq!((call.xid, call.program, call.procedure), (0xfeed, 100_005, 1));
    let mut groups = [0; GROUPS_MAX];
    groups[..3].copy_from_slice(&[4, 24, 27]);
    assert_eq!(claimed(&call, &record), Ok(CallerClaim::User { uid: 1000, gid: 100, groups, group_count: 3 }));
    assert_eq!(call.arguments_at, record.len());
}

#[test]
fn refuses_other_versions_and_flavours() {
    let mut record = call(&[0, 0, 0, 0]);
    record[11] = 3;
    assert_eq!(refusal(&record), Refusal::RpcMismatch);
    for flavour in [2, 3, 6, 390_003, u32::MAX] {
        assert_eq!(refusal(&call(&[flavour, 0, 0, 0])), Refusal::RejectedCredential);
    }
}

#[test]
fn refuses_credentials_that_are_not_what_they_say() {
    let with = |credential: &[u32]| call(&[&[1, credential.len() as u32 * 4], credential, &[0, 0]].concat());
    assert!(matches!(parse(&with(&[0, 0, 1, 2, 0])), Incoming::Call(_)));
    let groups = |count: u32| [&[0, 0, 1, 2, count], &vec![9; count as usize][..]].concat();
    assert!(matches!(parse(&with(&groups(16))), Incoming::Call(_)));
    let name = |bytes: u32| [&[0, bytes], &vec![0; bytes.div_ceil(4) as usize][..], &[1, 2, 0]].concat();
    assert!(matches!(parse(&with(&name(255))), Incoming::Call(_)));
    let bad = [groups(17), name(256), vec![], vec![0, 0, 1, 2], vec![0, 0, 1, 2, 1], vec![0, 900, 1, 2, 0]];
    for credential in bad {
        assert_eq!(refusal(&with(&credential)), Refusal::BadCredential, "{credential:?}");
    }
    // Longer than any credential.
    assert_eq!(refusal(&call(&[&[1, 404], &[0; 101][..], &[0, 0]].concat())), Refusal::BadCredential);
}

#[test]
fn tells_records_that_are_no_calls() {
    let record = call(&[1, 20, 0, 0, 1, 2, 0, 0, 0]);
    assert!(matches!(parse(&record), Incoming::Call(_)));
    for len in 0..record.len() {
        let expected_nothing = len < 8;
        match parse(&record[..len]) {
            Incoming::Nothing => assert!(expected_nothing, "{len}"),
            Incoming::Refused { xid: 5, refusal: Refusal::GarbageArguments } => {
                assert!(!expected_nothing, "{len}");
            }
            other => panic!("{len}: {other:?}"),
        }
    }
    assert_eq!(parse(&words(&[5, 1, 0, 0, 0])), Incoming::Reply(5));
    // A verifier beyond its limit.
    assert_eq!(refusal(&call(&[0, 0, 0, 404])), Refusal::GarbageArguments);
}

#[test]
fn refuses_in_the_words_of_the_standard() {
    let written = |refusal| {
        let mut writer = Writer::default();
        write_refusal(&mut writer, 9, refusal);
        let bytes = writer.into_bytes();
        // Another implementation can also read it.
        let (_, read) = rpc_msg::unpack(&mut &bytes[..]).unwrap();
        assert_eq!(read, bytes.len());
        bytes
    };
    assert_eq!(written(Refusal::RpcMismatch), words(&[9, 1, 1, 0, 2, 2]));
    assert_eq!(written(Refusal::BadCredential), words(&[9, 1, 1, 1, 1]));
    assert_eq!(written(Refusal::RejectedCredential), words(&[9, 1, 1, 1, 2]));
    assert_eq!(written(Refusal::ProgramUnavailable), words(&[9, 1, 0, 0, 0, 1]));
    assert_eq!(written(Refusal::ProgramMismatch { low: 1, high: 3 }), words(&[9, 1, 0, 0, 0, 2, 1, 3]));
    assert_eq!(written(Refusal::ProcedureUnavailable), words(&[9, 1, 0, 0, 0, 3]));
    assert_eq!(written(Refusal::GarbageArguments), words(&[9, 1, 0, 0, 0, 4]));
    assert_eq!(accepted(9)[..], words(&[9, 1, 0, 0, 0, 0]));
}
