//! Calls as values, for clients that send many and read the answers later, in any order and over any transport.
//!
//! Owns: a call's number, arguments and answer, for the procedures that such clients need.
//! Does not own: the transport; the blocking calls (`procedures`), which share this codec.
//! Invariants: those of `procedures`.

use nfs3_types::nfs3::*;

use crate::connection::Error;
use crate::procedures::{Arguments, Change, diropargs, fh, packed, results, write_arguments};
use crate::results::{Consistency, CreatedObject, Handle, Listing, ReadData, handle, option};

/// One call. A Create is GUARDED, with mode 0644.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in RFC 1813")]
pub enum Call {
    GetAttributes { object: Handle },
    SetMode { object: Handle, mode: u32 },
    SetSize { object: Handle, size: u64 },
    Lookup { directory: Handle, name: Vec<u8> },
    Read { file: Handle, offset: u64, count: u32 },
    Write { file: Handle, offset: u64, data: Vec<u8>, stability: stable_how },
    Create { directory: Handle, name: Vec<u8> },
    Remove { directory: Handle, name: Vec<u8> },
    Rename { from: (Handle, Vec<u8>), to: (Handle, Vec<u8>) },
    Link { file: Handle, directory: Handle, name: Vec<u8> },
    List { directory: Handle, cookie: u64, verifier: [u8; 8], bytes: u32 },
    Commit { file: Handle },
}

/// The answer to a successful call.
#[derive(Debug)]
#[allow(missing_docs, reason = "named as their types")]
pub enum Answer {
    Attributes(fattr3),
    Found(Handle),
    Read(ReadData),
    Written(WRITE3resok),
    Made(CreatedObject),
    Changed(Consistency),
    Renamed(Consistency, Consistency),
    Linked(Option<fattr3>, Consistency),
    Listing(Listing),
    Committed(COMMIT3resok),
}

impl Call {
    /// The procedure's number and name.
    pub fn procedure(&self) -> (u32, &'static str) {
        match self {
            Self::GetAttributes { .. } => GETATTR3args::PROCEDURE,
            Self::SetMode { .. } | Self::SetSize { .. } => SETATTR3args::PROCEDURE,
            Self::Lookup { .. } => LOOKUP3args::PROCEDURE,
            Self::Read { .. } => READ3args::PROCEDURE,
            Self::Write { .. } => WRITE3args::PROCEDURE,
            Self::Create { .. } => CREATE3args::PROCEDURE,
            Self::Remove { .. } => REMOVE3args::PROCEDURE,
            Self::Rename { .. } => RENAME3args::PROCEDURE,
            Self::Link { .. } => LINK3args::PROCEDURE,
            Self::List { .. } => READDIRPLUS3args::PROCEDURE,
            Self::Commit { .. } => COMMIT3args::PROCEDURE,
        }
    }

    /// The arguments as bytes.
    pub fn arguments(&self) -> Vec<u8> {
        let change = |object: &Handle, change: Change| {
            packed(&SETATTR3args { object: fh(object), new_attributes: change.into(), guard: Nfs3Option::None })
        };
        match self {
            Self::GetAttributes { object } => packed(&GETATTR3args { object: fh(object) }),
            Self::SetMode { object, mode } => change(object, Change { mode: Some(*mode), ..Change::default() }),
            Self::SetSize { object, size } => change(object, Change { size: Some(*size), ..Change::default() }),
            Self::Lookup { directory, name } | Self::Remove { directory, name } => packed(&diropargs(directory, name)),
            Self::Read { file, offset, count } => packed(&READ3args { file: fh(file), offset: *offset, count: *count }),
            Self::Write { file, offset, data, stability } => packed(&write_arguments(file, *offset, data, *stability)),
            Self::Create { directory, name } => {
                let change = Change { mode: Some(0o644), ..Change::default() };
                let how = createhow3::GUARDED(change.into());
                packed(&CREATE3args { where_: diropargs(directory, name), how })
            }
            Self::Rename { from, to } => {
                packed(&RENAME3args { from: diropargs(&from.0, &from.1), to: diropargs(&to.0, &to.1) })
            }
            Self::Link { file, directory, name } => {
                packed(&LINK3args { file: fh(file), link: diropargs(directory, name) })
            }
            Self::List { directory, cookie, verifier, bytes } => {
                let (dir, cookieverf) = (fh(directory), cookieverf3(*verifier));
                packed(&READDIRPLUS3args { dir, cookie: *cookie, cookieverf, dircount: *bytes, maxcount: *bytes })
            }
            Self::Commit { file } => packed(&COMMIT3args { file: fh(file), offset: 0, count: 0 }),
        }
    }

    /// Reads the results of this call.
    pub fn answer(&self, bytes: &[u8]) -> Result<Answer, Error> {
        Ok(match self {
            Self::GetAttributes { .. } => Answer::Attributes(results::<GETATTR3args>(bytes)?.obj_attributes),
            Self::SetMode { .. } | Self::SetSize { .. } => {
                Answer::Changed(results::<SETATTR3args>(bytes)?.obj_wcc.into())
            }
            Self::Remove { .. } => Answer::Changed(results::<REMOVE3args<'_>>(bytes)?.dir_wcc.into()),
            Self::Lookup { .. } => Answer::Found(handle(results::<LOOKUP3args<'_>>(bytes)?.object)?),
            Self::Read { .. } => Answer::Read(results::<READ3args>(bytes)?.try_into()?),
            Self::Write { .. } => Answer::Written(results::<WRITE3args<'_>>(bytes)?),
            Self::Create { .. } => {
                let made = results::<CREATE3args<'_>>(bytes)?;
                Answer::Made(CreatedObject::new(made.obj, made.obj_attributes, made.dir_wcc)?)
            }
            Self::Rename { .. } => {
                let renamed = results::<RENAME3args<'_, '_>>(bytes)?;
                Answer::Renamed(renamed.fromdir_wcc.into(), renamed.todir_wcc.into())
            }
            Self::Link { .. } => {
                let linked = results::<LINK3args<'_>>(bytes)?;
                Answer::Linked(option(linked.file_attributes), linked.linkdir_wcc.into())
            }
            Self::List { .. } => Answer::Listing(results::<READDIRPLUS3args>(bytes)?.try_into()?),
            Self::Commit { .. } => Answer::Committed(results::<COMMIT3args>(bytes)?),
        })
    }
}
