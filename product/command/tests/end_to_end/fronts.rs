//! What people see of calls is the same, whichever version of NFS the caller speaks, and for programs on a mount.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use afflux_nfs_client::sessions::{Compound, Session};
use afflux_nfs_client::{Client, Stability};
use serde_json::Value;

use crate::live::logging;
use crate::mounted::{Mounted, can_mount};
use crate::scratch::{Mount, Scratch};
use crate::server::{Server, afflux, eventually, run, text};

const BOTH: (u32, u32) = (3, 0);
const BYTES: usize = 5_000;
/// The range that is read.
const READ: (u64, usize) = (1_000, 3_000);

enum Front {
    V3(Client, Vec<u8>),
    V4(Box<Session>),
    Mount(PathBuf),
}

/// Each kind of caller with its name; a mount where this machine can have one.
fn fronts(server: &Server, point: Option<&Path>) -> Vec<(&'static str, Front)> {
    let connect = || Client::connect(("127.0.0.1", server.port())).unwrap();
    let session =
        |minor| Front::V4(Box::new(Session::begin(connect(), format!("4.{minor}").as_bytes(), minor).unwrap()));
    let mut client = connect();
    let root = client.mount("/").unwrap().to_vec();
    let mut all = vec![("version 3", Front::V3(client, root)), ("4.1", session(1)), ("4.2", session(2))];
    all.extend(point.map(|point| ("a mount", Front::Mount(point.to_owned()))));
    all
}

fn root() -> Compound {
    Compound::default().put_root()
}

impl Front {
    /// Makes a file, if it is not there, and returns what names it.
    fn create(&mut self, name: &str) -> Vec<u8> {
        match self {
            Self::V3(client, root) => client.create_empty(root, name.as_bytes()).unwrap().to_vec(),
            Self::V4(session) => {
                let opened = session.must(root().open(BOTH, b"owner", name.as_bytes(), true).get_handle()).unwrap();
                let mut reader = opened.reader();
                reader.next_result().unwrap();
                reader.next_result().unwrap();
                let stateid = reader.stateid().unwrap();
                reader.skip_open().unwrap();
                reader.next_result().unwrap();
                let file = reader.opaque().unwrap().to_vec();
                session.must(Compound::default().put(&file).close(stateid)).unwrap();
                file
            }
            Self::Mount(point) => {
                drop(File::create(point.join(name)).unwrap());
                name.as_bytes().to_vec()
            }
        }
    }

    /// What names a file that is there.
    fn find(&mut self, name: &str) -> Vec<u8> {
        match self {
            Self::V3(client, root) => client.lookup(root, name.as_bytes()).unwrap().0.to_vec(),
            _ => self.create(name),
        }
    }

    /// A directory is made; the file is linked, renamed and removed: five changes of names.
    fn change_names(&mut self, name: &str) {
        let [directory, link, moved] = ["d", "l", "m"].map(|kind| format!("{name} {kind}"));
        let file = self.create(name);
        match self {
            Self::V3(client, root) => {
                client.mkdir(root, directory.as_bytes(), Default::default()).unwrap();
                client.link(&file, root, link.as_bytes()).unwrap();
                client.rename((root, link.as_bytes()), (root, moved.as_bytes())).unwrap();
                client.remove(root, moved.as_bytes()).unwrap();
            }
            Self::V4(session) => {
                session.must(root().make_directory(directory.as_bytes())).unwrap();
                session.must(Compound::default().put(&file).save().put_root().link(link.as_bytes())).unwrap();
                session.must(root().save().rename(link.as_bytes(), moved.as_bytes())).unwrap();
                session.must(root().remove(moved.as_bytes())).unwrap();
            }
            Self::Mount(point) => {
                fs::create_dir(point.join(directory)).unwrap();
                fs::hard_link(point.join(name), point.join(&link)).unwrap();
                fs::rename(point.join(link), point.join(&moved)).unwrap();
                fs::remove_file(point.join(moved)).unwrap();
            }
        }
    }

    /// Writes bytes of a file, makes them durable, and reads some of them.
    fn move_bytes(&mut self, file: &[u8]) {
        let bytes = [7; BYTES];
        let (from, count) = READ;
        match self {
            Self::V3(client, _) => {
                client.write(file, 0, &bytes, Stability::Unstable).unwrap();
                client.commit(file, 0, 0).unwrap();
                client.read(file, from, count as u32).unwrap();
            }
            Self::V4(session) => {
                let anonymous = afflux_nfs_client::sessions::ANONYMOUS;
                let keeps = std::mem::replace(&mut session.keeps, false);
                let all = Compound::default().put(file).write(anonymous, 0, 0, &bytes).commit();
                session.must(all.read(anonymous, from, count as u32)).unwrap();
                session.keeps = keeps;
            }
            Self::Mount(point) => {
                let path = point.join(std::str::from_utf8(file).unwrap());
                let opened = File::options().read(true).write(true).open(path).unwrap();
                opened.write_all_at(&bytes, 0).unwrap();
                opened.sync_data().unwrap();
                opened.read_exact_at(&mut vec![0; count], from).unwrap();
            }
        }
    }
}

/// A server, on a mount too where this machine can have one.
fn serve(scratch: &Scratch) -> (Mounted, Option<PathBuf>) {
    let (data, point) = (scratch.directory("data"), scratch.directory("point"));
    let place = can_mount().then(|| point.clone());
    let mount: Vec<&str> = place.iter().flat_map(|point| ["--mount", point.to_str().unwrap()]).collect();
    let server = Server::start(scratch.path(), &[&data], &mount);
    (Mounted { server: Some(server), point }, place)
}

/// The calls that the report counts: all, those that read, write and sync.
fn answered(report: &Value) -> [u64; 4] {
    ["calls", "reads", "writes", "syncs"].map(|what| {
        let of = |place: &Value| place[what].as_u64().unwrap();
        of(&report["nfs"]["answered"]) + of(&report["mount_answered"])
    })
}

#[test]
fn each_callers_names_and_bytes_are_counted_alike() {
    let scratch = Scratch::new();
    let (mounted, point) = serve(&scratch);
    let server = mounted.server();
    for (name, mut front) in fronts(server, point.as_deref()) {
        let counted = || ["names_changed", "files_made"].map(|counter| server.counter(counter));
        let (names, calls) = (counted(), answered(&server.stat()));
        front.change_names(name);
        assert_eq!(counted(), [names[0] + 5, names[1] + 1], "{name}");
        let file = front.find(name);
        front.move_bytes(&file);
        let now = answered(&server.stat());
        assert!(now[0] > calls[0], "{name}: a call is counted as one");
        assert_eq!([1, 2, 3].map(|at| now[at] - calls[at]), [1, 1, 1], "{name}: read, written, synced");
        assert_eq!(counted(), [names[0] + 5, names[1] + 1], "{name}: bytes are no names");
    }
    mounted.stop();
}

#[test]
fn each_callers_reads_writes_and_syncs_are_recorded_alike() {
    let scratch = Scratch::new();
    let (mounted, point) = serve(&scratch);
    let server = mounted.server();
    for (name, mut front) in fronts(server, point.as_deref()) {
        let (file, trace) = (front.create(name), scratch.path().join(format!("{name}.trace")));
        let mut lines = Vec::<Value>::new();
        eventually("the calls are recorded", || {
            let mut recording = afflux(scratch.path());
            recording.args(["trace", "record", "--for", "300ms", "--control"]).arg(&server.control).arg(&trace);
            let mut recording = recording.spawn().unwrap();
            while recording.try_wait().unwrap().is_none() {
                front.move_bytes(&file);
            }
            assert!(recording.wait().unwrap().success());
            let shown = run(scratch.path(), &["trace", "show", "--json", trace.to_str().unwrap()]);
            lines = text(&shown).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            ["read", "write", "sync"].iter().all(|op| lines.iter().any(|line| line["op"] == *op))
        });
        let number = |line: &Value, what: &str| line[what].as_u64().unwrap();
        for line in &lines {
            assert_eq!(line["file"], lines[0]["file"], "{name}: there is one file");
            let range = (number(line, "offset"), number(line, "bytes") as usize);
            let wanted = match line["op"].as_str().unwrap() {
                "read" => READ,
                "write" => (0, BYTES),
                _ => (0, 0),
            };
            assert_eq!(range, wanted, "{name}: {line}");
        }
        let mut operations = lines.iter().map(|line| line["op"].as_str().unwrap()).collect::<Vec<_>>();
        let first = operations.iter().position(|op| *op == "write").unwrap();
        operations.drain(..first);
        let rounds = operations.chunks(3).filter(|round| round.len() == 3);
        rounds.for_each(|round| assert_eq!(round, ["write", "sync", "read"], "{name}: each once, in order"));
    }
    mounted.stop();
}

/// On a disk that makes names durable at once, so that the pace of the machine's own disk decides nothing.
#[test]
fn many_small_files_of_each_caller_bring_one_line_about_async_metadata() {
    let kinds = 3 + usize::from(can_mount());
    for kind in 0..kinds {
        let scratch = Scratch::new();
        let (data, point) = (scratch.directory("data"), scratch.directory("point"));
        let Some(_disk) = Mount::tmpfs(&data, 64 << 20) else { return };
        let mount = if kinds == 4 { vec!["--mount", point.to_str().unwrap()] } else { vec![] };
        let server = logging(&scratch, &data, false, &mount);
        let log = || fs::read_to_string(scratch.path().join("log")).unwrap();
        let (name, mut front) = fronts(&server, (kinds == 4).then_some(&point)).swap_remove(kind);
        let mounted = Mounted { server: Some(server), point };
        let mut files = 0;
        let mut create = |count: u64| {
            for _ in 0..count {
                files += 1;
                front.create(&format!("small-{files}"));
            }
        };
        eventually(&format!("{name}: the flag is mentioned"), || {
            create(100);
            log().contains("--async-metadata")
        });
        create(500);
        drop(front);
        mounted.stop();
        let log = log();
        assert_eq!(log.matches("--async-metadata").count(), 1, "{name}: {log}");
        assert!(log.contains(" small files within 10 s"), "{name}: {log}");
    }
}
