//! Calls as values, for clients that send many and read the answers later, in any order and over any transport.
//!
//! Owns: a call's number, arguments and answer, for the procedures that such clients need.
//! Does not own: the transport; the blocking calls (`procedures`), which share this codec.
//! Invariants: those of `procedures`.

use crate::connection::Error;
use crate::procedures::{check_status, read_arguments, read_failure, read_results, write_arguments, write_results};
use crate::results::{
    Attributes, Committed, Consistency, CreatedObject, Handle, Listing, ReadData, Stability, Written,
};
use crate::wire::{Fields, Results};

/// One call. A Create is GUARDED, with mode 0644.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in RFC 1813")]
pub enum Call {
    GetAttributes { object: Handle },
    SetMode { object: Handle, mode: u32 },
    SetSize { object: Handle, size: u64 },
    Lookup { directory: Handle, name: Vec<u8> },
    Read { file: Handle, offset: u64, count: u32 },
    Write { file: Handle, offset: u64, data: Vec<u8>, stability: Stability },
    Create { directory: Handle, name: Vec<u8> },
    Remove { directory: Handle, name: Vec<u8> },
    Rename { from: (Handle, Vec<u8>), to: (Handle, Vec<u8>) },
    Link { file: Handle, directory: Handle, name: Vec<u8> },
    List { directory: Handle, cookie: u64, verifier: [u8; 8], bytes: u32 },
    Commit { file: Handle },
}

/// The answer to a successful call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as their types")]
pub enum Answer {
    Attributes(Attributes),
    Found(Handle),
    Read(ReadData),
    Written(Written),
    Made(CreatedObject),
    Changed(Consistency),
    Renamed(Consistency, Consistency),
    Linked(Option<Attributes>, Consistency),
    Listing(Listing),
    Committed(Committed),
}

impl Call {
    /// The procedure's number and name.
    pub fn procedure(&self) -> (u32, &'static str) {
        match self {
            Self::GetAttributes { .. } => (1, "GETATTR"),
            Self::SetMode { .. } | Self::SetSize { .. } => (2, "SETATTR"),
            Self::Lookup { .. } => (3, "LOOKUP"),
            Self::Read { .. } => (6, "READ"),
            Self::Write { .. } => (7, "WRITE"),
            Self::Create { .. } => (8, "CREATE"),
            Self::Remove { .. } => (12, "REMOVE"),
            Self::Rename { .. } => (14, "RENAME"),
            Self::Link { .. } => (15, "LINK"),
            Self::List { .. } => (17, "READDIRPLUS"),
            Self::Commit { .. } => (21, "COMMIT"),
        }
    }

    /// The arguments as bytes.
    pub fn arguments(&self) -> Vec<u8> {
        let place = |directory: &Handle, name: &[u8]| Fields::default().opaque(directory).opaque(name);
        match self {
            Self::GetAttributes { object } => Fields::default().opaque(object),
            // sattr3: set one of mode, user, group, size and two times; then no guard.
            Self::SetMode { object, mode } => {
                Fields::default().opaque(object).u32(1).u32(*mode).fixed(&[0; 5 * 4]).u32(0)
            }
            Self::SetSize { object, size } => {
                Fields::default().opaque(object).fixed(&[0; 3 * 4]).u32(1).u64(*size).fixed(&[0; 2 * 4]).u32(0)
            }
            Self::Lookup { directory, name } | Self::Remove { directory, name } => place(directory, name),
            Self::Read { file, offset, count } => read_arguments(file, *offset, *count),
            Self::Write { file, offset, data, stability } => write_arguments(file, *offset, data, *stability),
            Self::Create { directory, name } => place(directory, name).u32(1).u32(1).u32(0o644).fixed(&[0; 5 * 4]),
            Self::Rename { from, to } => place(&from.0, &from.1).opaque(&to.0).opaque(&to.1),
            Self::Link { file, directory, name } => Fields::default().opaque(file).opaque(directory).opaque(name),
            Self::List { directory, cookie, verifier, bytes } => {
                Fields::default().opaque(directory).u64(*cookie).fixed(verifier).u32(*bytes).u32(*bytes)
            }
            Self::Commit { file } => Fields::default().opaque(file).u64(0).u32(0),
        }
        .0
    }

    /// Reads the results of this call.
    pub fn answer(&self, results: &[u8]) -> Result<Answer, Error> {
        let (number, name) = self.procedure();
        let mut results = Results(results);
        if let Err(failed) = check_status(name, &mut results) {
            read_failure(number, &mut results)?;
            results.end()?;
            return Err(failed);
        }
        let results = &mut results;
        let answer = match self {
            Self::GetAttributes { .. } => Answer::Attributes(results.attributes()?),
            Self::SetMode { .. } | Self::SetSize { .. } | Self::Remove { .. } => {
                Answer::Changed(results.consistency()?)
            }
            Self::Lookup { .. } => {
                let handle = results.handle()?;
                results.post_op()?;
                results.post_op()?;
                Answer::Found(handle)
            }
            Self::Read { .. } => Answer::Read(read_results(results)?),
            Self::Write { .. } => Answer::Written(write_results(results)?),
            Self::Create { .. } => Answer::Made(results.made()?),
            Self::Rename { .. } => Answer::Renamed(results.consistency()?, results.consistency()?),
            Self::Link { .. } => Answer::Linked(results.post_op()?, results.consistency()?),
            Self::List { .. } => Answer::Listing(results.listing(true)?),
            Self::Commit { .. } => {
                Answer::Committed(Committed { consistency: results.consistency()?, verifier: results.fixed()? })
            }
        };
        results.end()?;
        Ok(answer)
    }
}
