//! The contents of replies as values.
//!
//! Owns: what a caller needs of results that have several forms, with `Option` for the protocol's optional fields. The
//! other results are `nfs3_types`'.
//! Does not own: the procedures (`procedures`).
//! Invariants: none beyond the protocol's.

use nfs3_types::nfs3::{Nfs3Option, READ3resok, READDIR3resok, READDIRPLUS3resok, fattr3, nfs_fh3, wcc_attr, wcc_data};
use nfs3_types::xdr_codec::{Pack, Unpack};

use crate::wire::Malformed;

/// A file handle.
pub type Handle = Vec<u8>;

/// `wcc_data`: size, modification and change time before; attributes after.
#[derive(Clone, Debug, Default)]
pub struct Consistency {
    /// Right before the call.
    pub before: Option<wcc_attr>,
    /// Right after the call.
    pub after: Option<fattr3>,
}

/// READ's results.
#[derive(Clone, Debug)]
pub struct ReadData {
    /// The file's attributes.
    pub attributes: Option<fattr3>,
    /// No bytes follow these.
    pub end_of_file: bool,
    /// The bytes.
    pub data: Vec<u8>,
}

/// The object made by CREATE, MKDIR, SYMLINK or MKNOD.
#[derive(Clone, Debug)]
pub struct CreatedObject {
    /// Its handle.
    pub handle: Option<Handle>,
    /// Its attributes.
    pub attributes: Option<fattr3>,
    /// The directory before and after.
    pub directory: Consistency,
}

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct DirectoryEntry {
    /// The object's number in its file system.
    pub fileid: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// The place after it at which a listing continues.
    pub cookie: u64,
    /// READDIRPLUS: its attributes.
    pub attributes: Option<fattr3>,
    /// READDIRPLUS: its handle.
    pub handle: Option<Handle>,
}

/// A piece of a directory.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The directory's attributes.
    pub directory: Option<fattr3>,
    /// For the next call.
    pub verifier: [u8; 8],
    /// The entries.
    pub entries: Vec<DirectoryEntry>,
    /// No entries follow these.
    pub end: bool,
    /// The size of the results in bytes, without the status.
    pub result_bytes: usize,
}

/// The standard library's form of an optional field.
pub fn option<T: Pack + Unpack>(field: Nfs3Option<T>) -> Option<T> {
    match field {
        Nfs3Option::Some(value) => Some(value),
        Nfs3Option::None => None,
    }
}

/// The bytes of a handle.
pub(crate) fn handle(found: nfs_fh3) -> Result<Handle, Malformed> {
    if found.data.len() > nfs3_types::nfs3::NFS3_FHSIZE {
        return Err(Malformed { what: "a handle of more than 64 bytes" });
    }
    Ok(found.data.into_owned())
}

impl From<wcc_data> for Consistency {
    fn from(found: wcc_data) -> Self {
        Self { before: option(found.before), after: option(found.after) }
    }
}

impl CreatedObject {
    pub(crate) fn new(
        object: Nfs3Option<nfs_fh3>,
        attributes: Nfs3Option<fattr3>,
        directory: wcc_data,
    ) -> Result<Self, Malformed> {
        let handle = option(object).map(handle).transpose()?;
        Ok(Self { handle, attributes: option(attributes), directory: directory.into() })
    }
}

impl TryFrom<READ3resok<'_>> for ReadData {
    type Error = Malformed;

    fn try_from(found: READ3resok<'_>) -> Result<Self, Malformed> {
        if found.data.len() != found.count as usize {
            return Err(Malformed { what: "a count that is not the length of the data" });
        }
        let attributes = option(found.file_attributes);
        Ok(Self { attributes, end_of_file: found.eof, data: found.data.into_owned() })
    }
}

impl From<READDIR3resok<'_>> for Listing {
    fn from(found: READDIR3resok<'_>) -> Self {
        let result_bytes = found.packed_size();
        let entries = found.reply.entries.0.into_iter().map(|entry| DirectoryEntry {
            fileid: entry.fileid,
            name: entry.name.0.into_owned(),
            cookie: entry.cookie,
            attributes: None,
            handle: None,
        });
        Self {
            directory: option(found.dir_attributes),
            verifier: found.cookieverf.0,
            entries: entries.collect(),
            end: found.reply.eof,
            result_bytes,
        }
    }
}

impl TryFrom<READDIRPLUS3resok<'_>> for Listing {
    type Error = Malformed;

    fn try_from(found: READDIRPLUS3resok<'_>) -> Result<Self, Malformed> {
        let result_bytes = found.packed_size();
        let entries = found.reply.entries.0.into_iter().map(|entry| -> Result<_, Malformed> {
            Ok(DirectoryEntry {
                fileid: entry.fileid,
                name: entry.name.0.into_owned(),
                cookie: entry.cookie,
                attributes: option(entry.name_attributes),
                handle: option(entry.name_handle).map(handle).transpose()?,
            })
        });
        Ok(Self {
            directory: option(found.dir_attributes),
            verifier: found.cookieverf.0,
            entries: entries.collect::<Result<_, _>>()?,
            end: found.reply.eof,
            result_bytes,
        })
    }
}
