//! A steady load on a session: each slot repeats its own compounds, one after the other.
//!
//! Owns: the templates of the calls, the places in them that change, the slots' numbers, the clock readings.
//! Does not own: the operations (`sessions`), the percentiles (`load`).
//! Invariants: a slot has one call in flight. A call is a template with some places patched, so that the client costs
//! little. Every reply's status is checked.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::connection::Error;
use crate::load::{Latencies, RECEIVE_BYTES, Report, take_replies};
use crate::sessions::{Compound, Session, Stateid};

/// In a slot's compound: the stateid that the slot got last.
pub const LAST: Stateid = (0x6c61_7374, *b"of this slot");
/// In a slot's compound: another random place of the file each time.
pub const ANYWHERE: u64 = 0x616e_7977_6865_7265;

/// One of the compounds that a slot repeats. The first of its operations is PUTFH.
pub struct SlotCall {
    /// The operations behind the SEQUENCE.
    pub operations: Compound,
    /// The second operation's result begins with a stateid, which is [`LAST`] from then on.
    pub gives_stateid: bool,
}

/// A call with the places in it that change.
struct Template {
    record: Vec<u8>,
    stateid_at: Option<usize>,
    offset_at: Option<usize>,
    gives_stateid: bool,
}

/// Slots of a session, the first ones, with what each repeats.
pub struct SlotLoad {
    slots: Vec<Slot>,
    /// Where a call's SEQUENCE has its number. The session's number is before it.
    sequence_at: usize,
}

struct Slot {
    templates: Vec<Template>,
    next: usize,
    sequence: u32,
    stateid: Stateid,
    started_ns: u64,
}

const XID_AT: usize = 4;
/// From the record's beginning to the results: mark, number, direction, reply status, verifier, accept status.
const RESULTS_AT: usize = 28;
/// From there: status, tag, count, the results of SEQUENCE and PUTFH, the next operation and its status.
const STATEID_AT: usize = RESULTS_AT + 12 + 44 + 8 + 8;

fn find_bytes(record: &[u8], wanted: &[u8]) -> Option<usize> {
    record.windows(wanted.len()).position(|bytes| bytes == wanted)
}

fn bytes_of((sequence, other): Stateid) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&sequence.to_be_bytes());
    bytes[4..].copy_from_slice(&other);
    bytes
}

impl SlotLoad {
    /// From what each slot repeats, and its first stateid. Slots but the first are as yet unused.
    pub fn new(session: &mut Session, slots: Vec<(Stateid, Vec<SlotCall>)>) -> Self {
        let (_, empty) = session.record(&Compound::default(), 0);
        let slots = slots.into_iter().zip(0..).map(|((stateid, calls), slot)| {
            let templates = calls.into_iter().map(|call| template(session, slot, call)).collect();
            Slot { templates, next: 0, sequence: 0, stateid, started_ns: 0 }
        });
        Self { slots: slots.collect(), sequence_at: empty.len() - 16 }
    }

    /// Has each slot repeat its compounds for `duration`, beginning at once with all slots. Random places are multiples
    /// of `block`, below `file_bytes`.
    pub fn run(
        &mut self,
        session: &mut Session,
        block: u32,
        file_bytes: u64,
        duration: Duration,
    ) -> Result<Report, Error> {
        let Self { slots, sequence_at } = self;
        let count = slots.len() as u32;
        if let Some(first) = slots.first_mut() {
            first.sequence = session.sequence;
        }
        let blocks = (file_bytes / u64::from(block)).max(1);
        let mut random = 7_u64;
        let mut latencies = Latencies::new();
        let (mut input, mut filled, mut output) = (vec![0; RECEIVE_BYTES], 0, Vec::new());
        let (begin, end_ns) = (Instant::now(), duration.as_nanos() as u64);
        let (mut free, mut in_flight): (Vec<u32>, usize) = ((0..count).collect(), 0);
        loop {
            let now_ns = begin.elapsed().as_nanos() as u64;
            output.clear();
            for at in free.drain(..) {
                let slot = &mut slots[at as usize];
                // A slot that has begun a round ends it.
                if now_ns < end_ns || slot.next > 0 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    slot.append_call(&mut output, at, *sequence_at, random % blocks * u64::from(block));
                    slot.started_ns = now_ns;
                    in_flight += 1;
                }
            }
            if in_flight == 0 {
                break;
            }
            let socket = session.client.socket.get_mut();
            socket.write_all(&output)?;
            match socket.read(&mut input[filled..]) {
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
                Ok(got) => filled += got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            let now_ns = begin.elapsed().as_nanos() as u64;
            let (taken, answered) = take_replies(&input[..filled], |at, reply| {
                slots[at as usize].answered(reply);
                latencies.add(now_ns.saturating_sub(slots[at as usize].started_ns));
                free.push(at);
            })?;
            input.copy_within(taken..filled, 0);
            filled -= taken;
            in_flight -= answered;
        }
        session.sequence = slots.first().map_or(session.sequence, |slot| slot.sequence);
        Ok(latencies.report(begin.elapsed(), 0))
    }
}

fn template(session: &mut Session, slot: u32, call: SlotCall) -> Template {
    let (_, record) = session.record(&call.operations, slot);
    Template {
        stateid_at: find_bytes(&record, &bytes_of(LAST)),
        offset_at: find_bytes(&record, &ANYWHERE.to_be_bytes()),
        gives_stateid: call.gives_stateid,
        record,
    }
}

impl Slot {
    fn append_call(&mut self, out: &mut Vec<u8>, number: u32, sequence_at: usize, offset: u64) {
        let template = &self.templates[self.next];
        let start = out.len();
        out.extend_from_slice(&template.record);
        self.sequence = self.sequence.wrapping_add(1);
        let mut patch = |at: usize, bytes: &[u8]| out[start + at..start + at + bytes.len()].copy_from_slice(bytes);
        patch(XID_AT, &number.to_be_bytes());
        patch(sequence_at, &self.sequence.to_be_bytes());
        if let Some(at) = template.stateid_at {
            patch(at, &bytes_of(self.stateid));
        }
        if let Some(at) = template.offset_at {
            patch(at, &offset.to_be_bytes());
        }
    }

    fn answered(&mut self, reply: &[u8]) {
        let stateid = reply.get(STATEID_AT..).and_then(|rest| rest.split_first_chunk::<16>());
        if let Some((stateid, _)) = stateid.filter(|_| self.templates[self.next].gives_stateid) {
            let (sequence, other) = stateid.split_at(4);
            let mut bytes = [0; 12];
            bytes.copy_from_slice(other);
            self.stateid = (u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]), bytes);
        }
        self.next = (self.next + 1) % self.templates.len();
    }
}
