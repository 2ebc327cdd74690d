//! The procedures of NFSv3 and MOUNT as blocking calls.
//!
//! Owns: the list of procedures, with the arguments and results of each (RFC 1813).
//! Does not own: the transport (`connection`), the encoding: that is `nfs3_types`', which the server does not use.
//! Invariants: results are read to their last byte. A status other than OK is [`Error::Status`]; the rest of a failure
//! is read too, to its last byte, and dropped.

use nfs3_types::mount::{exports, mountlist};
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack, Void};

use crate::connection::{Client, Error, MOUNT, NFS};
use crate::results::{Consistency, CreatedObject, Handle, Listing, ReadData, handle, option};
use crate::wire::{Fields, Malformed, Results};

/// The change of a time.
#[derive(Clone, Copy, Debug, Default)]
pub enum TimeChange {
    /// It stays.
    #[default]
    Keep,
    /// It becomes the server's time.
    Now,
    /// It becomes this time.
    To(nfstime3),
}

/// `sattr3`; the default changes nothing.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "named as in RFC 1813")]
pub struct Change {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: TimeChange,
    pub mtime: TimeChange,
}

impl From<Change> for sattr3 {
    fn from(change: Change) -> Self {
        fn field<T: Pack + Unpack>(value: Option<T>) -> Nfs3Option<T> {
            value.map_or(Nfs3Option::None, Nfs3Option::Some)
        }
        Self {
            mode: field(change.mode),
            uid: field(change.uid),
            gid: field(change.gid),
            size: field(change.size),
            atime: match change.atime {
                TimeChange::Keep => set_atime::DONT_CHANGE,
                TimeChange::Now => set_atime::SET_TO_SERVER_TIME,
                TimeChange::To(time) => set_atime::SET_TO_CLIENT_TIME(time),
            },
            mtime: match change.mtime {
                TimeChange::Keep => set_mtime::DONT_CHANGE,
                TimeChange::Now => set_mtime::SET_TO_SERVER_TIME,
                TimeChange::To(time) => set_mtime::SET_TO_CLIENT_TIME(time),
            },
        }
    }
}

/// CREATE's treatment of an existing file.
#[derive(Clone, Copy, Debug)]
pub enum Creation {
    /// Opens the file.
    Unchecked(Change),
    /// Fails.
    Guarded(Change),
    /// Fails, unless the file was created with the same verifier.
    Exclusive([u8; 8]),
}

/// The kind of object for MKNOD.
#[derive(Clone, Copy, Debug)]
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

/// The arguments of a procedure.
pub(crate) trait Arguments: Pack {
    /// The procedure's number and name.
    const PROCEDURE: (u32, &'static str);
    /// The results after the status OK.
    type Results: Pack + Unpack;
    /// The results after another status.
    type Failure: Pack + Unpack;
}

macro_rules! procedures {
    ($($number:literal $name:ident $arguments:ty => $results:ty, $failure:ty;)*) => { $(
        impl Arguments for $arguments {
            const PROCEDURE: (u32, &'static str) = ($number, stringify!($name));
            type Results = $results;
            type Failure = $failure;
        }
    )* };
}

procedures! {
    1 GETATTR GETATTR3args => GETATTR3resok, Void;
    2 SETATTR SETATTR3args => SETATTR3resok, SETATTR3resfail;
    3 LOOKUP LOOKUP3args<'_> => LOOKUP3resok, LOOKUP3resfail;
    4 ACCESS ACCESS3args => ACCESS3resok, ACCESS3resfail;
    5 READLINK READLINK3args => READLINK3resok<'static>, READLINK3resfail;
    6 READ READ3args => READ3resok<'static>, READ3resfail;
    7 WRITE WRITE3args<'_> => WRITE3resok, WRITE3resfail;
    8 CREATE CREATE3args<'_> => CREATE3resok, CREATE3resfail;
    9 MKDIR MKDIR3args<'_> => MKDIR3resok, MKDIR3resfail;
    10 SYMLINK SYMLINK3args<'_> => SYMLINK3resok, SYMLINK3resfail;
    11 MKNOD MKNOD3args<'_> => MKNOD3resok, MKNOD3resfail;
    12 REMOVE REMOVE3args<'_> => REMOVE3resok, REMOVE3resfail;
    13 RMDIR RMDIR3args<'_> => RMDIR3resok, RMDIR3resfail;
    14 RENAME RENAME3args<'_, '_> => RENAME3resok, RENAME3resfail;
    15 LINK LINK3args<'_> => LINK3resok, LINK3resfail;
    16 READDIR READDIR3args => READDIR3resok<'static>, READDIR3resfail;
    17 READDIRPLUS READDIRPLUS3args => READDIRPLUS3resok<'static>, READDIRPLUS3resfail;
    18 FSSTAT FSSTAT3args => FSSTAT3resok, FSSTAT3resfail;
    19 FSINFO FSINFO3args => FSINFO3resok, FSINFO3resfail;
    20 PATHCONF PATHCONF3args => PATHCONF3resok, PATHCONF3resfail;
    21 COMMIT COMMIT3args => COMMIT3resok, COMMIT3resfail;
}

pub(crate) fn packed(value: &impl Pack) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.packed_size());
    assert!(value.pack(&mut bytes).is_ok(), "a field of more than 4 GiB");
    bytes
}

/// Reads a value that takes all the bytes. The crate reads any padding, so the value is encoded again.
pub(crate) fn unpacked<T: Pack + Unpack>(bytes: &[u8]) -> Result<T, Malformed> {
    let (value, _) = T::unpack(&mut &*bytes)?;
    if packed(&value) != bytes {
        return Err(Malformed { what: "padding that is not zero, or bytes after the last field" });
    }
    Ok(value)
}

/// Reads the results of a procedure.
pub(crate) fn results<A: Arguments>(bytes: &[u8]) -> Result<A::Results, Error> {
    match unpacked::<Nfs3Result<A::Results, A::Failure>>(bytes)? {
        Nfs3Result::Ok(results) => Ok(results),
        Nfs3Result::Err((status, _)) => Err(Error::Status { procedure: A::PROCEDURE.1, status: status as u32 }),
    }
}

pub(crate) fn fh(handle: &[u8]) -> nfs_fh3 {
    nfs_fh3 { data: Opaque::owned(handle.to_vec()) }
}

pub(crate) fn diropargs<'a>(directory: &[u8], name: &'a [u8]) -> diropargs3<'a> {
    diropargs3 { dir: fh(directory), name: name.into() }
}

pub(crate) fn write_arguments<'a>(file: &[u8], offset: u64, data: &'a [u8], stable: stable_how) -> WRITE3args<'a> {
    WRITE3args { file: fh(file), offset, count: data.len() as u32, stable, data: Opaque::borrowed(data) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// READ's results after the status OK, with the data in place.
pub(crate) fn read_in_place<'a>(results: &mut Results<'a>) -> Result<READ3resok<'a>, Malformed> {
    let file_attributes = post_op_attr::unpack(&mut results.0)?.0;
    let (count, eof, data) = (results.u32()?, results.bool()?, results.opaque()?);
    if data.len() != count as usize {
        return Err(Malformed { what: "a count that is not the length of the data" });
    }
    Ok(READ3resok { file_attributes, count, eof, data: Opaque::borrowed(data) })
}

/// Splits results into status and the rest.
pub(crate) fn check_status(procedure: &'static str, results: &mut Results<'_>) -> Result<(), Error> {
    match results.u32()? {
        0 => Ok(()),
        status => Err(Error::Status { procedure, status }),
    }
}

impl Client {
    /// Calls a procedure of NFS.
    fn nfs<A: Arguments>(&mut self, arguments: &A) -> Result<A::Results, Error> {
        results::<A>(&self.call(NFS, A::PROCEDURE.0, &packed(arguments))?)
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
        let handle = handle(nfs_fh3::unpack(&mut results.0).map_err(Malformed::from)?.0)?;
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
        let mounts = unpacked::<mountlist<'_, '_>>(&self.call(MOUNT, 2, &[])?)?.0;
        Ok(mounts.iter().map(|mount| (text(&mount.ml_hostname.0), text(&mount.ml_directory.0))).collect())
    }

    /// EXPORT: the paths that can be mounted.
    pub fn exports(&mut self) -> Result<Vec<String>, Error> {
        let exports = unpacked::<exports<'_, '_>>(&self.call(MOUNT, 5, &[])?)?;
        Ok(exports.0.iter().map(|export| text(&export.ex_dir.0)).collect())
    }

    /// GETATTR.
    pub fn getattr(&mut self, object: &[u8]) -> Result<fattr3, Error> {
        Ok(self.nfs(&GETATTR3args { object: fh(object) })?.obj_attributes)
    }

    /// SETATTR, with the change time expected if there is a guard.
    pub fn setattr(&mut self, object: &[u8], change: Change, guard: Option<nfstime3>) -> Result<Consistency, Error> {
        let guard = guard.map_or(Nfs3Option::None, Nfs3Option::Some);
        let arguments = SETATTR3args { object: fh(object), new_attributes: change.into(), guard };
        Ok(self.nfs(&arguments)?.obj_wcc.into())
    }

    /// LOOKUP: handle and attributes of the object.
    pub fn lookup(&mut self, directory: &[u8], name: &[u8]) -> Result<(Handle, Option<fattr3>), Error> {
        let found = self.nfs(&LOOKUP3args { what: diropargs(directory, name) })?;
        Ok((handle(found.object)?, option(found.obj_attributes)))
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
    pub fn access(&mut self, object: &[u8], access: u32) -> Result<ACCESS3resok, Error> {
        self.nfs(&ACCESS3args { object: fh(object), access })
    }

    /// READLINK.
    pub fn readlink(&mut self, link: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.nfs(&READLINK3args { symlink: fh(link) })?.data.0.into_owned())
    }

    /// READ.
    pub fn read(&mut self, file: &[u8], offset: u64, count: u32) -> Result<ReadData, Error> {
        Ok(self.nfs(&READ3args { file: fh(file), offset, count })?.try_into()?)
    }

    /// WRITE.
    pub fn write(&mut self, file: &[u8], offset: u64, data: &[u8], stable: stable_how) -> Result<WRITE3resok, Error> {
        self.nfs(&write_arguments(file, offset, data, stable))
    }

    /// CREATE.
    pub fn create(&mut self, directory: &[u8], name: &[u8], how: Creation) -> Result<CreatedObject, Error> {
        let how = match how {
            Creation::Unchecked(change) => createhow3::UNCHECKED(change.into()),
            Creation::Guarded(change) => createhow3::GUARDED(change.into()),
            Creation::Exclusive(verifier) => createhow3::EXCLUSIVE(createverf3(verifier)),
        };
        let made = self.nfs(&CREATE3args { where_: diropargs(directory, name), how })?;
        Ok(CreatedObject::new(made.obj, made.obj_attributes, made.dir_wcc)?)
    }

    /// Creates a file with mode 0644, or empties an existing one. Returns its handle.
    pub fn create_empty(&mut self, directory: &[u8], name: &[u8]) -> Result<Handle, Error> {
        let change = Change { mode: Some(0o644), size: Some(0), ..Change::default() };
        let made = self.create(directory, name, Creation::Unchecked(change))?;
        Ok(made.handle.ok_or(Malformed { what: "CREATE without a handle" })?)
    }

    /// MKDIR.
    pub fn mkdir(&mut self, directory: &[u8], name: &[u8], change: Change) -> Result<CreatedObject, Error> {
        let made = self.nfs(&MKDIR3args { where_: diropargs(directory, name), attributes: change.into() })?;
        Ok(CreatedObject::new(made.obj, made.obj_attributes, made.dir_wcc)?)
    }

    /// SYMLINK.
    pub fn symlink(
        &mut self,
        directory: &[u8],
        name: &[u8],
        target: &[u8],
        change: Change,
    ) -> Result<CreatedObject, Error> {
        let symlink = symlinkdata3 { symlink_attributes: change.into(), symlink_data: target.into() };
        let made = self.nfs(&SYMLINK3args { where_: diropargs(directory, name), symlink })?;
        Ok(CreatedObject::new(made.obj, made.obj_attributes, made.dir_wcc)?)
    }

    /// MKNOD.
    pub fn mknod(&mut self, directory: &[u8], name: &[u8], node: Node) -> Result<CreatedObject, Error> {
        let device = |change: Change, (specdata1, specdata2)| devicedata3 {
            dev_attributes: change.into(),
            spec: specdata3 { specdata1, specdata2 },
        };
        let what = match node {
            Node::Block(change, numbers) => packed(&mknoddata3::NF3BLK(device(change, numbers))),
            Node::Character(change, numbers) => packed(&mknoddata3::NF3CHR(device(change, numbers))),
            Node::Socket(change) => packed(&mknoddata3::NF3SOCK(change.into())),
            Node::Fifo(change) => packed(&mknoddata3::NF3FIFO(change.into())),
            Node::Other(kind) => packed(&kind),
        };
        let arguments = [packed(&diropargs(directory, name)), what].concat();
        let made = results::<MKNOD3args<'_>>(&self.call(NFS, MKNOD3args::PROCEDURE.0, &arguments)?)?;
        Ok(CreatedObject::new(made.obj, made.obj_attributes, made.dir_wcc)?)
    }

    /// REMOVE.
    pub fn remove(&mut self, directory: &[u8], name: &[u8]) -> Result<Consistency, Error> {
        Ok(self.nfs(&REMOVE3args { object: diropargs(directory, name) })?.dir_wcc.into())
    }

    /// RMDIR.
    pub fn rmdir(&mut self, directory: &[u8], name: &[u8]) -> Result<Consistency, Error> {
        Ok(self.nfs(&RMDIR3args { object: diropargs(directory, name) })?.dir_wcc.into())
    }

    /// RENAME: the source directory, then the target's.
    pub fn rename(&mut self, from: (&[u8], &[u8]), to: (&[u8], &[u8])) -> Result<(Consistency, Consistency), Error> {
        let renamed = self.nfs(&RENAME3args { from: diropargs(from.0, from.1), to: diropargs(to.0, to.1) })?;
        Ok((renamed.fromdir_wcc.into(), renamed.todir_wcc.into()))
    }

    /// LINK: the file's attributes and the directory.
    pub fn link(&mut self, file: &[u8], directory: &[u8], name: &[u8]) -> Result<(Option<fattr3>, Consistency), Error> {
        let linked = self.nfs(&LINK3args { file: fh(file), link: diropargs(directory, name) })?;
        Ok((option(linked.file_attributes), linked.linkdir_wcc.into()))
    }

    /// READDIR: one piece after `cookie`.
    pub fn readdir(&mut self, directory: &[u8], cookie: u64, verifier: [u8; 8], count: u32) -> Result<Listing, Error> {
        let arguments = READDIR3args { dir: fh(directory), cookie, cookieverf: cookieverf3(verifier), count };
        Ok(self.nfs(&arguments)?.into())
    }

    /// READDIRPLUS: one piece after `cookie`.
    pub fn readdirplus(
        &mut self,
        directory: &[u8],
        cookie: u64,
        verifier: [u8; 8],
        dircount: u32,
        maxcount: u32,
    ) -> Result<Listing, Error> {
        let (dir, cookieverf) = (fh(directory), cookieverf3(verifier));
        Ok(self.nfs(&READDIRPLUS3args { dir, cookie, cookieverf, dircount, maxcount })?.try_into()?)
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
    pub fn fsstat(&mut self, root: &[u8]) -> Result<FSSTAT3resok, Error> {
        self.nfs(&FSSTAT3args { fsroot: fh(root) })
    }

    /// FSINFO.
    pub fn fsinfo(&mut self, root: &[u8]) -> Result<FSINFO3resok, Error> {
        self.nfs(&FSINFO3args { fsroot: fh(root) })
    }

    /// PATHCONF.
    pub fn pathconf(&mut self, object: &[u8]) -> Result<PATHCONF3resok, Error> {
        self.nfs(&PATHCONF3args { object: fh(object) })
    }

    /// COMMIT of a range; a count of 0 extends to the end.
    pub fn commit(&mut self, file: &[u8], offset: u64, count: u32) -> Result<COMMIT3resok, Error> {
        self.nfs(&COMMIT3args { file: fh(file), offset, count })
    }
}
