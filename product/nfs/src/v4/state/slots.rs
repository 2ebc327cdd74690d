//! The slots of a session, where a call that comes twice runs once, and the terms on which client and server agree when
//! the session begins.
//!
//! Owns: the order of each slot's calls, the reply cached for a repetition; the number of a session, the bounds of each
//! direction (`channel_attrs4`), the manner of calls to the client.
//! Does not own: sessions (`sessions`), the bytes of replies before they are cached, the form of the terms for a later
//! server (`persisted`).
//! Invariants: a session that has ended has no slots. A slot has at most one call in progress. A number that was
//! answered runs nothing. A call that was dropped before it changed anything runs when it comes again. A cached reply
//! has at most [`CACHED_REPLY_BYTES_MAX`] bytes, and the memory of a slot is used again. What is granted is no more
//! than the client's wish, nor than this server's bounds.

use crate::status::NfsStatus;
use crate::steps::step;

/// Most bytes of a reply that is cached.
pub(crate) const CACHED_REPLY_BYTES_MAX: usize = 2048;
/// Most slots of a session.
pub(crate) const SLOTS_MAX: u32 = 64;

/// A call on a slot, as SEQUENCE describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotCall {
    pub(crate) slotid: u32,
    pub(crate) sequenceid: u32,
    /// The client's last slot in use.
    pub(crate) highest_slotid: u32,
    /// A hash of the call if its reply is to be cached; 0 if not.
    pub(crate) call_hash: u64,
}

/// The kind of a call on a slot.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Begun {
    /// A new call, which is in progress from now on.
    New,
    /// As a new call, but an earlier server may have carried it out.
    Inherited,
    /// A repetition: it has this reply.
    Again(Vec<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// No call yet, or one whose reply is not cached.
    Forgotten,
    /// An earlier server had the slot, and any number may come.
    Inherited,
    /// The call was dropped before it changed anything. It may come again, or the next.
    Dropped,
    Running,
    Cached,
}

struct Slot {
    sequenceid: u32,
    progress: Progress,
    /// The call in progress is the first that this server has of the slot.
    is_first: bool,
    call_hash: u64,
    reply: Vec<u8>,
}

/// The slots of one session.
pub(crate) struct Slots(Vec<Slot>);

impl Slots {
    /// This many slots without calls.
    pub(crate) fn new(count: u32) -> Self {
        Self::with(count, Progress::Forgotten)
    }

    /// This many slots of an earlier server.
    pub(crate) fn inherited(count: u32) -> Self {
        Self::with(count, Progress::Inherited)
    }

    /// The session ends. Its calls in progress go on, and nobody gets their replies again.
    pub(crate) fn end_all(&mut self) {
        self.0 = Vec::new();
    }

    fn with(count: u32, progress: Progress) -> Self {
        let slot = || Slot { sequenceid: 0, progress, is_first: false, call_hash: 0, reply: Vec::new() };
        Self((0..count).map(|_| slot()).collect())
    }

    /// Number of slots.
    pub(crate) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Number of calls in progress.
    pub(crate) fn in_use(&self) -> usize {
        self.0.iter().inspect(|_| step()).filter(|slot| slot.progress == Progress::Running).count()
    }

    /// Whether a call is in progress.
    pub(crate) fn is_at_work(&self) -> bool {
        self.in_use() > 0
    }

    /// Begins a call, or finds it again.
    pub(crate) fn begin(&mut self, call: &SlotCall) -> Result<Begun, NfsStatus> {
        let count = self.count();
        let none = if count == 0 { NfsStatus::Badsession } else { NfsStatus::Badslot };
        let slot = self.0.get_mut(call.slotid as usize).ok_or(none)?;
        if call.highest_slotid >= count {
            return Err(NfsStatus::BadHighSlot);
        }
        let is_left = slot.progress == Progress::Inherited;
        let is_again = slot.progress == Progress::Dropped && call.sequenceid == slot.sequenceid;
        if is_left || is_again || call.sequenceid == slot.sequenceid.wrapping_add(1) {
            if slot.progress == Progress::Running {
                return Err(NfsStatus::Delay);
            }
            slot.is_first = is_left;
            (slot.sequenceid, slot.progress, slot.call_hash) = (call.sequenceid, Progress::Running, call.call_hash);
            return Ok(if is_left { Begun::Inherited } else { Begun::New });
        }
        if call.sequenceid != slot.sequenceid {
            return Err(NfsStatus::SeqMisordered);
        }
        match slot.progress {
            Progress::Running | Progress::Inherited | Progress::Dropped => Err(NfsStatus::Delay),
            Progress::Cached if call.call_hash != 0 && call.call_hash != slot.call_hash => {
                Err(NfsStatus::SeqFalseRetry)
            }
            Progress::Cached => Ok(Begun::Again(slot.reply.clone())),
            // No call has this number yet.
            Progress::Forgotten if call.sequenceid == 0 => Err(NfsStatus::SeqMisordered),
            Progress::Forgotten => Err(NfsStatus::RetryUncachedRep),
        }
    }

    /// Ends the call of a slot. `cache` appends its reply if it is to be cached.
    pub(crate) fn end(&mut self, slot: u32, cache: Option<impl FnOnce(&mut Vec<u8>)>) {
        let Some(slot) = self.0.get_mut(slot as usize) else { return };
        slot.reply.clear();
        slot.progress = match cache {
            Some(cache) => {
                cache(&mut slot.reply);
                Progress::Cached
            }
            None => Progress::Forgotten,
        };
    }

    /// Ends the call of a slot, which has changed nothing and has no reply.
    pub(crate) fn drop_call(&mut self, slot: u32) {
        let Some(slot) = self.0.get_mut(slot as usize) else { return };
        slot.reply.clear();
        slot.progress = if slot.is_first { Progress::Inherited } else { Progress::Dropped };
    }
}

/// Most operations of a compound.
pub(crate) const OPERATIONS_MAX: u32 = 64;
/// The least that a client may ask for: a SEQUENCE with its headers, and two operations.
const REQUEST_BYTES_MIN: u32 = 256;
const REPLY_BYTES_MIN: u32 = 256;
const BACK_BYTES_MIN: u32 = 128;

/// The number of a session: random, so that nobody guesses it.
pub(crate) type SessionId = [u8; 16];

/// The bounds that both sides agree on for one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChannelAttrs {
    pub(crate) maxrequestsize: u32,
    pub(crate) maxresponsesize: u32,
    pub(crate) maxresponsesize_cached: u32,
    pub(crate) maxoperations: u32,
    pub(crate) maxrequests: u32,
}

impl ChannelAttrs {
    /// Refuses a back channel that no call fits.
    pub(crate) fn check_back(&self) -> Result<(), NfsStatus> {
        /// A call on it is a sequence and one operation more.
        const OPERATIONS_MIN: u32 = 2;
        let is_small = self.maxrequestsize < BACK_BYTES_MIN
            || self.maxresponsesize < BACK_BYTES_MIN
            || self.maxoperations < OPERATIONS_MIN;
        if is_small { Err(NfsStatus::Toosmall) } else { Ok(()) }
    }

    /// The client's wish, as far as this server grants it. `bytes_max` is the largest record.
    pub(crate) fn granted(self, bytes_max: u32) -> Result<Self, NfsStatus> {
        if self.maxrequestsize < REQUEST_BYTES_MIN || self.maxresponsesize < REPLY_BYTES_MIN {
            return Err(NfsStatus::Toosmall);
        }
        if self.maxoperations == 0 || self.maxrequests == 0 {
            return Err(NfsStatus::Inval);
        }
        Ok(Self {
            maxrequestsize: self.maxrequestsize.min(bytes_max),
            maxresponsesize: self.maxresponsesize.min(bytes_max),
            maxresponsesize_cached: self.maxresponsesize_cached.min(CACHED_REPLY_BYTES_MAX as u32),
            maxoperations: self.maxoperations.min(OPERATIONS_MAX),
            maxrequests: self.maxrequests.min(SLOTS_MAX),
        })
    }
}

/// How a client wants to be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CallbackSecurity {
    pub(crate) program: u32,
    /// The user and the group that calls name, by AUTH_SYS; calls carry no credential without them.
    pub(crate) user: Option<(u32, u32)>,
}

#[cfg(test)]
mod tests;
