//! A caller of each front end, with the same operations: a client of version 3, 4.1 or 4.2 of NFS, a program on a
//! mount.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use afflux_nfs_client::sessions::{Compound, Outcome, Session, Stateid};
use afflux_nfs_client::{Change, Client, Creation, Error, User, stable_how};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::{ReadWriteFlags, pwritev2};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::client::connected;
use crate::mounted::{Mounted, can_mount};
use crate::scratch::{Mount, Scratch};
use crate::server::Server;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrontEnd {
    V3,
    V41,
    V42,
    Mount,
}

/// Rights of an open: 1 to read, 2 to write.
pub(crate) const READ: u32 = 1;
pub(crate) const BOTH: u32 = 3;

/// Statuses that NFS numbers otherwise than Linux numbers its errors: names that are too long, directories with
/// entries.
const OTHER_NUMBERS: [(u32, u32); 2] = [(63, 36), (66, 39)];

/// The error of an operation, by Linux's number where it has one.
pub(crate) type Refused<T = ()> = Result<T, u32>;

fn of_nfs<T>(answer: Result<T, Error>) -> Refused<T> {
    answer.map_err(|error| {
        let status = error.status().unwrap_or_else(|| panic!("{error}"));
        OTHER_NUMBERS.iter().find(|(nfs, _)| *nfs == status).map_or(status, |(_, linux)| *linux)
    })
}

/// Runs an operation of a program in a thread with the identity of a user.
fn by<T: Send>(user: Option<u32>, act: impl FnOnce() -> io::Result<T> + Send) -> Refused<T> {
    let done = match user {
        None => act(),
        Some(user) => thread::scope(|scope| {
            let as_user = || {
                let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
                set_thread_groups(&[]).unwrap();
                set_thread_res_gid(gid, gid, gid).unwrap();
                set_thread_res_uid(uid, uid, uid).unwrap();
                act()
            };
            scope.spawn(as_user).join().unwrap()
        }),
    };
    done.map_err(|error| error.raw_os_error().unwrap_or_else(|| panic!("{error}")).cast_unsigned())
}

/// A server of one directory, on a mount too where this machine can have one.
pub(crate) struct Site {
    mounted: Mounted,
    has_mount: bool,
    pub(crate) data: PathBuf,
    /// The file system of the directory, or of one in it.
    disk: Option<Mount>,
    pub(crate) scratch: Scratch,
}

impl Site {
    pub(crate) fn new(flags: &[&str]) -> Self {
        let scratch = Scratch::new();
        let data = scratch.directory("data");
        fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
        Self::over(scratch, data, None, flags)
    }

    pub(crate) fn over(scratch: Scratch, data: PathBuf, disk: Option<Mount>, flags: &[&str]) -> Self {
        let start = |scratch: &Scratch, data: &Path, mount: &[&str]| {
            Server::start(scratch.path(), &[data], &[mount, flags].concat())
        };
        Self::with(scratch, data, disk, start)
    }

    /// With a server that is started with these words for its mount.
    pub(crate) fn with(
        scratch: Scratch,
        data: PathBuf,
        disk: Option<Mount>,
        start: impl FnOnce(&Scratch, &Path, &[&str]) -> Server,
    ) -> Self {
        let (point, has_mount) = (scratch.directory("point"), can_mount());
        let words = ["--mount", point.to_str().unwrap()];
        let server = start(&scratch, &data, if has_mount { &words } else { &[] });
        Self { mounted: Mounted { server: Some(server), point: point.clone() }, has_mount, data, disk, scratch }
    }

    /// The server is killed, and another one takes its place.
    pub(crate) fn after_a_kill(mut self) -> Self {
        self.mounted.server.take().unwrap().kill();
        // The drop removes the dead mount.
        drop(self.mounted);
        Self::over(self.scratch, self.data, self.disk, &[])
    }

    pub(crate) fn server(&self) -> &Server {
        self.mounted.server()
    }

    /// All front ends that this machine can have.
    pub(crate) fn front_ends(&self) -> impl Iterator<Item = FrontEnd> + use<> {
        let has_mount = self.has_mount;
        FrontEnd::ALL.into_iter().filter(move |front_end| has_mount || *front_end != FrontEnd::Mount)
    }

    pub(crate) fn connect(&self) -> Client {
        connected(self.server())
    }

    /// A new caller, with this process's user.
    pub(crate) fn caller(&self, front_end: FrontEnd) -> Caller {
        self.caller_of(front_end, None)
    }

    /// A new caller of a user.
    pub(crate) fn caller_of(&self, front_end: FrontEnd, user: Option<u32>) -> Caller {
        let session = |minor| {
            static CLIENTS: AtomicU32 = AtomicU32::new(0);
            let owner = format!("client {}", CLIENTS.fetch_add(1, Ordering::Relaxed));
            let mut client = self.connect();
            user.iter().for_each(|user| client.set_user(Some(User { uid: *user, gid: *user })));
            let mut session = Session::begin(client, owner.as_bytes(), minor).unwrap();
            // So that replies may be long.
            session.keeps = false;
            Caller::V4(Box::new(session))
        };
        match front_end {
            FrontEnd::V3 => {
                let mut client = self.connect();
                let root = client.mount("/").unwrap().to_vec();
                user.iter().for_each(|user| client.set_user(Some(User { uid: *user, gid: *user })));
                Caller::V3(Box::new(client), root)
            }
            FrontEnd::V41 => session(1),
            FrontEnd::V42 => session(2),
            FrontEnd::Mount => Caller::Mount(self.mounted.point.clone(), user),
        }
    }

    /// Stops the server in order. The file system goes after it.
    pub(crate) fn stop(self) {
        self.mounted.stop();
    }
}

impl FrontEnd {
    pub(crate) const ALL: [Self; 4] = [Self::V3, Self::V41, Self::V42, Self::Mount];
}

/// Its names are paths below the served directory.
pub(crate) enum Caller {
    V3(Box<Client>, Vec<u8>),
    V4(Box<Session>),
    Mount(PathBuf, Option<u32>),
}

/// A file that a caller uses. Version 3 has no opens.
pub(crate) enum Used {
    V3(Vec<u8>),
    V4(Vec<u8>, Stateid),
    Mount(File),
}

/// The directory of a path, as version 4 comes to it, and the name in it.
fn walk(path: &str) -> (Compound, &[u8]) {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let names = directory.split('/').filter(|name| !name.is_empty());
    (names.fold(Compound::default().put_root(), |walk, name| walk.lookup(name.as_bytes())), name.as_bytes())
}

/// The file and the stateid of an OPEN, whose GETFH is the last operation.
pub(crate) fn opened(outcome: &Outcome) -> (Vec<u8>, Stateid) {
    const OPEN: u32 = 18;
    let mut reader = outcome.reader();
    while reader.next_result().unwrap().0 != OPEN {}
    let stateid = reader.stateid().unwrap();
    reader.skip_open().unwrap();
    reader.next_result().unwrap();
    (reader.opaque().unwrap().to_vec(), stateid)
}

fn mode(mode: u32) -> Change {
    Change { mode: Some(mode), ..Change::default() }
}

impl Caller {
    /// The directory of a path, as version 3 comes to it, and the name in it.
    fn find_directory<'a>(client: &mut Client, root: &[u8], path: &'a str) -> Refused<(Vec<u8>, &'a [u8])> {
        match path.rsplit_once('/') {
            None => Ok((root.to_vec(), path.as_bytes())),
            Some((directory, name)) => Ok((of_nfs(client.find(root, directory))?.to_vec(), name.as_bytes())),
        }
    }

    fn open_v4(session: &mut Session, open: Compound) -> Refused<Used> {
        let (file, stateid) = opened(&of_nfs(session.must(open.get_handle()))?);
        Ok(Used::V4(file, stateid))
    }

    /// Makes a file with the mode 0644, open for both uses; refused if the name is taken.
    pub(crate) fn create(&mut self, path: &str) -> Refused<Used> {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, path)?;
                let made = of_nfs(client.create(&directory, name, Creation::Guarded(mode(0o644))))?;
                Ok(Used::V3(made.handle.unwrap().to_vec()))
            }
            Self::V4(session) => {
                let (walk, name) = walk(path);
                Self::open_v4(session, walk.open_new(BOTH, 0, b"owner", name))
            }
            Self::Mount(point, user) => {
                by(*user, || OpenOptions::new().read(true).write(true).create_new(true).open(point.join(path)))
                    .map(Used::Mount)
            }
        }
    }

    pub(crate) fn open(&mut self, path: &str, access: u32) -> Refused<Used> {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, path)?;
                Ok(Used::V3(of_nfs(client.lookup(&directory, name))?.0.to_vec()))
            }
            Self::V4(session) => {
                let (walk, name) = walk(path);
                Self::open_v4(session, walk.open((access, 0), b"owner", name, false))
            }
            Self::Mount(point, user) => {
                let (path, writes) = (point.join(path), access == BOTH);
                by(*user, || OpenOptions::new().read(true).write(writes).open(path)).map(Used::Mount)
            }
        }
    }

    pub(crate) fn close(&mut self, used: Used) {
        match (self, used) {
            (Self::V4(session), Used::V4(file, stateid)) => {
                session.must(Compound::default().put(&file).close(stateid)).unwrap();
            }
            (_, used) => drop(used),
        }
    }

    /// Writes by one call. A durable write is answered once its bytes are on the disk.
    pub(crate) fn write(&mut self, used: &Used, offset: u64, bytes: &[u8], is_durable: bool) -> Refused {
        let written = match (&mut *self, used) {
            (Self::V3(client, _), Used::V3(file)) => {
                let stability = if is_durable { stable_how::FILE_SYNC } else { stable_how::UNSTABLE };
                of_nfs(client.write(file, offset, bytes, stability))?.count as usize
            }
            (Self::V4(session), Used::V4(file, stateid)) => {
                let stability = if is_durable { 2 } else { 0 };
                let written =
                    of_nfs(session.must(Compound::default().put(file).write(*stateid, offset, stability, bytes)))?;
                let mut reader = written.reader();
                (0..2).for_each(|_| _ = reader.next_result().unwrap());
                reader.u32().unwrap() as usize
            }
            (Self::Mount(_, user), Used::Mount(file)) => {
                let flags = if is_durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
                by(*user, || Ok(pwritev2(file, &[IoSlice::new(bytes)], offset, flags)?))?
            }
            _ => unreachable!("a file of another front end"),
        };
        assert_eq!(written, bytes.len());
        Ok(())
    }

    /// COMMIT, or fdatasync.
    pub(crate) fn sync(&mut self, used: &Used) -> Refused {
        match (self, used) {
            (Self::V3(client, _), Used::V3(file)) => of_nfs(client.commit(file, 0, 0)).map(drop),
            (Self::V4(session), Used::V4(file, _)) => {
                of_nfs(session.must(Compound::default().put(file).commit())).map(drop)
            }
            (Self::Mount(_, user), Used::Mount(file)) => by(*user, || file.sync_data()),
            _ => unreachable!("a file of another front end"),
        }
    }

    /// Reads by one call, less at the end of the file.
    pub(crate) fn read(&mut self, used: &Used, offset: u64, len: usize) -> Refused<Vec<u8>> {
        match (self, used) {
            (Self::V3(client, _), Used::V3(file)) => Ok(of_nfs(client.read(file, offset, len as u32))?.data),
            (Self::V4(session), Used::V4(file, stateid)) => {
                let read = of_nfs(session.must(Compound::default().put(file).read(*stateid, offset, len as u32)))?;
                let mut reader = read.reader();
                (0..2).for_each(|_| _ = reader.next_result().unwrap());
                let _end_of_file = reader.u32().unwrap();
                Ok(reader.opaque().unwrap().to_vec())
            }
            (Self::Mount(_, user), Used::Mount(file)) => {
                let mut bytes = vec![0; len];
                let read = by(*user, || file.read_at(&mut bytes, offset))?;
                bytes.truncate(read);
                Ok(bytes)
            }
            _ => unreachable!("a file of another front end"),
        }
    }

    pub(crate) fn set_size(&mut self, used: &Used, size: u64) -> Refused {
        match (self, used) {
            (Self::V3(client, _), Used::V3(file)) => {
                of_nfs(client.setattr(file, Change { size: Some(size), ..Change::default() }, None)).map(drop)
            }
            (Self::V4(session), Used::V4(file, stateid)) => {
                of_nfs(session.must(Compound::default().put(file).set_size(*stateid, size))).map(drop)
            }
            (Self::Mount(_, user), Used::Mount(file)) => by(*user, || file.set_len(size)),
            _ => unreachable!("a file of another front end"),
        }
    }

    /// Locks the whole file for itself; refused if others have a lock.
    pub(crate) fn lock(&mut self, used: &Used) -> Refused {
        const EXCLUSIVE: u32 = 2;
        match (self, used) {
            (Self::V4(session), Used::V4(file, stateid)) => {
                let locks = Compound::default().put(file).lock(EXCLUSIVE, (0, u64::MAX), *stateid, b"locker");
                of_nfs(session.must(locks)).map(drop)
            }
            (Self::Mount(_, user), Used::Mount(file)) => {
                by(*user, || Ok(fcntl_lock(file, FlockOperation::NonBlockingLockExclusive)?))
            }
            _ => unreachable!("version 3 has no locks"),
        }
    }

    /// Refused if there is no such name.
    pub(crate) fn find(&mut self, path: &str) -> Refused {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, path)?;
                of_nfs(client.lookup(&directory, name)).map(drop)
            }
            Self::V4(session) => {
                let (walk, name) = walk(path);
                of_nfs(session.must(walk.lookup(name))).map(drop)
            }
            Self::Mount(point, user) => by(*user, || fs::symlink_metadata(point.join(path))).map(drop),
        }
    }

    pub(crate) fn set_mode(&mut self, path: &str, bits: u32) -> Refused {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, path)?;
                let file = of_nfs(client.lookup(&directory, name))?.0;
                of_nfs(client.setattr(&file, mode(bits), None)).map(drop)
            }
            Self::V4(session) => {
                let (walk, name) = walk(path);
                of_nfs(session.must(walk.lookup(name).set_mode(bits))).map(drop)
            }
            Self::Mount(point, user) => {
                by(*user, || fs::set_permissions(point.join(path), Permissions::from_mode(bits)))
            }
        }
    }

    pub(crate) fn make_directory(&mut self, path: &str) -> Refused {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, path)?;
                of_nfs(client.mkdir(&directory, name, mode(0o755))).map(drop)
            }
            Self::V4(session) => {
                let (walk, name) = walk(path);
                of_nfs(session.must(walk.make_directory(name))).map(drop)
            }
            Self::Mount(point, user) => by(*user, || fs::create_dir(point.join(path))),
        }
    }

    pub(crate) fn link(&mut self, from: &str, to: &str) -> Refused {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, from)?;
                let file = of_nfs(client.lookup(&directory, name))?.0;
                let (directory, name) = Self::find_directory(client, root, to)?;
                of_nfs(client.link(&file, &directory, name)).map(drop)
            }
            Self::V4(session) => {
                let ((source, old), (target, new)) = (walk(from), walk(to));
                let links = source.lookup(old).save().followed_by(&target).link(new);
                of_nfs(session.must(links)).map(drop)
            }
            Self::Mount(point, user) => by(*user, || fs::hard_link(point.join(from), point.join(to))),
        }
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Refused {
        match self {
            Self::V3(client, root) => {
                let (source, old) = Self::find_directory(client, root, from)?;
                let (target, new) = Self::find_directory(client, root, to)?;
                of_nfs(client.rename((&source, old), (&target, new))).map(drop)
            }
            Self::V4(session) => {
                let ((source, old), (target, new)) = (walk(from), walk(to));
                of_nfs(session.must(source.save().followed_by(&target).rename(old, new))).map(drop)
            }
            Self::Mount(point, user) => by(*user, || fs::rename(point.join(from), point.join(to))),
        }
    }

    pub(crate) fn remove(&mut self, path: &str) -> Refused {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, path)?;
                of_nfs(client.remove(&directory, name)).map(drop)
            }
            Self::V4(session) => {
                let (walk, name) = walk(path);
                of_nfs(session.must(walk.remove(name))).map(drop)
            }
            Self::Mount(point, user) => by(*user, || fs::remove_file(point.join(path))),
        }
    }

    pub(crate) fn remove_directory(&mut self, path: &str) -> Refused {
        match self {
            Self::V3(client, root) => {
                let (directory, name) = Self::find_directory(client, root, path)?;
                of_nfs(client.rmdir(&directory, name)).map(drop)
            }
            Self::V4(_) => self.remove(path),
            Self::Mount(point, user) => by(*user, || fs::remove_dir(point.join(path))),
        }
    }
}
