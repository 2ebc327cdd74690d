//! The RPC envelope (RFC 5531): a call's header and credentials, a reply's header.
//!
//! Owns: the refusals before any program sees a call; the claim in a credential.
//! Does not own: programs and procedures, record marks.
//! Invariants: a credential is read only within its own bytes; a header needs no allocation.

use afflux_frontend::{CallerClaim, GROUPS_MAX};

use crate::wire::xdr::{Reader, Writer, XdrError};

const CALL: u32 = 0;
const REPLY: u32 = 1;
const RPC_VERSION: u32 = 2;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
/// The flavour of the call that asks for TLS (RFC 9289).
const AUTH_TLS: u32 = 7;
/// The reply's verifier if the client shall begin TLS.
const START_TLS: &[u8; 8] = b"STARTTLS";
/// Most bytes of a credential or a verifier (RFC 5531, section 8.2).
const AUTH_BYTES_MAX: usize = 400;
const MACHINE_NAME_BYTES_MAX: usize = 255;

/// The accepted flavours of credentials, in the order in which MOUNT offers them.
pub(crate) const FLAVOURS: [u32; 2] = [AUTH_SYS, AUTH_NONE];

/// The header of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number that the reply must repeat.
    pub xid: u32,
    /// The program called.
    pub program: u32,
    /// Version of the RPC program.
    pub version: u32,
    /// Procedure number within the program.
    pub procedure: u32,
    /// The range of the credential in the record, flavour and length included: see [`claim`].
    pub credential: (usize, usize),
    /// The start of the procedure's arguments in the record.
    pub arguments_at: usize,
}

/// Why a call was answered without being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A version of RPC other than 2.
    RpcMismatch,
    /// A flavour of credentials that is not accepted.
    RejectedCredential,
    /// A credential whose bytes do not have its flavour's form.
    BadCredential,
    /// A credential that proves too little: its peer is not admitted.
    WeakCredential,
    /// No such program here.
    ProgramUnavailable,
    /// The server has other versions of the program.
    ProgramMismatch {
        /// The server's lowest version.
        low: u32,
        /// The server's highest version.
        high: u32,
    },
    /// The program has no such procedure.
    ProcedureUnavailable,
    /// The arguments cannot be read.
    GarbageArguments,
}

/// The kinds of a received record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A call that the server can answer.
    Call(Call),
    /// A call that asks for TLS. Its credential and verifier are empty, as they must be.
    TlsProbe(Call),
    /// A call that must be refused.
    Refused {
        /// The number that the reply must repeat.
        xid: u32,
        /// Why the server does not run the call.
        refusal: Refusal,
    },
    /// A reply to the call with this number. The server has few calls: most are strays.
    Reply(u32),
    /// A record that is too short for a header.
    Nothing,
}

/// Reads the header of the call in `record`.
pub fn parse(record: &[u8]) -> Incoming {
    let mut reader = Reader::new(record);
    let (Ok(xid), Ok(direction)) = (reader.u32(), reader.u32()) else {
        return Incoming::Nothing;
    };
    if direction != CALL {
        return Incoming::Reply(xid);
    }
    match parse_call(xid, &mut reader) {
        Ok(Ok(call)) => Incoming::Call(call),
        Ok(Err(Refusal::RejectedCredential)) => tls_probe(record, xid),
        Ok(Err(refusal)) => Incoming::Refused { xid, refusal },
        Err(_) => Incoming::Refused { xid, refusal: Refusal::GarbageArguments },
    }
}

/// A call with a flavour of credentials that carries nobody out: it asks for TLS, or is refused.
#[cold]
fn tls_probe(record: &[u8], xid: u32) -> Incoming {
    const CREDENTIAL_AT: usize = 24;
    const ARGUMENTS_AT: usize = CREDENTIAL_AT + 16;
    let word = |at: usize| record.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
    if word(CREDENTIAL_AT) != Some(AUTH_TLS) {
        return Incoming::Refused { xid, refusal: Refusal::RejectedCredential };
    }
    let is_empty = [4, 8, 12].map(|at| word(CREDENTIAL_AT + at)) == [Some(0), Some(AUTH_NONE), Some(0)];
    let (Some(program), Some(version), Some(procedure), true) = (word(12), word(16), word(20), is_empty) else {
        return Incoming::Refused { xid, refusal: Refusal::BadCredential };
    };
    let credential = (CREDENTIAL_AT, CREDENTIAL_AT + 8);
    Incoming::TlsProbe(Call { xid, program, version, procedure, credential, arguments_at: ARGUMENTS_AT })
}

fn parse_call(xid: u32, reader: &mut Reader<'_>) -> Result<Result<Call, Refusal>, XdrError> {
    if reader.u32()? != RPC_VERSION {
        return Ok(Err(Refusal::RpcMismatch));
    }
    let (program, version, procedure) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let credential_at = reader.position();
    let flavour = reader.u32()?;
    match reader.opaque(AUTH_BYTES_MAX) {
        Err(XdrError::TooLong { .. }) => return Ok(Err(Refusal::BadCredential)),
        other => other?,
    };
    let credential = (credential_at, reader.position());
    let _verifier_flavour = reader.u32()?;
    let _verifier = reader.opaque(AUTH_BYTES_MAX)?;
    if !FLAVOURS.contains(&flavour) {
        return Ok(Err(Refusal::RejectedCredential));
    }
    Ok(Ok(Call { xid, program, version, procedure, credential, arguments_at: reader.position() }))
}

/// The user that a credential claims; `credential` has the bytes in the range [`Call::credential`].
pub fn claim(credential: &[u8]) -> Result<CallerClaim, Refusal> {
    let mut reader = Reader::new(credential);
    let flavour = reader.u32().map_err(|_| Refusal::BadCredential)?;
    let body = reader.opaque(AUTH_BYTES_MAX).map_err(|_| Refusal::BadCredential)?;
    match flavour {
        AUTH_NONE => Ok(CallerClaim::Anonymous),
        AUTH_SYS => parse_user(body).map_err(|_| Refusal::BadCredential),
        _ => Err(Refusal::RejectedCredential),
    }
}

fn parse_user(credential: &[u8]) -> Result<CallerClaim, XdrError> {
    let mut reader = Reader::new(credential);
    let _stamp = reader.u32()?;
    let _machine = reader.opaque(MACHINE_NAME_BYTES_MAX)?;
    let (uid, gid) = (reader.u32()?, reader.u32()?);
    let group_count = reader.u32()? as usize;
    let mut groups = [0; GROUPS_MAX];
    let listed = groups.get_mut(..group_count).ok_or(XdrError::TooLong { len: group_count, max: GROUPS_MAX })?;
    for group in listed {
        *group = reader.u32()?;
    }
    Ok(CallerClaim::User { uid, gid, groups, group_count: group_count as u8 })
}

/// Bytes of the header of a reply whose results follow.
pub(crate) const ACCEPTED_BYTES: usize = 24;

/// The header of a reply whose results follow.
pub(crate) fn accepted(xid: u32) -> [u8; ACCEPTED_BYTES] {
    // Accepted, a verifier of AUTH_NONE without bytes, success: all zero.
    let mut header = [0; ACCEPTED_BYTES];
    header[..4].copy_from_slice(&xid.to_be_bytes());
    header[7] = REPLY as u8;
    header
}

/// Writes a whole reply that asks the client to begin TLS.
pub(crate) fn write_start_tls(writer: &mut Writer, xid: u32) {
    [xid, REPLY, 0, AUTH_NONE].iter().for_each(|&word| writer.u32(word));
    writer.opaque(START_TLS);
    writer.u32(0);
}

/// Writes a whole reply with the reason why a call is not run.
pub(crate) fn write_refusal(writer: &mut Writer, xid: u32, refusal: Refusal) {
    const ACCEPTED: u32 = 0;
    const DENIED: u32 = 1;
    let denied: &[u32] = match refusal {
        Refusal::RpcMismatch => &[0, RPC_VERSION, RPC_VERSION],
        Refusal::BadCredential => &[1, 1],
        Refusal::RejectedCredential => &[1, 2],
        Refusal::WeakCredential => &[1, 5],
        _ => &[],
    };
    writer.u32(xid);
    writer.u32(REPLY);
    if !denied.is_empty() {
        writer.u32(DENIED);
        denied.iter().for_each(|&word| writer.u32(word));
        return;
    }
    writer.u32(ACCEPTED);
    writer.u32(AUTH_NONE);
    writer.u32(0);
    match refusal {
        Refusal::ProgramUnavailable => writer.u32(1),
        Refusal::ProgramMismatch { low, high } => [2, low, high].iter().for_each(|&word| writer.u32(word)),
        Refusal::ProcedureUnavailable => writer.u32(3),
        _ => writer.u32(4),
    }
}

#[cfg(test)]
mod tests;
