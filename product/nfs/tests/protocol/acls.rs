//! POSIX access control lists over version 4.2, behind their switch.

use std::process::Command;

use afflux_nfs_client::sessions::{Compound, Session};

use crate::compounds::{BOTH, begun, ops, root, status};
use crate::world::World;

const GETATTR: u32 = 9;
const CREATE: u32 = 6;
const NVERIFY: u32 = 17;
const OPEN: u32 = 18;
const SETATTR: u32 = 34;
const READDIR: u32 = 26;
const ATTRNOTSUPP: u32 = 10_032;
const TRUEFORM: u32 = 89;
const SCOPE: u32 = 90;
const DEFAULT: u32 = 91;
const ACCESS: u32 = 92;

fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut field = (bytes.len() as u32).to_be_bytes().to_vec();
    field.extend(bytes);
    field.resize(field.len().next_multiple_of(4), 0);
    field
}

fn bitmap(numbers: &[u32]) -> Vec<u8> {
    let word = numbers.iter().fold(0, |word, number| word | 1 << (number - 64));
    [3_u32, 0, 0, word].map(u32::to_be_bytes).concat()
}

fn entry(tag: u32, permissions: u32, who: &str) -> Vec<u8> {
    [tag.to_be_bytes().to_vec(), permissions.to_be_bytes().to_vec(), opaque(who.as_bytes())].concat()
}

fn list(entries: &[Vec<u8>]) -> Vec<u8> {
    [&(entries.len() as u32).to_be_bytes()[..], &entries.concat()].concat()
}

/// Owner rw, user 4001 r, the group r, at most r, others none.
fn shared() -> Vec<u8> {
    list(&[entry(1, 6, ""), entry(2, 4, "4001"), entry(3, 4, ""), entry(5, 4, ""), entry(6, 0, "")])
}

fn set(compound: Compound, number: u32, value: &[u8]) -> Compound {
    compound.raw(SETATTR, &[vec![0; 16], bitmap(&[number]), opaque(value)].concat())
}

/// The attributes that the answer has of these, and their values.
fn shown(session: &mut Session, compound: Compound, numbers: &[u32]) -> (u32, Vec<u8>) {
    let outcome = session.must(compound.raw(GETATTR, &bitmap(numbers))).unwrap();
    let mut reader = outcome.reader();
    while reader.next_result().unwrap().0 != GETATTR {}
    let (words, values) = reader.attributes().unwrap();
    (words.get(2).copied().unwrap_or_default(), values.to_vec())
}

fn offer(world: &World) {
    let engine = world.volume.engine();
    engine.set_knob(engine.settings().named("nfs_posix_acls").unwrap(), 1).unwrap();
}

/// The lists that the host has, as getfacl(1) shows them.
fn on_host(world: &World, name: &str) -> Option<String> {
    let shown = Command::new("getfacl").args(["-nEcp", name]).current_dir(&world.path).output().ok()?;
    assert!(shown.status.success(), "{shown:?}");
    Some(String::from_utf8(shown.stdout).unwrap().trim().replace('\n', " "))
}

#[test]
fn a_list_that_a_client_sets_is_the_hosts_and_comes_back() {
    let (world, mut session) = begun(2);
    offer(&world);
    std::fs::write(world.path.join("file"), b"bytes").unwrap();
    let file = || root().lookup(b"file");
    let by_mode = list(&[entry(1, 6, ""), entry(3, 4, ""), entry(6, 4, "")]);
    let forms = [2_u32, 2].map(u32::to_be_bytes).concat();
    assert_eq!(
        shown(&mut session, file(), &[TRUEFORM, SCOPE, DEFAULT, ACCESS]),
        (0b1111 << 25, [forms, list(&[]), by_mode.clone()].concat())
    );
    session.must(set(file(), ACCESS, &shared())).unwrap();
    if let Some(host) = on_host(&world, "file") {
        assert_eq!(host, "user::rw- user:4001:r-- group::r-- mask::r-- other::---");
    }
    assert_eq!(shown(&mut session, file(), &[ACCESS]), (1 << 28, shared()));
    // Without its entries the mode is what remains.
    session.must(set(file(), ACCESS, &list(&[]))).unwrap();
    let by_mode = list(&[entry(1, 6, ""), entry(3, 4, ""), entry(6, 0, "")]);
    assert_eq!(shown(&mut session, file(), &[ACCESS]), (1 << 28, by_mode));
    // A list goes twice.
    session.must(set(file(), ACCESS, &list(&[]))).unwrap();
}

#[test]
fn new_objects_have_the_lists_that_their_creation_names() {
    let (world, mut session) = begun(2);
    offer(&world);
    let attributes = |number, value: &[u8]| [bitmap(&[number]), opaque(value)].concat();
    let head = [0_u32, BOTH, 0, 0, 0].map(u32::to_be_bytes).concat();
    let open = [head, opaque(b"owner"), [1_u32, 0].map(u32::to_be_bytes).concat()].concat();
    let open = [open, attributes(ACCESS, &shared()), vec![0; 4], opaque(b"file")].concat();
    let opened = session.must(root().raw(OPEN, &open)).unwrap();
    let mut reader = opened.reader();
    while reader.next_result().unwrap().0 != OPEN {}
    assert_eq!(shown(&mut session, root().lookup(b"file"), &[ACCESS]), (1 << 28, shared()));
    // A directory with a default list, which its files get.
    let make = [2_u32.to_be_bytes().to_vec(), opaque(b"directory"), attributes(DEFAULT, &shared())].concat();
    session.must(root().raw(CREATE, &make)).unwrap();
    assert_eq!(shown(&mut session, root().lookup(b"directory"), &[DEFAULT]), (1 << 27, shared()));
    let inner = || root().lookup(b"directory");
    session.must(inner().open((BOTH, 0), b"owner", b"inner", true)).unwrap();
    let inherited = shown(&mut session, inner().lookup(b"inner"), &[ACCESS]);
    assert_eq!(inherited, (1 << 28, shared()));
}

/// The attributes of a listing's entries.
fn listed(session: &mut Session, numbers: &[u32], bytes: u32) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let words = numbers.iter().fold([0; 3], |mut words: [u32; 3], number| {
        words[*number as usize / 32] |= 1 << (number % 32);
        words
    });
    let (mut entries, mut cookie) = (Vec::new(), 0);
    loop {
        let answer = session.must(root().list(cookie, bytes, &words)).unwrap();
        let mut reader = answer.reader();
        while reader.next_result().unwrap().0 != READDIR {}
        reader.skip(8).unwrap();
        while reader.u32() == Ok(1) {
            cookie = reader.u64().unwrap();
            let name = reader.opaque().unwrap().to_vec();
            let (words, values) = reader.attributes().unwrap();
            entries.push((name, words.get(2).copied().unwrap_or_default(), values.to_vec()));
        }
        if reader.u32() == Ok(1) {
            break;
        }
    }
    entries.sort();
    entries
}

#[test]
fn a_listing_has_the_lists_that_each_object_has() {
    let (world, mut session) = begun(2);
    offer(&world);
    std::fs::write(world.path.join("shared"), b"bytes").unwrap();
    std::fs::write(world.path.join("plain"), b"bytes").unwrap();
    std::os::unix::fs::symlink("plain", world.path.join("link")).unwrap();
    session.must(set(root().lookup(b"shared"), ACCESS, &shared())).unwrap();
    session.must(root().make_directory(b"directory")).unwrap();
    session.must(set(root().lookup(b"directory"), DEFAULT, &shared())).unwrap();
    let names: [&[u8]; 4] = [b"directory", b"link", b"plain", b"shared"];
    let numbers = [TRUEFORM, SCOPE, DEFAULT, ACCESS];
    let alone = names.map(|name| {
        let (words, values) = shown(&mut session, root().lookup(name), &numbers);
        (name.to_vec(), words, values)
    });
    assert!(alone[3].2.ends_with(&shared()) && alone[1].1 == 0b11 << 25, "{alone:?}");
    // In one piece, and in pieces that hold an entry or two.
    for bytes in [1 << 16, 330] {
        assert_eq!(listed(&mut session, &numbers, bytes), alone, "{bytes}");
    }
    // Without the switch they are no attributes.
    let engine = world.volume.engine();
    engine.set_knob(engine.settings().named("nfs_posix_acls").unwrap(), 0).unwrap();
    let without = names.map(|name| (name.to_vec(), 0, Vec::new()));
    assert_eq!(listed(&mut session, &numbers, 1 << 16), without);
}

#[test]
fn bad_lists_are_refused_and_lists_are_not_compared() {
    let (world, mut session) = begun(2);
    offer(&world);
    std::fs::write(world.path.join("file"), b"bytes").unwrap();
    let file = || root().lookup(b"file");
    let mut status_of = |compound: Compound| session.call(compound).unwrap().status;
    // The host wants a mask with a user, and each entry of an owner once.
    let without_mask = list(&[entry(1, 6, ""), entry(2, 4, "4001"), entry(3, 4, ""), entry(6, 0, "")]);
    assert_eq!(status_of(set(file(), ACCESS, &without_mask)), status::INVAL);
    assert_eq!(status_of(set(file(), ACCESS, &list(&[entry(9, 6, "")]))), status::BADXDR);
    assert_eq!(status_of(set(file(), ACCESS, &list(&vec![entry(1, 6, ""); 1025]))), status::INVAL);
    let compared = [bitmap(&[ACCESS]), opaque(&shared())].concat();
    assert_eq!(status_of(file().raw(NVERIFY, &compared)), status::INVAL);
    assert_ne!(status_of(set(file(), DEFAULT, &shared())), 0, "only directories have default lists");
    // They are attributes of 4.2, by the switch alone.
    let engine = world.volume.engine();
    engine.set_knob(engine.settings().named("nfs_posix_acls").unwrap(), 0).unwrap();
    assert_eq!(status_of(set(file(), ACCESS, &shared())), ATTRNOTSUPP);
    assert_eq!(shown(&mut session, file(), &[TRUEFORM, ACCESS]), (0, Vec::new()));
    session.must(ops().put_root()).unwrap();
}
