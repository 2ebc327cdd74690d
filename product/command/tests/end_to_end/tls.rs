//! Calls through TLS: both versions of NFS, the rules of admission, handshakes that fail or never end.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use afflux_nfs_client::sessions::{Compound, Session, Stateid};
use afflux_nfs_client::{Client, Error, stable_how};
use afflux_tls_client::{Authority, Issued, PROBE, Purpose, Trust, secured, tell_to_begin};

use crate::scratch::Scratch;
use crate::server::{Server, eventually, run, text};

const BOTH: (u32, u32) = (3, 0);
const TOO_WEAK: [u32; 3] = [1, 1, 5];
const LARGE: usize = 1 << 20;

/// A directory to serve, an authority, and a certificate of it in files.
struct Rig {
    scratch: Scratch,
    data: PathBuf,
    authority: Authority,
}

impl Rig {
    fn new() -> Self {
        let scratch = Scratch::new();
        let (data, authority) = (scratch.directory("data"), Authority::new());
        let rig = Self { scratch, data, authority };
        rig.install(&rig.authority.issue("server", Purpose::Server));
        fs::write(rig.path("ca.pem"), &rig.authority.certificate).unwrap();
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// As certbot does: each file is replaced by another.
    fn install(&self, issued: &Issued) {
        for (name, text) in [("cert.pem", &issued.certificate), ("key.pem", &issued.key)] {
            let new = self.path("new.pem");
            fs::write(&new, text).unwrap();
            fs::set_permissions(&new, Permissions::from_mode(0o600)).unwrap();
            fs::rename(&new, self.path(name)).unwrap();
        }
    }

    fn serve(&self, more: &[&str]) -> Server {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let mut arguments = vec!["--tls", cert.to_str().unwrap(), key.to_str().unwrap()];
        arguments.extend(more);
        Server::start(self.scratch.path(), &[&self.data], &arguments)
    }

    fn trust(&self, own: Option<&Issued>) -> Trust {
        Trust::new(&self.authority, own)
    }
}

fn connected(server: &Server) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap()
}

/// A client through TLS.
fn client(server: &Server, trust: &Trust) -> Result<Client, Error> {
    Client::over(secured(connected(server), trust)?)
}

fn plain(server: &Server) -> Client {
    Client::over(connected(server)).unwrap()
}

/// The words of the refusal of a call in the clear.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> Vec<u32> {
    match answer {
        Err(Error::Refused { words }) => words,
        other => panic!("{other:?}"),
    }
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| ((at * 31 + at / 4096 * 7) ^ seed) as u8).collect()
}

fn open_sockets(server: &Server) -> usize {
    let all = fs::read_dir(format!("/proc/{}/fd", server.process())).unwrap();
    let names = all.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    names.filter(|name| name.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn version_3_reads_and_writes_through_tls_beside_clients_in_the_clear() {
    let rig = Rig::new();
    let server = rig.serve(&[]);
    assert_eq!(server.ready["tls"], "TLS for clients that ask for it");
    let mut through = client(&server, &rig.trust(None)).unwrap();
    let root = through.mount("/").unwrap();
    let file = through.create_empty(&root, b"large").unwrap();
    let all = bytes(9 * LARGE + 12_345, 5);
    through.write_all(&file, 0, &all, LARGE, 4).unwrap();
    let small = through.write(&file, 100, b"small", stable_how::FILE_SYNC).unwrap();
    assert_eq!(small.count, 5);
    let mut all = all;
    all[100..105].copy_from_slice(b"small");
    // Large replies and small ones, several at a time.
    assert!(through.read_all(&file, 0, all.len(), LARGE, 4).unwrap() == all);
    assert!(through.read_all(&file, 0, all.len(), 4096, 16).unwrap() == all);
    assert!(fs::read(rig.data.join("large")).unwrap() == all);

    let mut clear = plain(&server);
    let found = clear.mount("/").unwrap();
    assert_eq!(found, root);
    assert!(clear.read_all(&file, 0, all.len(), LARGE, 4).unwrap() == all);
    let known = &server.stat()["nfs"]["clients"]["127.0.0.1"];
    assert_eq!((&known["connections"], &known["tls_connections"]), (&2.into(), &1.into()));
    assert_eq!(known["certificates"], serde_json::json!([]));
    let shown = text(&server.ask(&["stat", "--verbose"]));
    assert!(shown.contains("127.0.0.1   1 of 2 connections\n"), "{shown}");
    server.stop();
}

#[test]
fn version_4_reads_and_writes_through_tls() {
    let rig = Rig::new();
    let server = rig.serve(&["--tls-required"]);
    let through = client(&server, &rig.trust(None)).unwrap();
    let mut session = Session::begin(through, b"through tls", 2).unwrap();
    // A reply that is cached for a repetition has 4 KiB at most.
    session.keeps = false;
    let opened =
        session.must(Compound::default().put_root().open(BOTH, b"program", b"file", true).get_handle()).unwrap();
    let mut reader = opened.reader();
    reader.next_result().unwrap();
    reader.next_result().unwrap();
    let stateid: Stateid = reader.stateid().unwrap();
    let file = session.walk(Compound::default().put_root().lookup(b"file")).unwrap();
    let all = bytes(LARGE, 9);
    session.must(Compound::default().put(&file).write(stateid, 0, 2, &all)).unwrap();
    assert!(fs::read(rig.data.join("file")).unwrap() == all);
    let read = session.must(Compound::default().put(&file).read(stateid, 0, LARGE as u32)).unwrap();
    let mut reader = read.reader();
    reader.next_result().unwrap();
    reader.next_result().unwrap();
    assert_eq!(reader.u32().unwrap(), 1, "the end of the file");
    assert!(reader.opaque().unwrap() == all);
    session.must(Compound::default().put(&file).close(stateid)).unwrap();
    server.stop();
}

#[test]
fn a_server_that_requires_tls_refuses_calls_in_the_clear() {
    let rig = Rig::new();
    let server = rig.serve(&["--tls-required"]);
    assert_eq!(server.ready["tls"], "TLS only");
    let mut clear = plain(&server);
    assert_eq!(refused(clear.null()), TOO_WEAK);
    assert_eq!(refused(clear.mount("/")), TOO_WEAK);
    assert_eq!(refused(clear.call((100_003, 4), 0, &[])), TOO_WEAK);
    // The same connection may ask for TLS, and is answered then.
    let mut through = client(&server, &rig.trust(None)).unwrap();
    let root = through.mount("/").unwrap();
    through.getattr(&root).unwrap();
    assert_eq!(server.stat()["nfs"]["answered"]["unauthorized"], 3);
    server.stop();
}

#[test]
fn only_clients_with_a_certificate_of_the_authority_are_answered() {
    let rig = Rig::new();
    let ca = rig.path("ca.pem");
    let server = rig.serve(&["--tls-clients", ca.to_str().unwrap()]);
    assert_eq!(refused(plain(&server).null()), TOO_WEAK);
    let stranger = Authority::new();
    let others = [
        None,
        Some(stranger.issue("stranger", Purpose::Client)),
        Some(rig.authority.issue("late", Purpose::ClientInThePast)),
        Some(rig.authority.issue("server", Purpose::Server)),
    ];
    for other in &others {
        // A client ends its part of the handshake before the server has judged its certificate.
        let called = client(&server, &rig.trust(other.as_ref())).and_then(|mut it| it.null());
        assert!(matches!(called, Err(Error::Io(_))), "{called:?}");
    }
    let known = rig.authority.issue("web1.example", Purpose::Client);
    let mut through = client(&server, &rig.trust(Some(&known))).unwrap();
    through.mount("/").unwrap();
    eventually("the others are gone", || server.stat()["nfs"]["connections"] == 1);
    let client = &server.stat()["nfs"]["clients"]["127.0.0.1"];
    assert_eq!((&client["tls_connections"], &client["certificates"][0]), (&1.into(), &"web1.example".into()));
    let shown = text(&server.ask(&["stat", "--verbose"]));
    assert!(shown.contains("127.0.0.1   1 of 1 connection   certificate of web1.example\n"), "{shown}");
    let said = server.stop().stderr;
    assert!(
        said.contains("127.0.0.1 could not begin TLS: peer sent no certificates; it needs a certificate of"),
        "{said}"
    );
}

#[test]
fn a_client_has_the_rights_of_the_user_that_its_certificate_names() {
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root acts as several users");
    }
    let rig = Rig::new();
    let ca = rig.path("ca.pem");
    fs::set_permissions(&rig.data, Permissions::from_mode(0o777)).unwrap();
    let server = rig.serve(&["--tls-clients", ca.to_str().unwrap(), "--tls-users"]);
    let daemon = std::process::Command::new("id").args(["-u", "daemon"]).output().unwrap().stdout;
    let daemon: u32 = String::from_utf8(daemon).unwrap().trim().parse().unwrap();
    // It claims root.
    let of_daemon = rig.authority.issue_to_user("desk", "daemon@example.org");
    let mut through = client(&server, &rig.trust(Some(&of_daemon))).unwrap();
    let root = through.mount("/").unwrap();
    through.create_empty(&root, b"made").unwrap();
    assert_eq!(fs::metadata(rig.data.join("made")).unwrap().uid(), daemon);
    let of_nobody = rig.authority.issue_to_user("desk", "no user of this host@example.org");
    let mut other = client(&server, &rig.trust(Some(&of_nobody))).unwrap();
    assert_eq!(refused(other.null()), TOO_WEAK);
    server.stop();
}

#[test]
fn a_client_does_not_take_another_servers_certificate() {
    let rig = Rig::new();
    let server = rig.serve(&[]);
    let stranger = Trust::new(&Authority::new(), None);
    let refused = client(&server, &stranger).err().unwrap().to_string();
    assert!(refused.contains("certificate"), "{refused}");
    eventually("the server has heard of it", || server.stat()["nfs"]["connections"] == 0);
    let said = server.stop().stderr;
    assert!(said.contains("could not begin TLS: received fatal alert"), "{said}");
}

// rule: a certificate that expires soon is reported in the log and in the figures, until it is renewed
// kept in: `product/command/src/serve/front/tls.rs`
#[test]
fn a_certificate_that_expires_soon_is_told_until_it_is_renewed() {
    const DAY_NS: u64 = 86_400_000_000_000;
    let rig = Rig::new();
    rig.install(&rig.authority.issue("server", Purpose::ServerForFourDays));
    let server = rig.serve(&[]);
    let left_days = || server.stat()["nfs"]["tls_certificate_ns"].as_u64().unwrap() / DAY_NS;
    assert_eq!(left_days(), 4);
    let shown = text(&server.ask(&["stat", "--verbose"]));
    assert!(shown.contains("the certificate expires in 4 days: renew it\n"), "{shown}");
    rig.install(&rig.authority.issue("server", Purpose::ServerUntil2077));
    eventually("the renewed one is in use", || left_days() > 4);
    assert!(!text(&server.ask(&["stat", "--verbose"])).contains("the certificate expires"));
    let said = server.stop().stderr;
    assert!(said.contains("cert.pem expires in 4 days: renew it"), "{said}");
}

// rule: handshakes of one client take a bounded part of the server's time
// kept in: `product/command/src/serve/live/upkeep.rs`
#[test]
fn more_handshakes_than_a_second_has_time_for_all_take_place() {
    let rig = Rig::new();
    let server = rig.serve(&["--tls-required"]);
    let trust = rig.trust(None);
    // As many as get permits at once, and then more. None of the first ends.
    let begun: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut socket = connected(&server);
            tell_to_begin(&mut socket).unwrap();
            socket
        })
        .collect();
    let mut last = client(&server, &trust).unwrap();
    last.mount("/").unwrap();
    assert_eq!(server.stat()["nfs"]["clients"]["127.0.0.1"]["tls_connections"], 1);
    drop(begun);
    server.stop();
}

#[test]
fn handshakes_that_never_end_hold_up_nobody_and_leave_nothing() {
    let rig = Rig::new();
    let server = rig.serve(&[]);
    plain(&server).null().unwrap();
    eventually("no connection is left", || server.stat()["nfs"]["connections"] == 0);
    let before = open_sockets(&server);
    let hello = {
        let mut bytes = Vec::new();
        rig.trust(None).session().write_tls(&mut bytes).unwrap();
        bytes
    };
    let begun = || {
        let mut socket = connected(&server);
        tell_to_begin(&mut socket).unwrap();
        socket
    };
    // They ask, and then: nothing; half a hello; a hello, and no end; a hello, and no more to say.
    let silent: Vec<TcpStream> = (0..100).map(|_| begun()).collect();
    let halves: Vec<TcpStream> =
        (0..20).map(|_| begun()).inspect(|mut it| it.write_all(&hello[..99]).unwrap()).collect();
    let hellos: Vec<TcpStream> = (0..20).map(|_| begun()).inspect(|mut it| it.write_all(&hello).unwrap()).collect();
    let ended: Vec<TcpStream> = (0..20)
        .map(|_| begun())
        .inspect(|mut it| {
            it.write_all(&hello).unwrap();
            it.shutdown(Shutdown::Write).unwrap();
        })
        .collect();
    // Garbage, calls in the clear, records that are too long: the server says why, and closes.
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &PROBE, &[22, 3, 3, 255, 255, 1], &[0; 64]] {
        let mut socket = begun();
        socket.write_all(garbage).unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        assert_eq!(answer[..3], [21, 3, 3], "an alert");
    }
    drop(begun());
    // One client sends its hello a byte at a time.
    let mut slow = begun();
    for byte in &hello {
        slow.write_all(&[*byte]).unwrap();
    }
    let mut through = client(&server, &rig.trust(None)).unwrap();
    let root = through.mount("/").unwrap();
    let file = through.create_empty(&root, b"file").unwrap();
    through.write_all(&file, 0, &bytes(LARGE, 1), 65_536, 8).unwrap();
    assert!(through.read_all(&file, 0, LARGE, 65_536, 8).unwrap() == bytes(LARGE, 1));
    let mut first = [0; 3];
    slow.read_exact(&mut first).unwrap();
    assert_eq!(first, [22, 3, 3], "the server's part of the handshake");
    drop((silent, halves, hellos, ended, slow, through));
    eventually("all connections are gone", || server.stat()["nfs"]["connections"] == 0);
    eventually("so are their sockets", || open_sockets(&server) <= before);
    assert_eq!(server.stat()["nfs"]["request_bytes"], 0);
    server.stop();
}

#[test]
fn a_client_that_closes_its_side_gets_its_replies() {
    let rig = Rig::new();
    let server = rig.serve(&[]);
    let mut through = client(&server, &rig.trust(None)).unwrap();
    let root = through.mount("/").unwrap();
    let file = through.create_empty(&root, b"file").unwrap();
    through.write_all(&file, 0, &bytes(LARGE, 2), LARGE, 1).unwrap();
    let arguments = [
        &(file.len() as u32).to_be_bytes()[..],
        &file,
        &[0; 3][..file.len().wrapping_neg() & 3],
        &0_u64.to_be_bytes(),
        &(LARGE as u32).to_be_bytes(),
    ];
    let read = arguments.concat();
    let xids: Vec<u32> = (0..8).map(|_| through.send((100_003, 3), 6, &read).unwrap()).collect();
    through.socket().shutdown(Shutdown::Write).unwrap();
    for xid in xids {
        let reply = through.receive().unwrap();
        assert_eq!(reply.xid, xid);
        assert!(reply.results.ends_with(&bytes(LARGE, 2)));
    }
    eventually("the connection is gone", || server.stat()["nfs"]["connections"] == 0);
    server.stop();
}

#[test]
fn a_renewed_certificate_is_used_without_a_restart() {
    let rig = Rig::new();
    let server = rig.serve(&[]);
    let mut old = client(&server, &rig.trust(None)).unwrap();
    let renewed = Authority::new();
    let issued = renewed.issue("server", Purpose::Server);
    // A certificate without its key changes nothing.
    let waiting = Issued { key: renewed.issue("other", Purpose::Server).key, ..issued.clone() };
    rig.install(&waiting);
    client(&server, &rig.trust(None)).unwrap().null().unwrap();
    rig.install(&issued);
    let trust = Trust::new(&renewed, None);
    eventually("the new certificate is in use", || client(&server, &trust).is_ok());
    assert!(client(&server, &rig.trust(None)).is_err());
    old.null().unwrap();
    server.stop();
}

#[test]
fn a_stop_answers_calls_through_tls_first() {
    let rig = Rig::new();
    let server = rig.serve(&[]);
    let mut through = client(&server, &rig.trust(None)).unwrap();
    let root = through.mount("/").unwrap();
    let file = through.create_empty(&root, b"file").unwrap();
    through.write(&file, 0, b"unstable", stable_how::UNSTABLE).unwrap();
    server.stop();
    assert_eq!(fs::read(rig.data.join("file")).unwrap(), b"unstable");
    assert!(through.null().is_err());
}

/// The words of a start that is refused: those of its check, too.
fn refusal(home: &Path, data: &Path, arguments: &[&str]) -> String {
    let data = data.to_str().unwrap();
    let words = [&["serve", data, "--listen", "127.0.0.1:0", "--cache", "64MiB"], arguments].concat();
    let (checked, started) = (run(home, &[&words[..], &["--check"]].concat()), run(home, &words));
    assert_eq!(
        (checked.status.code(), started.status.code()),
        (Some(2), Some(2)),
        "{} {}",
        text(&checked),
        text(&started)
    );
    assert_eq!(text(&checked), text(&started));
    text(&started)
}

#[test]
fn files_that_do_not_serve_are_named_before_the_start() {
    let rig = Rig::new();
    let (cert, key, ca) = (rig.path("cert.pem"), rig.path("key.pem"), rig.path("ca.pem"));
    let [cert, key, ca] = [&cert, &key, &ca].map(|path| path.to_str().unwrap());
    let (home, data) = (rig.scratch.path(), &rig.data);
    let write = |name: &str, text: &str, mode: u32| {
        fs::write(rig.path(name), text).unwrap();
        fs::set_permissions(rig.path(name), Permissions::from_mode(mode)).unwrap();
        rig.path(name).to_str().unwrap().to_owned()
    };
    let other = write("other.pem", &rig.authority.issue("other", Purpose::Server).key, 0o600);
    let open = write("open.pem", &fs::read_to_string(key).unwrap(), 0o644);
    let old = rig.authority.issue("server", Purpose::ServerInThePast);
    let (expired, its_key) = (write("expired.pem", &old.certificate, 0o644), write("its_key.pem", &old.key, 0o600));
    let empty = write("empty.pem", "", 0o600);
    let table: [(&[&str], &str); 13] = [
        (&["--tls-required"], "--tls-required takes a certificate: see --tls CERT KEY"),
        (&["--tls-clients", ca], "--tls-clients takes a certificate: see --tls CERT KEY"),
        (&["--tls", cert, key, "--tls-users"], "--tls-users takes the authority of the clients' certificates"),
        (&["--tls", "/none.pem", key], "cannot read the certificate /none.pem: No such file or directory"),
        (&["--tls", cert, "/none.pem"], "cannot read the key /none.pem: No such file or directory"),
        (&["--tls", cert, key, "--tls-clients", "/none"], "cannot read the authority of clients /none: No such file"),
        (&["--tls", "/", key], "cannot read the certificate /: it is no regular file"),
        (&["--tls", cert, "/dev/zero"], "cannot read the key /dev/zero: it is no regular file"),
        (&["--tls", cert, &other], "other.pem does not serve: it is not the key of the certificate"),
        (&["--tls", cert, &open], "open.pem (mode 644): chmod 600 "),
        (&["--tls", &expired, &its_key], "expired.pem does not serve: it expired "),
        (&["--tls", &empty, key], "empty.pem does not serve: it has no certificate in PEM form"),
        (&["--tls", cert, key, "--tls-clients", &empty], "empty.pem does not serve: it has no certificate in PEM form"),
    ];
    for (arguments, expected) in table {
        let said = refusal(home, data, arguments);
        assert!(said.contains(expected), "{said}, not {expected}");
    }
    let checked =
        run(home, &["serve", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--tls", cert, key, "--check"]);
    assert!(checked.status.success(), "{}", text(&checked));
    let mounted = run(home, &["mount", "--tls-required", data.to_str().unwrap(), "/mnt"]);
    assert!(text(&mounted).contains("--tls-required is a setting of `afflux serve` alone"), "{}", text(&mounted));
}
