//! Files of others, state without a right, changes of a read-only export: no guess and no claim gives them.

use std::collections::HashMap;
use std::future::Future;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use afflux_frontend::{HostUsers, OwnerKind, UserGroups};
use afflux_nfs::{ClientMemory, Rules, Squash};
use afflux_nfs_client::sessions::{ANONYMOUS, CURRENT, Compound, Session, Stateid, compound};
use afflux_nfs_client::{Client, User};

use futures_channel::oneshot;
use futures_util::FutureExt;

use crate::compounds::{BOTH, READ, WRITE, begun, open, ops, root, status};
use crate::world::World;

const ACCESS: u32 = 13;
const ROFS: u32 = 30;

/// Calls are carried out as their callers say.
fn admit(world: &World, read_only: bool) {
    let rules = Rules::of_callers(Arc::new(|uid| UserGroups { gid: Some(uid), further: Vec::new() }));
    let rules = Rules { any_port: true, squash: Squash::None, read_only, ..rules };
    world.server.admit(rules.into());
}

/// A session of a user.
fn session_of(world: &World, uid: u32, minor: u32) -> Session {
    let mut client = Client::connect(world.serve()).unwrap();
    client.set_user(Some(User { uid, gid: uid }));
    Session::begin(client, format!("user {uid}").as_bytes(), minor).unwrap()
}

/// A host that answers a question about a user's groups when it is told to.
#[derive(Default)]
struct SlowHost {
    answers: Mutex<HashMap<u32, UserGroups>>,
    asked: Mutex<Vec<oneshot::Sender<()>>>,
}

impl HostUsers for SlowHost {
    fn find(&self, uid: u32) -> Option<UserGroups> {
        self.answers.lock().unwrap().get(&uid).cloned()
    }

    fn look_up(&self, _uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (sender, answered) = oneshot::channel();
        self.asked.lock().unwrap().push(sender);
        Box::pin(answered.map(|_| ()))
    }

    fn give_up(&self, _uid: u32) {
        panic!("the host answers in time");
    }

    fn number_of(&self, kind: OwnerKind, name: &str) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
        let number = match (kind, name) {
            (OwnerKind::User, "anna") => Some(4002),
            (OwnerKind::Group, "staff") => Some(4003),
            _ => None,
        };
        let (sender, answered) = oneshot::channel();
        self.asked.lock().unwrap().push(sender);
        Box::pin(answered.map(move |_| number))
    }

    fn age(&self) -> u64 {
        0
    }
}

/// SETATTR of an owner and a group, each by its name.
fn change_owner(compound: Compound, owner: &[u8], group: &[u8]) -> Compound {
    let text =
        |name: &[u8]| [&(name.len() as u32).to_be_bytes()[..], name, &vec![0; name.len().wrapping_neg() & 3]].concat();
    let values = [text(owner), text(group)].concat();
    let head = [2, 0, 1 << 4 | 1 << 5, values.len() as u32].map(u32::to_be_bytes).concat();
    compound.raw(34, &[&[0; 16][..], &head, &values].concat())
}

#[test]
fn a_change_of_owners_by_name_waits_for_the_host_and_takes_both_or_none() {
    const BADOWNER: u32 = 10_039;
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root has files of several users");
    }
    let host = Arc::new(SlowHost::default());
    let world = World::new();
    let rules = Rules { any_port: true, squash: Squash::None, ..Rules::of_callers(host.clone()) };
    world.server.admit(rules.into());
    world.server.offer_version_4(ClientMemory::default());
    let path = world.path.join("given");
    std::fs::write(&path, b"bytes").unwrap();
    let owners = || std::fs::metadata(&path).map(|found| (found.uid(), found.gid())).unwrap();
    let mut session = session_of(&world, 0, 2);
    let answers = std::thread::spawn(move || {
        [(&b"anna@example.org"[..], &b"nobody here"[..]), (b"12", b"anna"), (b"anna@example.org", b"staff")]
            .map(|(owner, group)| session.call(change_owner(root().lookup(b"given"), owner, group)).unwrap().status)
    });
    while !answers.is_finished() {
        host.asked.lock().unwrap().drain(..).for_each(|asked| _ = asked.send(()));
        std::thread::yield_now();
    }
    assert_eq!(answers.join().unwrap(), [BADOWNER, BADOWNER, 0]);
    assert_eq!(owners(), (4002, 4003));
}

#[test]
fn a_call_waits_for_the_hosts_list_of_groups_and_has_them_all_but_none_that_it_claims_itself() {
    const MANY: u32 = 40;
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root has files of several users");
    }
    let (world, _session) = begun(1);
    for (name, group) in [("hosts", 5000 + MANY), ("claimed", 4001)] {
        let path = world.path.join(name);
        std::fs::write(&path, b"bytes").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        chown(&path, Some(4002), Some(group)).unwrap();
    }
    let host = Arc::new(SlowHost::default());
    let rules = Rules { any_port: true, has_host_groups: true, ..Rules::of_callers(host.clone()) };
    world.server.admit(rules.into());
    let mut client = Client::connect(world.serve()).unwrap();
    client.set_user(Some(User { uid: 4001, gid: 4001 }));
    let reads = std::thread::spawn(move || {
        let mut session = Session::begin(client, b"many groups", 1).unwrap();
        ["hosts", "claimed"].map(|name| {
            let found = session.call(root().lookup(name.as_bytes()).read(ANONYMOUS, 0, 5)).unwrap();
            found.status
        })
    });
    afflux_scratch::eventually("the host is asked", || !host.asked.lock().unwrap().is_empty());
    let further = (0..=MANY).map(|at| 5000 + at).collect();
    host.answers.lock().unwrap().insert(4001, UserGroups { gid: Some(4003), further });
    host.asked.lock().unwrap().drain(..).for_each(|asked| asked.send(()).unwrap());
    assert_eq!(reads.join().unwrap(), [0, ACCESS]);
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
    let mut session = session_of(&world, rustix::process::geteuid().as_raw(), 1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    session.must(ops().put(&file).write(stateid, 0, 2, b"bytes").set_size(stateid, 4)).unwrap();
    admit(&world, true);
    assert_eq!(session.call(ops().put(&file).write(stateid, 0, 2, b"x")).unwrap().status, ROFS);
    assert_eq!(session.call(ops().put(&file).set_size(stateid, 0)).unwrap().status, ROFS);
    assert_eq!(session.call(ops().put(&file).set_mode(0o777)).unwrap().status, ROFS);
    assert_eq!(std::fs::read(world.path.join("file")).unwrap(), b"byte");
}

/// OPEN of a name by an owner of its own, with a cut to no bytes.
fn cut(access: u32, deny: u32) -> Compound {
    root().open_empty((access, deny), b"cut", b"file")
}

#[test]
fn who_may_only_read_a_file_denies_and_cuts_nothing() {
    const ACCES: u32 = 13;
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root has files of several users");
    }
    let (world, _session) = begun(1);
    let path = world.path.join("file");
    std::fs::write(&path, b"bytes").unwrap();
    admit(&world, false);
    let (mut session, mut of_root) = (session_of(&world, 4001, 1), session_of(&world, 0, 1));
    let file = session.walk(root().lookup(b"file")).unwrap();
    // The file is root's, and then the user's own, which this user may not write either.
    for owner in [0, 4001] {
        chown(&path, Some(owner), Some(owner)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
        let mut status = |it| session.call(it).unwrap().status;
        for deny in 1..=3 {
            assert_eq!(status(root().open((READ, deny), b"user", b"file", false)), ACCES, "{owner} denies {deny}");
            assert_eq!(status(root().open((READ, deny), b"user", b"file", true)), ACCES, "{owner} denies {deny}");
            let by_handle = [0, READ, deny, 0, 0, 0, 0, 4].map(u32::to_be_bytes).concat();
            assert_eq!(status(ops().put(&file).raw(18, &by_handle)), ACCES, "{owner} denies {deny} by the handle");
        }
        assert_eq!([status(cut(READ, 0)), status(cut(WRITE, 0)), status(cut(BOTH, 0))], [ACCES; 3], "{owner}");
        // No denial is added to an open, and none is left behind.
        assert_eq!(status(root().open((READ, 0), b"user", b"file", false)), 0);
        assert_eq!(status(root().open((READ, WRITE), b"user", b"file", false)), ACCES, "{owner} denies more");
        of_root.must(root().open((BOTH, 0), b"root", b"file", false).close(CURRENT)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
    }
}

#[test]
fn a_setattr_that_fails_names_what_it_has_set() {
    const PERM: u32 = 1;
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root has files of several users");
    }
    let (world, _session) = begun(1);
    admit(&world, false);
    std::fs::set_permissions(&world.path, PermissionsExt::from_mode(0o777)).unwrap();
    let mut session = session_of(&world, 4001, 1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    for by in [stateid, ANONYMOUS] {
        session.must(ops().put(&file).write(stateid, 0, 2, b"bytes")).unwrap();
        let set = |words: [u32; 2], values: &[u8]| {
            let len = (values.len() as u32).to_be_bytes();
            let head =
                [by.0.to_be_bytes().to_vec(), by.1.to_vec(), [2, words[0], words[1]].map(u32::to_be_bytes).concat()];
            ops().put(&file).raw(34, &[&head.concat(), &len[..], values].concat())
        };
        // A size, and an owner that only root gives.
        let owner = [[0; 4], [0; 4], 1_u32.to_be_bytes(), *b"0\0\0\0"];
        let both = session.call(set([1 << 4, 1 << 4], &owner.concat()));
        let both = both.unwrap();
        assert_eq!((both.status, &both.results[both.results.len() - 8..]), (PERM, &[0, 0, 0, 1, 0, 0, 0, 1 << 4][..]));
        assert_eq!(std::fs::read(world.path.join("file")).unwrap(), b"");
        // After one that has succeeded, in the same compound.
        let alone = [&1_u32.to_be_bytes()[..], b"0\0\0\0"].concat();
        let twice = set([1 << 4, 0], &0_u64.to_be_bytes()).followed_by(&set([0, 1 << 4], &alone));
        let twice = session.call(twice).unwrap();
        assert_eq!((twice.status, &twice.results[twice.results.len() - 4..]), (PERM, &[0; 4][..]));
    }
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
fn a_stateid_of_an_earlier_server_is_bad_for_each_operation() {
    let (world, mut session) = begun(1);
    let ((sequence, mut bytes), file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let (before, locks) = (bytes, session.must(ops().put(&file).lock(2, (0, 1), (sequence, bytes), b"lock")).unwrap());
    assert_eq!(locks.status, 0);
    bytes[0] ^= 1;
    let of_earlier = (sequence, bytes);
    let tested = session.must(ops().test_stateid(of_earlier)).unwrap();
    assert_eq!(tested.results.last_chunk(), Some(&status::BAD_STATEID.to_be_bytes()));
    let uses = [
        ops().read(of_earlier, 0, 1),
        ops().write(of_earlier, 0, 0, b"x"),
        ops().set_size(of_earlier, 0),
        ops().close(of_earlier),
        ops().downgrade(of_earlier, READ, 0),
        ops().lock(2, (0, 1), of_earlier, b"other"),
        ops().lock_more(2, (0, 1), of_earlier),
        ops().unlock((0, 1), of_earlier),
        ops().free(of_earlier),
    ];
    for (at, one) in uses.iter().enumerate() {
        let outcome = session.call(ops().put(&file).followed_by(one)).unwrap();
        assert_eq!(outcome.status, status::BAD_STATEID, "operation {at}");
    }
    session.must(ops().put(&file).write((sequence, before), 0, 0, b"x")).unwrap();
    drop(world);
}

#[test]
fn the_name_of_the_server_is_no_secret_of_its_hashes() {
    let (world, mut session) = begun(1);
    let told = compound(&mut session.client, 1, &ops().exchange_id(b"another", [1; 8], 0)).unwrap().results;
    let key = world.volume.hash_key();
    for mask in 0..=u8::MAX {
        let masked = key.map(|byte| byte ^ mask);
        assert!(!told.windows(key.len()).any(|bytes| bytes == masked), "the key is told, by {mask:#x}");
    }
    let name = world.volume.server_name();
    assert!(told.windows(name.len()).any(|bytes| bytes == name));
}

#[test]
fn restorefh_brings_back_the_object_with_its_stateid() {
    const NOFILEHANDLE: u32 = 10_020;
    let (_world, mut session) = begun(1);
    let (stateid, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let (other_stateid, other) = open(&mut session, (BOTH, 0), b"owner", b"other");
    session.must(ops().put(&file).write(stateid, 0, 2, b"of the file")).unwrap();
    session.must(ops().put(&other).write(other_stateid, 0, 2, b"of another")).unwrap();
    let opened = |name: &[u8]| ops().put_root().open((READ, 0), b"reader", name, false);
    let back = opened(b"file").save().followed_by(&opened(b"other")).restore().get_handle().read(CURRENT, 0, 99);
    let told = session.must(back).unwrap().results;
    let has = |bytes: &[u8]| told.windows(bytes.len()).any(|it| it == bytes);
    assert!(has(&file) && has(b"of the file") && !has(b"of another"));
    assert_eq!(session.call(ops().put(&file).restore()).unwrap().status, NOFILEHANDLE);
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
