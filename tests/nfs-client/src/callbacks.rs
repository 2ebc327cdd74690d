//! Calls of a server to a client of version 4, over the client's own connection.
//!
//! Owns: their bytes and those of the answers.
//! Does not own: the answer that a client gives (`Client::answer_calls`).
//! Invariants: a call that this client does not know is an error and never a panic.

use crate::wire::{Fields, Malformed, Results, Stateid};

const CB_RECALL: u32 = 4;
const CB_SEQUENCE: u32 = 11;

/// A call of the server to a client: CB_SEQUENCE, and perhaps CB_RECALL.
#[derive(Debug)]
pub struct Callback {
    xid: u32,
    /// The flavour and the bytes of the credential.
    pub credential: (u32, Vec<u8>),
    /// CB_SEQUENCE's session, number and slot.
    sequence: Vec<u8>,
    /// The stateid and the handle of CB_RECALL.
    pub recalled: Option<(Stateid, Vec<u8>)>,
}

/// Whether a record is a call of the server.
pub fn is_callback(record: &[u8]) -> bool {
    record.get(4..8) == Some(&[0; 4])
}

impl Callback {
    /// Reads a record without its mark.
    pub fn read(record: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Results(record);
        let xid = fields.u32()?;
        // The kind, the version of RPC, program, version and procedure.
        for _ in 0..5 {
            fields.u32()?;
        }
        let credential = (fields.u32()?, fields.opaque()?.to_vec());
        let _verifier = (fields.u32()?, fields.opaque()?);
        let _tag = fields.opaque()?;
        // The minor version, and the identification of 4.0.
        let _versions = [fields.u32()?, fields.u32()?];
        let count = fields.u32()?;
        if fields.u32()? != CB_SEQUENCE {
            return Err(Malformed { what: "a call of the server without CB_SEQUENCE" });
        }
        let sequence: [u8; 20] = fields.fixed()?;
        // The slot, the highest slot, whether to cache, and an empty list.
        for _ in 0..4 {
            fields.u32()?;
        }
        let mut recalled = None;
        if count == 2 {
            if fields.u32()? != CB_RECALL {
                return Err(Malformed { what: "a call of the server that is no CB_RECALL" });
            }
            let stateid = (fields.u32()?, fields.fixed()?);
            let _truncates = fields.u32()?;
            recalled = Some((stateid, fields.opaque()?.to_vec()));
        }
        Ok(Self { xid, credential, sequence: sequence.to_vec(), recalled })
    }

    /// The answer, as a record without its mark: with the status of CB_RECALL if there was one.
    pub fn answer(&self, status: u32) -> Vec<u8> {
        let head = Fields::default().u32(self.xid).u32(1).u32(0).u32(0).u32(0).u32(0);
        let count = 1 + u32::from(self.recalled.is_some());
        let done = head.u32(status).u32(0).u32(count).u32(CB_SEQUENCE).u32(0);
        let done = done.fixed(&self.sequence).u32(0).u32(0).u32(0);
        if self.recalled.is_some() { done.u32(CB_RECALL).u32(status).0 } else { done.0 }
    }
}
