//! Files of others, state without a right, changes of a read-only export: no guess and no claim gives them.

use std::os::unix::fs::{PermissionsExt, chown};
use std::sync::Arc;

use afflux_nfs::{Rules, Squash};
use afflux_nfs_client::sessions::{ANONYMOUS, CURRENT, Compound, Session, Stateid};
use afflux_nfs_client::{Client, User};

use crate::compounds::{BOTH, begun, open, ops, root, status};
use crate::world::World;

const ROFS: u32 = 30;

/// Calls are carried out as their callers say.
fn admit(world: &World, read_only: bool) {
    let rules = Rules::of_callers(Arc::new(|uid| (uid, Vec::new())));
    let rules = Rules { any_port: true, squash: Squash::None, read_only, ..rules };
    world.server.admit(rules.into());
}

/// A session of a user.
fn session_of(world: &World, uid: u32, minor: u32) -> Session {
    let mut client = Client::connect(world.serve()).unwrap();
    client.set_user(Some(User { uid, gid: uid }));
    Session::begin(client, format!("user {uid}").as_bytes(), minor).unwrap()
}

/// OPEN that makes a file with this verifier.
fn exclusive(name: &[u8], verifier: [u8; 8]) -> Compound {
    let head = [0_u32, BOTH, 0, 0, 0, 0, 1, 3].map(u32::to_be_bytes).concat();
    let len = (name.len() as u32).to_be_bytes();
    let padding = vec![0; name.len().wrapping_neg() & 3];
    // No attributes; the claim is a name.
    root().raw(18, &[&head[..], &verifier, &[0; 12], &len, name, &padding].concat())
}

#[test]
fn the_verifier_that_a_file_of_another_user_seems_to_store_opens_nothing() {
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root has files of several users");
    }
    let (world, _session) = begun(1);
    let path = world.path.join("secret");
    std::fs::write(&path, b"secret").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    chown(&path, Some(4002), Some(4002)).unwrap();
    // Whole seconds, as an archive's program sets them.
    let time = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let times = std::fs::FileTimes::new().set_accessed(time(0x0102_0304)).set_modified(time(0x0506_0708));
    std::fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    admit(&world, false);
    let verifier = [1, 2, 3, 4, 5, 6, 7, 8];
    let mut other = session_of(&world, 4001, 1);
    let opened = other.call(exclusive(b"secret", verifier).read(CURRENT, 0, 6)).unwrap();
    assert_eq!(opened.status, status::EXIST);
    // Its owner, whose call may have come before, opens it.
    session_of(&world, 4002, 1).must(exclusive(b"secret", verifier).read(CURRENT, 0, 6)).unwrap();
}

#[test]
fn an_open_from_before_the_rules_sets_no_size_of_what_is_only_read_now() {
    let (world, _session) = begun(1);
    admit(&world, false);
    let mut session = session_of(&world, 0, 1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    session.must(ops().put(&file).write(stateid, 0, 2, b"bytes").set_size(stateid, 4)).unwrap();
    admit(&world, true);
    assert_eq!(session.call(ops().put(&file).write(stateid, 0, 2, b"x")).unwrap().status, ROFS);
    assert_eq!(session.call(ops().put(&file).set_size(stateid, 0)).unwrap().status, ROFS);
    assert_eq!(session.call(ops().put(&file).set_mode(0o777)).unwrap().status, ROFS);
    assert_eq!(std::fs::read(world.path.join("file")).unwrap(), b"byte");
}

#[test]
fn stateids_with_a_meaning_of_their_own_are_no_state() {
    let (_world, mut session) = begun(1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let mut tested = |before: Compound, it: Stateid| {
        let outcome = session.must(before.test_stateid(it)).unwrap();
        u32::from_be_bytes(*outcome.results.last_chunk().unwrap())
    };
    assert_eq!(tested(ops(), stateid), 0);
    let opens =
        || ops().put(&file).raw(18, &[&[0_u32, BOTH, 0, 0, 0, 0, 0, 4].map(u32::to_be_bytes).concat()[..]].concat());
    for special in [ANONYMOUS, CURRENT, (u32::MAX, [0xff; 12]), (7, [0; 12]), (7, [0xff; 12])] {
        assert_eq!(tested(opens(), special), status::BAD_STATEID, "{special:?}");
    }
    assert_eq!(session.call(ops().put(&file).read((7, [0xff; 12]), 0, 1)).unwrap().status, status::BAD_STATEID);
}

#[test]
fn only_an_open_by_name_makes_a_file() {
    let (_world, mut session) = begun(1);
    let (_, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    // Unchecked, without attributes, of the current file, and of one that was open before.
    let makes = [0_u32, BOTH, 0, 0, 0, 0, 1, 0, 0, 0].map(u32::to_be_bytes).concat();
    for claim in [&[4_u32][..], &[1, 0]] {
        let claim = claim.iter().flat_map(|word| word.to_be_bytes()).collect();
        let opens = ops().put(&file).raw(18, &[makes.clone(), claim].concat());
        assert_ne!(session.call(opens).unwrap().status, 0);
    }
    assert_eq!(
        session.call(ops().put(&file).raw(18, &[makes, 4_u32.to_be_bytes().to_vec()].concat())).unwrap().status,
        status::INVAL
    );
}

#[test]
fn an_open_is_closed_and_lessened_by_its_own_files_handle_alone() {
    let (_world, mut session) = begun(1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let (_, other) = open(&mut session, (BOTH, 0), b"owner", b"other");
    let root_handle = session.walk(root()).unwrap();
    for handle in [&other, &root_handle] {
        let closed = session.call(ops().put(handle).close(stateid)).unwrap();
        let less = session.call(ops().put(handle).downgrade(stateid, BOTH, 0)).unwrap();
        assert_eq!((closed.status, less.status), (status::BAD_STATEID, status::BAD_STATEID));
    }
    session.must(ops().put(&file).downgrade(stateid, BOTH, 0).close(CURRENT)).unwrap();
}
