//! Access control lists and rights of a tree beside those of a host's directory, by the same random calls.
//!
//! Owns: the calls on either side, the comparison.
//! Does not own: tables of single rules (the tree's own tests).
//! Invariants: the host's directory is a tmpfs of Linux, whose kernel decides. A call on the host has the user of the
//! call in the tree, with all groups and no capability.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use afflux_object::ObjectTreeOptions;
use afflux_scratch::TestDirectory;
use afflux_simulator::Random;
use afflux_volume::{
    ACCESS_ACL, AttributeChange, Caller, DEFAULT_ACL, Directory, Found, Kind, New, Node, RenameHow, SetTime,
    SpecialKind, Stat, VolumeError, XattrChange,
};
use bytes::Bytes;
use rustix::fs::{Access, AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, UTIME_NOW, Uid, XattrFlags};
use rustix::io::Errno;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::clients::serve;
use crate::lab::{Lab, bytes};

const SEEDS: u64 = 60;
const CALLS: u64 = 150;
const LISTS: [&[u8]; 2] = [ACCESS_ACL, DEFAULT_ACL];

/// A user, its first group, further groups.
type User = (u32, u32, &'static [u32]);
const USERS: [User; 6] = [
    (0, 0, &[]),
    (1001, 2001, &[]),
    (1002, 2002, &[2001]),
    (1003, 2003, &[2001, 2004]),
    (1004, 2004, &[]),
    (1005, 1, &[]),
];
/// Users and groups that entries name; the last one is nobody's.
const IDS: [u32; 6] = [1001, 1002, 1003, 2001, 2004, 9];
const DIRECTORIES: [&str; 5] = ["", "d", "e", "d/d", "d/e"];
const NAMES: [&str; 6] = ["d", "e", "f", "g", "p", "s"];

#[derive(Clone, Debug)]
enum Call {
    Make(Kind, u32, u32),
    Mode(u32),
    Group(u32),
    Touch,
    Remove(bool),
    Rename(&'static str),
    /// Of the lists, a new value or none.
    List(usize, Option<Vec<u8>>),
}

fn list(random: &mut Random) -> Vec<u8> {
    let (mut entries, nobody) = (Vec::new(), u32::MAX);
    let mut rights = || if random.chance(750) { 7 } else { random.below(8) as u16 };
    let single = [rights(), rights(), rights(), rights()];
    entries.push((0x01, single[0], nobody));
    for (tag, own) in [(0x02_u16, None), (0x08, Some(single[1]))] {
        entries.extend(own.map(|own| (0x04, own, nobody)));
        for _ in 0..random.below(3) {
            entries.push((tag, random.below(8) as u16, random.pick(&IDS)));
        }
    }
    if entries.len() > 2 && random.chance(950) || random.chance(300) {
        entries.push((0x10, single[2], nobody));
    }
    entries.push((0x20, single[3], nobody));
    if random.chance(20) {
        random.shuffle(&mut entries);
    }
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        value.extend([&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    value
}

fn mode(random: &mut Random) -> u32 {
    let special = if random.chance(200) { random.pick(&[0o1000, 0o2000, 0o3000]) } else { 0 };
    special | if random.chance(750) { 0o777 } else { random.below(0o1000) as u32 }
}

/// The kind of all objects with a name.
fn kind_of(name: &str) -> Kind {
    match name {
        "s" => Kind::Symlink,
        "p" => Kind::Fifo,
        "f" | "g" => Kind::Regular,
        _ => Kind::Directory,
    }
}

fn call(random: &mut Random, name: &str) -> Call {
    let (is_link, kind) = (name == "s", kind_of(name));
    match random.below(20) {
        0..=6 => {
            // Linux takes the setgid bit before the umask, and mkdir(2) takes no such bit.
            let (mode, umask) = match (kind, mode(random)) {
                (Kind::Regular, mode) if mode & 0o2000 != 0 => (mode, 0),
                (_, mode) => (mode & 0o1777, random.pick(&[0, 0o022, 0o077, 0o227])),
            };
            Call::Make(kind, mode, umask)
        }
        7..=8 if !is_link => Call::Mode(mode(random)),
        9 => Call::Group(random.pick(&[2001, 2002, 2004])),
        10 => Call::Remove(kind == Kind::Directory),
        11 if matches!(name, "f" | "g") => Call::Rename(random.pick(&["f", "g"])),
        12 => Call::Touch,
        _ => {
            let value = random.chance(850).then(|| list(random));
            Call::List(random.below(2) as usize, value)
        }
    }
}

/// Makes a call on the host as a user.
fn as_user<T: Send>(user: User, umask: u32, call: impl FnOnce() -> T + Send) -> T {
    let (uid, gid) = (Uid::from_raw(user.0), Gid::from_raw(user.1));
    let groups: Vec<Gid> = user.2.iter().map(|group| Gid::from_raw(*group)).collect();
    // The process has one umask.
    let own = rustix::process::umask(Mode::from_raw_mode(umask));
    let done = thread::scope(|scope| {
        let as_user = || {
            set_thread_groups(&groups).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            call()
        };
        scope.spawn(as_user).join().unwrap()
    });
    rustix::process::umask(own);
    done
}

fn error_name(error: &VolumeError) -> String {
    format!("{error:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
}

fn errno_name(errno: Errno) -> String {
    let name = match errno {
        Errno::ACCESS => "Denied",
        Errno::PERM => "NotPermitted",
        Errno::NOENT => "NotFound",
        Errno::EXIST => "Exists",
        Errno::NOTDIR => "NotDirectory",
        Errno::ISDIR => "IsDirectory",
        Errno::NOTEMPTY => "NotEmpty",
        Errno::INVAL => "Invalid",
        Errno::OPNOTSUPP => "NotSupported",
        Errno::NODATA => "NoAttribute",
        other => return format!("{other:?}"),
    };
    name.to_owned()
}

type Done = Result<(), String>;

fn on_host(root: &Path, user: User, path: &str, call: &Call) -> Done {
    let path = root.join(path);
    let umask = if let Call::Make(_, _, umask) = call { *umask } else { 0 };
    as_user(user, umask, || host_call(&path, call)).map_err(errno_name)
}

fn host_call(path: &Path, call: &Call) -> Result<(), Errno> {
    match call {
        Call::Make(Kind::Directory, mode, _) => rustix::fs::mkdir(path, Mode::from_raw_mode(*mode)),
        Call::Make(Kind::Symlink, ..) => rustix::fs::symlink("nowhere", path),
        Call::Make(kind, mode, _) => {
            let kind = if *kind == Kind::Fifo { FileType::Fifo } else { FileType::RegularFile };
            rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(*mode), 0)
        }
        Call::Mode(mode) => rustix::fs::chmod(path, Mode::from_raw_mode(*mode)),
        Call::Group(gid) => rustix::fs::chownat(CWD, path, None, Some(Gid::from_raw(*gid)), AtFlags::SYMLINK_NOFOLLOW),
        Call::Touch => {
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            let times = Timestamps { last_access: now, last_modification: now };
            rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        }
        Call::Remove(is_directory) => {
            let flags = if *is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            rustix::fs::unlinkat(CWD, path, flags)
        }
        Call::Rename(name) => rustix::fs::rename(path, path.with_file_name(name)),
        Call::List(which, Some(value)) => rustix::fs::lsetxattr(path, LISTS[*which], value, XattrFlags::empty()),
        Call::List(which, None) => rustix::fs::lremovexattr(path, LISTS[*which]),
    }
}

/// A tree, for one user.
struct Side<'a> {
    lab: &'a Lab,
    caller: Caller,
}

impl Side<'_> {
    fn node(&self, found: &Found) -> Node {
        found.node.used_by(&self.caller)
    }

    fn find(&self, path: &str) -> Result<Found, VolumeError> {
        let mut at = self.lab.tree.exports()[0].root.clone();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = self.lookup(&at, name)?;
        }
        Ok(at)
    }

    /// Looks a name up, as the volume does: it asks for the right to search first.
    fn lookup(&self, directory: &Found, name: &str) -> Result<Found, VolumeError> {
        let (lab, node) = (self.lab, self.node(directory));
        if directory.stat.kind == Kind::Directory && lab.run(lab.tree.access(&node))? & 4 == 0 {
            return Err(VolumeError::Denied);
        }
        lab.run(lab.tree.lookup(&node, bytes(name)))
    }

    fn call(&self, directory: &str, name: &str, call: &Call) -> Result<(), VolumeError> {
        let (lab, tree) = (self.lab, &self.lab.tree);
        let above = self.find(directory)?;
        let parent = self.node(&above);
        let none = AttributeChange::default();
        let target = || self.lookup(&above, name).map(|found| self.node(&found));
        match call {
            Call::Make(kind, mode, umask) => {
                let new = match kind {
                    Kind::Directory => New::Directory,
                    Kind::Symlink => New::Symlink { target: Bytes::from_static(b"nowhere") },
                    Kind::Fifo => New::Special(SpecialKind::Fifo),
                    _ => New::Regular,
                };
                let wanted = AttributeChange { mode: Some(*mode), umask: *umask, ..none };
                lab.run(tree.create(&parent, bytes(name), new, wanted, true)).map(drop)
            }
            Call::Remove(is_directory) => lab.run(tree.remove(&parent, bytes(name), *is_directory, true)).map(drop),
            Call::Rename(to) => {
                let (from, to) = ((&parent, bytes(name)), (&parent, bytes(to)));
                lab.run(tree.rename(from, to, RenameHow::Replace, true)).map(drop)
            }
            Call::Mode(mode) => {
                lab.run(tree.set(&target()?, AttributeChange { mode: Some(*mode), ..none }, true)).map(drop)
            }
            Call::Group(gid) => {
                lab.run(tree.set(&target()?, AttributeChange { gid: Some(*gid), ..none }, true)).map(drop)
            }
            Call::Touch => {
                let now = SetTime::ServerNow;
                lab.run(tree.set(&target()?, AttributeChange { atime: now, mtime: now, ..none }, true)).map(drop)
            }
            Call::List(which, value) => {
                let change = value.clone().map_or(XattrChange::Remove, |value| XattrChange::Set(value.into()));
                lab.run(tree.change_xattr(&target()?, Bytes::from_static(LISTS[*which]), change, true)).map(drop)
            }
        }
    }

    fn access(&self, path: &str) -> Result<u8, VolumeError> {
        self.lab.run(self.lab.tree.access(&self.node(&self.find(path)?)))
    }
}

fn host_access(root: &Path, user: User, path: &str) -> Result<u8, String> {
    let path = root.join(path);
    let one = |wanted| as_user(user, 0, || rustix::fs::accessat(CWD, &path, wanted, AtFlags::EACCESS));
    if let Err(errno) = as_user(user, 0, || rustix::fs::lstat(&path)) {
        return Err(errno_name(errno));
    }
    let rights = [(1, Access::READ_OK), (2, Access::WRITE_OK), (4, Access::EXEC_OK)];
    Ok(rights.into_iter().filter(|(_, wanted)| one(*wanted).is_ok()).map(|(right, _)| right).sum())
}

/// Kind, mode, owners, and both lists of an object.
type Shown = (u32, u32, u32, Vec<Result<Bytes, String>>, Vec<Bytes>);

fn host_shown(path: &Path) -> Result<Shown, String> {
    let stat = rustix::fs::lstat(path).map_err(errno_name)?;
    let get = |name: &&[u8]| {
        let mut value = vec![0; 4096];
        let length = rustix::fs::lgetxattr(path, *name, &mut value[..]).map_err(errno_name)?;
        Ok(Bytes::copy_from_slice(&value[..length]))
    };
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..]).map_err(errno_name)?;
    let names = names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"system."));
    let mut names: Vec<Bytes> = names.map(Bytes::copy_from_slice).collect();
    names.sort();
    Ok((stat.st_mode & 0o7777, stat.st_uid, stat.st_gid, LISTS.iter().map(get).collect(), names))
}

fn shown(lab: &Lab, path: &str) -> Result<Shown, String> {
    let found = Side { lab, caller: Caller::SERVER }.find(path).map_err(|error| error_name(&error))?;
    let Stat { mode, uid, gid, .. } = found.stat;
    let get = |name: &&'static [u8]| {
        lab.run(lab.tree.xattr(&found.node, Bytes::from_static(name))).map_err(|error| error_name(&error))
    };
    let mut names = lab.run(lab.tree.xattrs(&found.node)).unwrap();
    names.sort();
    Ok((mode, uid, gid, LISTS.iter().map(get).collect(), names))
}

fn all_paths() -> Vec<String> {
    let joined = |directory: &&str| {
        NAMES.map(|name| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") })
    };
    DIRECTORIES.iter().flat_map(joined).collect()
}

/// Runs the calls of a seed on both. Returns how many succeeded, and how many objects have lists at the end.
fn compare(seed: u64, host: PathBuf) -> (u64, usize) {
    let mut random = Random::new(seed);
    let mut lab = Lab::new(seed, &ObjectTreeOptions::default());
    let volume = serve(&lab);
    let caller = |user: User| volume.caller(user.0, user.1, user.2);
    let everybody = AttributeChange { mode: Some(0o777), ..AttributeChange::default() };
    lab.run(lab.tree.set(&lab.root(), everybody, true)).unwrap();
    fs::create_dir(&host).unwrap();
    rustix::fs::chmod(&host, Mode::from_raw_mode(0o777)).unwrap();
    let (paths, mut succeeded) = (all_paths(), 0);
    let places: Vec<(&str, &str)> = DIRECTORIES.iter().flat_map(|at| NAMES.map(|name| (*at, name))).collect();
    for count in 0..CALLS {
        // Most objects are there before the random calls.
        let first = places.get(count as usize);
        let (directory, name) = first.copied().unwrap_or_else(|| random.pick(&places));
        let user = random.pick(&USERS);
        let call = match first {
            Some(_) => Call::Make(kind_of(name), 0o777, 0),
            None => call(&mut random, name),
        };
        let path = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        let expected = on_host(&host, user, &path, &call);
        let done =
            Side { lab: &lab, caller: caller(user) }.call(directory, name, &call).map_err(|error| error_name(&error));
        let at = format!("seed {seed}, call {count}: {user:?} {path} {call:?}");
        assert_eq!(done, expected, "{at}");
        assert_eq!(shown(&lab, &path), host_shown(&host.join(&path)), "{at}");
        succeeded += u64::from(done.is_ok());
        let (user, path) = (random.pick(&USERS), &paths[random.below(paths.len() as u64) as usize]);
        if !path.ends_with('s') {
            let rights = Side { lab: &lab, caller: caller(user) }.access(path).map_err(|error| error_name(&error));
            assert_eq!(rights, host_access(&host, user, path), "{at}, then access by {user:?} to {path}");
        }
        if random.chance(30) {
            lab.crash(lab.core.records.batches(), &ObjectTreeOptions::default());
        }
    }
    let mut with_lists = 0;
    for path in &paths {
        let at_end = shown(&lab, path);
        assert_eq!(at_end, host_shown(&host.join(path)), "seed {seed}: {path} at the end");
        with_lists += usize::from(at_end.is_ok_and(|(.., names)| !names.is_empty()));
    }
    (succeeded, with_lists)
}

// rule: access control lists in a store do what Linux does
// kept in: `product/object/src/tree/acl.rs`
#[test]
fn lists_do_what_a_host_does() {
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root can act as others");
    }
    let Some(directory) = TestDirectory::in_memory() else { return };
    let probe = list(&mut Random::new(0));
    if rustix::fs::lsetxattr(directory.path(), DEFAULT_ACL, &probe, XattrFlags::empty()) == Err(Errno::OPNOTSUPP) {
        return afflux_scratch::skipped!("this file system has no access control lists");
    }
    let _ = rustix::fs::lremovexattr(directory.path(), DEFAULT_ACL);
    let (mut succeeded, mut with_lists) = (0, 0);
    for seed in 0..SEEDS {
        let (calls, lists) = compare(seed, directory.path().join(seed.to_string()));
        (succeeded, with_lists) = (succeeded + calls, with_lists + lists);
    }
    assert!(succeeded > SEEDS * CALLS / 3 && with_lists as u64 > 3 * SEEDS, "{succeeded} calls, {with_lists} lists");
}

#[test]
fn a_list_of_many_entries_is_refused_and_a_links_too() {
    let lab = Lab::new(1, &ObjectTreeOptions::default());
    let file = lab.make(&lab.root(), "file", New::Regular).node;
    let link = lab.make(&lab.root(), "link", New::Symlink { target: Bytes::from_static(b"file") }).node;
    let entry = |tag: u16, id: u32| [&tag.to_le_bytes()[..], &7_u16.to_le_bytes(), &id.to_le_bytes()].concat();
    let with = |users: u32| {
        let users: Vec<u8> = (0..users).flat_map(|id| entry(2, id)).collect();
        let ends = [entry(4, u32::MAX), entry(0x10, u32::MAX), entry(0x20, u32::MAX)].concat();
        Bytes::from([&2_u32.to_le_bytes()[..], &entry(1, u32::MAX), &users, &ends].concat())
    };
    let set = |node: &Node, value: Bytes| {
        let name = Bytes::from_static(ACCESS_ACL);
        lab.run(lab.tree.change_xattr(node, name, XattrChange::Set(value), true)).map(drop)
    };
    assert_eq!(set(&file, with(129)), Err(VolumeError::NoSpace));
    set(&file, with(128)).unwrap();
    assert_eq!(lab.run(lab.tree.xattr(&file, Bytes::from_static(ACCESS_ACL))).unwrap(), with(128));
    assert_eq!(set(&link, with(1)), Err(VolumeError::NotSupported));
}
