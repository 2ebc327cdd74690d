//! A simulated disk: a fixed latency, a fixed rate, a volatile write cache, and faults.
//!
//! The model: a request waits for the latency; then, one request at a time, its bytes pass at the
//! rate. Which of the requests that have waited is taken next is drawn from the seed, so requests in
//! flight end in any order. What a request does to the file happens as it ends. A write's bytes are
//! fetched in pieces, some when its transfer starts and the others when it ends, and a read's memory
//! holds rubbish in between, as with a real disk's DMA.
//!
//! Owns: the files' bytes (live and durable), the requests in flight, space, timing, the faults.
//! Does not own: names (`directory`), the engine's view of any file.
//! Invariants: each request is answered once, with no lock held, or dropped where a fault says so. A
//! request that breaks the contract of `engine::Request`, or whose memory changes while it is being
//! written, fails the world's run with a message.

mod fault;
mod file;
mod image;
mod state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::{Backing, Device, DeviceError, Limits, Nanos, Operation, Request};

use crate::world::{Shared, World};

use fault::Faults;
pub use fault::{Fault, FaultTarget, FaultWhat};
use file::DiskFile;
use image::{IMAGE_BLOCK_BYTES, WHOLE_PAGES};
use state::{Ended, Outcome, Phase, State, conflict, is_data};

/// What a disk is made from.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Most bytes a request may carry.
    pub request_bytes_max: u32,
    /// Most data requests in flight.
    pub depth: u32,
    /// Whether completed writes wait for a sync to be durable.
    pub volatile_cache: bool,
    /// What each request takes before its bytes pass, in nanoseconds.
    pub latency_ns: u64,
    /// Bytes that pass in a second; at least 1.
    pub bytes_per_second: u64,
    /// Bytes that all files together may take up, in whole blocks of 4096.
    pub capacity_bytes: u64,
    /// Of 1,000 requests, how many are carried out before `submit` returns.
    pub inline_per_mille: u64,
}

impl Default for DiskOptions {
    /// 100 µs and 100 MB/s, 512-byte blocks, 1 MiB requests, depth 32, a volatile cache, 1 TB.
    fn default() -> Self {
        Self {
            block_bytes: 512,
            request_bytes_max: 1 << 20,
            depth: 32,
            volatile_cache: true,
            latency_ns: 100_000,
            bytes_per_second: 100_000_000,
            capacity_bytes: 1 << 40,
            inline_per_mille: 0,
        }
    }
}

/// The number of a file on its disk, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct DiskFileId(pub u64);

/// What a disk's [`Backing`] holds.
struct SimFile {
    disk: u64,
    file: DiskFileId,
}

/// A disk with files on it.
pub struct Disk {
    shared: Arc<Shared>,
    number: u64,
    options: DiskOptions,
    limits: Limits,
    state: Mutex<State>,
    own: Weak<Disk>,
}

/// Kind, offset and length as numbers, for the trace.
fn words(operation: Operation) -> [u64; 3] {
    match operation {
        Operation::Read { offset, len } => [0, offset, len.into()],
        Operation::Write { offset, len } => [1, offset, len.into()],
        Operation::Sync => [2, 0, 0],
        Operation::SetSize { size } => [3, size, 0],
        Operation::Punch { offset, len } => [4, offset, len],
        Operation::Reserve { offset, len } => [5, offset, len],
    }
}

impl Disk {
    /// An empty disk in `world`. `number` tells it from the world's other disks in the trace.
    ///
    /// # Panics
    /// When the options name sizes that no device may have.
    pub fn new(world: &World, number: u64, options: DiskOptions) -> Arc<Self> {
        assert!(options.block_bytes == 512 || options.block_bytes == 4096, "{options:?}");
        assert!(options.request_bytes_max >= 4096 && options.request_bytes_max.is_multiple_of(4096), "{options:?}");
        assert!(options.depth > 0 && options.bytes_per_second > 0, "{options:?}");
        let limits = Limits {
            block_bytes: options.block_bytes,
            request_bytes_max: options.request_bytes_max,
            depth: options.depth,
            volatile_cache: options.volatile_cache,
        };
        let shared = Arc::clone(world.shared());
        let state = State {
            kept_bytes: WHOLE_PAGES,
            blocks: 0,
            files: BTreeMap::new(),
            files_made: 0,
            pending: BTreeMap::new(),
            requests: 0,
            busy: false,
            hung: false,
            faults: Faults::default(),
            capacity_bytes: options.capacity_bytes,
            failures: 0,
            random: shared.fork_random(),
            data_in_flight: 0,
            data_in_flight_max: 0,
        };
        let disk = Arc::new_cyclic(|own: &Weak<Self>| Self {
            shared,
            number,
            options,
            limits,
            state: Mutex::new(state),
            own: own.clone(),
        });
        let weak = Arc::downgrade(&disk);
        disk.shared.at_end(Box::new(move || {
            if let Some(disk) = weak.upgrade() {
                disk.abandon();
            }
        }));
        disk
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an empty file.
    pub fn create_file(&self) -> DiskFileId {
        let mut state = self.lock();
        let file = state.files_made;
        state.files_made += 1;
        let made = DiskFile::new(state.kept_bytes);
        state.files.insert(file, made);
        DiskFileId(file)
    }

    /// The file as this disk wants to be told of it. Each call makes a new one.
    pub fn backing(&self, file: DiskFileId) -> Backing {
        Backing::new(Arc::new(SimFile { disk: self.number, file }))
    }

    /// Which file of this disk a backing is.
    pub fn file_of(&self, backing: &Backing) -> Option<DiskFileId> {
        backing.get::<SimFile>().filter(|own| own.disk == self.number).map(|own| own.file)
    }

    /// Forgets a file and frees its space. Requests for it fail as stale from now on.
    pub fn remove_file(&self, file: DiskFileId) {
        let mut state = self.lock();
        state.files.remove(&file.0);
        state.count_blocks();
    }

    /// The file's size as a read would find it; 0 if there is no such file.
    pub fn size(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.live.size())
    }

    /// The file's size after a power loss that spares nothing unsynced.
    pub fn durable_size(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.durable.size())
    }

    /// The file's bytes as a read would find them; zeros past the end.
    pub fn live_bytes(&self, file: DiskFileId, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        if let Some(file) = self.lock().files.get(&file.0) {
            file.live.read(offset, &mut bytes);
        }
        bytes
    }

    /// The file's bytes after a power loss that spares nothing unsynced; zeros past the end.
    pub fn durable_bytes(&self, file: DiskFileId, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        if let Some(file) = self.lock().files.get(&file.0) {
            file.durable.read(offset, &mut bytes);
        }
        bytes
    }

    /// The whole file as a read would find it.
    pub fn contents(&self, file: DiskFileId) -> Vec<u8> {
        self.live_bytes(file, 0, self.size(file) as usize)
    }

    /// The whole file after a power loss that spares nothing unsynced.
    pub fn durable(&self, file: DiskFileId) -> Vec<u8> {
        self.durable_bytes(file, 0, self.durable_size(file) as usize)
    }

    /// Changes a file behind the engine's back, as a program on the host would: durable at once.
    pub fn change_behind(&self, file: DiskFileId, size: u64, offset: u64, bytes: &[u8]) {
        let mut state = self.lock();
        if let Some(file) = state.files.get_mut(&file.0) {
            file.change_behind(size, offset, bytes);
        }
        state.count_blocks();
    }

    /// Adds a fault; those added before come first.
    pub fn add_fault(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    /// Ends all faults, but not what they have done to requests already submitted.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Requests of `file` that did not succeed, since the beginning.
    pub fn failures(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.failures)
    }

    /// Requests of any file that did not succeed, since the beginning.
    pub fn failures_of_all(&self) -> u64 {
        self.lock().failures
    }

    /// Whether it is between [`Disk::hang`] and [`Disk::release`], or holds a request that a fault
    /// made hang.
    pub fn is_hung(&self) -> bool {
        let state = self.lock();
        state.hung || state.pending.values().any(|pending| pending.phase == Phase::Held)
    }

    /// Ends nothing any more until [`Disk::release`].
    pub fn hang(&self) {
        self.lock().hung = true;
    }

    /// Goes on, with requests that a fault made hang too.
    pub fn release(&self) {
        {
            let mut state = self.lock();
            state.hung = false;
            let ready_ns = self.shared.now_ns();
            for pending in state.pending.values_mut() {
                if pending.phase == Phase::Held {
                    pending.phase = Phase::Waiting { ready_ns };
                }
            }
        }
        self.pump();
    }

    /// Changes how many bytes all files together may take up.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.lock().capacity_bytes = capacity_bytes;
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.lock().pending.len() as u64
    }

    /// The most data requests that were ever in flight at once.
    pub fn data_in_flight_max(&self) -> u32 {
        self.lock().data_in_flight_max
    }

    /// Power is lost: requests in flight are dropped, some of their sectors written; of what is not
    /// durable, each sector survives or not, as drawn.
    pub fn crash(&self) {
        let lost = {
            let mut state = self.lock();
            let state = &mut *state;
            let mut lost = std::mem::take(&mut state.pending);
            for pending in lost.values_mut() {
                state.apply(pending, &self.options, false);
            }
            for file in state.files.values_mut() {
                file.lose_power(self.options.block_bytes.into(), &mut state.random);
            }
            state.count_blocks();
            (state.busy, state.data_in_flight) = (false, 0);
            lost
        };
        self.shared.trace("crash", &[self.number]);
        drop(lost);
    }

    /// The world ends: what is in flight is dropped.
    fn abandon(&self) {
        let lost = std::mem::take(&mut self.lock().pending);
        drop(lost);
    }

    fn violation(&self, operation: Operation, what: &str) {
        self.shared.fail(format!("disk {}: {operation:?} breaks the device contract: {what}", self.number));
    }

    fn call_at(&self, at_ns: u64, call: impl FnOnce(&Disk) + Send + 'static) {
        let own = self.own.clone();
        self.shared.call_at(
            at_ns,
            Box::new(move || {
                if let Some(disk) = own.upgrade() {
                    call(&disk);
                }
            }),
        );
    }

    fn transfer_ns(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Read { len, .. } | Operation::Write { len, .. } => {
                u64::from(len) * Nanos::SECOND / self.options.bytes_per_second
            }
            _ => 0,
        }
    }

    /// Starts the transfer of one request that has waited long enough, if none is under way.
    fn pump(&self) {
        let now_ns = self.shared.now_ns();
        let mut state = self.lock();
        let state = &mut *state;
        if state.busy || state.hung {
            return;
        }
        let ready: Vec<u64> = state
            .pending
            .iter()
            .filter(|(_, pending)| matches!(pending.phase, Phase::Waiting { ready_ns } if ready_ns <= now_ns))
            .map(|(id, _)| *id)
            .collect();
        if ready.is_empty() {
            return;
        }
        let id = state.random.pick(&ready);
        state.busy = true;
        let random = &mut state.random;
        if let Some(pending) = state.pending.get_mut(&id) {
            pending.phase = Phase::Transfer;
            pending.fetch_some(random);
            let end_ns = now_ns + self.transfer_ns(pending.operation);
            self.call_at(end_ns, move |disk| disk.finish(id));
        }
    }

    /// A transfer has ended: the request's effect happens, and it is answered.
    fn finish(&self, id: u64) {
        let finished = {
            let mut state = self.lock();
            let state = &mut *state;
            state.busy = false;
            let now_ns = self.shared.now_ns();
            if state.hung {
                if let Some(pending) = state.pending.get_mut(&id) {
                    pending.phase = Phase::Waiting { ready_ns: now_ns };
                }
                return;
            }
            state.pending.remove(&id).map(|pending| state.end(pending, &self.options))
        };
        if let Some(ended) = finished {
            self.answer(id, ended);
        }
        self.pump();
    }

    fn answer(&self, id: u64, ended: Ended) {
        let Ended { mut pending, outcome, read, changed } = ended;
        if let Some(at) = changed {
            self.violation(pending.operation, &format!("its memory changed while in flight, at byte {at}"));
        }
        if let (Operation::Read { len, .. }, false) = (pending.operation, read.is_empty()) {
            pending.request.copy_kept_in(0..len as usize, &read);
        }
        let code = match outcome {
            Outcome::Done => 0,
            Outcome::Error(_) | Outcome::Losing(_) => 1,
            Outcome::Lost => 2,
        };
        let [kind, offset, len] = words(pending.operation);
        self.shared.trace("end", &[self.number, id, pending.file.0, kind, offset, len, code]);
        match outcome {
            Outcome::Done => pending.request.complete(Ok(())),
            Outcome::Error(error) | Outcome::Losing(error) => pending.request.complete(Err(error)),
            Outcome::Lost => drop(pending.request),
        }
    }

    /// What of the contract a request breaks, if any of it.
    fn breach(&self, state: &State, file: DiskFileId, request: &Request) -> Option<String> {
        let block = u64::from(self.options.block_bytes);
        let operation = request.operation();
        if let Operation::Read { offset, len } | Operation::Write { offset, len } = operation {
            let bytes = request.memory_bytes();
            if bytes != len as usize || len == 0 {
                return Some(format!("its memory is {bytes} bytes"));
            }
            if request.kept_bytes() as u64 != state.kept_bytes {
                return Some(format!("it keeps {} bytes a page, the disk {}", request.kept_bytes(), state.kept_bytes));
            }
            if !offset.is_multiple_of(block) || len > self.options.request_bytes_max {
                return Some(format!("block {block}, at most {} bytes", self.options.request_bytes_max));
            }
            let tail = !u64::from(len).is_multiple_of(block);
            if tail && matches!(operation, Operation::Read { .. }) {
                return Some(format!("a read is whole blocks of {block}"));
            }
            if state.data_in_flight >= self.options.depth {
                return Some(format!("{} data requests are in flight already", state.data_in_flight));
            }
        }
        if let Operation::Punch { offset, len } = operation
            && (!offset.is_multiple_of(4096) || !len.is_multiple_of(4096) || len == 0)
        {
            return Some("a punch is whole pages".to_owned());
        }
        let other =
            state.pending.values().find(|other| other.file == file && conflict(other.operation, operation, block))?;
        Some(format!("{:?} of the same bytes is in flight", other.operation))
    }
}

impl Device for Disk {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        let operation = request.operation();
        let Some(file) = self.file_of(request.backing()) else {
            self.violation(operation, "the backing is not a file of this disk");
            return request.complete(Err(DeviceError::Stale));
        };
        let now_ns = self.shared.now_ns();
        let mut state = self.lock();
        if let Some(what) = self.breach(&state, file, &request) {
            drop(state);
            self.violation(operation, &what);
            return request.complete(Err(DeviceError::Unsupported));
        }
        let id = state.requests;
        state.requests += 1;
        let [kind, offset, len] = words(operation);
        self.shared.trace("submit", &[self.number, id, file.0, kind, offset, len]);
        let (pending, inline) = {
            let state = &mut *state;
            (state.accept(request, file, now_ns, &self.options), state.random.chance(self.options.inline_per_mille))
        };
        if is_data(operation) {
            state.data_in_flight += 1;
            state.data_in_flight_max = state.data_in_flight_max.max(state.data_in_flight);
        }
        if inline && !state.hung && pending.phase != Phase::Held {
            let ended = state.end(pending, &self.options);
            drop(state);
            return self.answer(id, ended);
        }
        if let Phase::Waiting { ready_ns } = pending.phase {
            self.call_at(ready_ns, Disk::pump);
        }
        state.pending.insert(id, pending);
    }

    fn free_bytes_hint(&self) -> u64 {
        self.lock().blocks_free() * IMAGE_BLOCK_BYTES
    }
}

#[cfg(test)]
mod tests;
