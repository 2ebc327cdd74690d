//! The procedures of NFSv3 and MOUNT as blocking calls.
//!
//! Owns: the arguments and the results of each (RFC 1813).
//! Does not own: the transport (`connection`).
//! Invariants: results are read to their last byte. A status other than OK is [`Error::Status`]; the rest of a failure
//! is read too, to its last byte, and dropped.

use crate::connection::{Client, Error, MOUNT, NFS};
use crate::results::{
    Access, Attributes, Committed, Consistency, CreatedObject, FileSystem, Handle, Limits, Listing, ReadData, Space,
    Stability, Time, Written,
};
use crate::wire::{Fields, Malformed, Results};

/// The change of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeChange {
    /// It stays.
    #[default]
    Keep,
    /// It becomes the server's time.
    Now,
    /// It becomes this time.
    To(Time),
}

/// `sattr3`; the default changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "named as in RFC 1813")]
pub struct Change {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: TimeChange,
    pub mtime: TimeChange,
}

/// CREATE's treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// Opens the file.
    Unchecked(Change),
    /// Fails.
    Guarded(Change),
    /// Fails, unless the file was created with the same verifier.
    Exclusive([u8; 8]),
}

/// The kind of object for MKNOD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A character device.
    Character(Change, (u32, u32)),
    /// A block device.
    Block(Change, (u32, u32)),
    /// A socket.
    Socket(Change),
    /// A named pipe.
    Fifo(Change),
    /// Only the kind's number, without data.
    Other(u32),
}

impl Fields {
    fn optional(self, value: Option<u32>) -> Self {
        match value {
            None => self.u32(0),
            Some(value) => self.u32(1).u32(value),
        }
    }

    fn time(self, time: TimeChange) -> Self {
        match time {
            TimeChange::Keep => self.u32(0),
            TimeChange::Now => self.u32(1),
            TimeChange::To(time) => self.u32(2).u32(time.seconds).u32(time.nanos),
        }
    }

    fn change(self, change: &Change) -> Self {
        let fields = self.optional(change.mode).optional(change.uid).optional(change.gid);
        let fields = match change.size {
            None => fields.u32(0),
            Some(size) => fields.u32(1).u64(size),
        };
        fields.time(change.atime).time(change.mtime)
    }
}

fn diropargs(directory: &[u8], name: &[u8]) -> Fields {
    Fields::default().opaque(directory).opaque(name)
}

fn extent(file: &[u8], offset: u64, count: u32) -> Fields {
    Fields::default().opaque(file).u64(offset).u32(count)
}

/// The arguments of a READ.
pub(crate) fn read_arguments(file: &[u8], offset: u64, count: u32) -> Fields {
    extent(file, offset, count)
}

/// The arguments of a WRITE.
pub(crate) fn write_arguments(file: &[u8], offset: u64, data: &[u8], stability: Stability) -> Fields {
    extent(file, offset, data.len() as u32).u32(stability as u32).opaque(data)
}

/// The arguments of a WRITE up to its data.
pub(crate) fn write_head(file: &[u8], offset: u64, len: u32, stability: Stability) -> Fields {
    extent(file, offset, len).u32(stability as u32).u32(len)
}

pub(crate) fn read_results(results: &mut Results<'_>) -> Result<ReadData, Malformed> {
    let (attributes, end_of_file, data) = read_parts(results)?;
    Ok(ReadData { attributes, end_of_file, data: data.to_vec() })
}

/// READ's attributes, whether the file ends there, and its data.
pub(crate) fn read_parts<'a>(results: &mut Results<'a>) -> Result<(Option<Attributes>, bool, &'a [u8]), Malformed> {
    let attributes = results.post_op()?;
    let count = results.u32()?;
    let end_of_file = results.bool()?;
    let data = results.opaque()?;
    if data.len() != count as usize {
        return Err(Malformed { what: "a count that is not the length of the data" });
    }
    Ok((attributes, end_of_file, data))
}

pub(crate) fn write_results(results: &mut Results<'_>) -> Result<Written, Malformed> {
    Ok(Written {
        consistency: results.consistency()?,
        count: results.u32()?,
        stability: results.stability()?,
        verifier: results.fixed()?,
    })
}

/// Splits results into status and the rest.
pub(crate) fn check_status(procedure: &'static str, results: &mut Results<'_>) -> Result<(), Error> {
    match results.u32()? {
        0 => Ok(()),
        status => Err(Error::Status { procedure, status }),
    }
}

/// Reads a procedure's results after a status other than OK.
pub(crate) fn read_failure(number: u32, results: &mut Results<'_>) -> Result<(), Malformed> {
    match number {
        1 => {}
        2 | 7..=13 | 21 => drop(results.consistency()?),
        14 => drop((results.consistency()?, results.consistency()?)),
        15 => drop((results.post_op()?, results.consistency()?)),
        _ => drop(results.post_op()?),
    }
    Ok(())
}

impl Client {
    /// Calls a procedure of NFS: `read` reads the results after the status OK.
    fn nfs<T>(
        &mut self,
        number: u32,
        name: &'static str,
        arguments: Fields,
        read: impl FnOnce(&mut Results<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Error> {
        let results = self.call(NFS, number, &arguments.0)?;
        let mut results = Results(&results);
        if let Err(failed) = check_status(name, &mut results) {
            read_failure(number, &mut results)?;
            results.end()?;
            return Err(failed);
        }
        let value = read(&mut results)?;
        results.end()?;
        Ok(value)
    }

    /// NULL of NFS.
    pub fn null(&mut self) -> Result<(), Error> {
        Ok(Results(&self.call(NFS, 0, &[])?).end()?)
    }

    /// MNT: the handle of an export or a directory below it.
    pub fn mount(&mut self, path: &str) -> Result<Handle, Error> {
        Ok(self.mount_with_flavours(path)?.0)
    }

    /// MNT, with the flavours of credentials that the server accepts there.
    pub fn mount_with_flavours(&mut self, path: &str) -> Result<(Handle, Vec<u32>), Error> {
        let results = self.call(MOUNT, 1, &Fields::default().opaque(path.as_bytes()).0)?;
        let mut results = Results(&results);
        check_status("MNT", &mut results)?;
        let handle = results.handle()?;
        let count = results.u32()?;
        let flavours = (0..count).map(|_| results.u32()).collect::<Result<_, _>>()?;
        results.end()?;
        Ok((handle, flavours))
    }

    /// UMNT.
    pub fn unmount(&mut self, path: &str) -> Result<(), Error> {
        let results = self.call(MOUNT, 3, &Fields::default().opaque(path.as_bytes()).0)?;
        Ok(Results(&results).end()?)
    }

    /// DUMP: the mounts, as client and path.
    pub fn mounts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let results = self.call(MOUNT, 2, &[])?;
        let mut results = Results(&results);
        let mut mounts = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        while results.bool()? {
            mounts.push((text(results.opaque()?), text(results.opaque()?)));
        }
        results.end()?;
        Ok(mounts)
    }

    /// EXPORT: the paths that can be mounted.
    pub fn exports(&mut self) -> Result<Vec<String>, Error> {
        let results = self.call(MOUNT, 5, &[])?;
        let mut results = Results(&results);
        let mut exports = Vec::new();
        while results.bool()? {
            exports.push(String::from_utf8_lossy(results.opaque()?).into_owned());
            while results.bool()? {
                results.opaque()?;
            }
        }
        results.end()?;
        Ok(exports)
    }

    /// GETATTR.
    pub fn getattr(&mut self, object: &[u8]) -> Result<Attributes, Error> {
        self.nfs(1, "GETATTR", Fields::default().opaque(object), |results| results.attributes())
    }

    /// SETATTR, with the change time expected if there is a guard.
    pub fn setattr(&mut self, object: &[u8], change: Change, guard: Option<Time>) -> Result<Consistency, Error> {
        let fields = Fields::default().opaque(object).change(&change);
        let fields = match guard {
            None => fields.u32(0),
            Some(time) => fields.u32(1).u32(time.seconds).u32(time.nanos),
        };
        self.nfs(2, "SETATTR", fields, |results| results.consistency())
    }

    /// LOOKUP: handle, attributes of the object and of the directory.
    pub fn lookup(&mut self, directory: &[u8], name: &[u8]) -> Result<(Handle, Option<Attributes>), Error> {
        self.nfs(3, "LOOKUP", diropargs(directory, name), |results| {
            let found = (results.handle()?, results.post_op()?);
            results.post_op()?;
            Ok(found)
        })
    }

    /// Looks up the parts of a path one after the other.
    pub fn find(&mut self, root: &[u8], path: &str) -> Result<Handle, Error> {
        let mut handle = root.to_vec();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            handle = self.lookup(&handle, part.as_bytes())?.0;
        }
        Ok(handle)
    }

    /// ACCESS.
    pub fn access(&mut self, object: &[u8], wanted: u32) -> Result<Access, Error> {
        let fields = Fields::default().opaque(object).u32(wanted);
        self.nfs(4, "ACCESS", fields, |results| Ok(Access { attributes: results.post_op()?, granted: results.u32()? }))
    }

    /// READLINK.
    pub fn readlink(&mut self, link: &[u8]) -> Result<Vec<u8>, Error> {
        self.nfs(5, "READLINK", Fields::default().opaque(link), |results| {
            results.post_op()?;
            Ok(results.opaque()?.to_vec())
        })
    }

    /// READ.
    pub fn read(&mut self, file: &[u8], offset: u64, count: u32) -> Result<ReadData, Error> {
        self.nfs(6, "READ", read_arguments(file, offset, count), read_results)
    }

    /// WRITE.
    pub fn write(&mut self, file: &[u8], offset: u64, data: &[u8], stability: Stability) -> Result<Written, Error> {
        self.nfs(7, "WRITE", write_arguments(file, offset, data, stability), write_results)
    }

    /// CREATE.
    pub fn create(&mut self, directory: &[u8], name: &[u8], how: Creation) -> Result<CreatedObject, Error> {
        let fields = diropargs(directory, name);
        let fields = match how {
            Creation::Unchecked(change) => fields.u32(0).change(&change),
            Creation::Guarded(change) => fields.u32(1).change(&change),
            Creation::Exclusive(verifier) => fields.u32(2).fixed(&verifier),
        };
        self.nfs(8, "CREATE", fields, |results| results.made())
    }

    /// Creates a file with mode 0644, or empties an existing one. Returns its handle.
    pub fn create_empty(&mut self, directory: &[u8], name: &[u8]) -> Result<Handle, Error> {
        let change = Change { mode: Some(0o644), size: Some(0), ..Change::default() };
        let made = self.create(directory, name, Creation::Unchecked(change))?;
        Ok(made.handle.ok_or(Malformed { what: "CREATE without a handle" })?)
    }

    /// MKDIR.
    pub fn mkdir(&mut self, directory: &[u8], name: &[u8], change: Change) -> Result<CreatedObject, Error> {
        self.nfs(9, "MKDIR", diropargs(directory, name).change(&change), |results| results.made())
    }

    /// SYMLINK.
    pub fn symlink(
        &mut self,
        directory: &[u8],
        name: &[u8],
        target: &[u8],
        change: Change,
    ) -> Result<CreatedObject, Error> {
        self.nfs(10, "SYMLINK", diropargs(directory, name).change(&change).opaque(target), |results| results.made())
    }

    /// MKNOD.
    pub fn mknod(&mut self, directory: &[u8], name: &[u8], node: Node) -> Result<CreatedObject, Error> {
        let fields = diropargs(directory, name);
        let fields = match node {
            Node::Block(change, (major, minor)) => fields.u32(3).change(&change).u32(major).u32(minor),
            Node::Character(change, (major, minor)) => fields.u32(4).change(&change).u32(major).u32(minor),
            Node::Socket(change) => fields.u32(6).change(&change),
            Node::Fifo(change) => fields.u32(7).change(&change),
            Node::Other(kind) => fields.u32(kind),
        };
        self.nfs(11, "MKNOD", fields, |results| results.made())
    }

    /// REMOVE.
    pub fn remove(&mut self, directory: &[u8], name: &[u8]) -> Result<Consistency, Error> {
        self.nfs(12, "REMOVE", diropargs(directory, name), |results| results.consistency())
    }

    /// RMDIR.
    pub fn rmdir(&mut self, directory: &[u8], name: &[u8]) -> Result<Consistency, Error> {
        self.nfs(13, "RMDIR", diropargs(directory, name), |results| results.consistency())
    }

    /// RENAME: the source directory, then the target's.
    pub fn rename(&mut self, from: (&[u8], &[u8]), to: (&[u8], &[u8])) -> Result<(Consistency, Consistency), Error> {
        let fields = diropargs(from.0, from.1).opaque(to.0).opaque(to.1);
        self.nfs(14, "RENAME", fields, |results| Ok((results.consistency()?, results.consistency()?)))
    }

    /// LINK: the file's attributes and the directory.
    pub fn link(
        &mut self,
        file: &[u8],
        directory: &[u8],
        name: &[u8],
    ) -> Result<(Option<Attributes>, Consistency), Error> {
        let fields = Fields::default().opaque(file).opaque(directory).opaque(name);
        self.nfs(15, "LINK", fields, |results| Ok((results.post_op()?, results.consistency()?)))
    }

    /// READDIR: one piece after `cookie`.
    pub fn readdir(&mut self, directory: &[u8], cookie: u64, verifier: [u8; 8], count: u32) -> Result<Listing, Error> {
        let fields = Fields::default().opaque(directory).u64(cookie).fixed(&verifier).u32(count);
        self.nfs(16, "READDIR", fields, |results| results.listing(false))
    }

    /// READDIRPLUS: one piece after `cookie`.
    pub fn readdirplus(
        &mut self,
        directory: &[u8],
        cookie: u64,
        verifier: [u8; 8],
        directory_count: u32,
        count: u32,
    ) -> Result<Listing, Error> {
        let fields = Fields::default().opaque(directory).u64(cookie).fixed(&verifier);
        self.nfs(17, "READDIRPLUS", fields.u32(directory_count).u32(count), |results| results.listing(true))
    }

    /// All entries of a directory except "." and "..", by READDIRPLUS.
    pub fn entries(&mut self, directory: &[u8]) -> Result<Vec<crate::DirectoryEntry>, Error> {
        let (mut entries, mut cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
        loop {
            let piece = self.readdirplus(directory, cookie, verifier, 32 << 10, 64 << 10)?;
            verifier = piece.verifier;
            let Some(last) = piece.entries.last() else { return Ok(entries) };
            cookie = last.cookie;
            let real = |entry: &crate::DirectoryEntry| entry.name != b"." && entry.name != b"..";
            entries.extend(piece.entries.into_iter().filter(real));
            if piece.end {
                return Ok(entries);
            }
        }
    }

    /// FSSTAT.
    pub fn fsstat(&mut self, root: &[u8]) -> Result<Space, Error> {
        self.nfs(18, "FSSTAT", Fields::default().opaque(root), |results| {
            Ok(Space {
                attributes: results.post_op()?,
                total_bytes: results.u64()?,
                free_bytes: results.u64()?,
                available_bytes: results.u64()?,
                total_files: results.u64()?,
                free_files: results.u64()?,
                available_files: results.u64()?,
                invariant_seconds: results.u32()?,
            })
        })
    }

    /// FSINFO.
    pub fn fsinfo(&mut self, root: &[u8]) -> Result<FileSystem, Error> {
        self.nfs(19, "FSINFO", Fields::default().opaque(root), |results| {
            Ok(FileSystem {
                attributes: results.post_op()?,
                read_max: results.u32()?,
                read_preferred: results.u32()?,
                read_multiple: results.u32()?,
                write_max: results.u32()?,
                write_preferred: results.u32()?,
                write_multiple: results.u32()?,
                directory_preferred: results.u32()?,
                file_size_max: results.u64()?,
                time_delta: results.time()?,
                properties: results.u32()?,
            })
        })
    }

    /// PATHCONF.
    pub fn pathconf(&mut self, object: &[u8]) -> Result<Limits, Error> {
        self.nfs(20, "PATHCONF", Fields::default().opaque(object), |results| {
            Ok(Limits {
                attributes: results.post_op()?,
                links_max: results.u32()?,
                name_max: results.u32()?,
                no_trunc: results.bool()?,
                chown_restricted: results.bool()?,
                case_insensitive: results.bool()?,
                case_preserving: results.bool()?,
            })
        })
    }

    /// COMMIT of a range; a count of 0 extends to the end.
    pub fn commit(&mut self, file: &[u8], offset: u64, count: u32) -> Result<Committed, Error> {
        self.nfs(21, "COMMIT", extent(file, offset, count), |results| {
            Ok(Committed { consistency: results.consistency()?, verifier: results.fixed()? })
        })
    }
}
