//! The contents of replies as values.
//!
//! Owns: the types and their decoding (RFC 1813, sections 2.5 and 3.3).
//! Does not own: the results of each procedure (`procedures`).
//! Invariants: none beyond the protocol's.

use crate::wire::{Malformed, Results};

/// A file handle.
pub type Handle = Vec<u8>;

/// A file's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: u32,
    /// Nanoseconds in the second.
    pub nanos: u32,
}

/// `fattr3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in RFC 1813")]
pub struct Attributes {
    /// 1 regular file, 2 directory, 3 block device, 4 character device, 5 symbolic link, 6 socket, 7 fifo.
    pub kind: u32,
    pub mode: u32,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub used: u64,
    pub device: (u32, u32),
    pub fsid: u64,
    pub fileid: u64,
    pub atime: Time,
    pub mtime: Time,
    pub ctime: Time,
}

/// `wcc_data`: size, modification and change time before; attributes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Consistency {
    /// Right before the call.
    pub before: Option<(u64, Time, Time)>,
    /// Right after the call.
    pub after: Option<Attributes>,
}

/// The durability of written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// In the server's memory only.
    Unstable = 0,
    /// The data is durable.
    DataSync = 1,
    /// Data and attributes are durable.
    FileSync = 2,
}

/// READ's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadData {
    /// The file's attributes.
    pub attributes: Option<Attributes>,
    /// No bytes follow these.
    pub end_of_file: bool,
    /// The bytes.
    pub data: Vec<u8>,
}

/// WRITE's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file before and after.
    pub consistency: Consistency,
    /// The number of bytes written.
    pub count: u32,
    /// Their durability.
    pub stability: Stability,
    /// Changes when the server may have lost unstable data.
    pub verifier: [u8; 8],
}

/// COMMIT's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The file before and after.
    pub consistency: Consistency,
    /// As in [`Written`].
    pub verifier: [u8; 8],
}

/// The object made by CREATE, MKDIR, SYMLINK or MKNOD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedObject {
    /// Its handle.
    pub handle: Option<Handle>,
    /// Its attributes.
    pub attributes: Option<Attributes>,
    /// The directory before and after.
    pub directory: Consistency,
}

/// ACCESS's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The object's attributes.
    pub attributes: Option<Attributes>,
    /// The granted bits.
    pub granted: u32,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The object's number in its file system.
    pub fileid: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// The place after it at which a listing continues.
    pub cookie: u64,
    /// READDIRPLUS: its attributes.
    pub attributes: Option<Attributes>,
    /// READDIRPLUS: its handle.
    pub handle: Option<Handle>,
}

/// A piece of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The directory's attributes.
    pub directory: Option<Attributes>,
    /// For the next call.
    pub verifier: [u8; 8],
    /// The entries.
    pub entries: Vec<DirectoryEntry>,
    /// No entries follow these.
    pub end: bool,
    /// The size of the results in bytes, without the status.
    pub result_bytes: usize,
}

/// FSSTAT's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the server's volume")]
pub struct Space {
    pub attributes: Option<Attributes>,
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub available_bytes: u64,
    pub total_files: u64,
    pub free_files: u64,
    pub available_files: u64,
    pub invariant_seconds: u32,
}

/// FSINFO's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in RFC 1813")]
pub struct FileSystem {
    pub attributes: Option<Attributes>,
    pub read_max: u32,
    pub read_preferred: u32,
    pub read_multiple: u32,
    pub write_max: u32,
    pub write_preferred: u32,
    pub write_multiple: u32,
    pub directory_preferred: u32,
    pub file_size_max: u64,
    pub time_delta: Time,
    pub properties: u32,
}

/// PATHCONF's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in RFC 1813")]
pub struct Limits {
    pub attributes: Option<Attributes>,
    pub links_max: u32,
    pub name_max: u32,
    pub no_trunc: bool,
    pub chown_restricted: bool,
    pub case_insensitive: bool,
    pub case_preserving: bool,
}

impl Results<'_> {
    pub(crate) fn time(&mut self) -> Result<Time, Malformed> {
        Ok(Time { seconds: self.u32()?, nanos: self.u32()? })
    }

    pub(crate) fn attributes(&mut self) -> Result<Attributes, Malformed> {
        Ok(Attributes {
            kind: self.u32()?,
            mode: self.u32()?,
            links: self.u32()?,
            uid: self.u32()?,
            gid: self.u32()?,
            size: self.u64()?,
            used: self.u64()?,
            device: (self.u32()?, self.u32()?),
            fsid: self.u64()?,
            fileid: self.u64()?,
            atime: self.time()?,
            mtime: self.time()?,
            ctime: self.time()?,
        })
    }

    pub(crate) fn post_op(&mut self) -> Result<Option<Attributes>, Malformed> {
        self.optional(Self::attributes)
    }

    pub(crate) fn consistency(&mut self) -> Result<Consistency, Malformed> {
        let before = self.optional(|results| Ok((results.u64()?, results.time()?, results.time()?)))?;
        Ok(Consistency { before, after: self.post_op()? })
    }

    pub(crate) fn handle(&mut self) -> Result<Handle, Malformed> {
        const HANDLE_BYTES_MAX: usize = 64;
        let handle = self.opaque()?;
        if handle.len() > HANDLE_BYTES_MAX {
            return Err(Malformed { what: "a handle of more than 64 bytes" });
        }
        Ok(handle.to_vec())
    }

    pub(crate) fn stability(&mut self) -> Result<Stability, Malformed> {
        match self.u32()? {
            0 => Ok(Stability::Unstable),
            1 => Ok(Stability::DataSync),
            2 => Ok(Stability::FileSync),
            _ => Err(Malformed { what: "a stability above 2" }),
        }
    }

    pub(crate) fn made(&mut self) -> Result<CreatedObject, Malformed> {
        Ok(CreatedObject {
            handle: self.optional(Self::handle)?,
            attributes: self.post_op()?,
            directory: self.consistency()?,
        })
    }

    pub(crate) fn listing(&mut self, with_attributes: bool) -> Result<Listing, Malformed> {
        let result_bytes = self.0.len();
        let (directory, verifier) = (self.post_op()?, self.fixed()?);
        let mut entries = Vec::new();
        while self.bool()? {
            let mut entry = DirectoryEntry {
                fileid: self.u64()?,
                name: self.opaque()?.to_vec(),
                cookie: self.u64()?,
                attributes: None,
                handle: None,
            };
            if with_attributes {
                entry.attributes = self.post_op()?;
                entry.handle = self.optional(Self::handle)?;
            }
            entries.push(entry);
        }
        Ok(Listing { directory, verifier, entries, end: self.bool()?, result_bytes })
    }
}
