//! The objects of paths, in MOUNT and in version 4: the same at any time, for any session, and after any use of the
//! root.

use afflux_engine::{Nanos, Platform};
use afflux_nfs::ClientMemory;
use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome};
use afflux_simulator::Random;

use crate::rig::{HEADER_BYTES, Rig};

const NOENT: u32 = 2;
const FSID: u32 = 1 << 8;
const FILEID: u32 = 1 << 20;
const MOUNTED_ON: u32 = 1 << 23;
/// Names that the host's paths have, names of the exports, and others. Each may be a name in an export, too.
const NAMES: [&str; 5] = ["srv", "data", "disk", "docs", "none"];
/// The single export; several, whose names are also the first ones of paths on the host.
const EXPORTS: [&[&str]; 2] = [&[], &["srv", "data"]];

fn ops() -> Compound {
    Compound::default()
}

fn looked_up(path: &[&str]) -> Compound {
    looked_up_from(ops().put_root(), path)
}

fn looked_up_from(start: Compound, path: &[&str]) -> Compound {
    path.iter().fold(start, |ops, name| ops.lookup(name.as_bytes()))
}

/// A session of a client.
struct Session {
    id: [u8; 16],
    sequence: u32,
}

fn compound(rig: &mut Rig, ops: &Compound) -> Outcome {
    let record = rig.record(NFS_4, 1, &ops.arguments(1));
    Outcome::read(&rig.reply_to(&record)[HEADER_BYTES..]).unwrap()
}

impl Session {
    fn begin(rig: &mut Rig, owner: &[u8]) -> Self {
        rig.server.offer_version_4(ClientMemory::default());
        let known = compound(rig, &ops().exchange_id(owner, *b"verifier", 0));
        let mut reader = known.reader();
        reader.next_result().unwrap();
        let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
        let made = compound(rig, &ops().create_session(number, sequence, 16, 8));
        let mut it = Self { id: made.results[8..24].try_into().unwrap(), sequence: 0 };
        it.call(rig, ops().reclaim_complete());
        it
    }

    /// The status, and the results behind the SEQUENCE's.
    fn call(&mut self, rig: &mut Rig, wanted: Compound) -> (u32, Vec<u8>) {
        self.sequence += 1;
        let outcome = compound(rig, &ops().sequence(self.id, self.sequence, 0, false).followed_by(&wanted));
        let mut reader = outcome.reader();
        reader.skip_sequence().unwrap();
        (outcome.status, outcome.results[8 + 36..].to_vec())
    }
}

/// A question whose answer depends on the tree alone.
#[derive(Clone, Debug)]
enum Question {
    /// The object at a path, by one compound.
    Found(Vec<&'static str>),
    /// As programs on a mount that is there: from the root by its handle, and no PUTROOTFH.
    ByHandle(Vec<&'static str>),
    /// As Linux's client mounts: a compound for each name, by the handle of the one before.
    Walked(Vec<&'static str>),
    /// The directory above the object at a path.
    Above(Vec<&'static str>),
    /// The names in the directory at a path.
    Listed(Vec<&'static str>),
    Mounted(Vec<&'static str>),
}

/// A handle with the numbers of its object, or the status.
fn found(rig: &mut Rig, session: &mut Session, at: Compound) -> (u32, Vec<u8>) {
    let at = at.get_handle().attributes(&[FSID | FILEID | MOUNTED_ON]);
    session.call(rig, at)
}

fn handle_in(results: &[u8]) -> Vec<u8> {
    let outcome = Outcome { status: 0, count: 0, results: results.to_vec() };
    let mut reader = outcome.reader();
    while reader.next_result().unwrap().0 != 10 {}
    reader.opaque().unwrap().to_vec()
}

fn mount_path(path: &[&str]) -> String {
    format!("/{}", path.join("/"))
}

impl Question {
    fn drawn(random: &mut Random) -> Self {
        let path = (0..random.below(4)).map(|_| random.pick(&NAMES)).collect();
        let kinds = [Self::Found, Self::ByHandle, Self::Walked, Self::Above, Self::Listed, Self::Mounted];
        random.pick(&kinds)(path)
    }

    /// The answer. `root` is the root's handle.
    fn asked(&self, rig: &mut Rig, session: &mut Session, root: &[u8]) -> (u32, Vec<u8>) {
        match self {
            Self::Found(path) => found(rig, session, looked_up(path)),
            Self::ByHandle(path) => found(rig, session, looked_up_from(ops().put(root), path)),
            Self::Walked(path) => {
                let mut at = found(rig, session, ops().put_root());
                for name in path {
                    if at.0 == 0 {
                        at = found(rig, session, ops().put(&handle_in(&at.1)).lookup(name.as_bytes()));
                    }
                }
                at
            }
            Self::Above(path) => found(rig, session, looked_up(path).lookup_parent()),
            Self::Listed(path) => session.call(rig, looked_up(path).list(0, 4096, &[FILEID | MOUNTED_ON])),
            Self::Mounted(path) => (0, rig.mount(mount_path(path).as_bytes())),
        }
    }
}

/// Something that is done before a question.
fn disturb(rig: &mut Rig, session: &mut Session, root: &[u8], random: &mut Random) {
    match random.below(6) {
        0 => {
            let platform = rig.world.platform();
            let until = platform.now().after(random.below(90) * Nanos::SECOND);
            rig.world.run(platform.sleep_until(until)).unwrap();
        }
        1 => *session = Session::begin(rig, &random.bits().to_be_bytes()),
        2 => {
            Question::drawn(random).asked(rig, session, root);
        }
        kind => {
            let path: Vec<&str> = (0..random.below(3)).map(|_| random.pick(&NAMES)).collect();
            let name = random.pick(&NAMES[..4]).as_bytes();
            let at = looked_up(&path);
            let change = match kind {
                3 | 4 => at.make_directory(name),
                _ => at.remove(name),
            };
            session.call(rig, change);
        }
    }
}

// rule: a path that a client mounts, and a name below it, mean the same after all calls, in MOUNT and in version 4
#[test]
fn a_path_means_the_same_after_all_calls() {
    for (exports, seed) in EXPORTS.into_iter().flat_map(|exports| (0..20).map(move |seed| (exports, seed))) {
        let mut random = Random::new(seed);
        let mut rig = Rig::exporting(exports);
        let mut session = Session::begin(&mut rig, b"client");
        let root = handle_in(&found(&mut rig, &mut session, ops().put_root()).1);
        for _ in 0..40 {
            disturb(&mut rig, &mut session, &root, &mut random);
            let question = Question::drawn(&mut random);
            let answer = question.asked(&mut rig, &mut session, &root);
            let fresh = rig.beside(exports, |rig| {
                let mut session = Session::begin(rig, b"client");
                question.asked(rig, &mut session, &root)
            });
            assert_eq!(answer, fresh, "{question:?} of {exports:?} with seed {seed}");
        }
    }
}

#[test]
fn mount_and_version_4_mean_the_same_directory_by_a_path() {
    for exports in EXPORTS {
        let mut rig = Rig::exporting(exports);
        let mut session = Session::begin(&mut rig, b"client");
        let export = &exports[..exports.len().min(1)];
        for path in [export.to_vec(), [export, &["srv"]].concat(), [export, &["srv", "disk"]].concat()] {
            let is_export = path == export;
            let by_mount = |rig: &mut Rig| rig.mount(mount_path(&path).as_bytes());
            let by_lookup = |rig: &mut Rig, session: &mut Session| found(rig, session, looked_up(&path));
            if !is_export {
                assert_eq!(by_mount(&mut rig), NOENT.to_be_bytes(), "{path:?} is not there");
                assert_eq!(by_lookup(&mut rig, &mut session).0, NOENT, "{path:?} is not there");
                let (name, above) = path.split_last().unwrap();
                let made = session.call(&mut rig, looked_up(above).make_directory(name.as_bytes()));
                assert_eq!(made.0, 0, "{path:?}");
            }
            let (status, results) = by_lookup(&mut rig, &mut session);
            assert_eq!(status, 0, "{path:?}");
            let handle = handle_in(&results);
            let expected = [&[0; 4][..], &(handle.len() as u32).to_be_bytes(), &handle].concat();
            assert!(by_mount(&mut rig).starts_with(&expected), "{path:?}");
        }
    }
}

#[test]
fn the_directory_of_all_exports_has_their_names_alone_and_a_single_export_has_none() {
    let mut rig = Rig::exporting(&["srv", "data"]);
    let mut session = Session::begin(&mut rig, b"client");
    let (_, root) = found(&mut rig, &mut session, ops().put_root());
    let root = handle_in(&root);
    for path in [&["srv"][..], &["data"]] {
        assert_eq!(found(&mut rig, &mut session, looked_up(path)).0, 0);
        let above = found(&mut rig, &mut session, looked_up(path).lookup_parent());
        assert_eq!(handle_in(&above.1), root, "above {path:?}");
    }
    assert_eq!(found(&mut rig, &mut session, ops().put_root().lookup_parent()).0, NOENT);
    assert_eq!(found(&mut rig, &mut session, looked_up(&["disk"])).0, NOENT);
    let (_, listed) = session.call(&mut rig, ops().put(&root).list(0, 4096, &[FILEID]));
    let name_at = |name: &[u8]| listed.windows(name.len()).position(|bytes| bytes == name);
    assert!(name_at(b"\0\0\0\x03srv") < name_at(b"\0\0\0\x04data"), "{listed:?}");
    assert_eq!(rig.mount(b"/"), NOENT.to_be_bytes(), "version 3 has no such directory");

    // A server that has one export left: clients of the directory look for another.
    const STALE: u32 = 70;
    let mut rig = Rig::exporting(&[]);
    let mut session = Session::begin(&mut rig, b"client");
    assert_eq!(session.call(&mut rig, ops().put(&root)).0, STALE);
    assert_eq!(found(&mut rig, &mut session, ops().put_root().lookup_parent()).0, NOENT);
}
