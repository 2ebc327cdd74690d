//! EXCHANGE_ID, CREATE_SESSION, SEQUENCE and their kin: operations on the state alone.
//!
//! Owns: their results; which of them need no session.
//! Does not own: the rules of clients, sessions and slots (`state`).
//! Invariants: nothing here waits for a disk, so that a client's lease is renewed however busy the disks are. A client
//! answers its own party alone.

use std::hash::Hasher;

use afflux_frontend::EarlierProgress;
use afflux_volume::{Platform, Volume};
use siphasher::sip::SipHasher13;

use super::super::client_state::StateTable;
use super::super::codec::{ArgOp, CreateSessionArgs, ExchangeIdArgs, SequenceArgs, stateid_at};
use super::super::compound::{Compound, TakenSlot};
use super::super::opnum;
use super::super::service::session_id;
use super::super::state::clients::{CreateSessionStep, ExchangeIdClient};
use super::super::state::slots::{Begun, SlotCall};
use super::super::state::stateids::{Stateid, StateidKind};
use super::opens::other;
use crate::status::NfsStatus;
use crate::v4::state::persisted::owner_word;
use crate::v4::state::slots::{ChannelAttrs, OPERATIONS_MAX, SessionId};
use crate::wire::record::RECORD_BYTES_MAX;
use crate::wire::reply::Draft;
use crate::wire::xdr::Writer;

/// Bytes of the reply to a SEQUENCE alone.
const SEQUENCE_BYTES: u32 = 80;
/// Bytes of the result of a SEQUENCE behind its status.
const SEQUENCE_RESULT_BYTES: usize = 36;

/// The kind of compound that a SEQUENCE begins.
pub(in super::super) enum Sequenced {
    /// The rest is to be carried out.
    New,
    /// It has run, with this reply.
    Again(Vec<u8>),
}

/// Whether an operation may be a compound by itself, without a session.
pub(in super::super) fn may_stand_alone(operation: u32) -> bool {
    matches!(
        operation,
        opnum::EXCHANGE_ID
            | opnum::CREATE_SESSION
            | opnum::DESTROY_SESSION
            | opnum::BIND_CONN_TO_SESSION
            | opnum::DESTROY_CLIENTID
    )
}

/// Takes the compound's slot, or finds its reply.
pub(in super::super) fn sequence<P: Platform>(
    compound: &mut Compound<P>,
    record: &[u8],
    draft: &mut Draft,
    arguments: &SequenceArgs,
) -> Result<Sequenced, NfsStatus> {
    compound.join(&arguments.sessionid)?;
    let Some(session) = &compound.session else { return Err(NfsStatus::Badsession) };
    // All state of the client counts for the party that made the session.
    compound.speaker.0 = session.party;
    if compound.count() > session.channel.maxoperations {
        return Err(NfsStatus::TooManyOps);
    }
    if compound.record_bytes() > session.channel.maxrequestsize as usize {
        return Err(NfsStatus::ReqTooBig);
    }
    if arguments.cachethis && session.channel.maxresponsesize_cached < SEQUENCE_BYTES {
        return Err(NfsStatus::RepTooBigToCache);
    }
    if !session.lease.try_renew(compound.now_ns) {
        // It was silent for too long, and conflicted with another client.
        compound.service.end_revoked();
        return Err(NfsStatus::Badsession);
    }
    let call_hash = if arguments.cachethis { hash(&arguments.sessionid, compound.repeated(record)) } else { 0 };
    let SequenceArgs { sequenceid, slotid, highest_slotid, cachethis, .. } = *arguments;
    let key = compound.service.journal.as_ref().filter(|_| cachethis).map(|_| {
        let mut hasher = SipHasher13::new_with_key(&compound.service.hash_key);
        hasher.write(&arguments.sessionid);
        hasher.write_u32(slotid);
        hasher.write_u32(sequenceid);
        let call = hasher.finish();
        let owner = owner_word(&compound.service.hash_key, compound.speaker.0, &arguments.sessionid, slotid);
        [call, call_hash, owner]
    });
    let (begun, slots) = {
        let mut slots = session.slots();
        (slots.begin(&SlotCall { slotid, sequenceid, highest_slotid, call_hash })?, slots.count())
    };
    match (begun, &compound.service.journal, key) {
        (Begun::Again(reply), ..) => return Ok(Sequenced::Again(reply)),
        (Begun::Inherited, Some(journal), Some(key)) => {
            if let EarlierProgress::Answered { bytes, .. } = journal.earlier(&key) {
                session.slots().end(slotid, Some(|into: &mut Vec<u8>| into.extend_from_slice(&bytes)));
                return Ok(Sequenced::Again(bytes));
            }
        }
        _ => {}
    }
    const SEQ4_STATUS_RECALLABLE_STATE_REVOKED: u32 = 0x40;
    const SEQ4_STATUS_CB_PATH_DOWN: u32 = 0x200;
    const BACK_CHANNEL_FAULT: u32 = 0x400;
    let back = &session.back;
    let flags = if back.is_down() { SEQ4_STATUS_CB_PATH_DOWN } else { 0 }
        | if back.is_faulty() { BACK_CHANNEL_FAULT } else { 0 }
        | if session.lease.has_revoked_delegations() { SEQ4_STATUS_RECALLABLE_STATE_REVOKED } else { 0 };
    compound.taken = Some(TakenSlot::new(slotid, cachethis, key));
    let mut result = [0; SEQUENCE_RESULT_BYTES];
    let (id, words) = result.split_at_mut(arguments.sessionid.len());
    id.copy_from_slice(&arguments.sessionid);
    // The highest slot here, and the one that the client should use at most: all.
    let shown = [sequenceid, slotid, slots - 1, slots - 1, flags];
    words.copy_from_slice(shown.map(u32::to_be_bytes).as_flattened());
    draft.writer.raw(&result);
    Ok(Sequenced::New)
}

/// A hash of a call's arguments, to tell a repetition from another call with the same slot and number. Never 0.
fn hash(session: &SessionId, arguments: &[u8]) -> u64 {
    const COMPARED_BYTES_MAX: usize = 4096;
    let mut hasher = SipHasher13::new_with_key(session);
    hasher.write(&arguments[..arguments.len().min(COMPARED_BYTES_MAX)]);
    hasher.write_usize(arguments.len());
    hasher.finish().max(1)
}

/// Carries out an operation that is a compound by itself.
pub(in super::super) fn alone<P: Platform>(
    compound: &mut Compound<P>,
    volume: &Volume<P>,
    record: &[u8],
    draft: &mut Draft,
    operation: &ArgOp,
) -> Result<(), NfsStatus> {
    match *operation {
        ArgOp::BindConnToSession { session, direction } => bind_conn_to_session(compound, draft, &session, direction),
        _ => within(compound, volume, record, draft, operation),
    }
}

/// Carries out an operation in a session, or one that needs none.
pub(super) fn within<P: Platform>(
    compound: &mut Compound<P>,
    volume: &Volume<P>,
    record: &[u8],
    draft: &mut Draft,
    operation: &ArgOp,
) -> Result<(), NfsStatus> {
    match *operation {
        ArgOp::ExchangeId(ref arguments) => exchange_id(compound, record, draft, arguments),
        ArgOp::CreateSession(ref arguments) => create_session(compound, volume, draft, arguments),
        ArgOp::DestroySession(id) => destroy_session(compound, &id),
        ArgOp::DestroyClientid(clientid) => destroy_clientid(compound, clientid),
        ArgOp::FreeStateid(stateid) => super::locks::free_stateid(compound, stateid),
        ArgOp::TestStateid { count, at } => test_stateid(compound, record, draft, count, at),
        ArgOp::ReclaimComplete { one_file_system } => {
            let clientid = compound.clientid()?;
            if one_file_system {
                compound.object()?;
                return Ok(());
            }
            let has_reclaimed = compound.service.state().clients.has_reclaimed(clientid);
            if !has_reclaimed {
                compound.note_end();
            }
            if compound.service.delegates() {
                // The first OPEN then knows whether the client can be called.
                compound.session().map(|session| session.back.try_prove());
            }
            compound.ended_before(compound.service.reclaim_complete(clientid))
        }
        ArgOp::BackchannelCtl(calling) => {
            let session = compound.session().ok_or(NfsStatus::OpNotInSession)?;
            session.back.call_by(calling.ok_or(NfsStatus::Notsupp)?, compound.minor);
            compound.service.state().sessions.keep(session);
            Ok(())
        }
        // Any other operation must be the only one of its compound.
        _ => Err(NfsStatus::NotOnlyOp),
    }
}

mod flag {
    pub(super) const ALL: u32 = 0x4007_0103;
    /// Of 4.2 alone.
    pub(super) const EXCHGID4_FLAG_SUPP_FENCE_OPS: u32 = 4;
    pub(super) const EXCHGID4_FLAG_UPD_CONFIRMED_REC_A: u32 = 0x4000_0000;
    pub(super) const EXCHGID4_FLAG_CONFIRMED_R: u32 = 0x8000_0000;
    pub(super) const EXCHGID4_FLAG_USE_NON_PNFS: u32 = 0x0001_0000;
}

fn exchange_id<P: Platform>(
    compound: &mut Compound<P>,
    record: &[u8],
    draft: &mut Draft,
    arguments: &ExchangeIdArgs,
) -> Result<(), NfsStatus> {
    let known = flag::ALL | if compound.minor >= 2 { flag::EXCHGID4_FLAG_SUPP_FENCE_OPS } else { 0 };
    if arguments.flags & !known != 0 || arguments.state_protect != 0 {
        return Err(NfsStatus::Inval);
    }
    let owner = &record[arguments.client_owner.range()];
    let updates = arguments.flags & flag::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A != 0;
    let who = ExchangeIdClient { owner, verifier: arguments.verifier, updates };
    let service = &compound.service;
    let mut gone = Vec::new();
    let mut state = service.state();
    let state_now = &mut *state;
    let (sessions, opens, delegations) = (&state_now.sessions, &state_now.opens, &state_now.delegations);
    let is_idle = |id| !sessions.has_any(id) && !opens.has_any(id) && !delegations.has_any(id);
    let known = state_now.clients.exchange_id(who, compound.speaker, compound.now_ns, is_idle, &mut gone);
    let holders = state.end_all(&gone, service.locks());
    service.keep_list(&mut state);
    state.keep_server();
    drop(state);
    drop(holders);
    let known = known?;
    let writer = &mut draft.writer;
    writer.u64(known.clientid);
    writer.u32(known.sequenceid);
    writer.u32(flag::EXCHGID4_FLAG_USE_NON_PNFS | if known.is_confirmed { flag::EXCHGID4_FLAG_CONFIRMED_R } else { 0 });
    // State is not protected by more than the party and the user.
    writer.u32(0);
    writer.u64(0);
    writer.opaque(&service.name);
    writer.opaque(&service.name);
    // Nothing about this implementation.
    writer.u32(0);
    Ok(())
}

fn create_session<P: Platform>(
    compound: &mut Compound<P>,
    volume: &Volume<P>,
    draft: &mut Draft,
    arguments: &CreateSessionArgs,
) -> Result<(), NfsStatus> {
    const CREATE_SESSION4_FLAG_PERSIST: u32 = 1;
    const CREATE_SESSION4_FLAG_CONN_BACK_CHAN: u32 = 2;
    const CREATE_SESSION4_FLAG_CONN_RDMA: u32 = 4;
    if arguments.flags
        & !(CREATE_SESSION4_FLAG_PERSIST | CREATE_SESSION4_FLAG_CONN_BACK_CHAN | CREATE_SESSION4_FLAG_CONN_RDMA)
        != 0
    {
        return Err(NfsStatus::Inval);
    }
    let fore = arguments.fore.granted(RECORD_BYTES_MAX as u32)?;
    arguments.back.check_back()?;
    let (id, (party, _)) = (session_id(volume), compound.speaker);
    let (clientid, at, mut gone, mut held) = (arguments.clientid, draft.mark(), Vec::new(), Vec::new());
    let mut state = compound.service.state();
    if let CreateSessionStep::Again(results) =
        state.clients.create_session(clientid, compound.speaker, arguments.sequenceid, compound.now_ns)?
    {
        draft.writer.raw(&results);
        return Ok(());
    }
    let lease = state.clients.lease(clientid).cloned().ok_or(NfsStatus::StaleClientid)?;
    let (locks, now_ns) = (compound.service.locks(), compound.now_ns);
    let evicted = state.evict_for(party, StateTable::Sessions, locks, now_ns, &mut held, |state, _| {
        state.clients.check_quota(clientid).and_then(|()| state.sessions.check_quota(party))
    });
    compound.service.keep_list(&mut state);
    evicted?;
    let session = state.sessions.make(id, clientid, party, fore, lease);
    let has_back_channel = arguments.flags & CREATE_SESSION4_FLAG_CONN_BACK_CHAN != 0 && arguments.calling.is_some();
    session.back.call_by(arguments.calling.unwrap_or_default(), compound.minor);
    if has_back_channel {
        session.back.bind(&compound.outbox);
    }
    state.sessions.keep(&session);
    state.clients.confirm(clientid, compound.now_ns, &mut gone);
    let writer = &mut draft.writer;
    writer.raw(&id);
    writer.u32(arguments.sequenceid);
    writer.u32(if has_back_channel { CREATE_SESSION4_FLAG_CONN_BACK_CHAN } else { 0 });
    write_channel(writer, &fore);
    write_channel(writer, &arguments.back);
    state.clients.created(clientid, draft.since(at));
    held.extend(state.end_all(&gone, compound.service.locks()));
    compound.service.keep_list(&mut state);
    drop(state);
    drop(held);
    Ok(())
}

fn write_channel(writer: &mut Writer, channel: &ChannelAttrs) {
    let words = [
        0,
        channel.maxrequestsize,
        channel.maxresponsesize,
        channel.maxresponsesize_cached,
        channel.maxoperations.min(OPERATIONS_MAX),
        channel.maxrequests,
        0,
    ];
    writer.words(words);
}

fn destroy_session<P: Platform>(compound: &mut Compound<P>, id: &SessionId) -> Result<(), NfsStatus> {
    let is_own = compound.session().is_some_and(|session| session.id == *id);
    if is_own && !compound.is_last() {
        return Err(NfsStatus::NotOnlyOp);
    }
    let mut state = compound.service.state();
    state.sessions.find(id, compound.speaker.0)?;
    state.sessions.end(id);
    Ok(())
}

fn destroy_clientid<P: Platform>(compound: &mut Compound<P>, clientid: u64) -> Result<(), NfsStatus> {
    let mut state = compound.service.state();
    let is_idle = state.is_idle(clientid);
    state.clients.destroy_clientid(clientid, compound.speaker.0, is_idle)?;
    state.end_all(&[clientid], compound.service.locks());
    compound.service.keep_list(&mut state);
    Ok(())
}

fn bind_conn_to_session<P: Platform>(
    compound: &mut Compound<P>,
    draft: &mut Draft,
    id: &SessionId,
    direction: u32,
) -> Result<(), NfsStatus> {
    const CDFC4_FORE: u32 = 1;
    const CDFC4_BACK: u32 = 2;
    const CDFC4_FORE_OR_BOTH: u32 = 3;
    const CDFC4_BACK_OR_BOTH: u32 = 7;
    let bound = match direction {
        CDFC4_FORE | CDFC4_BACK => direction,
        CDFC4_FORE_OR_BOTH | CDFC4_BACK_OR_BOTH => CDFC4_FORE | CDFC4_BACK,
        _ => return Err(NfsStatus::Badxdr),
    };
    let session = compound.service.state().sessions.find(id, compound.speaker.0)?;
    if !session.lease.try_renew(compound.now_ns) {
        return Err(NfsStatus::Badsession);
    }
    if bound & CDFC4_BACK != 0 {
        session.back.bind(&compound.outbox);
        compound.service.state().sessions.keep(&session);
    }
    draft.writer.raw(id);
    draft.writer.u32(bound);
    draft.writer.bool(false);
    Ok(())
}

/// The state of one stateid of the compound's client.
fn state_of<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(), NfsStatus> {
    let (other, seqid) = other(compound, stateid)?;
    let (clientid, state) = (compound.clientid()?, compound.service.state());
    match other {
        other if other.is_of_locks() => state.lock_states.find(clientid, other, seqid).map(|_| ()),
        other if other.is_of_delegations() => state.delegations.find(clientid, other, seqid).map(|_| ()),
        _ => state.opens.find(clientid, other, seqid).map(|_| ()),
    }
}

fn test_stateid<P: Platform>(
    compound: &mut Compound<P>,
    record: &[u8],
    draft: &mut Draft,
    count: u32,
    at: usize,
) -> Result<(), NfsStatus> {
    draft.writer.u32(count);
    let mut at = at;
    for _ in 0..count {
        let (stateid, next) = stateid_at(record, at).map_err(|_| NfsStatus::Badxdr)?;
        at = next;
        let status = match stateid.meaning() {
            Ok(StateidKind::State(_)) => state_of(compound, stateid).map_or_else(|status| status, |()| NfsStatus::Ok),
            // A special stateid names no state.
            _ => NfsStatus::BadStateid,
        };
        draft.writer.u32(status.code());
    }
    Ok(())
}
