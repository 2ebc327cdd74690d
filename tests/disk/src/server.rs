//! The FUSE server of the disk: a directory with one file, the disk's bytes.
//!
//! Owns: the answers to the kernel.
//! Does not own: the bytes (`medium`), the times (`timing`).
//! Invariants: a request acts on the bytes when it comes, and is answered when its time is over. No thread of the
//! server waits for another request.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::medium::{Failed, Medium};
use crate::timing::{Clock, Kind};

/// The name of the file.
pub(crate) const FILE: &str = "disk";
const FILE_NUMBER: INodeNo = INodeNo(2);
/// The kernel may keep attributes: they never change.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// The parts of a disk that the server and its owner share.
pub(crate) struct Parts {
    medium: Mutex<Medium>,
    pub(crate) clock: Clock,
    bytes: u64,
}

impl Parts {
    pub(crate) fn new(medium: Medium, clock: Clock, bytes: u64) -> Self {
        Self { medium: Mutex::new(medium), clock, bytes }
    }

    pub(crate) fn medium(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server.
pub(crate) struct Server(pub(crate) Arc<Parts>);

impl Server {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let is_file = number == FILE_NUMBER;
        FileAttr {
            ino: number,
            size: if is_file { self.0.bytes } else { 0 },
            blocks: if is_file { self.0.bytes / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

fn errno(_: Failed) -> Errno {
    Errno::EIO
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE {
            reply.entry(&FOR_EVER, &self.attributes(FILE_NUMBER), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The kernel keeps no copy: each request comes here.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; u64::from(size).min(self.0.bytes.saturating_sub(offset)) as usize];
        let read = self.0.medium().read(offset, &mut bytes);
        self.0.clock.when_done(Kind::Read, u64::from(size), move || match read {
            Ok(()) => reply.data(&bytes),
            Err(failed) => reply.error(errno(failed)),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.0.medium().write(offset, data);
        let len = data.len() as u32;
        self.0.clock.when_done(Kind::Write, u64::from(len), move || match written {
            Ok(()) => reply.written(len),
            Err(failed) => reply.error(errno(failed)),
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let flushed = self.0.medium().flush();
        self.0.clock.when_done(Kind::Flush, 0, move || match flushed {
            Ok(()) => reply.ok(),
            Err(failed) => reply.error(errno(failed)),
        });
    }
}
