//! File system operations as calls of NFS.
//!
//! Owns: the translation of calls and replies.
//! Does not own: the numbers (`nodes`).
//! Invariants: a server's error becomes the operation's error; JUKEBOX, which our server never sends, becomes EAGAIN.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afflux_nfs_client::{
    Change, Client, CreatedObject, Creation, Error, Handle, Node as Special, TimeChange, User, fattr3, ftype3,
    nfstime3, option, stable_how,
};
use fuser::{
    AccessFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::nodes::Nodes;

/// The kernel may cache nothing, so that each operation reaches the server.
const TTL: Duration = Duration::ZERO;
const CALL_BYTES: usize = 128 << 10;
const LISTING_BYTES: u32 = 32 << 10;
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Bridge {
    address: SocketAddr,
    /// Connections that are not in use.
    idle: Mutex<Vec<Client>>,
    nodes: Mutex<Nodes>,
}

type Done<T> = Result<T, Errno>;

fn errno(error: Error) -> Errno {
    match error.status() {
        Some(code @ 1..=31) => Errno::from_i32(code as i32),
        Some(63) => Errno::ENAMETOOLONG,
        Some(66) => Errno::ENOTEMPTY,
        Some(69) => Errno::EDQUOT,
        Some(70 | 10_001) => Errno::ESTALE,
        Some(10_004) => Errno::EOPNOTSUPP,
        Some(10_007) => Errno::EINVAL,
        Some(10_008) => Errno::EAGAIN,
        _ => {
            eprintln!("a call failed: {error}");
            Errno::EIO
        }
    }
}

fn time_change(change: Option<TimeOrNow>) -> TimeChange {
    match change {
        None => TimeChange::Keep,
        Some(TimeOrNow::Now) => TimeChange::Now,
        Some(TimeOrNow::SpecificTime(at)) => {
            let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            TimeChange::To(nfstime3 { seconds: since.as_secs() as u32, nseconds: since.subsec_nanos() })
        }
    }
}

fn kind(attributes: &fattr3) -> FileType {
    match attributes.type_ {
        ftype3::NF3DIR => FileType::Directory,
        ftype3::NF3BLK => FileType::BlockDevice,
        ftype3::NF3CHR => FileType::CharDevice,
        ftype3::NF3LNK => FileType::Symlink,
        ftype3::NF3SOCK => FileType::Socket,
        ftype3::NF3FIFO => FileType::NamedPipe,
        ftype3::NF3REG => FileType::RegularFile,
    }
}

fn shown(number: u64, found: &fattr3) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: found.size,
        blocks: found.used.div_ceil(512),
        atime: found.atime.into(),
        mtime: found.mtime.into(),
        ctime: found.ctime.into(),
        crtime: UNIX_EPOCH,
        kind: kind(found),
        perm: (found.mode & 0o7777) as u16,
        nlink: found.nlink,
        uid: found.uid,
        gid: found.gid,
        rdev: (found.rdev.specdata1 & 0xfff) << 8 | found.rdev.specdata2 & 0xff,
        blksize: 4096,
        flags: 0,
    }
}

impl Bridge {
    pub(crate) fn connect(address: &str, mount: &str, export: &str) -> Result<Self, Error> {
        let parsed = |text: &str| text.parse::<SocketAddr>().map_err(std::io::Error::other);
        let address = parsed(address)?;
        let root = Client::connect(parsed(mount)?)?.mount(export)?;
        let client = Client::connect(address)?;
        Ok(Self { address, idle: Mutex::new(vec![client]), nodes: Mutex::new(Nodes::new(root)) })
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, number: INodeNo) -> Done<Handle> {
        self.nodes().get(number.0).map(|node| node.handle.clone()).ok_or(Errno::ESTALE)
    }

    /// Makes calls as the user of a request, on a connection that is not in use. A connection that failed is not used
    /// again.
    fn call<T>(&self, request: &Request, run: impl FnOnce(&mut Client) -> Result<T, Error>) -> Done<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut client = match idle {
            Some(client) => client,
            None => Client::connect(self.address).map_err(errno)?,
        };
        client.set_timeout(Some(PATIENCE)).map_err(errno)?;
        client.set_user(Some(User { uid: request.uid(), gid: request.gid() }));
        let result = run(&mut client);
        if result.as_ref().err().is_none_or(|error| error.status().is_some()) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
        result.map_err(errno)
    }

    /// Makes a call about an object.
    fn on<T>(
        &self,
        request: &Request,
        number: INodeNo,
        run: impl FnOnce(&mut Client, &Handle) -> Result<T, Error>,
    ) -> Done<T> {
        let handle = self.handle(number)?;
        self.call(request, |client| run(client, &handle))
    }

    /// The kernel's entry for an object that was looked up or created.
    fn entry(&self, request: &Request, handle: &Handle, found: Option<fattr3>) -> Done<FileAttr> {
        let found = match found {
            Some(found) => found,
            None => self.call(request, |client| client.getattr(handle))?,
        };
        Ok(shown(self.nodes().number(handle), &found))
    }

    fn made(&self, request: &Request, place: (&Handle, &OsStr), made: Done<CreatedObject>) -> Done<FileAttr> {
        let CreatedObject { handle, attributes, .. } = made?;
        match handle {
            Some(handle) => self.entry(request, &handle, attributes),
            None => self.find(request, place.0, place.1),
        }
    }

    fn find(&self, request: &Request, parent: &Handle, name: &OsStr) -> Done<FileAttr> {
        let (handle, found) = self.call(request, |client| client.lookup(parent, name.as_bytes()))?;
        self.entry(request, &handle, found)
    }

    fn create_file(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        exclusive: bool,
    ) -> Done<FileAttr> {
        let parent = self.handle(parent)?;
        let change = Change { mode: Some(mode & 0o7777), ..Change::default() };
        let how = if exclusive { Creation::Guarded(change) } else { Creation::Unchecked(change) };
        let made = self.call(request, |client| client.create(&parent, name.as_bytes(), how));
        self.made(request, (&parent, name), made)
    }

    /// Removes a name. If its file is open, the file is renamed until it is closed, as NFS clients do.
    fn remove(&self, request: &Request, parent: INodeNo, name: &OsStr) -> Done<()> {
        let parent = self.handle(parent)?;
        let (handle, found) = self.call(request, |client| client.lookup(&parent, name.as_bytes()))?;
        let last = found.is_some_and(|found| found.nlink == 1 && found.type_ == ftype3::NF3REG);
        let number = self.nodes().known(&handle);
        if last
            && let Some(number) = number
            && self.nodes().get(number).is_some_and(|node| node.open > 0 && node.removed.is_none())
        {
            let silly = format!(".nfs{number:016x}").into_bytes();
            self.call(request, |client| client.rename((&parent, name.as_bytes()), (&parent, &silly)))?;
            if let Some(node) = self.nodes().get(number) {
                node.removed = Some((parent, silly));
            }
            return Ok(());
        }
        self.call(request, |client| client.remove(&parent, name.as_bytes())).map(drop)
    }

    fn opened(&self, number: u64) {
        if let Some(node) = self.nodes().get(number) {
            node.open += 1;
        }
    }

    fn closed(&self, request: &Request, number: INodeNo) -> Done<()> {
        let result = self.committed(request, number);
        let removed = match self.nodes().get(number.0) {
            Some(node) => {
                node.open = node.open.saturating_sub(1);
                if node.open == 0 { node.removed.take() } else { None }
            }
            None => None,
        };
        if let Some((parent, name)) = removed {
            self.call(request, |client| client.remove(&parent, &name))?;
        }
        result
    }

    /// Makes written data durable.
    fn committed(&self, request: &Request, number: INodeNo) -> Done<()> {
        let (handle, unstable) = match self.nodes().get(number.0) {
            Some(node) => (node.handle.clone(), node.unstable.take()),
            None => return Ok(()),
        };
        let Some(verifier) = unstable else { return Ok(()) };
        let committed = self.call(request, |client| client.commit(&handle, 0, 0))?;
        // If they differ, the server lost the data, and no copy is left here.
        if committed.verf.0 == verifier { Ok(()) } else { Err(Errno::EIO) }
    }

    fn written(&self, request: &Request, number: INodeNo, offset: u64, data: &[u8]) -> Done<u32> {
        let handle = self.handle(number)?;
        let mut done = 0;
        while done < data.len() {
            let piece = &data[done..data.len().min(done + CALL_BYTES)];
            let at = offset + done as u64;
            let written = self.call(request, |client| client.write(&handle, at, piece, stable_how::UNSTABLE))?;
            done += written.count as usize;
            let mut nodes = self.nodes();
            let Some(node) = nodes.get(number.0) else { continue };
            if node.unstable.replace(written.verf.0).is_some_and(|before| before != written.verf.0) {
                return Err(Errno::EIO);
            }
        }
        Ok(done as u32)
    }

    fn listed(&self, request: &Request, number: INodeNo, offset: u64, reply: &mut ReplyDirectory) -> Done<()> {
        let handle = self.handle(number)?;
        let mut cookie = offset;
        loop {
            let piece =
                self.call(request, |client| client.readdirplus(&handle, cookie, [0; 8], LISTING_BYTES, LISTING_BYTES))?;
            for entry in &piece.entries {
                let kind = entry.attributes.as_ref().map_or(FileType::RegularFile, kind);
                if reply.add(INodeNo(entry.fileid), entry.cookie, kind, OsStr::from_bytes(&entry.name)) {
                    return Ok(());
                }
                cookie = entry.cookie;
            }
            if piece.end || piece.entries.is_empty() {
                return Ok(());
            }
        }
    }

    fn changed(&self, request: &Request, number: INodeNo, change: Change) -> Done<FileAttr> {
        let after = self.on(request, number, |client, object| client.setattr(object, change, None))?.after;
        let found = after.map_or_else(|| self.on(request, number, |client, object| client.getattr(object)), Ok)?;
        Ok(shown(number.0, &found))
    }

    fn node(&self, request: &Request, place: (INodeNo, &OsStr), mode: u32, device: u32) -> Done<FileAttr> {
        const TYPE: u32 = 0o170_000;
        let change = Change { mode: Some(mode & 0o7777), ..Change::default() };
        let device = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xfff00);
        let special = match mode & TYPE {
            0o010_000 => Special::Fifo(change),
            0o140_000 => Special::Socket(change),
            0o020_000 => Special::Character(change, device),
            0o060_000 => Special::Block(change, device),
            _ => return self.create_file(request, place.0, place.1, mode, true),
        };
        let parent = self.handle(place.0)?;
        let made = self.call(request, |client| client.mknod(&parent, place.1.as_bytes(), special));
        self.made(request, (&parent, place.1), made)
    }
}

/// Answers a request with its value, or with the error.
macro_rules! answer {
    ($result:expr, $reply:ident, $value:pat => $answer:expr) => {
        match $result {
            Ok($value) => $answer,
            Err(error) => $reply.error(error),
        }
    };
}

fn answer_entry(result: Done<FileAttr>, reply: ReplyEntry) {
    answer!(result, reply, found => reply.entry(&TTL, &found, Generation(0)));
}

fn answer_attr(result: Done<FileAttr>, reply: ReplyAttr) {
    answer!(result, reply, found => reply.attr(&TTL, &found));
}

fn answer(result: Done<()>, reply: ReplyEmpty) {
    answer!(result, reply, () => reply.ok());
}

impl Filesystem for Bridge {
    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.handle(parent).and_then(|parent| self.find(request, &parent, name));
        answer_entry(found, reply);
    }

    fn forget(&self, _request: &Request, number: INodeNo, times: u64) {
        self.nodes().forget(number.0, times);
    }

    fn getattr(&self, request: &Request, number: INodeNo, _open: Option<FileHandle>, reply: ReplyAttr) {
        let found = self.on(request, number, |client, handle| client.getattr(handle));
        answer_attr(found.map(|found| shown(number.0, &found)), reply);
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _open: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mode = mode.map(|mode| mode & 0o7777);
        let change = Change { mode, uid, gid, size, atime: time_change(atime), mtime: time_change(mtime) };
        answer_attr(self.changed(request, number, change), reply);
    }

    fn readlink(&self, request: &Request, number: INodeNo, reply: ReplyData) {
        let target = self.on(request, number, |client, handle| client.readlink(handle));
        answer!(target, reply, target => reply.data(&target));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        answer_entry(self.node(request, (parent, name), mode, device), reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let change = Change { mode: Some(mode & 0o7777), ..Change::default() };
        let made = self.handle(parent).and_then(|parent| {
            let made = self.call(request, |client| client.mkdir(&parent, name.as_bytes(), change));
            self.made(request, (&parent, name), made)
        });
        answer_entry(made, reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.remove(request, parent, name), reply);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.on(request, parent, |client, parent| client.rmdir(parent, name.as_bytes()));
        answer(removed.map(drop), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        let made = self.handle(parent).and_then(|parent| {
            let change = Change { mode: Some(0o777), ..Change::default() };
            let made = self.call(request, |client| client.symlink(&parent, name.as_bytes(), target, change));
            self.made(request, (&parent, name), made)
        });
        answer_entry(made, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let renamed = self.handle(parent).and_then(|parent| {
            let new_parent = self.handle(new_parent)?;
            let (from, to) = ((&parent[..], name.as_bytes()), (&new_parent[..], new_name.as_bytes()));
            self.call(request, |client| client.rename(from, to))
        });
        answer(renamed.map(drop), reply);
    }

    fn link(&self, request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.handle(number).and_then(|file| {
            let parent = self.handle(parent)?;
            self.call(request, |client| client.link(&file, &parent, name.as_bytes()))?;
            self.entry(request, &file, None)
        });
        answer_entry(linked, reply);
    }

    fn open(&self, request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // An NFS client calls ACCESS here; the kernel has asked us already.
        let _ = request;
        self.opened(number.0);
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        request: &Request,
        number: INodeNo,
        _open: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = |client: &mut Client, file: &Handle| client.read_all(file, offset, size as usize, CALL_BYTES, 4);
        answer!(self.on(request, number, read), reply, data => reply.data(&data));
    }

    fn write(
        &self,
        request: &Request,
        number: INodeNo,
        _open: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        answer!(self.written(request, number, offset, data), reply, count => reply.written(count));
    }

    fn flush(&self, request: &Request, number: INodeNo, _open: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        answer(self.committed(request, number), reply);
    }

    fn release(
        &self,
        request: &Request,
        number: INodeNo,
        _open: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        answer(self.closed(request, number), reply);
    }

    fn fsync(&self, request: &Request, number: INodeNo, _open: FileHandle, _data: bool, reply: ReplyEmpty) {
        answer(self.committed(request, number), reply);
    }

    fn readdir(&self, request: &Request, number: INodeNo, _open: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        answer!(self.listed(request, number, offset, &mut reply), reply, () => reply.ok());
    }

    fn fsyncdir(&self, _request: &Request, _number: INodeNo, _open: FileHandle, _data: bool, reply: ReplyEmpty) {
        // Names are durable once the server has answered.
        reply.ok();
    }

    fn statfs(&self, request: &Request, number: INodeNo, reply: ReplyStatfs) {
        const BLOCK: u32 = 4096;
        let space = self.on(request, number, |client, handle| client.fsstat(handle));
        answer!(space, reply, space => {
            let blocks = |bytes: u64| bytes / u64::from(BLOCK);
            let (all, free, room) = (blocks(space.tbytes), blocks(space.fbytes), blocks(space.abytes));
            reply.statfs(all, free, room, space.tfiles, space.ffiles, BLOCK, 255, BLOCK);
        });
    }

    fn access(&self, request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let wanted = mask.bits() as u32;
        let access = self.on(request, number, |client, handle| client.access(handle, 0x3f));
        let allowed = access.and_then(|access| {
            let directory = option(access.obj_attributes).is_some_and(|found| found.type_ == ftype3::NF3DIR);
            // The bits for reading, for changes, and for lookup or execution.
            let (read, write, execute) = (1, 0x04, if directory { 0x02 } else { 0x20 });
            let denied = |asked: u32, bit: u32| wanted & asked != 0 && access.access & bit == 0;
            if denied(4, read) || denied(2, write) || denied(1, execute) { Err(Errno::EACCES) } else { Ok(()) }
        });
        answer(allowed, reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        const O_EXCL: i32 = 0o200;
        answer!(self.create_file(request, parent, name, mode, flags & O_EXCL != 0), reply, found => {
            self.opened(found.ino.0);
            reply.created(&TTL, &found, Generation(0), FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
        });
    }
}
