//! Permissions equal the host's. Several users make every operation on objects of many modes, through the server and by
//! the same calls on the host; there a thread with that user's identity makes them.

//! rule: 10: a call has its caller's rights
//! kept in: `product/linux-server/src/host/acting.rs`, `product/volume/src/objects/rights.rs`

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::thread;

use afflux_nfs_client::{Change, Client, Creation, Error, Node, TimeChange, User, nfstime3, stable_how};
use rustix::fs::{
    Access, AtFlags, Dir, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, Uid, accessat, chmodat,
    chownat, ftruncate, linkat, makedev, mkdirat, mknodat, openat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::{Errno, pwrite, read};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::scratch::{Mount, Scratch, can_be_several_users};
use crate::server::Server;

const OWNER: User = User { uid: 4001, gid: 4101 };
/// The owner of the other objects in a directory.
const THIRD: u32 = 4009;
/// The group of the objects, which the owner is not in.
const GROUP: u32 = 4200;
/// A group that all callers are in.
const SHARED: u32 = 4300;

struct Caller {
    name: &'static str,
    user: User,
    groups: &'static [u32],
}

const CALLERS: [Caller; 5] = [
    Caller { name: "owner", user: OWNER, groups: &[SHARED] },
    Caller { name: "member", user: User { uid: 4002, gid: GROUP }, groups: &[SHARED] },
    Caller { name: "further member", user: User { uid: 4003, gid: 4103 }, groups: &[17, GROUP, SHARED] },
    Caller { name: "other", user: User { uid: 4004, gid: 4104 }, groups: &[SHARED] },
    Caller { name: "root", user: User { uid: 0, gid: 0 }, groups: &[] },
];

const FILE_MODES: [u32; 24] = [
    0o000, 0o400, 0o200, 0o100, 0o444, 0o222, 0o111, 0o600, 0o640, 0o060, 0o040, 0o020, 0o010, 0o070, 0o004, 0o002,
    0o001, 0o007, 0o077, 0o666, 0o777, 0o6777, 0o4755, 0o2746,
];
const DIRECTORY_MODES: [u32; 20] = [
    0o000, 0o400, 0o200, 0o100, 0o300, 0o500, 0o700, 0o050, 0o030, 0o070, 0o010, 0o005, 0o003, 0o001, 0o755, 0o775,
    0o777, 0o1777, 0o2777, 0o3775,
];

/// The outcome of an operation: 0, or the error number that Linux and NFS share.
type Answer = u32;

/// Makes an operation on the host, as the caller.
fn on_host(caller: &Caller, operation: impl FnOnce() -> Result<(), Errno> + Send) -> Answer {
    let done = thread::scope(|scope| {
        let as_caller = || {
            let groups: Vec<Gid> = caller.groups.iter().map(|group| Gid::from_raw(*group)).collect();
            let (uid, gid) = (Uid::from_raw(caller.user.uid), Gid::from_raw(caller.user.gid));
            set_thread_groups(&groups).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            operation()
        };
        scope.spawn(as_caller).join().unwrap()
    });
    done.map_or_else(|errno| errno.raw_os_error() as u32, |()| 0)
}

fn answer<T>(result: Result<T, Error>) -> Answer {
    match result {
        Ok(_) => 0,
        Err(error) => error.status().unwrap_or_else(|| panic!("{error}")),
    }
}

fn own(path: &Path, uid: u32, mode: u32) {
    chown(path, Some(uid), Some(GROUP)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Mode, owner and group of every entry, by name.
fn entries(directory: &Path) -> Vec<(String, u32, u32, u32)> {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, metadata.mode(), metadata.uid(), metadata.gid())
        })
        .collect();
    entries.sort();
    entries
}

/// Two equal trees, one of them served, and a client of root, which can act as any user.
struct Worlds {
    client: Client,
    root: Vec<u8>,
    served: std::path::PathBuf,
    plain: std::path::PathBuf,
    _server: Server,
    _mount: Mount,
    _scratch: Scratch,
}

impl Worlds {
    fn new(fill: impl Fn(&Path)) -> Option<Self> {
        if !can_be_several_users() {
            return None;
        }
        let scratch = Scratch::new();
        let point = scratch.directory("mount");
        let mount = Mount::tmpfs(&point, 64 << 20)?;
        let (served, plain) = (point.join("served"), point.join("plain"));
        for tree in [&served, &plain] {
            fs::create_dir(tree).unwrap();
            fs::set_permissions(tree, fs::Permissions::from_mode(0o755)).unwrap();
            fill(tree);
        }
        let server = Server::start(scratch.path(), &[&served], &[]);
        let mut client = Client::connect(("127.0.0.1", server.port())).unwrap();
        let root = client.mount("/").unwrap().to_vec();
        Some(Self { client, root, served, plain, _server: server, _mount: mount, _scratch: scratch })
    }

    /// The handle of a path, looked up by root.
    fn find(&mut self, path: &str) -> Vec<u8> {
        self.client.set_user(Some(CALLERS[4].user));
        self.client.find(&self.root, path).unwrap().to_vec()
    }

    fn act_as(&mut self, caller: &Caller) {
        self.client.set_user_in(caller.user, caller.groups);
    }
}

fn opened(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

fn cases(modes: &[u32]) -> impl Iterator<Item = (u32, &'static Caller)> + '_ {
    modes.iter().flat_map(|mode| CALLERS.iter().map(move |caller| (*mode, caller)))
}

#[test]
fn files_are_used_as_on_the_host() {
    let name = |mode: u32, caller: &Caller| format!("{mode:o} {}", caller.name);
    let worlds = Worlds::new(|tree| {
        for (mode, caller) in cases(&FILE_MODES) {
            let path = tree.join(name(mode, caller));
            fs::write(&path, b"some bytes").unwrap();
            own(&path, OWNER.uid, mode);
        }
    });
    let Some(mut worlds) = worlds else { return };
    for (mode, caller) in cases(&FILE_MODES) {
        let name = name(mode, caller);
        let (file, host) = (worlds.find(&name), opened(&worlds.plain));
        worlds.act_as(caller);
        let client = &mut worlds.client;
        let open = |access| openat(&host, &name[..], access, Mode::empty());
        let is_owner = caller.user.uid == OWNER.uid;

        let granted = client.access(&file, 0x2d).unwrap().access;
        let may = |right| on_host(caller, || accessat(&host, &name[..], right, AtFlags::EACCESS)) == 0;
        let bits = |allowed: bool, bits| if allowed { bits } else { 0 };
        let expected =
            bits(may(Access::READ_OK), 1) | bits(may(Access::WRITE_OK), 0x0c) | bits(may(Access::EXEC_OK), 0x20);
        assert_eq!(granted, expected, "ACCESS of {name}");

        // NFS has no open files, so that a server lets the owner read and write, and a user with the right to execute
        // read.
        let reads = on_host(caller, || open(OFlags::RDONLY).and_then(|fd| read(fd, &mut [0; 4]).map(|_| ())));
        let reads = if is_owner || expected & 0x20 != 0 { 0 } else { reads };
        assert_eq!(answer(client.read(&file, 0, 4)), reads, "READ of {name}");
        // A second time it is a hit.
        assert_eq!(answer(client.read(&file, 0, 4)), reads, "another READ of {name}");

        let writes = |at| on_host(caller, || open(OFlags::WRONLY).and_then(|fd| pwrite(fd, b"x", at).map(|_| ())));
        for at in [0, 1] {
            let expected = if is_owner { 0 } else { writes(at) };
            let written = client.write(&file, at, b"x", stable_how::UNSTABLE);
            assert_eq!(answer(written), expected, "WRITE of {name} at {at}");
        }
        let expected = if is_owner || expected & 0x2d != 0 { 0 } else { Errno::ACCESS.raw_os_error() as u32 };
        assert_eq!(answer(client.commit(&file, 0, 0)), expected, "COMMIT of {name}");

        let cut = on_host(caller, || open(OFlags::WRONLY).and_then(|fd| ftruncate(fd, 3)));
        let change = Change { size: Some(3), ..Change::default() };
        assert_eq!(answer(client.setattr(&file, change, None)), if is_owner { 0 } else { cut }, "size of {name}");
        // Linux's client truncates so. It sends the time alone if the size is right already.
        for size in [Some(3), None] {
            let change = Change { size, mtime: TimeChange::Now, ..Change::default() };
            let set = answer(client.setattr(&file, change, None)) == 0;
            assert_eq!(set, is_owner || cut == 0, "size {size:?} and time of {name}");
        }
        // A write through the server clears the setuid and setgid bits for every caller. The host retains them for
        // root, and retains setgid for the group if the group may not execute the file.
        let mut compared = if cut == 0 { !0o6000 } else { !0 };
        let of = |tree: &Path, compared: u32| {
            let metadata = fs::metadata(tree.join(&name)).unwrap();
            (format!("{:o}", metadata.mode() & compared), metadata.uid(), metadata.gid())
        };
        let comparable = !is_owner || mode & 0o200 != 0;
        if comparable {
            assert_eq!(of(&worlds.served, !0), of(&worlds.plain, compared), "after writes to {name}");
        }

        let time = |nsec| Timestamps {
            last_access: Timespec { tv_sec: 1_000, tv_nsec: nsec },
            last_modification: Timespec { tv_sec: 2_000, tv_nsec: nsec },
        };
        for (nsec, change) in
            [(UTIME_NOW, TimeChange::Now), (0, TimeChange::To(nfstime3 { seconds: 2_000, nseconds: 0 }))]
        {
            let set = on_host(caller, || utimensat(&host, &name[..], &time(nsec), AtFlags::empty()));
            let change = Change { atime: change, mtime: change, ..Change::default() };
            assert_eq!(answer(client.setattr(&file, change, None)), set, "times of {name}: {change:?}");
        }
        let steps = [
            (Change { gid: Some(SHARED), ..Change::default() }, None::<u32>, Some(SHARED), None),
            (Change { gid: Some(5), ..Change::default() }, None, Some(5), None),
            (Change { mode: Some(0o2751), ..Change::default() }, None, None, Some(0o2751)),
            (Change { uid: Some(THIRD), ..Change::default() }, Some(THIRD), None, None),
            (Change { mode: Some(0o4755), ..Change::default() }, None, None, Some(0o4755)),
        ];
        for (change, uid, gid, mode) in steps {
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            let set = on_host(caller, || match mode {
                Some(mode) => chmodat(&host, &name[..], Mode::from_raw_mode(mode), AtFlags::empty()),
                None => chownat(&host, &name[..], uid, gid, AtFlags::empty()),
            });
            assert_eq!(answer(client.setattr(&file, change, None)), set, "{change:?} of {name}");
            if mode.is_some() && set == 0 {
                compared = !0;
            }
            if comparable {
                assert_eq!(of(&worlds.served, !0), of(&worlds.plain, compared), "after {change:?} of {name}");
            }
        }
    }
}

#[test]
fn directories_are_used_as_on_the_host() {
    let name = |mode: u32, caller: &Caller| format!("{mode:o} {}", caller.name);
    let worlds = Worlds::new(|tree| {
        for (mode, caller) in cases(&DIRECTORY_MODES) {
            let path = tree.join(name(mode, caller));
            fs::create_dir(&path).unwrap();
            for (entry, owner) in [("file", THIRD), ("mine", caller.user.uid), ("open", THIRD)] {
                fs::write(path.join(entry), b"").unwrap();
                own(&path.join(entry), owner, if entry == "open" { 0o666 } else { 0o644 });
            }
            fs::create_dir(path.join("sub")).unwrap();
            own(&path.join("sub"), THIRD, 0o755);
            own(&path, OWNER.uid, mode);
        }
    });
    let Some(mut worlds) = worlds else { return };
    for (mode, caller) in cases(&DIRECTORY_MODES) {
        let name = name(mode, caller);
        let directory = worlds.find(&name);
        let (open, mine) = (worlds.find(&format!("{name}/open")), worlds.find(&format!("{name}/mine")));
        let host = opened(&worlds.plain.join(&name));
        worlds.act_as(caller);
        let client = &mut worlds.client;
        let same = |what: &str, answered: Answer, host: Answer| assert_eq!(answered, host, "{what} in {name}");
        let made = |mode| Change { mode: Some(mode), ..Change::default() };

        let granted = client.access(&directory, 0x1f).unwrap().access;
        let may = |right| on_host(caller, || accessat(&host, ".", right, AtFlags::EACCESS)) == 0;
        let bits = |allowed: bool, bits| if allowed { bits } else { 0 };
        let searches = on_host(caller, || statat(&host, "file", AtFlags::SYMLINK_NOFOLLOW).map(|_| ()));
        let may_search = searches == 0;
        let may_read = on_host(caller, || {
            openat(&host, ".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).and_then(Dir::new).map(|_| ())
        });
        let expected = bits(may_read == 0, 1)
            | bits(may_search, 2)
            // By its own path, since "." in a directory needs the right to search it.
            | bits(may_search && may(Access::WRITE_OK), 0x1c);
        // A directory that may be read but not searched cannot be opened by ".".
        let expected = if may_search { expected } else { expected | granted & 1 };
        assert_eq!(granted, expected, "ACCESS of {name}");

        same("LOOKUP", answer(client.lookup(&directory, b"file")), searches);
        same("LOOKUP of ..", answer(client.lookup(&directory, b"..")), searches);
        same("LOOKUP of what is not there", answer(client.lookup(&directory, b"x")), if may_search { 2 } else { 13 });
        let lists = if granted & 1 != 0 { 0 } else { 13 };
        same("READDIR", answer(client.readdir(&directory, 0, [0; 8], 4096)), lists);
        match client.readdirplus(&directory, 0, [0; 8], 4096, 16_384) {
            Ok(listing) => {
                assert_eq!(lists, 0, "READDIRPLUS in {name}");
                let told = listing.entries.iter().any(|entry| entry.attributes.is_some() || entry.handle.is_some());
                assert_eq!(told, may_search, "what READDIRPLUS tells in {name}");
            }
            error => same("READDIRPLUS", answer(error), lists),
        }

        let text = |text: &str| CString::new(text).unwrap();
        let created = on_host(caller, || {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            openat(&host, "new", flags, Mode::from_raw_mode(0o640)).map(|_| ())
        });
        same("CREATE", answer(client.create(&directory, b"new", Creation::Guarded(made(0o640)))), created);
        let exists = on_host(caller, || {
            openat(&host, "file", OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, Mode::empty()).map(|_| ())
        });
        same("guarded CREATE", answer(client.create(&directory, b"file", Creation::Guarded(made(0o640)))), exists);
        let directories = on_host(caller, || mkdirat(&host, "newdir", Mode::from_raw_mode(0o751)));
        same("MKDIR", answer(client.mkdir(&directory, b"newdir", made(0o751))), directories);
        let links = on_host(caller, || symlinkat("target", &host, "newlink"));
        same("SYMLINK", answer(client.symlink(&directory, b"newlink", b"target", Change::default())), links);
        let pipes = on_host(caller, || mknodat(&host, "pipe", FileType::Fifo, Mode::from_raw_mode(0o640), 0));
        same("MKNOD of a pipe", answer(client.mknod(&directory, b"pipe", Node::Fifo(made(0o640)))), pipes);
        let devices = on_host(caller, || {
            mknodat(&host, "null", FileType::CharacterDevice, Mode::from_raw_mode(0o600), makedev(1, 3))
        });
        let null = Node::Character(made(0o600), (1, 3));
        same("MKNOD of a device", answer(client.mknod(&directory, b"null", null)), devices);
        for (what, handle, to) in [("open", &open, "hard"), ("mine", &mine, "mine too")] {
            let linked = on_host(caller, || linkat(&host, what, &host, text(to).as_c_str(), AtFlags::empty()));
            // The host's call also looks the object up; the holder of a handle did that before.
            let linked = if may_search { linked } else { 13 };
            same("LINK", answer(client.link(handle, &directory, to.as_bytes())), linked);
        }
        for (from, to) in [("mine", "mine now"), ("file", "file now"), ("not there", "x"), ("sub", "sub now")] {
            let renamed = on_host(caller, || renameat(&host, from, &host, to));
            let answered = client.rename((&directory, from.as_bytes()), (&directory, to.as_bytes()));
            same(&format!("RENAME of {from}"), answer(answered), renamed);
        }
        for name in ["open", "file", "not there"] {
            let removed = on_host(caller, || unlinkat(&host, name, AtFlags::empty()));
            same(&format!("REMOVE of {name}"), answer(client.remove(&directory, name.as_bytes())), removed);
        }
        let removed = on_host(caller, || unlinkat(&host, "sub", AtFlags::REMOVEDIR));
        same("RMDIR", answer(client.rmdir(&directory, b"sub")), removed);
        let (served, plain) = (entries(&worlds.served.join(&name)), entries(&worlds.plain.join(&name)));
        assert_eq!(served, plain, "what is in {name}");
    }
}

#[test]
fn access_control_lists_and_changes_on_the_host_count() {
    let worlds = Worlds::new(|tree| {
        fs::write(tree.join("file"), b"some bytes").unwrap();
        own(&tree.join("file"), OWNER.uid, 0o600);
    });
    let Some(mut worlds) = worlds else { return };
    let file = worlds.find("file");
    let path = worlds.served.join("file");
    let [_, member, _, other, _] = &CALLERS;
    let reads = |worlds: &mut Worlds, caller: &Caller| {
        worlds.act_as(caller);
        let granted = worlds.client.access(&file, 0x2d).unwrap().access;
        let read = answer(worlds.client.read(&file, 0, 4));
        assert_eq!(granted & 1 != 0, read == 0, "ACCESS and READ say the same");
        read == 0
    };
    assert!(!reads(&mut worlds, member) && !reads(&mut worlds, other));
    // A list that lets this one user read. Its mask is in place of the group's bits.
    let none = u32::MAX;
    let acl = list(&[(1, 6, none), (2, 4, other.user.uid), (4, 0, none), (16, 4, none), (32, 0, none)]);
    let attribute = "system.posix_acl_access";
    if rustix::fs::setxattr(&path, attribute, &acl, rustix::fs::XattrFlags::empty()).is_err() {
        afflux_scratch::skipped!("no access control lists here");
        return;
    }
    // Changes on the host are visible after a second at the latest.
    let until = |worlds: &mut Worlds, caller: &Caller, wanted: bool| {
        let what = format!("{} may read: {wanted}", caller.name);
        afflux_scratch::eventually(&what, || reads(worlds, caller) == wanted);
    };
    until(&mut worlds, other, true);
    assert!(!reads(&mut worlds, member), "its group's entry gives nothing, the mask is no right of anybody");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    until(&mut worlds, other, false);
    let opened = Change { mode: Some(0o640), ..Change::default() };
    worlds.client.set_user(Some(OWNER));
    worlds.client.setattr(&file, opened, None).unwrap();
    assert!(reads(&mut worlds, other), "at once, by a change of our own: the mask lets it again");
}

#[test]
fn default_access_control_lists_bound_what_is_made() {
    let worlds = Worlds::new(|tree| {
        fs::create_dir(tree.join("directory")).unwrap();
        own(&tree.join("directory"), OWNER.uid, 0o2775);
    });
    let Some(mut worlds) = worlds else { return };
    let none = u32::MAX;
    let acl = list(&[(1, 7, none), (2, 7, THIRD), (4, 5, none), (16, 5, none), (32, 4, none)]);
    for tree in [&worlds.served, &worlds.plain] {
        let attribute = "system.posix_acl_default";
        if rustix::fs::setxattr(tree.join("directory"), attribute, &acl, rustix::fs::XattrFlags::empty()).is_err() {
            afflux_scratch::skipped!("no access control lists here");
            return;
        }
    }
    let directory = worlds.find("directory");
    let host = opened(&worlds.plain.join("directory"));
    let caller = &CALLERS[1];
    worlds.act_as(caller);
    for (number, mode) in [0o666, 0o664, 0o644, 0o777, 0o600, 0o4711].into_iter().enumerate() {
        let name = format!("file {number}");
        let made = Change { mode: Some(mode), ..Change::default() };
        worlds.client.create(&directory, name.as_bytes(), Creation::Guarded(made)).unwrap();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let create = || openat(&host, &name[..], flags, Mode::from_raw_mode(mode)).map(|_| ());
        assert_eq!(on_host(caller, create), 0);
        let name = format!("directory {number}");
        worlds.client.mkdir(&directory, name.as_bytes(), made).unwrap();
        assert_eq!(on_host(caller, || mkdirat(&host, &name[..], Mode::from_raw_mode(mode & 0o777))), 0);
    }
    // On the host, mkdir drops the mode bits beyond 0o777; a client that asks for them gets them by chmod.
    let (served, plain) = (entries(&worlds.served.join("directory")), entries(&worlds.plain.join("directory")));
    let but = |entries: Vec<(String, u32, u32, u32)>| -> Vec<_> {
        entries.into_iter().filter(|(name, ..)| name != "directory 5").collect()
    };
    assert_eq!(but(served), but(plain));
}

/// An access control list as the kernel stores it: tag, rights and id of each entry.
fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend([&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    bytes
}
