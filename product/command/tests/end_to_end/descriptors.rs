//! A server with few descriptors: no client takes those of others, and all come back.

//! rule: open files are bounded by the descriptors that there are; each party has its part
//! kept in: `product/nfs/src/v4/state/quota.rs`, `product/linux-server/src/host/limits.rs`

use std::fs;
use std::process::Command;

use afflux_nfs_client::sessions::{Compound, Session, Stateid};

use crate::callers::{MARY, ROOT, connected_as, open_directory};
use crate::scratch::{Scratch, can_be_several_users};
use crate::server::{Server, afflux, eventually};

const JOHN: u32 = 4002;
const ANN: u32 = 4003;
const BOTH: (u32, u32) = (3, 0);
/// The error that ends a program's call.
const SERVER_FAULT: u32 = 10_006;

fn ops() -> Compound {
    Compound::default()
}

/// Serves with a limit on descriptors.
fn serve_within(limit: usize, scratch: &Scratch, data: &std::path::Path) -> Server {
    let control = scratch.path().join("control.sock");
    let inner = afflux(scratch.path());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {limit} && exec \"$@\""), "sh"]).arg(inner.get_program());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["serve", "--json", "--cache", "64MiB", "--listen", "127.0.0.1:0"]);
    command.arg("--control").arg(&control).arg(data);
    Server::spawn(command, control, scratch.path())
}

/// Makes and opens a file: its stateid and its handle, or the status.
fn open(session: &mut Session, name: &str) -> Result<(Stateid, Vec<u8>), u32> {
    let made = ops().put_root().open(BOTH, b"program", name.as_bytes(), true).get_handle();
    let outcome = session.call(made).unwrap();
    if outcome.status != 0 {
        return Err(outcome.status);
    }
    let mut reader = outcome.reader();
    reader.skip_sequence().unwrap();
    (0..2).for_each(|_| _ = reader.next_result().unwrap());
    let stateid = reader.stateid().unwrap();
    reader.skip_open().unwrap();
    reader.next_result().unwrap();
    Ok((stateid, reader.opaque().unwrap().to_vec()))
}

/// Opens and writes as many files as the server allows.
fn open_all(session: &mut Session, prefix: &str) -> Vec<(Stateid, Vec<u8>)> {
    let mut files = Vec::new();
    loop {
        match open(session, &format!("{prefix}{}", files.len())) {
            Ok((stateid, file)) => {
                session.must(ops().put(&file).write(stateid, 0, 0, b"bytes")).unwrap();
                files.push((stateid, file));
            }
            Err(status) => {
                assert_eq!(status, SERVER_FAULT, "after {} files", files.len());
                return files;
            }
        }
    }
}

fn descriptors(server: &Server) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.process())).unwrap().count()
}

/// The files that may be open at a time, as the start says.
fn told(server: &Server) -> usize {
    let notes = server.ready["notes"].as_array().unwrap();
    let note =
        notes.iter().filter_map(|note| note.as_str()).find(|note| note.contains("files open at a time")).unwrap();
    let words: Vec<&str> = note.split(' ').collect();
    let at = words.iter().position(|word| *word == "files").unwrap();
    words[at - 1].replace(',', "").parse().unwrap()
}

#[test]
fn users_who_open_all_they_may_leave_files_connections_and_the_control_socket_to_others() {
    if !can_be_several_users() {
        return;
    }
    for limit in [1_024, 4_096] {
        let scratch = Scratch::new();
        let data = open_directory(&scratch, "data");
        let server = serve_within(limit, &scratch, &data);
        let (all, before) = (told(&server), descriptors(&server));
        let mut held = Vec::new();
        for (user, name) in [(JOHN, "john"), (ANN, "ann")] {
            let mut session = Session::begin(connected_as(user, &server), name.as_bytes(), 2).unwrap();
            let files = open_all(&mut session, name);
            held.push((session, files, name));
        }
        let counts: Vec<usize> = held.iter().map(|(_, files, _)| files.len()).collect();
        assert_eq!(counts, [all.div_ceil(2), (all / 2).div_ceil(2)], "of {all} files within {limit} descriptors");
        assert!(descriptors(&server) < limit - 32, "{} of {limit}", descriptors(&server));
        assert_eq!(server.stat()["nfs"]["open_files"], counts.iter().sum::<usize>());
        for (user, name) in [(MARY.uid, "mary"), (ROOT.uid, "root")] {
            let mut other = Session::begin(connected_as(user, &server), name.as_bytes(), 2).unwrap();
            let (stateid, file) = open(&mut other, name).unwrap();
            other.must(ops().put(&file).write(stateid, 0, 2, b"bytes")).unwrap();
            other.keeps = false;
            other.must(ops().put_root().list(0, 4_096, &[])).unwrap();
            other.must(ops().put(&file).close(stateid)).unwrap();
        }
        // All come back with the last close and the last name.
        for (session, files, name) in &mut held {
            for (at, (stateid, file)) in files.iter().enumerate() {
                session.must(ops().put(file).close(*stateid)).unwrap();
                session.must(ops().put_root().remove(format!("{name}{at}").as_bytes())).unwrap();
            }
        }
        eventually("the descriptors come back", || descriptors(&server) <= before + 16);
        let mut other = Session::begin(connected_as(MARY.uid, &server), b"after", 2).unwrap();
        assert_eq!(open_all(&mut other, "after").len(), all.div_ceil(2));
        server.stop();
    }
}
