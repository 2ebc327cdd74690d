//! Extended attributes over version 4.2, behind their switch.

use afflux_nfs_client::Fields;
use afflux_nfs_client::sessions::{Compound, Outcome, OutcomeReader, Session};

use crate::compounds::{BOTH, begun, open, ops, root, status};
use crate::world::World;

const GET: u32 = 72;
const SET: u32 = 73;
const LIST: u32 = 74;
const REMOVE: u32 = 75;
const EITHER: u32 = 0;
const CREATE: u32 = 1;
const REPLACE: u32 = 2;
/// The attribute that tells of them.
const OFFERED: [u32; 3] = [0, 0, 1 << (82 - 64)];

const BAD_COOKIE: u32 = 10_003;
const TOOSMALL: u32 = 10_005;
const NOXATTR: u32 = 10_095;
const XATTR2BIG: u32 = 10_096;

fn opaque(bytes: &[u8]) -> Vec<u8> {
    Fields::default().opaque(bytes).0
}

fn get(name: &[u8]) -> Compound {
    ops().raw(GET, &opaque(name))
}

fn set(how: u32, name: &[u8], value: &[u8]) -> Compound {
    ops().raw(SET, &[how.to_be_bytes().to_vec(), opaque(name), opaque(value)].concat())
}

fn list(cookie: u64, bytes_max: u32) -> Compound {
    ops().raw(LIST, &[&cookie.to_be_bytes()[..], &bytes_max.to_be_bytes()].concat())
}

fn remove(name: &[u8]) -> Compound {
    ops().raw(REMOVE, &opaque(name))
}

/// The result of the operation behind a PUTFH.
fn result(outcome: &Outcome) -> OutcomeReader<'_> {
    let mut reader = outcome.reader();
    reader.next_result().unwrap();
    assert_eq!(reader.next_result().unwrap().1, 0);
    reader
}

fn offer(world: &World) {
    let engine = world.volume.engine();
    engine.set_knob(engine.settings().named("nfs_xattrs").unwrap(), 1).unwrap();
}

/// The names from a cookie on, in at most so many bytes: the next cookie, the names, and whether they are the last.
fn names(session: &mut Session, file: &[u8], cookie: u64, bytes_max: u32) -> Result<(u64, Vec<Vec<u8>>, bool), u32> {
    let outcome = session.call(ops().put(file).followed_by(&list(cookie, bytes_max))).unwrap();
    if outcome.status != 0 {
        return Err(outcome.status);
    }
    let mut reader = outcome.reader();
    reader.skip_sequence().unwrap();
    reader.next_result().unwrap();
    reader.next_result().unwrap();
    let (cookie, count) = (reader.u64().unwrap(), reader.u32().unwrap());
    let names = (0..count).map(|_| reader.opaque().unwrap().to_vec()).collect();
    let is_end = reader.u32().unwrap() == 1;
    reader.end().unwrap();
    Ok((cookie, names, is_end))
}

#[test]
fn without_the_switch_there_are_none_and_nobody_asks() {
    let (world, mut session) = begun(2);
    let (_, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    for it in [get(b"a"), set(EITHER, b"a", b"1"), list(0, 4096), remove(b"a")] {
        assert_eq!(session.call(ops().put(&file).followed_by(&it)).unwrap().status, status::NOTSUPP);
    }
    let supported = |session: &mut Session| {
        let outcome = session.must(ops().put(&file).attributes(&[1])).unwrap();
        let (_, values) = result(&outcome).attributes().unwrap();
        values[values.len() - 4..].to_vec()
    };
    let last = |session: &mut Session| u32::from_be_bytes(supported(session).try_into().unwrap());
    assert_eq!(last(&mut session) & OFFERED[2], 0);
    let rights = |session: &mut Session| {
        let outcome = session.must(ops().put(&file).access(0x1ff)).unwrap();
        let mut reader = result(&outcome);
        (reader.u32().unwrap() & 0x1c0, reader.u32().unwrap() & 0x1c0)
    };
    assert_eq!(rights(&mut session), (0, 0));
    offer(&world);
    assert_eq!(last(&mut session) & OFFERED[2], OFFERED[2]);
    let outcome = session.must(ops().put(&file).attributes(&OFFERED)).unwrap();
    assert_eq!(result(&outcome).attributes().unwrap(), (OFFERED.to_vec(), &[0, 0, 0, 1][..]));
    assert_eq!(rights(&mut session), (0x1c0, 0x1c0));
}

#[test]
fn attributes_are_the_hosts_and_come_and_go_as_asked() {
    let (world, mut session) = begun(2);
    offer(&world);
    let (_, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let path = world.path.join("file");
    if xattr(&path, "user.probe", b"").is_err() {
        afflux_scratch::skipped!("the file system of the temporary directory has no extended attributes");
        return;
    }
    rustix::fs::removexattr(&path, "user.probe").unwrap();
    let mut of = |it: &Compound| session.call(ops().put(&file).followed_by(it)).unwrap().status;
    assert_eq!((of(&get(b"a")), of(&remove(b"a")), of(&set(REPLACE, b"a", b"x"))), (NOXATTR, NOXATTR, NOXATTR));
    assert_eq!((of(&set(CREATE, b"a", b"one")), of(&set(CREATE, b"a", b"two"))), (0, status::EXIST));
    assert_eq!((of(&set(REPLACE, b"a", b"three")), of(&set(EITHER, b"b", b""))), (0, 0));
    let mut value = [0; 9];
    assert_eq!(rustix::fs::getxattr(&path, "user.a", &mut value[..]), Ok(5));
    assert_eq!(&value[..5], b"three");
    assert_eq!((of(&get(b"")), of(&get(&[b'n'; 251]))), (status::INVAL, status::NAMETOOLONG));
    assert_eq!(of(&set(EITHER, b"a", &vec![0; 65_537])), XATTR2BIG);
    assert_eq!(of(&set(3, b"a", b"")), status::BADXDR);
    let outcome = session.must(ops().put(&file).followed_by(&get(b"a"))).unwrap();
    assert_eq!(result(&outcome).opaque(), Ok(&b"three"[..]));
    // A change is one of the file: before and after, as one step.
    let outcome = session.must(ops().put(&file).followed_by(&remove(b"b"))).unwrap();
    let mut reader = result(&outcome);
    let change = (reader.u32().unwrap(), reader.u64().unwrap(), reader.u64().unwrap());
    assert!(change.0 == 1 && change.1 < change.2, "{change:?}");
    assert_eq!(names(&mut session, &file, 0, 4096), Ok((1, vec![b"a".to_vec()], true)));
    // The export is an object as others. A compound without an object has nothing to ask for.
    session.must(root().followed_by(&list(0, 4096))).unwrap();
    assert_eq!(session.call(get(b"a")).unwrap().status, status::NOFILEHANDLE);
}

#[test]
fn lists_come_in_parts_and_have_only_the_attributes_of_users() {
    let (world, mut session) = begun(2);
    offer(&world);
    let (_, file) = open(&mut session, (BOTH, 0), b"owner", b"file");
    let path = world.path.join("file");
    if xattr(&path, "user.c", b"").is_err() || xattr(&path, "trusted.secret", b"").is_err() {
        afflux_scratch::skipped!("extended attributes of all kinds need root and a file system that has them");
        return;
    }
    for name in ["user.a", "user.bb"] {
        xattr(&path, name, b"").unwrap();
    }
    let name = |name: &[u8]| name.to_vec();
    assert_eq!(names(&mut session, &file, 0, 4096), Ok((3, vec![name(b"a"), name(b"bb"), name(b"c")], true)));
    assert_eq!(names(&mut session, &file, 0, 32), Ok((2, vec![name(b"a"), name(b"bb")], false)));
    assert_eq!(names(&mut session, &file, 2, 32), Ok((3, vec![name(b"c")], true)));
    assert_eq!(names(&mut session, &file, 3, 32), Ok((3, vec![], true)));
    assert_eq!(names(&mut session, &file, 0, 23), Err(TOOSMALL));
    assert_eq!(names(&mut session, &file, 0, 0), Err(TOOSMALL));
    assert_eq!(names(&mut session, &file, 4, 4096), Err(BAD_COOKIE));
    assert_eq!(session.call(ops().put(&file).followed_by(&get(b"../trusted.secret"))).unwrap().status, NOXATTR);
}

fn xattr(path: &std::path::Path, name: &str, value: &[u8]) -> Result<(), rustix::io::Errno> {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty())
}
