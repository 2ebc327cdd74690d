//! Exchanges byte by byte, written from RFC 1813 and RFC 5531 by hand, to find errors that encoder and decoder share.
//! Only handles, times and numbers of the host are filled in.

use std::os::unix::fs::MetadataExt;

use crate::peer::Peer;
use crate::world::{CLIENT, World};

/// Bytes from hexadecimal digits; spaces and line ends are for reading.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends a call given in hexadecimal, without its mark, and compares the reply.
fn exchange(peer: &mut Peer, call: &str, reply: &str) {
    let call = hex(call);
    peer.send(&[&(call.len() as u32 | 0x8000_0000).to_be_bytes(), &call[..]].concat()).unwrap();
    let got = peer.replies(1).remove(0);
    assert_eq!(to_hex(&got), to_hex(&hex(reply)));
}

/// A handle as an opaque on the wire, in hexadecimal.
fn wire(handle: &[u8]) -> String {
    let padding = "00".repeat(handle.len().wrapping_neg() & 3);
    format!("{:08x}{}{padding}", handle.len(), to_hex(handle))
}

/// `fattr3` of a host's object, in hexadecimal.
fn fattr(kind: u32, host: &std::fs::Metadata) -> String {
    let time = |seconds: i64, nanos: i64| format!("{seconds:08x}{nanos:08x}");
    format!(
        "{kind:08x} {:08x} {:08x} {:08x} {:08x} {:016x} {:016x} 00000000 00000000 FSID {:016x} {} {} {}",
        host.mode() & 0o7777,
        host.nlink(),
        host.uid(),
        host.gid(),
        host.size(),
        host.blocks() * 512,
        host.ino(),
        time(host.atime(), host.atime_nsec()),
        time(host.mtime(), host.mtime_nsec()),
        time(host.ctime(), host.ctime_nsec()),
    )
}

/// The file system's number in a GETATTR reply: the only figure of `fattr3` that is the server's own.
fn fsid(peer: &mut Peer, handle: &[u8]) -> String {
    let object = nfs3_types::nfs3::nfs_fh3 { data: nfs3_types::xdr_codec::Opaque::owned(handle.to_vec()) };
    match peer.nfs(1, &nfs3_types::nfs3::GETATTR3args { object }) {
        nfs3_types::nfs3::GETATTR3res::Ok(ok) => format!("{:016x}", ok.obj_attributes.fsid),
        other => panic!("{other:?}"),
    }
}

/// A call's header up to its arguments: AUTH_NONE, an empty verifier.
fn header(xid: &str, procedure: &str) -> String {
    format!("{xid} 00000000 00000002 000186a3 00000003 {procedure} 00000000 00000000 00000000 00000000")
}

/// A reply's header up to its results.
fn accepted(xid: &str) -> String {
    format!("{xid} 00000001 00000000 00000000 00000000 00000000")
}

#[test]
fn null() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    exchange(
        &mut peer,
        "0000abcd 00000000 00000002 000186a3 00000003 00000000 00000000 00000000 00000000 00000000",
        "0000abcd 00000001 00000000 00000000 00000000 00000000",
    );
    // With AUTH_SYS: stamp, machine "host", uid 1000, gid 100, groups 4 and 24.
    exchange(
        &mut peer,
        "0000abce 00000000 00000002 000186a3 00000003 00000000
         00000001 00000024 12345678 00000004 686f7374 000003e8 00000064 00000002 00000004 00000018 0000",
        "0000abce 00000001 00000000 00000000 00000000 00000004",
    );
}

#[test]
fn mount() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root().data.to_vec();
    let call = "00000001 00000000 00000002 000186a5 00000003 00000001 00000000 00000000 00000000 00000000
                00000001 2f000000";
    let reply = format!("{} 00000000 {} 00000002 00000001 00000000", accepted("00000001"), wire(&root));
    exchange(&mut peer, call, &reply);
}

#[test]
fn getattr() {
    let world = World::over(|path| std::fs::write(path.join("file"), b"twelve bytes").unwrap());
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file").data.to_vec();
    let fsid = fsid(&mut peer, &file);
    let host = std::fs::metadata(world.path.join("file")).unwrap();
    let call = format!("{} {}", header("00000002", "00000001"), wire(&file));
    let reply = format!("{} 00000000 {}", accepted("00000002"), fattr(1, &host).replace("FSID", &fsid));
    exchange(&mut peer, &call, &reply);
}

#[test]
fn lookup() {
    let world = World::over(|path| std::fs::write(path.join("file"), b"x").unwrap());
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file").data.to_vec();
    let root = root.data.to_vec();
    let fsid = fsid(&mut peer, &root);
    let host_file = std::fs::metadata(world.path.join("file")).unwrap();
    let host_root = std::fs::metadata(&world.path).unwrap();
    let call = format!("{} {} 00000004 66696c65", header("00000003", "00000003"), wire(&root));
    let reply = format!(
        "{} 00000000 {} 00000001 {} 00000001 {}",
        accepted("00000003"),
        wire(&file),
        fattr(1, &host_file),
        fattr(2, &host_root)
    );
    exchange(&mut peer, &call, &reply.replace("FSID", &fsid));
    // A missing name: status 2, and the directory's attributes.
    let call = format!("{} {} 00000005 6e6f706521000000", header("00000004", "00000003"), wire(&root));
    let reply = format!("{} 00000002 00000001 {}", accepted("00000004"), fattr(2, &host_root));
    exchange(&mut peer, &call, &reply.replace("FSID", &fsid));
}

#[test]
fn read() {
    let world = World::over(|path| std::fs::write(path.join("file"), b"twelve bytes").unwrap());
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.lookup(&mut peer, &root, b"file").data.to_vec();
    let fsid = fsid(&mut peer, &file);
    for xid in ["00000005", "00000006"] {
        // Seven bytes from offset 2: "elve by", one byte of padding, not the end.
        let call = format!("{} {} 0000000000000002 00000007", header(xid, "00000006"), wire(&file));
        let host = std::fs::metadata(world.path.join("file")).unwrap();
        let reply = format!(
            "{} 00000000 00000001 {} 00000007 00000000 00000007 656c7665206279 00",
            accepted(xid),
            before_reads(&mut peer, &file, &host)
        );
        exchange(&mut peer, &call, &reply.replace("FSID", &fsid));
    }
    // Past the end: no bytes, and the end.
    let call = format!("{} {} 000000000000000c 00001000", header("00000007", "00000006"), wire(&file));
    let host = std::fs::metadata(world.path.join("file")).unwrap();
    let reply = format!(
        "{} 00000000 00000001 {} 00000000 00000001 00000000",
        accepted("00000007"),
        before_reads(&mut peer, &file, &host)
    );
    exchange(&mut peer, &call, &reply.replace("FSID", &fsid));
}

/// As `fattr`, with the access time that the server reports: the host may move its own with each read.
fn before_reads(peer: &mut Peer, handle: &[u8], host: &std::fs::Metadata) -> String {
    let object = nfs3_types::nfs3::nfs_fh3 { data: nfs3_types::xdr_codec::Opaque::owned(handle.to_vec()) };
    let told = match peer.nfs(1, &nfs3_types::nfs3::GETATTR3args { object }) {
        nfs3_types::nfs3::GETATTR3res::Ok(ok) => ok.obj_attributes.atime,
        other => panic!("{other:?}"),
    };
    let mut words: Vec<String> = fattr(1, host).split(' ').map(str::to_owned).collect();
    words[11] = format!("{:08x}{:08x}", told.seconds, told.nseconds);
    words.join(" ")
}

/// The bytes of a reply to a call given in hexadecimal.
fn reply_to(peer: &mut Peer, call: &str) -> Vec<u8> {
    let call = hex(call);
    peer.send(&[&(call.len() as u32 | 0x8000_0000).to_be_bytes(), &call[..]].concat()).unwrap();
    peer.replies(1).remove(0)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn write_and_commit() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file").data.to_vec();
    // Five bytes at offset 3, unstable.
    let call = format!(
        "{} {} 0000000000000003 00000005 00000000 00000005 68656c6c6f 000000",
        header("00000008", "00000007"),
        wire(&file)
    );
    let reply = reply_to(&mut peer, &call);
    assert_eq!(to_hex(&reply[..28]), to_hex(&hex(&format!("{} 00000000", accepted("00000008")))));
    // Before: present, size 0; after: present, a regular file of size 8; count 5, unstable, a verifier.
    assert_eq!(to_hex(&reply[28..40]), "000000010000000000000000");
    assert_eq!((word(&reply, 56), word(&reply, 60)), (1, 1));
    assert_eq!(to_hex(&reply[80..88]), "0000000000000008");
    assert_eq!((word(&reply, 144), word(&reply, 148)), (5, 0));
    assert_eq!(reply.len(), 160);
    let verifier = to_hex(&reply[152..160]);
    let call = format!("{} {} 0000000000000000 00000000", header("00000009", "00000015"), wire(&file));
    let reply = reply_to(&mut peer, &call);
    assert_eq!(to_hex(&reply[..28]), to_hex(&hex(&format!("{} 00000000", accepted("00000009")))));
    assert_eq!(to_hex(&reply[28..40]), "000000010000000000000008");
    assert_eq!((word(&reply, 56), word(&reply, 60)), (1, 1));
    assert_eq!((to_hex(&reply[144..]), reply.len()), (verifier, 152));
    assert_eq!(std::fs::read(world.path.join("file")).unwrap(), b"\0\0\0hello");
}

#[test]
fn create_and_remove() {
    let world = World::new();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root().data.to_vec();
    // GUARDED, mode 0644, nothing else set.
    let arguments = "00000003 6e657700 00000001
                     00000001 000001a4 00000000 00000000 00000000 00000000 00000000";
    let call = format!("{} {} {arguments}", header("0000000a", "00000008"), wire(&root));
    let reply = reply_to(&mut peer, &call);
    assert_eq!(to_hex(&reply[..32]), to_hex(&hex(&format!("{} 00000000 00000001", accepted("0000000a")))));
    let handle_len = word(&reply, 32) as usize;
    let at = 36 + handle_len.next_multiple_of(4);
    // Attributes: a regular file, mode 0644, one name.
    assert_eq!(to_hex(&reply[at..at + 16]), "0000000100000001000001a400000001");
    let wcc = at + 88;
    assert_eq!((word(&reply, wcc), word(&reply, wcc + 28), word(&reply, wcc + 32)), (1, 1, 2));
    assert_eq!(reply.len(), wcc + 28 + 88);
    // The same under another number: the name exists. Status 17 and the directory.
    let call = format!("{} {} {arguments}", header("0000000b", "00000008"), wire(&root));
    let reply = reply_to(&mut peer, &call);
    assert_eq!(to_hex(&reply[..28]), to_hex(&hex(&format!("{} 00000011", accepted("0000000b")))));
    assert_eq!(reply.len(), 28 + 28 + 88);
    let call = format!("{} {} 00000003 6e657700", header("0000000c", "0000000c"), wire(&root));
    let reply = reply_to(&mut peer, &call);
    assert_eq!(to_hex(&reply[..28]), to_hex(&hex(&format!("{} 00000000", accepted("0000000c")))));
    assert_eq!((word(&reply, 28), word(&reply, 56), reply.len()), (1, 1, 28 + 28 + 88));
    assert!(!world.path.join("new").exists());
}

#[test]
fn readdir() {
    let world = World::over(|path| std::fs::write(path.join("f"), b"").unwrap());
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root().data.to_vec();
    let fsid = fsid(&mut peer, &root);
    let host = std::fs::metadata(&world.path).unwrap();
    let file = std::fs::metadata(world.path.join("f")).unwrap();
    let call = format!("{} {} 0000000000000000 0000000000000000 00001000", header("0000000d", "00000010"), wire(&root));
    let reply = reply_to(&mut peer, &call);
    let cookie = to_hex(&reply[reply.len() - 16..reply.len() - 8]);
    let expected = format!(
        "{} 00000000 00000001 {} 0000000000000000
         00000001 {root:016x} 00000001 2e000000 0000000000000001
         00000001 {root:016x} 00000002 2e2e0000 0000000000000002
         00000001 {file:016x} 00000001 66000000 {cookie}
         00000000 00000001",
        accepted("0000000d"),
        fattr(2, &host).replace("FSID", &fsid),
        root = host.ino(),
        file = file.ino(),
    );
    let mut expected = hex(&expected);
    // A listing moves the host's access time of the directory, so that the replied time is taken as correct.
    expected[92..100].copy_from_slice(&reply[92..100]);
    assert_eq!(to_hex(&reply), to_hex(&expected));
}
