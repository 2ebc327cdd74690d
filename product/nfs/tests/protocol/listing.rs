//! READDIR and READDIRPLUS.

use std::collections::BTreeSet;

use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::Pack;

use crate::peer::Peer;
use crate::world::{CLIENT, World};

/// A piece of a listing: names with cookies, the verifier, the end, the bytes of the results.
type Piece = (Vec<(Vec<u8>, u64)>, cookieverf3, bool, usize);

fn readdir(peer: &mut Peer, dir: &nfs_fh3, cookie: u64, verifier: cookieverf3, count: u32) -> Result<Piece, nfsstat3> {
    let arguments = READDIR3args { dir: dir.clone(), cookie, cookieverf: verifier, count };
    match peer.nfs(16, &arguments) {
        READDIR3res::Ok(ok) => {
            assert!(ok.dir_attributes.is_some());
            let bytes = ok.packed_size();
            let entries = ok.reply.entries.0.iter().map(|entry| (entry.name.0.to_vec(), entry.cookie));
            Ok((entries.collect(), ok.cookieverf, ok.reply.eof, bytes))
        }
        READDIR3res::Err((status, fail)) => {
            assert!(fail.dir_attributes.is_some());
            Err(status)
        }
    }
}

fn readdirplus(
    peer: &mut Peer,
    dir: &nfs_fh3,
    cookie: u64,
    dircount: u32,
    maxcount: u32,
) -> Result<READDIRPLUS3resok<'static>, nfsstat3> {
    let cookieverf = cookieverf3([0; 8]);
    match peer.nfs(17, &READDIRPLUS3args { dir: dir.clone(), cookie, cookieverf, dircount, maxcount }) {
        READDIRPLUS3res::Ok(ok) => Ok(ok),
        READDIRPLUS3res::Err((status, fail)) => {
            assert!(fail.dir_attributes.is_some());
            Err(status)
        }
    }
}

/// A directory with names of all lengths, and those names with "." and "..".
fn filled(world: &World, count: usize) -> BTreeSet<Vec<u8>> {
    let mut names = BTreeSet::from([b".".to_vec(), b"..".to_vec()]);
    for number in 0..count {
        let name = format!("{number:0width$}", width = 1 + number % 255);
        std::fs::write(world.path.join(&name), b"").unwrap();
        names.insert(name.into_bytes());
    }
    names
}

#[test]
fn lists_every_name_once_within_the_room_given() {
    let world = World::new();
    let names = filled(&world, 300);
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    for count in [400, 512, 1000, 4096, 32_768, 65_536, u32::MAX] {
        let (mut seen, mut cookie, mut verifier) = (BTreeSet::new(), 0, cookieverf3([0; 8]));
        loop {
            let (entries, next, end, bytes) = readdir(&mut peer, &root, cookie, verifier, count).unwrap();
            assert!(bytes <= count as usize, "{bytes} bytes where {count} are allowed");
            assert!(!entries.is_empty() || end);
            for (name, next_cookie) in entries {
                assert!(seen.insert(name), "a name twice");
                cookie = next_cookie;
            }
            verifier = next;
            if end {
                break;
            }
        }
        assert_eq!(seen, names, "{count}");
    }
}

#[test]
fn says_so_where_not_one_entry_fits() {
    let world = World::new();
    filled(&world, 3);
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let verifier = cookieverf3([0; 8]);
    for count in [0, 1, 100, 104, 104 + 27] {
        assert_eq!(readdir(&mut peer, &root, 0, verifier, count).err(), Some(nfsstat3::NFS3ERR_TOOSMALL), "{count}");
    }
    // The attributes, the verifier, the trailer, and "." alone: 88 + 8 + 8 + 28.
    let (entries, _, end, bytes) = readdir(&mut peer, &root, 0, verifier, 132).unwrap();
    assert_eq!((entries.len(), end, bytes), (1, false, 132));
    // No entry follows the last name, but the reply needs room even for that.
    let last = readdir(&mut peer, &root, 0, verifier, 4096).unwrap().0.last().unwrap().1;
    assert_eq!(readdir(&mut peer, &root, last, verifier, 103).err(), Some(nfsstat3::NFS3ERR_TOOSMALL));
    assert_eq!(readdir(&mut peer, &root, last, verifier, 104).unwrap().3, 104);
    let too_small = Some(nfsstat3::NFS3ERR_TOOSMALL);
    assert_eq!(readdirplus(&mut peer, &root, 0, 4096, 132).err(), too_small);
    assert_eq!(readdirplus(&mut peer, &root, 0, 23, 4096).err(), too_small);
}

#[test]
fn lists_with_attributes_and_handles() {
    let world = World::new();
    let names = filled(&world, 50);
    std::fs::create_dir(world.path.join("directory")).unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    for (dircount, maxcount) in [(65_536, 65_536), (512, 65_536), (65_536, 1024), (u32::MAX, u32::MAX)] {
        let (mut seen, mut cookie) = (BTreeSet::new(), 0);
        loop {
            let piece = readdirplus(&mut peer, &root, cookie, dircount, maxcount).unwrap();
            assert!(piece.packed_size() <= maxcount as usize);
            let directory_bytes = |entry: &entryplus3<'_>| 8 + entry.name.packed_size() + 8;
            let total: usize = piece.reply.entries.0.iter().map(directory_bytes).sum();
            assert!(total <= dircount as usize);
            assert!(piece.dir_attributes.is_some());
            for entry in &piece.reply.entries.0 {
                assert!(seen.insert(entry.name.0.to_vec()));
                cookie = entry.cookie;
                let (attributes, handle) = (entry.name_attributes.clone().unwrap(), entry.name_handle.clone().unwrap());
                assert_eq!(attributes.fileid, entry.fileid);
                if entry.name.0.as_ref() != b".." {
                    assert_eq!(world.lookup(&mut peer, &root, &entry.name.0), handle);
                }
            }
            if piece.reply.eof {
                break;
            }
        }
        let mut expected = names.clone();
        expected.insert(b"directory".to_vec());
        assert_eq!(seen, expected);
    }
}

#[test]
fn goes_on_while_entries_come_and_go_whatever_the_verifier() {
    let world = World::new();
    let names = filled(&world, 200);
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let (mut seen, mut cookie, mut round) = (BTreeSet::new(), 0, 0);
    loop {
        let stale = cookieverf3([round as u8; 8]);
        let (entries, _, end, _) = readdir(&mut peer, &root, cookie, stale, 1000).unwrap();
        for (name, next) in entries {
            seen.insert(name);
            cookie = next;
        }
        if end {
            break;
        }
        std::fs::write(world.path.join(format!("new{round}")), b"").unwrap();
        round += 1;
        assert!(round < 1000, "endless");
    }
    assert!(seen.is_superset(&names));
}

#[test]
fn lists_directories_only() {
    let world = World::new();
    std::fs::write(world.path.join("file"), b"x").unwrap();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file");
    let verifier = cookieverf3([0; 8]);
    assert_eq!(readdir(&mut peer, &file, 0, verifier, 4096).err(), Some(nfsstat3::NFS3ERR_NOTDIR));
    assert_eq!(readdirplus(&mut peer, &file, 0, 4096, 4096).err(), Some(nfsstat3::NFS3ERR_NOTDIR));
    assert_eq!(readdir(&mut peer, &root, u64::MAX, verifier, 4096).err(), Some(nfsstat3::NFS3ERR_BAD_COOKIE));
}
