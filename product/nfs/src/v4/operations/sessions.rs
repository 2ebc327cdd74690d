//! EXCHANGE_ID, CREATE_SESSION, SEQUENCE and their kin: operations on the state alone.
//!
//! Owns: their results; which of them need no session.
//! Does not own: the rules of clients, sessions and slots (`state`).
//! Invariants: nothing here waits for a disk, so that a client's lease is renewed however busy the disks are. A client
//! answers its own party alone.

use std::hash::Hasher;

use afflux_frontend::Left;
use afflux_volume::{Platform, Volume};
use siphasher::sip::SipHasher13;

use super::super::client_state::StateTable;
use super::super::codec::{
    CompoundOperation, IntroductionArguments, SequenceArguments, SessionArguments, number, stateid_at,
};
use super::super::compound::{Compound, TakenSlot};
use super::super::kept_calls::owner_word;
use super::super::service::session_id;
use super::super::state::agreed::{Channel, OPERATIONS_MAX, SessionId};
use super::super::state::clients::{Introduction, SessionRequest};
use super::super::state::slots::{Begun, SlotCall};
use super::super::state::stateids::{Meaning, Stateid};
use super::opens::place;
use crate::status::Status;
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
        number::EXCHANGE_ID
            | number::CREATE_SESSION
            | number::DESTROY_SESSION
            | number::BIND
            | number::DESTROY_CLIENTID
    )
}

/// Takes the compound's slot, or finds its reply.
pub(in super::super) fn sequence<P: Platform>(
    compound: &mut Compound<P>,
    record: &[u8],
    draft: &mut Draft,
    arguments: &SequenceArguments,
) -> Result<Sequenced, Status> {
    compound.join(&arguments.session)?;
    let Some(session) = &compound.session else { return Err(Status::BadSession) };
    // All state of the client counts for the party that made the session.
    compound.speaker.0 = session.party;
    if compound.count() > session.channel.operations_max {
        return Err(Status::TooManyOperations);
    }
    if compound.record_bytes() > session.channel.request_bytes_max as usize {
        return Err(Status::RequestTooBig);
    }
    if arguments.keeps && session.channel.kept_bytes_max < SEQUENCE_BYTES {
        return Err(Status::ReplyTooBigToCache);
    }
    if !session.lease.try_renew(compound.now_ns) {
        // It was silent for too long, and in somebody's way.
        compound.service.end_revoked();
        return Err(Status::BadSession);
    }
    let kept_call = if arguments.keeps { hash(&arguments.session, compound.repeated(record)) } else { 0 };
    let SequenceArguments { sequence, slot, highest, keeps, .. } = *arguments;
    let keys = compound.service.journal.as_ref().filter(|_| keeps).map(|_| {
        let mut hasher = SipHasher13::new_with_key(&compound.service.hash_key);
        hasher.write(&arguments.session);
        hasher.write_u32(slot);
        hasher.write_u32(sequence);
        let call = hasher.finish();
        let owner = owner_word(&compound.service.hash_key, compound.speaker.0, &arguments.session, slot);
        [[call, kept_call, owner], [call, kept_call, slot.into()]]
    });
    let (begun, slots) = {
        let mut slots = session.slots();
        (slots.begin(&SlotCall { slot, sequence, highest, kept_call })?, slots.count())
    };
    match (begun, &compound.service.journal, keys) {
        (Begun::Again(reply), ..) => return Ok(Sequenced::Again(reply)),
        (Begun::Left, Some(journal), Some(keys)) => {
            if let Left::Answered { bytes, .. } = journal.left(&keys) {
                session.slots().end(slot, Some(|into: &mut Vec<u8>| into.extend_from_slice(&bytes)));
                return Ok(Sequenced::Again(bytes));
            }
        }
        _ => {}
    }
    const BACK_CHANNEL_DOWN: u32 = 0x200;
    let flags = if session.back.is_down() { BACK_CHANNEL_DOWN } else { 0 };
    compound.taken = Some(TakenSlot::new(slot, keeps, keys));
    let mut result = [0; SEQUENCE_RESULT_BYTES];
    let (id, words) = result.split_at_mut(arguments.session.len());
    id.copy_from_slice(&arguments.session);
    // The highest slot here, and the one that the client should use at most: all.
    let shown = [sequence, slot, slots - 1, slots - 1, flags];
    words.copy_from_slice(shown.map(u32::to_be_bytes).as_flattened());
    draft.writer.raw(&result);
    Ok(Sequenced::New)
}

/// A hash of a call's arguments, to tell a repetition from another call with the same place. Never 0.
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
    operation: &CompoundOperation,
) -> Result<(), Status> {
    match *operation {
        CompoundOperation::Bind { session, direction } => bind(compound, draft, &session, direction),
        _ => within(compound, volume, record, draft, operation),
    }
}

/// Carries out an operation in a session, or one that needs none.
pub(super) fn within<P: Platform>(
    compound: &mut Compound<P>,
    volume: &Volume<P>,
    record: &[u8],
    draft: &mut Draft,
    operation: &CompoundOperation,
) -> Result<(), Status> {
    match *operation {
        CompoundOperation::Introduce(ref arguments) => introduce(compound, record, draft, arguments),
        CompoundOperation::CreateSession(ref arguments) => create(compound, volume, draft, arguments),
        CompoundOperation::DestroySession(id) => destroy(compound, &id),
        CompoundOperation::DestroyClient(client) => destroy_client(compound, client),
        CompoundOperation::FreeStateid(stateid) => super::locks::free(compound, stateid),
        CompoundOperation::TestStateids { count, at } => test(compound, record, draft, count, at),
        CompoundOperation::ReclaimComplete { one_file_system } => {
            let client = compound.client()?;
            if one_file_system {
                compound.object()?;
                return Ok(());
            }
            let has_reclaimed = compound.service.state().clients.has_reclaimed(client);
            if !has_reclaimed {
                compound.note_end();
            }
            compound.ended_before(compound.service.complete(client))
        }
        CompoundOperation::BackChannel(calling) => {
            let session = compound.session().ok_or(Status::OperationNotInSession)?;
            session.back.call_by(calling.ok_or(Status::NotSupported)?, compound.minor);
            compound.service.state().sessions.keep(session);
            Ok(())
        }
        // This one stands alone.
        _ => Err(Status::NotOnlyOperation),
    }
}

mod flag {
    pub(super) const KNOWN: u32 = 0x4007_0103;
    /// Of 4.2 alone.
    pub(super) const FENCES: u32 = 4;
    pub(super) const UPDATES: u32 = 0x4000_0000;
    pub(super) const CONFIRMED: u32 = 0x8000_0000;
    pub(super) const NO_LAYOUTS: u32 = 0x0001_0000;
}

fn introduce<P: Platform>(
    compound: &mut Compound<P>,
    record: &[u8],
    draft: &mut Draft,
    arguments: &IntroductionArguments,
) -> Result<(), Status> {
    let known = flag::KNOWN | if compound.minor >= 2 { flag::FENCES } else { 0 };
    if arguments.flags & !known != 0 || arguments.protection != 0 {
        return Err(Status::Invalid);
    }
    let owner = &record[arguments.owner.range()];
    let updates = arguments.flags & flag::UPDATES != 0;
    let who = Introduction { owner, verifier: arguments.verifier, updates };
    let service = &compound.service;
    let mut gone = Vec::new();
    let mut state = service.state();
    let state_now = &mut *state;
    let (sessions, opens) = (&state_now.sessions, &state_now.opens);
    let is_idle = |client| !sessions.has_any(client) && !opens.has_any(client);
    let known = state_now.clients.introduce(who, compound.speaker, compound.now_ns, is_idle, &mut gone);
    let holders = state.end_all(&gone, service.locks());
    service.keep_list(&mut state);
    state.keep_server();
    drop(state);
    drop(holders);
    let known = known?;
    let writer = &mut draft.writer;
    writer.u64(known.client);
    writer.u32(known.sequence);
    writer.u32(flag::NO_LAYOUTS | if known.is_confirmed { flag::CONFIRMED } else { 0 });
    // State is not protected by more than the party and the user.
    writer.u32(0);
    writer.u64(0);
    writer.opaque(&service.name);
    writer.opaque(&service.name);
    // Nothing about this implementation.
    writer.u32(0);
    Ok(())
}

fn create<P: Platform>(
    compound: &mut Compound<P>,
    volume: &Volume<P>,
    draft: &mut Draft,
    arguments: &SessionArguments,
) -> Result<(), Status> {
    const PERSISTENT: u32 = 1;
    const BACK_CHANNEL: u32 = 2;
    const RDMA: u32 = 4;
    if arguments.flags & !(PERSISTENT | BACK_CHANNEL | RDMA) != 0 {
        return Err(Status::Invalid);
    }
    let fore = arguments.fore.granted(RECORD_BYTES_MAX as u32)?;
    arguments.back.check_back()?;
    let (id, (party, _)) = (session_id(volume), compound.speaker);
    let (client, at, mut gone, mut held) = (arguments.client, draft.mark(), Vec::new(), Vec::new());
    let mut state = compound.service.state();
    if let SessionRequest::Again(results) =
        state.clients.create(client, compound.speaker, arguments.sequence, compound.now_ns)?
    {
        draft.writer.raw(&results);
        return Ok(());
    }
    let lease = state.clients.lease(client).cloned().ok_or(Status::StaleClientId)?;
    let clock = (compound.service.locks(), compound.now_ns);
    let has_room = state.make_room((party, StateTable::Sessions), clock, &mut held, |state, _| {
        state.clients.check_room(client).and_then(|()| state.sessions.check_room(party))
    });
    compound.service.keep_list(&mut state);
    has_room?;
    let session = state.sessions.make(id, (client, party), fore, lease);
    let has_back_channel = arguments.flags & BACK_CHANNEL != 0 && arguments.calling.is_some();
    session.back.call_by(arguments.calling.unwrap_or_default(), compound.minor);
    if has_back_channel {
        session.back.bind(&compound.outbox);
    }
    state.sessions.keep(&session);
    state.clients.confirm(client, compound.now_ns, &mut gone);
    let writer = &mut draft.writer;
    writer.raw(&id);
    writer.u32(arguments.sequence);
    writer.u32(if has_back_channel { BACK_CHANNEL } else { 0 });
    write_channel(writer, &fore);
    write_channel(writer, &arguments.back);
    state.clients.created(client, draft.since(at));
    held.extend(state.end_all(&gone, compound.service.locks()));
    compound.service.keep_list(&mut state);
    drop(state);
    drop(held);
    Ok(())
}

fn write_channel(writer: &mut Writer, channel: &Channel) {
    let words = [
        0,
        channel.request_bytes_max,
        channel.reply_bytes_max,
        channel.kept_bytes_max,
        channel.operations_max.min(OPERATIONS_MAX),
        channel.calls_max,
        0,
    ];
    writer.words(words);
}

fn destroy<P: Platform>(compound: &mut Compound<P>, id: &SessionId) -> Result<(), Status> {
    let is_own = compound.session().is_some_and(|session| session.id == *id);
    if is_own && !compound.is_last() {
        return Err(Status::NotOnlyOperation);
    }
    let mut state = compound.service.state();
    state.sessions.find(id, compound.speaker.0)?;
    state.sessions.end(id);
    Ok(())
}

fn destroy_client<P: Platform>(compound: &mut Compound<P>, client: u64) -> Result<(), Status> {
    let mut state = compound.service.state();
    let is_idle = state.is_idle(client);
    state.clients.destroy(client, compound.speaker.0, is_idle)?;
    state.end_all(&[client], compound.service.locks());
    compound.service.keep_list(&mut state);
    Ok(())
}

fn bind<P: Platform>(
    compound: &mut Compound<P>,
    draft: &mut Draft,
    id: &SessionId,
    direction: u32,
) -> Result<(), Status> {
    const FORE: u32 = 1;
    const BACK: u32 = 2;
    const FORE_OR_BOTH: u32 = 3;
    const BACK_OR_BOTH: u32 = 7;
    let bound = match direction {
        FORE | BACK => direction,
        FORE_OR_BOTH | BACK_OR_BOTH => FORE | BACK,
        _ => return Err(Status::BadXdr),
    };
    let session = compound.service.state().sessions.find(id, compound.speaker.0)?;
    if !session.lease.try_renew(compound.now_ns) {
        return Err(Status::BadSession);
    }
    if bound & BACK != 0 {
        session.back.bind(&compound.outbox);
        compound.service.state().sessions.keep(&session);
    }
    draft.writer.raw(id);
    draft.writer.u32(bound);
    draft.writer.bool(false);
    Ok(())
}

/// The state of one stateid of the compound's client.
fn state_of<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(), Status> {
    let (place, sequence) = place(compound, stateid)?;
    let (client, state) = (compound.client()?, compound.service.state());
    match place.is_of_locks() {
        true => state.lock_states.find(client, place, sequence).map(|_| ()),
        false => state.opens.find(client, place, sequence).map(|_| ()),
    }
}

fn test<P: Platform>(
    compound: &mut Compound<P>,
    record: &[u8],
    draft: &mut Draft,
    count: u32,
    at: usize,
) -> Result<(), Status> {
    draft.writer.u32(count);
    let mut at = at;
    for _ in 0..count {
        let (stateid, next) = stateid_at(record, at).map_err(|_| Status::BadXdr)?;
        at = next;
        let status = match stateid.meaning() {
            Ok(Meaning::State(_)) => state_of(compound, stateid).map_or_else(|status| status, |()| Status::Ok),
            // A special stateid names no state.
            _ => Status::BadStateid,
        };
        draft.writer.u32(status.code());
    }
    Ok(())
}
