//! Which callers are answered, and as which user: forged callers, networks, squashing, a server that is not root's.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use afflux_nfs_client::{Call, Change, Client, Creation, Error, NFS, Node, User, stable_how};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::Signal;

use crate::scratch::{Scratch, can_be_several_users};
use crate::server::{Server, afflux, afflux_at, eventually, text};

const NOBODY: u32 = 65_534;
pub(crate) const MARY: User = User { uid: 4001, gid: 4101 };
pub(crate) const ROOT: User = User { uid: 0, gid: 0 };

const PERM: u32 = 1;
const ACCESS: u32 = 13;
const ROFS: u32 = 30;

/// The errors of refused calls.
const TOO_WEAK: [u32; 3] = [1, 1, 5];
const BAD_CREDENTIAL: [u32; 3] = [1, 1, 1];

/// A connection whose socket belongs to `user`, like a socket of that user's process.
pub(crate) fn connected_as(user: u32, server: &Server) -> Client {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    fchown(&socket, Some(user), None).unwrap();
    connect(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()))).unwrap();
    Client::over(TcpStream::from(socket)).unwrap()
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> Vec<u32> {
    match answer {
        Err(Error::Refused { words }) => words,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn status<T>(answer: Result<T, Error>) -> u32 {
    answer.map_or_else(|error| error.status().unwrap_or_else(|| panic!("{error}")), |_| 0)
}

/// A directory that everybody may write to.
pub(crate) fn open_directory(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.directory(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    path
}

pub(crate) fn create(client: &mut Client, directory: &[u8], name: &str, mode: u32) -> Result<Vec<u8>, Error> {
    let how = Creation::Guarded(Change { mode: Some(mode), ..Change::default() });
    client.create(directory, name.as_bytes(), how).map(|made| made.handle.unwrap().to_vec())
}

fn owner(path: &Path) -> (u32, u32) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.uid(), metadata.gid())
}

#[test]
fn a_process_of_this_machine_is_itself_whatever_it_claims() {
    if !can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = open_directory(&scratch, "data");
    fs::write(data.join("secret"), b"root's alone").unwrap();
    fs::set_permissions(data.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut forger = connected_as(MARY.uid, &server);
    let root = forger.mount("/").unwrap().to_vec();
    let claims: [&dyn Fn(&mut Client); 4] = [
        &|client| client.set_user_in(ROOT, &[0]),
        &|client| client.set_user_in(User { uid: NOBODY, gid: NOBODY }, &[0, 4, 6]),
        &|client| client.set_user(None),
        &|client| client.set_user(Some(MARY)),
    ];
    for (at, claim) in claims.iter().enumerate() {
        claim(&mut forger);
        let secret = forger.lookup(&root, b"secret").unwrap().0.to_vec();
        assert_eq!(status(forger.read(&secret, 0, 10)), ACCESS);
        assert_eq!(status(forger.write(&secret, 0, b"x", stable_how::UNSTABLE)), ACCESS);
        assert_eq!(status(forger.commit(&secret, 0, 0)), ACCESS);
        let truncated = Change { size: Some(0), ..Change::default() };
        assert_eq!(status(forger.setattr(&secret, truncated, None)), ACCESS);
        let opened = Change { mode: Some(0o666), ..Change::default() };
        assert_eq!(status(forger.setattr(&secret, opened, None)), PERM);
        assert_eq!(forger.access(&secret, 0x3f).unwrap().access, 0);
        let name = format!("made {at}");
        create(&mut forger, &root, &name, 0o6755).unwrap();
        // The user is not in /etc/passwd, and so in no group of this machine.
        assert_eq!(owner(&data.join(&name)), (MARY.uid, NOBODY));
        let device = Node::Block(Change::default(), (8, 0));
        assert_eq!(status(forger.mknod(&root, b"disk", device)), PERM);
    }
    assert_eq!(fs::read(data.join("secret")).unwrap(), b"root's alone");

    // A kernel's mount uses a socket of root, and calls for its users.
    let mut kernel = connected_as(0, &server);
    kernel.set_user_in(MARY, &[4242]);
    let made = create(&mut kernel, &root, "mary's", 0o640).unwrap();
    assert_eq!(owner(&data.join("mary's")), (MARY.uid, MARY.gid));
    let secret = kernel.lookup(&root, b"secret").unwrap().0.to_vec();
    assert_eq!(status(kernel.read(&secret, 0, 10)), ACCESS);
    kernel.set_user(Some(ROOT));
    assert_eq!(kernel.read(&secret, 0, 6).unwrap().data, b"root's");
    assert_eq!(kernel.read(&made, 0, 6).unwrap().data, b"");
    let null = Node::Character(Change { mode: Some(0o666), ..Change::default() }, (1, 3));
    kernel.mknod(&root, b"null", null).unwrap();
    assert_eq!(fs::metadata(data.join("null")).unwrap().rdev(), rustix::fs::makedev(1, 3));
}

#[test]
fn credentials_that_lie_about_themselves_are_refused_and_the_connection_goes_on() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut client = Client::connect(("127.0.0.1", server.port())).unwrap();
    let root = client.mount("/").unwrap().to_vec();
    client.set_user_in(MARY, &[7; 17]);
    assert_eq!(refused(client.getattr(&root)), BAD_CREDENTIAL, "17 groups");
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    for (flavour, body, expected) in [
        // A name longer than the credential, a name beyond the limit, missing groups.
        (1, words(&[0, 400, 0, 0, 0]), BAD_CREDENTIAL),
        (1, [words(&[0, 256]), vec![0; 256], words(&[0, 0, 0])].concat(), BAD_CREDENTIAL),
        (1, words(&[0, 0, 0, 0, 16]), BAD_CREDENTIAL),
        (1, words(&[0, 0, 0, 0, u32::MAX]), BAD_CREDENTIAL),
        (1, vec![], BAD_CREDENTIAL),
        (1, vec![0; 404], BAD_CREDENTIAL),
        (2, vec![], [1, 1, 2]),
        (6, words(&[1, 0, 1, 1]), [1, 1, 2]),
        (390_003, vec![1, 2, 3, 4], [1, 1, 2]),
    ] {
        client.set_credential(flavour, &body);
        assert_eq!(refused(client.getattr(&root)), expected, "{flavour} {body:?}");
    }
    client.set_user_in(MARY, &[7; 16]);
    client.getattr(&root).unwrap();
}

#[test]
fn everybody_is_nobody_where_all_are_squashed_and_nobody_changes_what_is_read_only() {
    if !can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = open_directory(&scratch, "data");
    fs::write(data.join("file"), b"everybody's").unwrap();
    let squashing = ["--squash", "all", "--anon", "4300:4400"];
    let server = Server::start(scratch.path(), &[&data], &squashing);
    for (number, (owner_of_socket, claim)) in [(0, ROOT), (MARY.uid, MARY)].into_iter().enumerate() {
        let mut client = connected_as(owner_of_socket, &server);
        let root = client.mount("/").unwrap().to_vec();
        client.set_user_in(claim, &[0]);
        let name = format!("made {number}");
        create(&mut client, &root, &name, 0o600).unwrap();
        assert_eq!(owner(&data.join(&name)), (4300, 4400));
    }
    drop(server);

    let server = Server::start(scratch.path(), &[&data], &["--read-only"]);
    let mut client = connected_as(0, &server);
    let root = client.mount("/").unwrap().to_vec();
    let file = client.lookup(&root, b"file").unwrap().0.to_vec();
    assert_eq!(client.read(&file, 0, 100).unwrap().data, b"everybody's");
    client.commit(&file, 0, 0).unwrap();
    let change = Change { mode: Some(0o600), ..Change::default() };
    let sized = Change { size: Some(1), ..Change::default() };
    assert_eq!(client.access(&file, 0x3f).unwrap().access & 0x1c, 0);
    let refusals = [
        status(client.write(&file, 0, b"x", stable_how::UNSTABLE)),
        status(client.write(&file, 0, b"", stable_how::UNSTABLE)),
        status(client.setattr(&file, change, None)),
        status(client.setattr(&file, sized, None)),
        status(create(&mut client, &root, "new", 0o600)),
        status(client.mkdir(&root, b"new", change)),
        status(client.symlink(&root, b"new", b"file", Change::default())),
        status(client.mknod(&root, b"new", Node::Fifo(change))),
        status(client.link(&file, &root, b"new")),
        status(client.rename((&root, b"file"), (&root, b"new"))),
        status(client.remove(&root, b"file")),
        status(client.rmdir(&root, b"made 0")),
    ];
    assert_eq!(refusals, [ROFS; 12]);
}

const NOENT: u32 = 2;
const NOTDIR: u32 = 20;

/// A served tree with a directory that only `owner` may search, objects below it, and paths into it from outside.
fn tree_with_a_private_directory(data: &Path, owner: u32) {
    fs::create_dir_all(data.join("private/inner/deep")).unwrap();
    fs::create_dir_all(data.join("public/inner")).unwrap();
    for path in ["private/inner", "private/inner/deep", "public", "public/inner"] {
        fs::set_permissions(data.join(path), fs::Permissions::from_mode(0o777)).unwrap();
    }
    fs::write(data.join("private/file"), b"bytes").unwrap();
    fs::write(data.join("public/file"), b"bytes").unwrap();
    let links = [("way", "private/inner"), ("absolute", "/private/inner"), ("around", "public/../private/./inner")];
    for (link, target) in [&links[..], &[("public/back", "../private/inner"), ("way out", "public/inner")]].concat() {
        std::os::unix::fs::symlink(target, data.join(link)).unwrap();
    }
    std::os::unix::fs::symlink("/public", data.join("private/out")).unwrap();
    fs::set_permissions(data.join("private"), fs::Permissions::from_mode(0o700)).unwrap();
    chown(data.join("private"), Some(owner), Some(owner)).unwrap();
}

/// Paths through `private`, to objects that exist and to others that do not.
const THROUGH_PRIVATE: [&str; 12] = [
    "/private/inner",
    "private//inner/",
    "/private/inner/deep",
    "/private/absent",
    "/private/absent/more",
    "/private/file",
    "/private/file/more",
    "/private/out",
    "/private/..",
    "/way",
    "/absolute/deep",
    "/public/back",
];

#[test]
fn mount_needs_search_permission_at_each_name_as_lookup_does() {
    if !can_be_several_users() {
        return;
    }
    const JOHN: User = User { uid: 4002, gid: 4102 };
    let scratch = Scratch::new();
    let data = open_directory(&scratch, "data");
    tree_with_a_private_directory(&data, JOHN.uid);
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut kernel = connected_as(0, &server);
    let root = kernel.mount("/").unwrap();
    let inner = kernel.find(&root, "private/inner").unwrap();
    let denied = |client: &mut Client, whose: &str| {
        for path in THROUGH_PRIVATE {
            assert_eq!(status(client.mount(path)), ACCESS, "{path} of {whose}");
        }
        assert_eq!(status(client.mount("/around")), ACCESS, "{whose}");
        // LOOKUP finds the directory itself, and paths that do not enter it are open.
        let found = client.lookup(&root, b"private").unwrap().0;
        assert_eq!(client.mount("/private").unwrap(), found, "{whose}");
        assert_eq!(status(client.lookup(&found, b"absent")), ACCESS, "{whose}");
        for path in ["/", "", "/..", "/public/..", "/private/../..", "/way out/../.."] {
            match path.contains("private") {
                true => assert_eq!(status(client.mount(path)), ACCESS, "{path} of {whose}"),
                false => assert_eq!(client.mount(path).unwrap(), root, "{path} of {whose}"),
            }
        }
        client.mount("/way out").unwrap();
        assert_eq!(status(client.mount("/absent")), NOENT);
        assert_eq!(status(client.mount("/public/absent/more")), NOENT);
        assert_eq!(status(client.mount("/public/file")), NOTDIR);
        assert_eq!(status(client.mount("/public/file/more")), NOTDIR);
    };
    let allowed = |client: &mut Client, whose: &str| {
        for path in ["/private/inner", "/way", "/absolute", "/around", "/public/back"] {
            assert_eq!(client.mount(path).unwrap(), inner, "{path} of {whose}");
        }
        assert_eq!(client.mount("/private/inner/../..").unwrap(), root, "{whose}");
        assert_eq!(status(client.mount("/private/absent")), NOENT, "{whose}");
        assert_eq!(status(client.mount("/private/file")), NOTDIR, "{whose}");
    };
    // Their claims change nothing for processes of this machine.
    let mut mary = connected_as(MARY.uid, &server);
    for claim in [Some(ROOT), Some(JOHN), None] {
        mary.set_user(claim);
        denied(&mut mary, "another user");
    }
    let mut john = connected_as(JOHN.uid, &server);
    john.set_user(Some(MARY));
    allowed(&mut john, "the owner");
    // Root's kernel calls for its users.
    allowed(&mut kernel, "root");
    kernel.set_user(Some(JOHN));
    allowed(&mut kernel, "the owner through a kernel");
    kernel.set_user(Some(MARY));
    denied(&mut kernel, "another user through a kernel");
    kernel.set_user(None);
    denied(&mut kernel, "nobody");
    drop(server);

    let server = Server::start(scratch.path(), &[&data], &["--squash", "all"]);
    for owner_of_socket in [0, JOHN.uid] {
        denied(&mut connected_as(owner_of_socket, &server), "anybody squashed");
    }
    drop(server);
    let server = Server::start(scratch.path(), &[&data], &["--read-only"]);
    denied(&mut connected_as(MARY.uid, &server), "another user who only reads");
    allowed(&mut connected_as(JOHN.uid, &server), "the owner who only reads");
    drop(server);

    // Every caller that the server answers may mount an export's own root, even if it is one of several.
    let private = data.join("private");
    let server = Server::start(scratch.path(), &[&private, &data.join("public")], &[]);
    let mut mary = connected_as(MARY.uid, &server);
    let root = mary.mount("/private").unwrap();
    assert_eq!(status(mary.lookup(&root, b"inner")), ACCESS);
    assert_eq!(status(mary.mount("/private/inner")), ACCESS);
    assert_eq!(status(mary.mount("/private/absent")), ACCESS);
    assert_eq!(status(mary.mount("/other")), NOENT);
    assert_eq!(status(mary.mount("/")), NOENT);
    connected_as(JOHN.uid, &server).mount("/private/inner").unwrap();
}

/// An address of this machine other than loopback, if the machine has one. Connections to this address come from it.
fn own_address() -> Option<Ipv4Addr> {
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    probe.connect("192.0.2.1:9").ok()?;
    match probe.local_addr().ok()?.ip() {
        std::net::IpAddr::V4(address) if !address.is_loopback() => Some(address),
        _ => None,
    }
}

#[test]
fn a_process_of_this_machine_is_no_other_machine_by_another_address() {
    let (true, Some(address)) = (can_be_several_users(), own_address()) else {
        afflux_scratch::skipped!("this machine has no address but loopback's, or we are not root");
        return;
    };
    let scratch = Scratch::new();
    let data = open_directory(&scratch, "data");
    let mut command = afflux(scratch.path());
    let control = scratch.path().join("control.sock");
    command.args(["serve", "--json", "--cache", "64MiB", "--listen", "0.0.0.0:0"]).arg("--control").arg(&control);
    command.args(["--allow", "0.0.0.0/0", "--any-port", "--squash", "none"]).arg(&data);
    let server = Server::spawn(command, control, scratch.path());
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    fchown(&socket, Some(MARY.uid), None).unwrap();
    bind(&socket, &SocketAddr::from((address, 0))).unwrap();
    connect(&socket, &SocketAddr::from((address, server.port()))).unwrap();
    let mut forger = Client::over(TcpStream::from(socket)).unwrap();
    let root = forger.mount("/").unwrap().to_vec();
    forger.set_user(Some(ROOT));
    create(&mut forger, &root, "file", 0o600).unwrap();
    assert_eq!(owner(&data.join("file")).0, MARY.uid);
}

/// A socket of `user`, connected to the server by this address.
fn socket_of(user: u32, to: SocketAddr) -> TcpStream {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::STREAM, None).unwrap();
    fchown(&socket, Some(user), None).unwrap();
    connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// The kernel retains the data of a process that closed its socket before the server accepted it.
#[test]
fn a_process_of_this_machine_is_no_other_machine_by_having_closed_its_socket() {
    if !can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let control = scratch.path().join("control.sock");
    let mut command = afflux(scratch.path());
    command.args(["serve", "--json", "--cache", "64MiB", "--listen", "[::]:0"]).arg("--control").arg(&control);
    let open = ["--allow", "0.0.0.0/0", "--allow", "::/0", "--any-port", "--squash", "none"];
    let server = Server::spawn(
        {
            command.args(open).arg(&data);
            command
        },
        control,
        scratch.path(),
    );
    let too_weak = || server.stat()["nfs"]["calls"]["rpc_auth_tooweak"].as_u64().unwrap();
    let mut honest = connected_as(MARY.uid, &server);
    let root = honest.mount("/").unwrap();
    let addresses = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 77)].into_iter().chain(own_address());
    let addresses = addresses.map(IpAddr::from).chain([Ipv6Addr::LOCALHOST.into()]);
    for (at, address) in addresses.enumerate() {
        let name = format!("made {at}");
        // A frozen server accepts nothing.
        server.freeze();
        let mut forger = Client::over(socket_of(MARY.uid, SocketAddr::new(address, server.port()))).unwrap();
        let call = Call::Create { directory: root.clone(), name: name.clone().into() };
        forger.send(NFS, call.procedure().0, &call.arguments()).unwrap();
        drop(forger);
        server.signal(Signal::CONT);
        let refused = at as u64 + 1;
        eventually("the call is answered", || data.join(&name).exists() || too_weak() == refused);
        assert!(!data.join(&name).exists(), "root's call by {address}");
        // A process that still holds its socket is served by that address.
        let mut client = Client::over(socket_of(MARY.uid, SocketAddr::new(address, server.port()))).unwrap();
        client.set_user(Some(ROOT));
        assert_eq!(status(create(&mut client, &root, &name, 0o600)), ACCESS, "{address}");
    }
}

/// A server that a user runs on that user's directories.
fn server_of(user: u32, scratch: &Scratch, data: &Path, arguments: &[&str]) -> Server {
    chown(data, Some(user), Some(user)).unwrap();
    let home = scratch.directory("home");
    chown(&home, Some(user), Some(user)).unwrap();
    let control = home.join("control.sock");
    let mut command = afflux_at(&scratch.program_for_others(), &home);
    command.args(["serve", "--json", "--cache", "64MiB", "--listen", "127.0.0.1:0"]).arg("--control").arg(&control);
    command.args(arguments).arg(data).uid(user).gid(user);
    Server::spawn(command, control, &home)
}

#[test]
fn handles_of_a_server_that_is_not_roots_survive_its_death_and_a_torn_record() {
    if !can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = server_of(MARY.uid, &scratch, &data, &[]);
    let mut client = connected_as(MARY.uid, &server);
    let root = client.mount("/").unwrap().to_vec();
    let one = client.mkdir(&root, b"one", Change::default()).unwrap().handle.unwrap().to_vec();
    let two = client.mkdir(&one, b"two", Change::default()).unwrap().handle.unwrap().to_vec();
    let file = create(&mut client, &two, "file", 0o640).unwrap();
    client.write(&file, 0, b"bytes", stable_how::FILE_SYNC).unwrap();
    client.rename((&root, b"one"), (&root, b"uno")).unwrap();
    let record = scratch.path().join("home/afflux/places");
    let bytes = || fs::metadata(&record).map_or(0, |metadata| metadata.len());
    // About 48 bytes each for two directories and a file, and 16 at the beginning.
    eventually("the record is written", || bytes() > 150);
    server.kill();
    let at = fs::OpenOptions::new().append(true).open(&record).unwrap();
    std::io::Write::write_all(&mut &at, b"\0\x40half an entry").unwrap();

    let server = server_of(MARY.uid, &scratch, &data, &[]);
    let mut client = connected_as(MARY.uid, &server);
    assert_eq!(client.read(&file, 0, 100).unwrap().data, b"bytes");
    client.lookup(&two, b"file").unwrap();
    eventually("the record is mended", || !fs::read(&record).unwrap().ends_with(b"half an entry"));
    let ended = server.stop();
    assert!(ended.stderr.contains("a part of") && ended.stderr.contains("places cannot be read"), "{}", ended.stderr);
}

#[test]
fn a_server_that_is_not_roots_acts_as_its_user_for_that_user_and_root_alone() {
    if !can_be_several_users() {
        return;
    }
    const JOHN: u32 = 4002;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = server_of(MARY.uid, &scratch, &data, &[]);
    for (socket_owner, claim) in [(MARY.uid, ROOT), (0, User { uid: JOHN, gid: JOHN })] {
        let mut client = connected_as(socket_owner, &server);
        client.set_user(Some(claim));
        let root = client.mount("/").unwrap().to_vec();
        let name = format!("for {socket_owner}");
        create(&mut client, &root, &name, 0o600).unwrap();
        assert_eq!(owner(&data.join(&name)), (MARY.uid, MARY.uid));
        let device = Node::Character(Change::default(), (1, 3));
        assert_eq!(status(client.mknod(&root, b"null", device)), PERM);
    }
    let mut other = connected_as(JOHN, &server);
    assert_eq!(refused(other.mount("/")), TOO_WEAK);
    assert_eq!(refused(other.null()), TOO_WEAK);
    drop(server);

    let server = server_of(MARY.uid, &scratch, &data, &["--squash", "all"]);
    let mut other = connected_as(JOHN, &server);
    let root = other.mount("/").unwrap().to_vec();
    create(&mut other, &root, "for another", 0o600).unwrap();
    assert_eq!(owner(&data.join("for another")), (MARY.uid, MARY.uid));
}

#[test]
fn whoever_asks_for_a_server_of_another_user_is_told_whose_it_is() {
    if !can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = server_of(MARY.uid, &scratch, &data, &[]);
    // Root has no server of its own at this path.
    let output = afflux(&scratch.directory("root")).arg("stat").env("TMPDIR", scratch.path()).output().unwrap();
    let said = text(&output);
    if said.contains("no server of this user") {
        let line =
            format!("user {} runs one (process {}): sudo -u '#{}' afflux stat", MARY.uid, server.process(), MARY.uid);
        assert!(said.contains(&line) && !said.contains("afflux serve DIR"), "{said}");
    } else {
        // Root runs a server elsewhere on this machine.
        assert!(output.status.success() || said.contains("servers are running"), "{said}");
    }
    server.stop();
}
