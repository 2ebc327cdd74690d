//! Read delegations: the clients that get one, the changes that recall it. A client that does not return it loses it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use afflux_nfs::ClientMemory;
use afflux_nfs_client::Client;
use afflux_nfs_client::callbacks::{Callback, is_callback};
use afflux_nfs_client::sessions::{ANONYMOUS, CALLBACK_PROGRAM, Compound, NFS_4, Outcome, Session, Stateid};
use afflux_volume::{
    AttributeChange, Caller, CloneSide, Lock, LockFamily, LockMode, LockOwner, Nanos, Reserve, SetTime, Span,
    XattrChange,
};
use nfs3_types::nfs3::{
    CREATE3args, CREATE3res, LINK3args, LINK3res, REMOVE3args, REMOVE3res, RENAME3args, RENAME3res, SETATTR3args,
    SETATTR3res, WRITE3args, WRITE3res, createhow3, diropargs3, nfs_fh3, nfsstat3, sattr3, stable_how,
};
use nfs3_types::xdr_codec::Opaque;

use crate::compounds::{BOTH, READ, WRITE, ops, root, status};
use crate::kept::{self, WORDS, memory};
use crate::locks::{List, Programs};
use crate::peer::{Peer, accepted, call_record, marked};
use crate::world::{CLIENT, World};

const DELAY: u32 = 10_008;
const DELEG_REVOKED: u32 = 10_087;
const WANTS_READ: u32 = 0x100;
const WANTS_NONE: u32 = 0x400;
/// SEQ4_STATUS_RECALLABLE_STATE_REVOKED.
const STATE_REVOKED: u32 = 0x40;
/// The time limit of a recall in most tests: no test waits for it.
const LONG_NS: u64 = 60 * Nanos::SECOND;

/// A world with files of these names, which clients may have delegated.
pub(crate) fn delegating(recall_ns: u64, fill: impl FnOnce(&Path)) -> World {
    let world = World::over(fill);
    world.volume.delegations().turn_on(recall_ns);
    world.server.offer_version_4(ClientMemory::default());
    world
}

fn with_files(names: &[&str]) -> impl FnOnce(&Path) {
    move |path| names.iter().for_each(|name| std::fs::write(path.join(name), "before").unwrap())
}

/// A client with a back channel, which answers calls when the test says so.
pub(crate) struct Holder {
    pub(crate) peer: Peer,
    pub(crate) id: [u8; 16],
    pub(crate) sequence: u32,
    calls: VecDeque<Callback>,
    /// The flags of the last SEQUENCE.
    pub(crate) flags: u32,
}

impl Holder {
    /// With a back channel that has carried a call.
    pub(crate) fn begin(world: &World, name: &[u8]) -> Self {
        let mut holder = Self::unproven(world, name);
        holder.answer_next(0);
        holder
    }

    /// The server has called, and the client has not answered yet.
    pub(crate) fn unproven(world: &World, name: &[u8]) -> Self {
        let mut holder = Self::reclaiming(world, name);
        assert_eq!(holder.call(&ops().reclaim_complete()).status, 0);
        holder
    }

    /// A client that has not said yet what it had before the server's last end.
    pub(crate) fn reclaiming(world: &World, name: &[u8]) -> Self {
        const BACK_CHANNEL: u32 = 2;
        let mut peer = Peer::new(world, CLIENT);
        let mut call = |it: Compound| Outcome::read(&peer.call(NFS_4, 1, &it.arguments(2))).unwrap();
        let known = call(ops().exchange_id(name, *b"verifier", 0));
        let mut reader = known.reader();
        reader.next_result().unwrap();
        let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
        let made = call(ops().create_session_with(number, sequence, 16, 8, BACK_CHANNEL));
        let id = *made.results[8..].first_chunk().unwrap();
        Self { peer, id, sequence: 0, calls: VecDeque::new(), flags: 0 }
    }

    /// Over a connection to the next server.
    pub(crate) fn connect(&mut self, world: &World) {
        self.peer = Peer::new(world, CLIENT);
        self.calls.clear();
    }

    /// Calls of the server come over this connection from now on.
    fn bind(&mut self) {
        const BACK: u32 = 2;
        let arguments = [&self.id[..], &BACK.to_be_bytes(), &[0; 4]].concat();
        assert_eq!(self.exchange(&ops().raw(41, &arguments)).status, 0);
    }

    pub(crate) fn call(&mut self, it: &Compound) -> Outcome {
        self.sequence += 1;
        let whole = ops().sequence(self.id, self.sequence, 0, true).followed_by(it);
        self.exchange(&whole)
    }

    /// Sends a call, and waits for the reply. Calls of the server wait until the test asks for them.
    fn exchange(&mut self, whole: &Compound) -> Outcome {
        self.peer.xid += 1;
        let record = call_record(self.peer.xid, NFS_4, 1, &whole.arguments(2));
        self.peer.send(&marked(&record)).unwrap();
        loop {
            let mut reply = None;
            for record in self.peer.records() {
                match is_callback(&record) {
                    true => self.calls.push_back(Callback::read(&record).unwrap()),
                    false => reply = Some(accepted(&record).1),
                }
            }
            if let Some(reply) = reply {
                let outcome = Outcome::read(&reply).unwrap();
                if outcome.count > 0 && outcome.results.len() >= 44 {
                    self.flags = u32::from_be_bytes(*outcome.results[40..].first_chunk().unwrap());
                }
                return outcome;
            }
        }
    }

    /// Operations that all succeed. The results are those behind SEQUENCE's.
    pub(crate) fn must(&mut self, it: &Compound) -> Outcome {
        let outcome = self.call(it);
        assert_eq!(outcome.status, 0);
        Outcome { results: outcome.results[44..].to_vec(), ..outcome }
    }

    /// The server's next call.
    pub(crate) fn next_call(&mut self) -> Callback {
        loop {
            if let Some(call) = self.calls.pop_front() {
                return call;
            }
            let records = self.peer.records();
            self.calls.extend(records.iter().map(|record| Callback::read(record).unwrap()));
        }
    }

    /// Answers the server's next call.
    pub(crate) fn answer_next(&mut self, status: u32) -> Callback {
        let call = self.next_call();
        self.peer.send(&marked(&call.answer(status))).unwrap();
        call
    }

    /// Opens a file for reading. Returns the open's stateid, the handle and the delegation or the reason of none.
    pub(crate) fn open(&mut self, name: &[u8]) -> (Stateid, Vec<u8>, Result<Stateid, Option<u32>>) {
        self.open_with((1 | WANTS_READ, 0), name)
    }

    pub(crate) fn open_with(
        &mut self,
        share: (u32, u32),
        name: &[u8],
    ) -> (Stateid, Vec<u8>, Result<Stateid, Option<u32>>) {
        opened(&self.must(&root().open(share, b"program", name, false).get_handle()))
    }

    /// Opens a file for reading, and gets a delegation, which stays after the CLOSE.
    pub(crate) fn delegated(&mut self, name: &[u8]) -> (Stateid, Vec<u8>) {
        let (open, handle, delegation) = self.open(name);
        self.must(&ops().put(&handle).close(open));
        (delegation.expect("a delegation"), handle)
    }

    fn give_back(&mut self, (stateid, handle): &(Stateid, Vec<u8>)) -> u32 {
        self.call(&delegreturn(ops().put(handle), *stateid)).status
    }
}

/// The open's stateid, the handle, and the delegation or the reason of none, of PUTROOTFH or PUTFH, OPEN and GETFH.
fn opened(outcome: &Outcome) -> (Stateid, Vec<u8>, Result<Stateid, Option<u32>>) {
    let mut reader = outcome.reader();
    reader.next_result().unwrap();
    assert_eq!(reader.next_result(), Ok((18, 0)));
    let stateid = reader.stateid().unwrap();
    reader.skip(4 + 8 + 8 + 4).unwrap();
    let words = reader.u32().unwrap();
    reader.skip(words as usize * 4).unwrap();
    let delegation = match reader.u32().unwrap() {
        0 => Err(None),
        1 => {
            let stateid = reader.stateid().unwrap();
            // Not recalled; an entry that allows nothing.
            reader.skip(4 + 3 * 4).unwrap();
            assert_eq!(reader.opaque(), Ok(&b""[..]));
            Ok(stateid)
        }
        3 => {
            let why = reader.u32().unwrap();
            if matches!(why, 1 | 2) {
                reader.skip(4).unwrap();
            }
            Err(Some(why))
        }
        kind => panic!("a delegation of kind {kind}"),
    };
    assert_eq!(reader.next_result(), Ok((10, 0)));
    let handle = reader.opaque().unwrap().to_vec();
    reader.end().unwrap();
    (stateid, handle, delegation)
}

fn bytes(stateid: Stateid) -> Vec<u8> {
    [&stateid.0.to_be_bytes()[..], &stateid.1].concat()
}

fn delegreturn(after: Compound, stateid: Stateid) -> Compound {
    after.raw(8, &bytes(stateid))
}

/// OPEN for reading with this claim.
fn open_by(after: Compound, access: u32, claim: &[u8]) -> Compound {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    after.raw(18, &[&words(&[0, access, 0, 0, 0, 4])[..], b"prog", &words(&[0]), claim].concat())
}

/// The claim to open the current file by a delegation.
fn deleg_cur_fh(stateid: Stateid) -> Vec<u8> {
    [&5_u32.to_be_bytes()[..], &bytes(stateid)].concat()
}

fn other(world: &World) -> Session {
    Session::begin(Client::connect(world.serve()).unwrap(), b"other", 2).unwrap()
}

#[test]
fn a_reader_is_delegated_a_file_reads_by_it_and_returns_it() {
    let world = delegating(LONG_NS, with_files(&["file", "second"]));
    let mut holder = Holder::begin(&world, b"holder");
    let (open, handle, delegation) = holder.open(b"file");
    let delegation = delegation.expect("a delegation");
    assert_eq!(holder.open(b"file").2, Err(Some(2)), "a client has one of a file");
    let read = holder.must(&ops().put(&handle).read(delegation, 0, 6));
    assert!(read.results.ends_with(b"before\0\0"));
    assert_eq!(holder.call(&ops().put(&handle).write(delegation, 0, 0, b"x")).status, status::OPENMODE);
    assert_eq!(holder.call(&ops().put(&handle).close(delegation)).status, status::BAD_STATEID);
    assert_eq!(holder.call(&ops().put(&handle).lock(1, (0, 1), delegation, b"owner")).status, status::BAD_STATEID);
    assert_eq!(holder.call(&ops().free(delegation)).status, status::LOCKS_HELD);
    holder.must(&ops().test_stateid(delegation).put(&handle).close((0, open.1)));
    // By the delegation the file is opened again, by its handle and by its name.
    let open = opened(&holder.must(&open_by(ops().put(&handle), 1, &deleg_cur_fh(delegation)).get_handle()));
    assert_eq!(open.2, Err(None));
    let by_name = [&2_u32.to_be_bytes()[..], &bytes(delegation), &4_u32.to_be_bytes(), b"file"].concat();
    holder.must(&open_by(root(), 1, &by_name));
    let (second, of_second) = holder.delegated(b"second");
    for (call, status) in [
        (open_by(ops().put(&handle), 2, &deleg_cur_fh(delegation)), status::OPENMODE),
        (open_by(ops().put(&handle), 1, &deleg_cur_fh(second)), status::BAD_STATEID),
        (open_by(ops().put(&handle), 1, &deleg_cur_fh(open.0)), status::BAD_STATEID),
        (open_by(root(), 1, &[&3_u32.to_be_bytes()[..], &4_u32.to_be_bytes(), b"file"].concat()), status::NOTSUPP),
        (delegreturn(ops().put(&of_second), delegation), status::BAD_STATEID),
        (delegreturn(ops(), delegation), status::NOFILEHANDLE),
    ] {
        assert_eq!(holder.call(&call).status, status, "{call:?}");
    }
    assert_eq!(holder.give_back(&(delegation, handle.clone())), 0);
    assert_eq!(holder.give_back(&(delegation, handle.clone())), status::BAD_STATEID);
    assert_eq!(holder.call(&ops().put(&handle).read(delegation, 0, 1)).status, status::BAD_STATEID);
    assert_eq!(world.volume.delegations().counts().held, 1);
}

// rule: the server calls a client as the user that the client has named
#[test]
fn a_recall_names_the_user_of_the_clients_choice() {
    const BACKCHANNEL_CTL: u32 = 40;
    let world = delegating(LONG_NS, with_files(&["file"]));
    let mut holder = Holder::begin(&world, b"holder");
    // The program, one credential: AUTH_SYS with a stamp, no name of a machine, user 17, group 19, no further groups.
    let words = [CALLBACK_PROGRAM, 1, 1, 0, 0, 17, 19, 0];
    holder.must(&ops().raw(BACKCHANNEL_CTL, &words.map(u32::to_be_bytes).concat()));
    let delegated = holder.delegated(b"file");
    let mut one = other(&world);
    let handle = one.walk(root().lookup(b"file")).unwrap();
    assert_eq!(one.call(ops().put(&handle).set_mode(0o600)).unwrap().status, DELAY);
    let call = holder.next_call();
    assert_eq!(call.recalled.as_ref().map(|recalled| recalled.0), Some(delegated.0));
    let body = [0, 0, 17, 19, 0].map(u32::to_be_bytes).concat();
    assert_eq!(call.credential, (1, body));
}

// rule: a client gets no delegation that the server could not recall, or that others' uses would soon take back
#[test]
fn a_file_is_not_delegated_that_others_use_otherwise() {
    let names = ["file", "written", "denied", "locked", "changed"];
    let world = delegating(LONG_NS, with_files(&names));
    let (mut holder, mut one) = (Holder::begin(&world, b"holder"), other(&world));
    assert_eq!(holder.open_with((1 | WANTS_NONE, 0), b"file").2, Err(Some(0)));
    assert_eq!(holder.open_with((1 | 0x200, 0), b"file").2, Err(Some(4)));
    assert_eq!(holder.open_with((1 | 0x500, 0), b"file").2, Err(Some(7)));
    assert_eq!(holder.open_with((3, 0), b"file").2, Err(None));
    one.must(root().open(WRITE_ONLY, b"program", b"written", false)).unwrap();
    assert_eq!(holder.open(b"written").2, Err(Some(1)));
    let handle = one.walk(root().lookup(b"changed")).unwrap();
    one.must(ops().put(&handle).set_mode(0o600)).unwrap();
    assert_eq!(holder.open_with((1, 0), b"changed").2, Err(None), "a client that says nothing hears no reason");
    assert_eq!(holder.open(b"changed").2, Err(Some(1)));
    // A program on a mount has an exclusive lock.
    let locked = world.platform.block_on(world.volume.lookup_by(
        &Caller::SERVER,
        world.volume.export_root("/").unwrap(),
        b"locked",
    ));
    let (locks, file) = (world.volume.locks(), locked.unwrap().0.fileid());
    let owner = LockOwner { holder: locks.register(Arc::new(Programs), 0), number: 1, family: LockFamily::Files };
    let lock = Lock { owner, span: Span::WHOLE, mode: LockMode::Exclusive, process: 7 };
    world.platform.block_on(world.volume.lock(file, lock)).unwrap();
    assert_eq!(holder.open(b"locked").2, Err(Some(1)));
    locks.unlock(file, owner, Span::WHOLE, Nanos(0)).unwrap();
    assert!(holder.open(b"locked").2.is_ok());
    // Without an answer over the back channel there is none.
    let mut silent = Holder::unproven(&world, b"silent");
    assert_eq!(silent.open(b"denied").2, Err(Some(2)));
    silent.answer_next(0);
    assert!(silent.open(b"denied").2.is_ok());
}

const WRITE_ONLY: (u32, u32) = (WRITE, 0);

/// Has the holder return the file's delegation while another changes the file, and checks that the change waits for it.
fn recalls(world: &World, holder: &mut Holder, name: &str, change: impl FnOnce() -> bool + Send) {
    let held = holder.delegated(name.as_bytes());
    std::thread::scope(|threads| {
        let before = std::fs::metadata(world.path.join(name)).unwrap();
        let changing = threads.spawn(change);
        let call = holder.answer_next(0);
        assert_eq!(call.recalled, Some(held.clone()), "{name}");
        let now = std::fs::metadata(world.path.join(name));
        let seen = |of: &std::fs::Metadata| {
            use std::os::unix::fs::MetadataExt;
            (of.size(), of.mode(), of.mtime_nsec(), of.nlink(), of.ctime_nsec())
        };
        assert_eq!(now.as_ref().map(seen).ok(), Some(seen(&before)), "{name} is as it was");
        assert_eq!(holder.give_back(&held), 0);
        assert!(changing.join().unwrap(), "{name} is changed");
    });
}

// rule: each change of a delegated file by another, over any front end, waits until the delegation is returned
// kept in: `product/volume/src/delegations.rs`
#[test]
fn each_change_of_a_client_of_version_4_recalls_the_delegation() {
    type Change = (&'static str, fn(&mut Session, &[u8], &str) -> u32);
    let changes: &[Change] = &[
        ("open", |it, _, name| it.call(root().open(WRITE_ONLY, b"p", name.as_bytes(), false)).unwrap().status),
        ("deny", |it, _, name| it.call(root().open((BOTH, READ), b"p", name.as_bytes(), false)).unwrap().status),
        ("cut", |it, _, name| it.call(root().open_empty((BOTH, 0), b"p", name.as_bytes())).unwrap().status),
        ("write", |it, file, _| it.call(ops().put(file).write(ANONYMOUS, 0, 2, b"after")).unwrap().status),
        ("unstable", |it, file, _| it.call(ops().put(file).write(ANONYMOUS, 0, 0, b"after")).unwrap().status),
        ("size", |it, file, _| it.call(ops().put(file).set_size(ANONYMOUS, 3)).unwrap().status),
        ("mode", |it, file, _| it.call(ops().put(file).set_mode(0o600)).unwrap().status),
        ("remove", |it, _, name| it.call(root().remove(name.as_bytes())).unwrap().status),
        ("rename", |it, _, name| it.call(root().save().rename(name.as_bytes(), b"renamed")).unwrap().status),
        ("replaced", |it, _, name| {
            it.must(root().open((BOTH, 0), b"p", b"replaces", true)).unwrap();
            it.call(root().save().rename(b"replaces", name.as_bytes())).unwrap().status
        }),
        ("link", |it, file, _| it.call(ops().put(file).save().put_root().link(b"linked")).unwrap().status),
        ("allocate", |it, file, _| {
            let range = [bytes(ANONYMOUS), 0_u64.to_be_bytes().to_vec(), 9000_u64.to_be_bytes().to_vec()].concat();
            it.call(ops().put(file).raw(59, &range)).unwrap().status
        }),
        ("deallocate", |it, file, _| {
            let range = [bytes(ANONYMOUS), 0_u64.to_be_bytes().to_vec(), 3_u64.to_be_bytes().to_vec()].concat();
            it.call(ops().put(file).raw(62, &range)).unwrap().status
        }),
        ("copy", |it, file, _| {
            let from = it.walk(root().open((BOTH, 0), b"p", b"source", true)).unwrap();
            it.must(ops().put(&from).write(ANONYMOUS, 0, 0, b"copied")).unwrap();
            let sides = [bytes(ANONYMOUS), bytes(ANONYMOUS), vec![0; 24], vec![0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]];
            it.call(ops().put(&from).save().put(file).raw(60, &sides.concat())).unwrap().status
        }),
    ];
    let names: Vec<&str> = changes.iter().map(|change| change.0).collect();
    let world = delegating(LONG_NS, with_files(&names));
    let (mut holder, mut other) = (Holder::begin(&world, b"holder"), other(&world));
    for (name, change) in changes {
        let file = other.walk(root().lookup(name.as_bytes())).unwrap();
        recalls(&world, &mut holder, name, || match change(&mut other, &file, name) {
            0 => true,
            status => panic!("{name}: {status}"),
        });
    }
    let counts = world.volume.delegations().counts();
    assert_eq!((counts.held, counts.recalled, counts.revoked), (0, changes.len() as u64, 0));
}

#[test]
fn each_change_of_a_client_of_version_3_recalls_the_delegation() {
    type Change = (&'static str, fn(&mut Peer, &nfs_fh3, &nfs_fh3, &str) -> bool);
    fn at<'a>(directory: &nfs_fh3, name: &str) -> diropargs3<'a> {
        diropargs3 { dir: directory.clone(), name: name.as_bytes().to_vec().into() }
    }
    let changes: &[Change] = &[
        ("write", |it, _, file, _| {
            let data = Opaque::borrowed(b"after");
            let call = WRITE3args { file: file.clone(), offset: 0, count: 5, stable: stable_how::UNSTABLE, data };
            matches!(it.nfs(7, &call), WRITE3res::Ok(_))
        }),
        ("mode", |it, _, file, _| {
            let new_attributes = sattr3 { mode: nfs3_types::nfs3::Nfs3Option::Some(0o600), ..sattr3::default() };
            let call = SETATTR3args { object: file.clone(), new_attributes, guard: Default::default() };
            matches!(it.nfs(2, &call), SETATTR3res::Ok(_))
        }),
        ("create", |it, root, _, name| {
            let how = sattr3 { size: nfs3_types::nfs3::Nfs3Option::Some(0), ..sattr3::default() };
            let call = CREATE3args { where_: at(root, name), how: createhow3::UNCHECKED(how) };
            matches!(it.nfs(8, &call), CREATE3res::Ok(_))
        }),
        ("remove", |it, root, _, name| {
            matches!(it.nfs(12, &REMOVE3args { object: at(root, name) }), REMOVE3res::Ok(_))
        }),
        ("rename", |it, root, _, name| {
            matches!(it.nfs(14, &RENAME3args { from: at(root, name), to: at(root, "renamed") }), RENAME3res::Ok(_))
        }),
        ("link", |it, root, file, _| {
            matches!(it.nfs(15, &LINK3args { file: file.clone(), link: at(root, "linked") }), LINK3res::Ok(_))
        }),
    ];
    let names: Vec<&str> = changes.iter().map(|change| change.0).collect();
    let world = delegating(LONG_NS, with_files(&names));
    let (mut holder, mut other) = (Holder::begin(&world, b"holder"), Peer::new(&world, CLIENT));
    let root = other.root();
    for (name, change) in changes {
        let file = world.lookup(&mut other, &root, name.as_bytes());
        recalls(&world, &mut holder, name, || change(&mut other, &root, &file, name));
    }
}

#[test]
fn each_change_of_a_program_on_a_mount_recalls_the_delegation() {
    type At = Arc<afflux_volume::Inode<afflux_linux_device::LinuxPlatform>>;
    type Change = (&'static str, fn(&World, &At, &At, &Caller) -> bool);
    let changes: &[Change] = &[
        ("write", |it, _, file, by| it.platform.block_on(it.volume.write_by(by, None, file, 0, b"x")).result.is_ok()),
        ("times", |it, _, file, by| {
            let change = AttributeChange { mtime: SetTime::ServerNow, ..AttributeChange::default() };
            it.platform.block_on(it.volume.set_attributes_by(by, file, change, None)).result.is_ok()
        }),
        ("xattr", |it, _, file, by| {
            let change = XattrChange::Set(bytes::Bytes::from_static(b"value"));
            let changed = it.platform.block_on(it.volume.change_xattr_by(by, file, b"user.name", change)).result;
            // Not each file system has them; the host is asked after the recall.
            !matches!(changed, Err(afflux_volume::VolumeError::Delayed))
        }),
        ("punch", |it, _, file, by| it.platform.block_on(it.volume.punch_by(by, file, 0..3)).result.is_ok()),
        ("reserve", |it, _, file, by| {
            let how = Reserve { zeros: false, grows: true };
            it.platform.block_on(it.volume.reserve_by(by, file, 0..9000, how)).result.is_ok()
        }),
        ("clone", |it, root, file, by| {
            let from = it.platform.block_on(it.volume.lookup_by(by, root, b"source")).unwrap().0;
            let side = |inode| CloneSide { caller: by, inode, offset: 0 };
            // Not each file system shares blocks; the host is asked after the recall.
            !matches!(
                it.platform.block_on(it.volume.clone_by(side(&from), side(file), 0)).result,
                Err(afflux_volume::VolumeError::Delayed)
            )
        }),
        ("lock", |it, _, file, _| {
            let locks = it.volume.locks();
            let owner =
                LockOwner { holder: locks.register(Arc::new(Programs), 0), number: 1, family: LockFamily::Files };
            let lock = Lock { owner, span: Span::WHOLE, mode: LockMode::Exclusive, process: 7 };
            it.platform.block_on(it.volume.lock_in_order(file.fileid(), lock)).is_ok()
        }),
        ("remove", |it, root, _, by| it.platform.block_on(it.volume.remove_by(by, root, b"remove")).result.is_ok()),
        ("rename", |it, root, _, by| {
            it.platform.block_on(it.volume.rename_by(by, root, b"rename", root, b"renamed")).0.result.is_ok()
        }),
        ("link", |it, root, file, by| {
            it.platform.block_on(it.volume.link_by(by, file, root, b"linked")).result.is_ok()
        }),
    ];
    let names: Vec<&str> = changes.iter().map(|change| change.0).chain(["source"]).collect();
    let world = delegating(LONG_NS, with_files(&names));
    let (mut holder, by) = (Holder::begin(&world, b"holder"), Caller::SERVER.listening());
    let root = Arc::clone(world.volume.export_root("/").unwrap());
    for (name, change) in changes {
        let file = world.platform.block_on(world.volume.lookup_by(&by, &root, name.as_bytes())).unwrap().0;
        recalls(&world, &mut holder, name, || change(&world, &root, &file, &by));
    }
}

#[test]
fn an_open_for_writing_recalls_the_delegation_of_another_client() {
    let world = delegating(LONG_NS, with_files(&["file"]));
    let (mut one, mut two, mut writer) = (Holder::begin(&world, b"one"), Holder::begin(&world, b"two"), other(&world));
    let (of_one, of_two) = (one.delegated(b"file"), two.delegated(b"file"));
    std::thread::scope(|threads| {
        let opening = threads.spawn(|| writer.call(root().open((BOTH, 0), b"program", b"file", false)).unwrap().status);
        assert!(one.answer_next(0).recalled.is_some() && two.answer_next(0).recalled.is_some());
        assert_eq!(one.give_back(&of_one), 0);
        assert!(two.call(&ops().put(&of_two.1).read(of_two.0, 0, 1)).status == 0, "until it is returned it is good");
        assert_eq!(two.give_back(&of_two), 0);
        assert_eq!(opening.join().unwrap(), 0);
    });
    assert_eq!(one.open(b"file").2, Err(Some(1)));
}

// rule: a client's own changes recall no delegation of its own
#[test]
fn a_client_changes_its_own_delegated_file_without_a_recall() {
    let world = delegating(LONG_NS, with_files(&["file"]));
    let mut holder = Holder::begin(&world, b"holder");
    let (stateid, file) = holder.delegated(b"file");
    let open = opened(&holder.must(&root().open((BOTH, 0), b"writer", b"file", false).get_handle()));
    assert_eq!(open.2, Err(None));
    holder.must(&ops().put(&file).write(open.0, 0, 0, b"by itself").set_mode(0o600));
    holder.must(&ops().put(&file).read(stateid, 0, 9).save().put_root().link(b"linked"));
    holder.must(&root().save().rename(b"file", b"renamed").remove(b"renamed"));
    assert_eq!(world.volume.delegations().counts().recalled, 0);
    assert_eq!(holder.give_back(&(stateid, file)), 0);
}

fn v3_write(peer: &mut Peer, file: &nfs_fh3) -> Result<(), nfsstat3> {
    let data = Opaque::borrowed(b"after");
    let call = WRITE3args { file: file.clone(), offset: 0, count: 5, stable: stable_how::UNSTABLE, data };
    match peer.nfs(7, &call) {
        WRITE3res::Ok(_) => Ok(()),
        WRITE3res::Err((status, _)) => Err(status),
    }
}

// rule: a client that never returns a delegation delays a change for a lease at most, learns that it has lost it, and
// delays nobody else
#[test]
fn a_delegation_that_is_not_returned_is_revoked() {
    const RECALL_NS: u64 = 2500 * Nanos::MILLISECOND;
    let world = delegating(RECALL_NS, with_files(&["file", "by version 3", "others"]));
    let (mut holder, mut writer) = (Holder::begin(&world, b"hostile"), other(&world));
    let (stateid, file) = holder.delegated(b"file");
    let mut third = Peer::new(&world, CLIENT);
    let root_3 = third.root();
    let (of_3, others) =
        (world.lookup(&mut third, &root_3, b"by version 3"), world.lookup(&mut third, &root_3, b"others"));
    assert_eq!(writer.call(ops().put(&file).set_mode(0o600)).unwrap().status, DELAY, "the client comes again");
    v3_write(&mut third, &others).unwrap();
    let (of_3_stateid, _) = holder.delegated(b"by version 3");
    assert_eq!(v3_write(&mut third, &of_3), Err(nfsstat3::NFS3ERR_JUKEBOX));
    assert_eq!(holder.flags & STATE_REVOKED, 0);
    while writer.call(ops().put(&file).set_mode(0o600)).unwrap().status == DELAY {}
    // The recall itself was never answered.
    let test = |holder: &mut Holder, stateid| holder.must(&ops().test_stateid(stateid)).results.split_off(12);
    assert_eq!(test(&mut holder, stateid), DELEG_REVOKED.to_be_bytes());
    assert_eq!(holder.flags & STATE_REVOKED, STATE_REVOKED);
    for call in [
        ops().put(&file).read(stateid, 0, 1),
        delegreturn(ops().put(&file), stateid),
        open_by(ops().put(&file), 1, &deleg_cur_fh(stateid)),
    ] {
        assert_eq!(holder.call(&call).status, DELEG_REVOKED);
    }
    assert_eq!(holder.open(b"file").2, Err(Some(2)));
    holder.must(&ops().free(stateid));
    while v3_write(&mut third, &of_3).is_err() {}
    holder.must(&ops().free(of_3_stateid));
    holder.must(&root());
    assert_eq!(holder.flags & STATE_REVOKED, 0);
    let counts = world.volume.delegations().counts();
    assert_eq!((counts.held, counts.recalled, counts.revoked), (0, 2, 2));
}

#[test]
fn a_client_that_does_not_know_the_delegation_yet_is_called_again() {
    let world = delegating(LONG_NS, with_files(&["file"]));
    let (mut holder, mut writer) = (Holder::begin(&world, b"holder"), other(&world));
    let held = holder.delegated(b"file");
    std::thread::scope(|threads| {
        let writing = threads.spawn(|| writer.call(ops().put(&held.1).set_mode(0o600)).unwrap().status);
        assert!(holder.answer_next(status::BAD_STATEID).recalled.is_some());
        assert!(holder.answer_next(0).recalled.is_some());
        assert_eq!(holder.give_back(&held), 0);
        assert_eq!(writing.join().unwrap(), 0);
    });
}

#[test]
fn the_delegations_of_a_client_that_ends_hold_up_nobody() {
    let world = delegating(LONG_NS, with_files(&["file"]));
    let (mut holder, mut writer) = (Holder::begin(&world, b"holder"), other(&world));
    let (_, file) = holder.delegated(b"file");
    let number = world.server.clients()[0].id;
    assert!(world.server.try_end_client(number));
    writer.must(ops().put(&file).set_mode(0o600)).unwrap();
    assert_eq!(world.volume.delegations().counts().held, 0);
    assert_eq!(holder.call(&root()).status, status::BADSESSION);
}

/// The next server of the same directory, with these words. The volume of the one before had the client's delegation.
fn killed(world: &mut World, words: Vec<u64>, name: &[u8]) {
    let root = Arc::clone(world.volume.export_root("/").unwrap());
    let file = world.platform.block_on(world.volume.lookup_by(&Caller::SERVER, &root, name)).unwrap().0.fileid();
    for client in world.server.clients() {
        world.volume.delegations().end(file, client.id.0);
    }
    assert_eq!(world.volume.delegations().counts().held, 0);
    kept::next(world, memory(words), Vec::new());
}

// rule: after a kill with memory that outlives it, a client has its delegation again, and a change recalls it
#[test]
fn a_delegation_goes_on_over_a_kill() {
    let mut world = World::over(with_files(&["file"]));
    world.volume.delegations().turn_on(LONG_NS);
    let words = memory((0..WORDS).map(|_| 0));
    kept::next(&mut world, words.clone(), Vec::new());
    let mut holder = Holder::begin(&world, b"holder");
    let held = holder.delegated(b"file");
    killed(&mut world, words.copy(), b"file");
    holder.connect(&world);
    holder.must(&ops().put(&held.1).read(held.0, 0, 1).test_stateid(held.0));
    assert_eq!(world.volume.delegations().counts().held, 1);
    holder.bind();
    assert!(holder.answer_next(0).recalled.is_none(), "the call of before, which has no notice");
    let mut writer = other(&world);
    std::thread::scope(|threads| {
        let writing = threads.spawn(|| writer.call(ops().put(&held.1).set_mode(0o600)).unwrap().status);
        assert_eq!(holder.answer_next(0).recalled, Some(held.clone()));
        assert_eq!(holder.give_back(&held), 0);
        assert_eq!(writing.join().unwrap(), 0);
    });
}

#[test]
fn a_revoked_delegation_is_revoked_after_a_kill() {
    let mut world = World::over(with_files(&["file"]));
    world.volume.delegations().turn_on(300 * Nanos::MILLISECOND);
    let words = memory((0..WORDS).map(|_| 0));
    kept::next(&mut world, words.clone(), Vec::new());
    let (mut holder, mut writer) = (Holder::begin(&world, b"holder"), other(&world));
    let (stateid, file) = holder.delegated(b"file");
    writer.must(ops().put(&file).set_mode(0o600)).unwrap();
    killed(&mut world, words.copy(), b"file");
    holder.connect(&world);
    let read = holder.call(&ops().put(&file).read(stateid, 0, 1));
    assert_eq!((read.status, holder.flags & STATE_REVOKED), (DELEG_REVOKED, STATE_REVOKED));
    assert_eq!(world.volume.delegations().counts().held, 0);
    holder.must(&ops().free(stateid));
    killed(&mut world, words.copy(), b"file");
    holder.connect(&world);
}

// rule: after a restart without that memory others' changes wait until the clients have reclaimed their delegations
#[test]
fn a_delegation_is_reclaimed_after_a_restart_and_nobody_changes_the_file_before() {
    const GRACE: u32 = 10_013;
    let list = Arc::new(List::default());
    let mut world = World::over(with_files(&["file", "other"]));
    world.volume.delegations().turn_on(LONG_NS);
    let memory =
        |previous_names| ClientMemory { previous_names, list: Some(Arc::clone(&list) as _), ..ClientMemory::default() };
    world.server.offer_version_4(memory(Vec::new()));
    let mut holder = Holder::begin(&world, b"holder");
    let (_, file) = holder.delegated(b"file");
    let number = world.server.clients()[0].id.0;
    let inode = world.platform.block_on(world.volume.resolve(&file)).unwrap();
    world.volume.delegations().end(inode.fileid(), number);
    let names = list.0.lock().unwrap().clone();
    world.server = afflux_nfs::Server::new(Arc::clone(&world.volume), afflux_nfs::AdmittedPeers::AnyPeer);
    world.server.offer_version_4(memory(names));
    let mut third = Peer::new(&world, CLIENT);
    let root_3 = third.root();
    let of_3 = world.lookup(&mut third, &root_3, b"file");
    assert_eq!(v3_write(&mut third, &of_3), Err(nfsstat3::NFS3ERR_JUKEBOX));
    let removed =
        third.nfs(12, &REMOVE3args { object: diropargs3 { dir: root_3.clone(), name: b"file".to_vec().into() } });
    assert!(matches!(removed, REMOVE3res::Err((nfsstat3::NFS3ERR_JUKEBOX, _))));
    let mut new = other(&world);
    assert_eq!(new.call(ops().put(&file).set_mode(0o600)).unwrap().status, DELAY);
    let mut holder = Holder::reclaiming(&world, b"holder");
    let previous = |kind: u32| [1_u32.to_be_bytes(), kind.to_be_bytes()].concat();
    assert_eq!(holder.call(&open_by(ops().put(&file), 1, &deleg_cur_fh(ANONYMOUS))).status, GRACE);
    let reclaimed = holder.must(&open_by(ops().put(&file), 1, &previous(1)).get_handle());
    let held = (opened(&reclaimed).2.expect("the delegation of before"), file.clone());
    let without = holder.must(&open_by(ops().put(&file), 1, &previous(0)).get_handle());
    assert_eq!(opened(&without).2, Err(None));
    assert_eq!(holder.call(&ops().reclaim_complete()).status, 0);
    holder.answer_next(0);
    std::thread::scope(|threads| {
        let writing = threads.spawn(|| v3_write(&mut third, &of_3));
        assert_eq!(holder.answer_next(0).recalled, Some(held.clone()));
        assert_eq!(holder.give_back(&held), 0);
        assert_eq!(writing.join().unwrap(), Ok(()));
    });
}
