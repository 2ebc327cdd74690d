//! Calls of version 4 in memory that a later server finds: the form of their entries.
//!
//! Owns: the word of a key that names party, session and slot.
//! Does not own: the journal (`afflux_frontend`), the key's other words (`operations::sessions`), the slots (`state`).
//! Invariants: a slot has one call there, the newest. By the next call the client says that it has the reply. The calls
//! of a session, or of a party, take no place of another with fewer.

use std::hash::{Hash, Hasher};

use afflux_frontend::{CallKey, EntryForm, EntryOwner, Party};
use siphasher::sip::SipHasher13;

use super::state::channel_attrs::SessionId;
use super::state::slots::SLOTS_MAX;

/// Words of a call that changes something, in memory that a later server finds: replies to most calls fit.
pub(super) const CALL_WORDS: usize = 128;

/// The form of the entries. The value of a call is the wall clock's time at its beginning.
pub(super) const CALL_FORM: EntryForm = EntryForm { words: CALL_WORDS, age: |_, begun_ns| begun_ns, owner };

const SLOT_BITS: u32 = SLOTS_MAX.ilog2();
/// Bits of a session's number. Those above them are of the party's hash.
const SESSION_BITS: u32 = 36;

/// The word of a key that names the owner of a call.
pub(super) fn owner_word(hash_key: &[u8; 16], party: Party, session: &SessionId, slot: u32) -> u64 {
    let mut hasher = SipHasher13::new_with_key(hash_key);
    party.hash(&mut hasher);
    // The number is drawn at random, so a part of it will do.
    let session = session.first_chunk().copied().map_or(0, u64::from_le_bytes) % (1 << SESSION_BITS);
    hasher.finish() >> (SESSION_BITS + SLOT_BITS) << (SESSION_BITS + SLOT_BITS) | session << SLOT_BITS | u64::from(slot)
}

fn owner(&[_, _, word]: &CallKey) -> EntryOwner {
    let (of_session, slot) = (word >> SLOT_BITS, word % u64::from(SLOTS_MAX));
    EntryOwner { party: of_session >> SESSION_BITS, user: of_session % (1 << SESSION_BITS), slot: Some(slot) }
}

const _: () = assert!(SLOTS_MAX.is_power_of_two());
