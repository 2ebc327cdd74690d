//! The way of a client of version 4 from the root to the directory that it mounts by its path on the host.

use std::path::PathBuf;

use afflux_engine::{Nanos, Platform};
use afflux_nfs::{ClientMemory, ExportPaths};
use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome};

use crate::rig::{HEADER_BYTES, Rig};

const NOENT: u32 = 2;
const STALE: u32 = 70;
const FILEID: u32 = 1 << 20;
const FSID: u32 = 1 << 8;

/// A client of a server with a single export.
struct Mounting {
    rig: Rig,
    session: [u8; 16],
    sequence: u32,
}

/// A use of the root by its handle, and the status of it.
type RootUse = fn(&[u8]) -> (Compound, u32);

fn ops() -> Compound {
    Compound::default()
}

fn looked_up(path: &str, from: Compound) -> Compound {
    path.split('/').filter(|name| !name.is_empty()).fold(from, |ops, name| ops.lookup(name.as_bytes()))
}

impl Mounting {
    fn new(path: &str) -> Self {
        let rig = Rig::new();
        rig.server.name_places(ExportPaths::new([(PathBuf::from(path), "/".to_owned())]));
        rig.server.offer_version_4(ClientMemory::default());
        let mut it = Self { rig, session: [0; 16], sequence: 0 };
        let known = it.compound(&ops().exchange_id(b"client", *b"verifier", 0));
        let mut reader = known.reader();
        reader.next_result().unwrap();
        let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
        let made = it.compound(&ops().create_session(number, sequence, 16, 8));
        it.session.copy_from_slice(&made.results[8..24]);
        assert_eq!(it.call(ops().reclaim_complete()).status, 0);
        it
    }

    fn compound(&mut self, ops: &Compound) -> Outcome {
        let record = self.rig.record(NFS_4, 1, &ops.arguments(1));
        Outcome::read(&self.rig.reply_to(&record)[HEADER_BYTES..]).unwrap()
    }

    fn call(&mut self, ops: Compound) -> Outcome {
        self.sequence += 1;
        let sequence = Compound::default().sequence(self.session, self.sequence, 0, false);
        self.compound(&sequence.followed_by(&ops))
    }

    fn status(&mut self, ops: Compound) -> u32 {
        self.call(ops).status
    }

    /// The handle at the end of a compound, and the numbers of the file system and the file.
    fn found(&mut self, ops: Compound) -> (Vec<u8>, Vec<u8>) {
        let outcome = self.call(ops.get_handle().attributes(&[FSID | FILEID]));
        assert_eq!(outcome.status, 0);
        let mut reader = outcome.reader();
        reader.skip_sequence().unwrap();
        while reader.next_result().unwrap().0 != 10 {}
        let handle = reader.opaque().unwrap().to_vec();
        reader.next_result().unwrap();
        let (_, numbers) = reader.attributes().unwrap();
        (handle, numbers.to_vec())
    }

    /// The change attribute of an object.
    fn change(&mut self, handle: &[u8]) -> u64 {
        const CHANGE: u32 = 1 << 3;
        let outcome = self.call(ops().put(handle).attributes(&[CHANGE]));
        assert_eq!(outcome.status, 0);
        u64::from_be_bytes(*outcome.results.last_chunk().unwrap())
    }

    /// As Linux's client: the root, then each name by the handle of the one before.
    fn walked(&mut self, path: &str, pause_ns: u64) -> (Vec<u8>, Vec<u8>) {
        let mut at = self.found(ops().put_root());
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let platform = self.rig.world.platform();
            let until = platform.now().after(pause_ns);
            self.rig.world.run(platform.sleep_until(until)).unwrap();
            at = self.found(ops().put(&at.0).lookup(name.as_bytes()));
            // A client asks again for a name where another file system begins.
            assert_ne!(at.1[at.1.len() - 8..], [0; 8], "a file number");
        }
        at
    }
}

#[test]
fn a_path_of_the_host_leads_to_the_export_however_long_the_client_takes() {
    for pause_ns in [0, Nanos::SECOND, 11 * Nanos::SECOND] {
        let mut client = Mounting::new("/srv/d");
        let (root, numbers) = client.found(ops().put_root());
        let before = client.change(&root);
        assert_eq!(client.walked("/srv/d", pause_ns), (root.clone(), numbers.clone()));
        // A client keeps `srv` as a name in the root until that changes.
        assert!(client.change(&root) > before);
        assert_eq!(client.found(looked_up("/srv/d", ops().put_root())), (root.clone(), numbers));
        // After any use of the export a client may mount again.
        assert_eq!(client.status(ops().put(&root).list(0, 4096, &[FILEID])), 0);
        assert_eq!(client.status(ops().put(&root).make_directory(b"made")), 0);
        assert_eq!(client.walked("/srv/d", pause_ns).0, root);
        assert_eq!(client.walked("/srv/d/made", pause_ns), client.walked("/made", pause_ns));
    }
}

#[test]
fn programs_find_no_way_to_the_export_below_itself() {
    let uses: [RootUse; 4] = [
        |root| (ops().put(root).lookup(b"other"), NOENT),
        |root| (ops().put(root).list(0, 4096, &[FILEID]), 0),
        |root| (ops().put(root).make_directory(b"other"), 0),
        |root| (ops().put(root).remove(b"other"), NOENT),
    ];
    for one in uses {
        let mut client = Mounting::new("/srv/d");
        let (root, _) = client.found(ops().put_root());
        let (way, _) = client.found(ops().put(&root).lookup(b"srv"));
        let (used, status) = one(&root);
        assert_eq!(client.status(used), status);
        assert_eq!(client.status(ops().put(&root).lookup(b"srv")), NOENT);
        assert_eq!(client.status(ops().put(&way).lookup(b"d")), STALE);
        // A program makes a directory of that name, which is the one that is found from then on.
        assert_eq!(client.status(ops().put(&root).make_directory(b"srv")), 0);
        let (made, _) = client.found(ops().put_root().lookup(b"srv"));
        assert_ne!(made, way);
        assert_eq!(client.status(ops().put(&made).lookup(b"d")), NOENT);
    }
}

#[test]
fn after_a_mount_that_the_client_answers_from_its_cache_the_way_is_found_for_a_minute() {
    let mut client = Mounting::new("/srv/d");
    let (root, _) = client.found(ops().put_root());
    for (seconds, status) in [(59, 0), (2, NOENT)] {
        let platform = client.rig.world.platform();
        let until = platform.now().after(seconds * Nanos::SECOND);
        client.rig.world.run(platform.sleep_until(until)).unwrap();
        assert_eq!(client.status(ops().put(&root).lookup(b"srv")), status);
    }
    assert_eq!(client.walked("/srv/d", 0).0, root);
}

#[test]
fn the_way_is_not_listed_and_its_listing_ends_it() {
    let mut client = Mounting::new("/srv/d");
    let (way, _) = client.found(ops().put_root().lookup(b"srv"));
    let listed = client.call(ops().put(&way).list(0, 4096, &[FILEID]));
    assert_eq!((listed.status, &listed.results[listed.results.len() - 8..]), (0, &[0, 0, 0, 0, 0, 0, 0, 1][..]));
    // What removes or copies a tree lists it before it goes on below.
    assert_eq!(client.status(ops().put(&way).lookup(b"d")), STALE);
    assert_eq!(client.status(ops().put_root().remove(b"srv")), NOENT);
}

#[test]
fn a_path_of_one_name_leads_to_the_root_under_another_handle() {
    let mut client = Mounting::new("/data");
    let (root, numbers) = client.found(ops().put_root());
    let (by_path, same) = client.walked("/data", 11 * Nanos::SECOND);
    assert_ne!(by_path, root, "Linux enters no directory below itself");
    assert_eq!(same, numbers);
    assert_eq!(client.found(ops().put(&by_path)), (by_path.clone(), numbers));
    assert_eq!(client.status(ops().put(&by_path).lookup(b"data")), NOENT);
    assert_eq!(client.status(ops().put(&by_path).make_directory(b"made")), 0);
    assert_eq!(client.found(ops().put(&by_path).lookup(b"made")), client.found(ops().put(&root).lookup(b"made")));
    assert_eq!(client.status(ops().put(&root).lookup(b"data")), NOENT);
}

#[test]
fn a_client_that_keeps_that_there_is_no_way_sees_a_change_when_it_mounts_again() {
    let mut client = Mounting::new("/srv/d");
    let (root, _) = client.found(ops().put_root());
    client.walked("/srv/d", 0);
    // Another mount of the client may have begun before the end of this one.
    assert_eq!(client.status(ops().put(&root).lookup(b"srv")), 0);
    let platform = client.rig.world.platform();
    client.rig.world.run(platform.sleep_until(platform.now().after(3 * Nanos::SECOND))).unwrap();
    assert_eq!(client.status(ops().put(&root).lookup(b"srv")), NOENT);
    let before = client.change(&root);
    assert_eq!(client.status(ops().put(&root).lookup(b"other")), NOENT);
    assert_eq!(client.found(ops().put_root()).0, root);
    let after = client.change(&root);
    assert!(after > before, "the client would not ask for `srv` again");
    // A client without such an answer sees no change.
    client.found(ops().put_root());
    assert_eq!(client.change(&root), after);
    assert_eq!(client.walked("/srv/d", 0).0, root);
}
