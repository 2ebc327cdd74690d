use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::net::{Shutdown, shutdown};
use rustix::process::geteuid;

use super::{bind_in, bind_in_first, bind_named, connect, prepare, running};
use crate::control::trust::TrustedDirectory;

/// A user other than the one who runs the tests.
const STRANGER: u32 = 65_534;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(afflux_scratch::Scratch::new(&std::env::temp_dir(), name).unwrap().keep())
    }

    fn directory(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn live(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    listener
}

/// Nobody listens there, even if another test is just starting a program with a copy of the socket.
fn dead(path: &Path) {
    shutdown(live(path), Shutdown::Both).unwrap();
}

fn refused<T: std::fmt::Debug>(outcome: afflux_report::failure::Outcome<T>) -> String {
    outcome.unwrap_err().to_string()
}

/// Gives the path to a stranger, and prints why it cannot.
fn given_away(path: &Path) -> bool {
    let done = chown(path, Some(STRANGER), Some(STRANGER)).is_ok();
    if !done {
        afflux_scratch::skipped!("only root can make what belongs to others");
    }
    done
}

#[test]
fn a_socket_is_for_its_user_alone_and_a_stale_one_is_replaced() {
    let scratch = Scratch::new("stale");
    let path = scratch.0.join("a.sock");
    dead(&path);
    let (bound, listener) = bind_named(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(connect(Some(&path)).is_ok());
    let said = refused(bind_named(&path));
    assert!(said.contains("another server answers"), "{said}");
    shutdown(&listener, Shutdown::Both).unwrap();
    drop(listener);
    assert!(path.exists(), "dropping a listener leaves its socket");
    bound.remove();
    assert!(!path.exists());
}

#[test]
fn a_server_removes_no_socket_but_its_own() {
    let scratch = Scratch::new("own");
    let path = scratch.0.join("a.sock");
    let (bound, _listener) = bind_named(&path).unwrap();
    // Retains the file, so that the other file does not get its inode number.
    fs::rename(&path, scratch.0.join("kept")).unwrap();
    let _other = live(&path);
    bound.remove();
    assert!(path.exists());
}

#[test]
fn a_file_in_the_socket_s_place_is_left_alone() {
    let scratch = Scratch::new("file");
    let path = scratch.0.join("a.sock");
    fs::write(&path, "precious").unwrap();
    let said = refused(bind_named(&path));
    assert!(said.contains("there is a file"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_directory_that_others_could_have_made_is_refused() {
    let scratch = Scratch::new("directory");
    let open = scratch.directory("open", 0o777);
    assert!(prepare(&open).unwrap_err().contains("open to others"));
    let link = scratch.0.join("link");
    symlink(&scratch.0, &link).unwrap();
    assert!(prepare(&link).unwrap_err().contains("symbolic link"));
    let said = refused(bind_named(&open.join("a.sock")));
    assert!(said.contains("every user may change"), "{said}");
    let made = scratch.0.join("made");
    for _ in 0..2 {
        let directory = prepare(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        bind_in(&made, directory, "a.sock".into()).unwrap().0.remove();
    }
}

#[test]
fn a_directory_that_another_user_took_stops_no_server() {
    let scratch = Scratch::new("squatted");
    let squatted = scratch.directory("squatted", 0o755);
    if !given_away(&squatted) {
        return;
    }
    let home = scratch.0.join("home/.local/state/afflux/run");
    let directories = [squatted.clone(), home.clone()];
    let (bound, _listener) = bind_in_first(&directories, "a.sock".into()).unwrap();
    assert_eq!(bound.path, home.join("a.sock"));
    let found = running(&directories);
    assert_eq!(found.servers.len(), 1, "clients look there, too: {found:?}");
    assert!(found.distrusted[0].contains("belongs to user"), "{found:?}");
    let said = refused(bind_in_first(&[squatted], "a.sock".into()));
    assert!(said.contains("belongs to user") && said.contains("--control PATH"), "{said}");
}

#[test]
fn running_servers_are_found_and_stale_sockets_swept() {
    let scratch = Scratch::new("running");
    let path = |name: &str| scratch.0.join(name);
    let _listener = live(&path("live.sock"));
    dead(&path("dead.sock"));
    dead(&path("other"));
    fs::write(path("file.sock"), "precious").unwrap();
    let found = running(&[path("absent"), scratch.0.clone()]);
    let paths: Vec<_> = found.servers.iter().map(|(path, stream)| (path.clone(), stream.is_some())).collect();
    assert_eq!(paths, [(path("live.sock"), true)]);
    assert!(!path("dead.sock").exists() && path("other").exists() && path("file.sock").exists());
}

#[test]
fn nothing_is_swept_while_a_server_is_being_started() {
    let scratch = Scratch::new("starting");
    let path = scratch.0.join("a.sock");
    dead(&path);
    let starting = TrustedDirectory::private(&scratch.0).unwrap();
    starting.lock().unwrap();
    running(std::slice::from_ref(&scratch.0));
    assert!(path.exists());
    starting.unlock();
    running(std::slice::from_ref(&scratch.0));
    assert!(!path.exists());
}

#[test]
fn a_symbolic_link_is_neither_followed_nor_removed() {
    let scratch = Scratch::new("link");
    let (mine, theirs) = (scratch.directory("mine", 0o700), scratch.directory("theirs", 0o700));
    let (to_dead, to_live) = (mine.join("dead.sock"), mine.join("live.sock"));
    dead(&theirs.join("dead"));
    let _listener = live(&theirs.join("live"));
    symlink(theirs.join("dead"), &to_dead).unwrap();
    symlink(theirs.join("live"), &to_live).unwrap();
    let found = running(std::slice::from_ref(&mine));
    assert!(found.servers.is_empty(), "{found:?}");
    for link in [&to_dead, &to_live] {
        for said in [refused(connect(Some(link))), refused(bind_named(link))] {
            assert!(said.contains("is a symbolic link"), "{said}");
        }
        assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    }
    assert!(theirs.join("dead").exists() && theirs.join("live").exists());
    // A link in place of one of our directories is refused, and its target stays unchanged.
    let link = scratch.0.join("to-theirs");
    symlink(&theirs, &link).unwrap();
    dead(&theirs.join("dead.sock"));
    let found = running(&[link]);
    assert!(found.servers.is_empty() && found.distrusted[0].contains("symbolic link"), "{found:?}");
    assert!(theirs.join("dead.sock").exists());
}

#[test]
fn the_directory_of_a_stranger_is_neither_believed_nor_swept() {
    let scratch = Scratch::new("stranger");
    let theirs = scratch.directory("theirs", 0o700);
    let (live_one, dead_one) = (theirs.join("live.sock"), theirs.join("dead.sock"));
    let _listener = live(&live_one);
    dead(&dead_one);
    if !given_away(&theirs) {
        return;
    }
    let found = running(std::slice::from_ref(&theirs));
    assert!(found.servers.is_empty(), "{found:?}");
    assert!(found.distrusted[0].contains("belongs to user 65534"), "{found:?}");
    assert!(dead_one.exists());
    assert!(prepare(&theirs).unwrap_err().contains("belongs to user 65534"));
    for said in [refused(connect(Some(&live_one))), refused(bind_named(&dead_one))] {
        assert!(said.contains("belongs to user 65534"), "{said}");
    }
    // A link that belongs to another user is refused, too.
    let link = scratch.0.join("link");
    symlink(scratch.directory("mine", 0o700), &link).unwrap();
    rustix::fs::chownat(
        rustix::fs::CWD,
        &link,
        Some(rustix::fs::Uid::from_raw(STRANGER)),
        None,
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    )
    .unwrap();
    let said = refused(bind_named(&link.join("a.sock")));
    assert!(said.contains("a symbolic link of user 65534"), "{said}");
}

#[test]
fn the_socket_of_a_stranger_is_neither_believed_nor_removed() {
    let scratch = Scratch::new("foreign");
    let (live_one, dead_one) = (scratch.0.join("live.sock"), scratch.0.join("dead.sock"));
    let _listener = live(&live_one);
    dead(&dead_one);
    if !given_away(&live_one) || !given_away(&dead_one) {
        return;
    }
    let found = running(std::slice::from_ref(&scratch.0));
    assert!(found.servers.is_empty() && found.distrusted.len() == 2, "{found:?}");
    for path in [&live_one, &dead_one] {
        for said in [refused(connect(Some(path))), refused(bind_named(path))] {
            assert!(said.contains("belongs to user 65534"), "{said}");
        }
        assert!(path.exists());
    }
}

/// A program that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_that_a_stranger_runs_is_not_believed_though_its_socket_is_ours() {
    const LISTEN: &str = r#"use Socket; $| = 1; socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
        bind($s, pack_sockaddr_un($ARGV[0])) or die "$!"; listen($s, 9) or die; print "ready\n"; sleep 600"#;
    let scratch = Scratch::new("peer");
    let place = scratch.directory("place", 0o700);
    let path = place.join("a.sock");
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o711)).unwrap();
    if !given_away(&place) {
        return;
    }
    let mut command = Command::new("perl");
    command.args(["-e", LISTEN]).arg(&path).uid(STRANGER).gid(STRANGER).stdin(Stdio::null()).stdout(Stdio::piped());
    let Ok(child) = command.spawn() else {
        afflux_scratch::skipped!("perl is not installed");
        return;
    };
    let mut server = Ended(child);
    let mut said = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n");
    let me = geteuid().as_raw();
    for path in [&place, &path] {
        chown(path, Some(me), None).unwrap();
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let found = running(std::slice::from_ref(&place));
    assert!(found.servers.is_empty(), "{found:?}");
    for said in [refused(connect(Some(&path))), refused(bind_named(&path))] {
        assert!(said.contains("is run by user 65534"), "{said}");
    }
    assert!(path.exists());
}
