//! The requests of another program on a disk: they take the disk's time, and no engine sees them.
//!
//! Owns: which requests a program has in flight, when the next is due.
//! Does not own: the disk's order and time (`timing`), bytes and faults (`mod`): the program's data is nobody's.
//! Invariants: a program never has more in flight than its load says. The disk's figures leave its requests out.

use std::collections::BTreeMap;

use afflux_engine::Operation;

use super::{Disk, DiskFileId, DiskState};
use crate::disk::timing::transfer_ns;
use crate::random::Random;

/// What another program does to a disk.
#[derive(Clone, Debug)]
pub struct ForeignLoad {
    /// It writes; otherwise it reads.
    pub writes: bool,
    /// Bytes of each request.
    pub request_bytes: u32,
    /// Its offset in the program's file is drawn; otherwise each request follows the one before.
    pub scattered: bool,
    /// Bytes of the program's file.
    pub file_bytes: u64,
    /// Most requests in flight.
    pub in_flight: u32,
    /// The program's rate, if the disk is fast enough; [`u64::MAX`]: the disk's.
    pub bytes_per_second: u64,
    /// For how long, from the instant at which it is added.
    pub lasts_ns: u64,
}

/// The number of a load on its disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForeignLoadId(usize);

struct Program {
    load: ForeignLoad,
    file: DiskFileId,
    began_ns: u64,
    submitted: u64,
    ended: u64,
    in_flight: u32,
    /// When it is called to go on, if it is.
    called_at_ns: Option<u64>,
    random: Random,
}

impl Program {
    /// When its next request is due, if it goes on at all.
    fn due_ns(&self) -> Option<u64> {
        let bytes = self.submitted.saturating_mul(self.load.request_bytes.into());
        let due_ns = self.began_ns.saturating_add(transfer_ns(bytes, self.load.bytes_per_second));
        (due_ns < self.began_ns.saturating_add(self.load.lasts_ns)).then_some(due_ns)
    }

    fn next(&mut self) -> Operation {
        let len = self.load.request_bytes;
        let blocks = (self.load.file_bytes / u64::from(len)).max(1);
        let block = if self.load.scattered { self.random.below(blocks) } else { self.submitted % blocks };
        let offset = block * u64::from(len);
        (self.submitted, self.in_flight) = (self.submitted + 1, self.in_flight + 1);
        if self.load.writes { Operation::Write { offset, len } } else { Operation::Read { offset, len } }
    }
}

/// The programs on a disk.
#[derive(Default)]
pub(super) struct Foreign {
    programs: Vec<Program>,
    /// By the number of the request, whose it is.
    in_flight: BTreeMap<u64, usize>,
}

impl Foreign {
    /// A request that is none of the engine's has ended. Whose it was.
    pub(super) fn ended(&mut self, id: u64) -> Option<ForeignLoadId> {
        let number = self.in_flight.remove(&id)?;
        let program = &mut self.programs[number];
        (program.in_flight, program.ended) = (program.in_flight - 1, program.ended + 1);
        Some(ForeignLoadId(number))
    }

    /// The disk has forgotten all requests: the programs have died with them.
    pub(super) fn clear(&mut self) {
        self.in_flight.clear();
        for program in &mut self.programs {
            (program.in_flight, program.load.lasts_ns) = (0, 0);
        }
    }
}

impl Disk {
    /// Another program begins to use the disk now.
    pub fn add_foreign_load(&self, load: ForeignLoad) -> ForeignLoadId {
        assert!(load.request_bytes > 0 && load.in_flight > 0 && load.bytes_per_second > 0, "{load:?}");
        let file = self.create_file();
        self.make_sparse(file, load.file_bytes);
        self.lay_out(file, load.file_bytes);
        let began_ns = self.shared.now_ns();
        let mut state = self.lock();
        let random = Random::new(file.0);
        let id = ForeignLoadId(state.foreign.programs.len());
        let (submitted, ended, in_flight, called_at_ns) = (0, 0, 0, None);
        let program = Program { load, file, began_ns, submitted, ended, in_flight, called_at_ns, random };
        state.foreign.programs.push(program);
        self.foreign_goes_on(&mut state, id);
        id
    }

    /// Bytes of the program's requests that have ended.
    pub fn foreign_bytes(&self, id: ForeignLoadId) -> u64 {
        let program = &self.lock().foreign.programs[id.0];
        program.ended * u64::from(program.load.request_bytes)
    }

    /// Submits what the program has due, and sees to it that the rest is when its time comes.
    pub(super) fn foreign_goes_on(&self, state: &mut DiskState, id: ForeignLoadId) {
        let now_ns = self.shared.now_ns();
        loop {
            let program = &mut state.foreign.programs[id.0];
            let Some(due_ns) = program.due_ns() else { return };
            if program.in_flight >= program.load.in_flight
                || now_ns >= program.began_ns.saturating_add(program.load.lasts_ns)
            {
                return;
            }
            if due_ns > now_ns {
                if program.called_at_ns.replace(due_ns) != Some(due_ns) {
                    self.call_at(due_ns, move |disk| disk.foreign_goes_on(&mut disk.lock(), id));
                }
                return;
            }
            let (file, operation, request) = (program.file, program.next(), state.requests);
            state.requests += 1;
            state.foreign.in_flight.insert(request, id.0);
            state.service.locate(file, operation);
            state.service.accept(now_ns, request, file, operation, self.options.volatile_cache);
            self.wake_at(state, now_ns);
        }
    }
}

#[cfg(test)]
mod tests;
