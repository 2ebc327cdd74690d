//! A simulated disk: files on a medium, a volatile write cache, and faults.
//!
//! A model (`timing`) decides when a request starts and ends. The default model has a latency, a rate and an order
//! drawn from the seed; the others are the devices of the catalogue. A request takes effect on the file as it ends. As
//! with a real disk's DMA, some pieces of a write are fetched when its transfer starts and the others when it ends, and
//! a read's memory holds rubbish in between.
//!
//! Owns: the files' bytes (live and durable), the requests in flight, space, the faults.
//! Does not own: names (`directory`), the engine's view of any file, time (`timing`), positions on the medium
//! (`layout`).
//! Invariants: each request is answered once, with no lock held, or dropped by a fault. A request that breaks the
//! contract of `afflux_engine::Request`, or whose memory changes while it is being written, fails the world's run with
//! a message.

mod changing;
mod fault;

mod file;
mod foreign;
mod gate;
mod image;
mod killed;
mod layout;
mod service;
mod state;
mod statistics;
mod timeline;
pub(crate) mod timing;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use afflux_engine::{Backing, Device, DeviceError, DeviceReport, FILE_BYTES_MAX, Limits, Operation, Request};

use crate::world::{Shared, World};

use changing::Changing;
use fault::Faults;
pub use fault::{Fault, FaultTarget, FaultWhat, FaultWindow};
use file::DiskFile;
use foreign::Foreign;
pub use foreign::{ForeignLoad, ForeignLoadId};
use gate::Gates;
use image::{IMAGE_BLOCK_BYTES, WHOLE_PAGES};
pub use killed::DiskFiles;
pub use layout::Allocation;
pub(crate) use layout::Layout;
use service::Service;
pub use state::WriteFailures;
use state::{DiskState, Ended, Outcome, Pending, Phase, StallClock, is_data};
pub use statistics::{DiskFigures, OffsetSample};
pub use timeline::DiskWait;
use timeline::Timeline;
use timing::{AnyOrder, Event, Timing};

/// Options of a disk.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Most bytes a request may carry.
    pub request_bytes_max: u32,
    /// Most data requests in flight at once.
    pub depth: u32,
    /// The largest file.
    pub file_bytes_max: u64,
    /// Whether completed writes wait for a sync to be durable.
    pub volatile_cache: bool,
    /// Most bytes of completed writes that wait for a sync. Beyond that the oldest writes become durable, as when a
    /// drive's cache is full. [`u64::MAX`]: no limit.
    pub volatile_bytes_max: u64,
    /// Time of each request before its bytes pass, in nanoseconds.
    pub latency_ns: u64,
    /// Bytes that pass per second; at least 1.
    pub bytes_per_second: u64,
    /// Bytes that all files together may take up, in whole blocks of 4096.
    pub capacity_bytes: u64,
    /// Of 1,000 requests, the number that complete before `submit` returns.
    pub inline_per_mille: u64,
    /// Whether a write that extends its file holds up later writes, as on ext4.
    pub longer_alone: bool,
    /// Whether a file gets its whole accepted size as soon as an extending write arrives, before any byte is written. A
    /// device may do no more than this with [`Request::file_bytes`].
    pub longer_ahead: bool,
}

impl Default for DiskOptions {
    /// 100 µs and 100 MB/s, 512-byte blocks, 1 MiB requests, depth 32, a volatile cache, 1 TB.
    fn default() -> Self {
        Self {
            block_bytes: 512,
            request_bytes_max: 1 << 20,
            depth: 32,
            file_bytes_max: FILE_BYTES_MAX,
            volatile_cache: true,
            volatile_bytes_max: u64::MAX,
            latency_ns: 100_000,
            bytes_per_second: 100_000_000,
            capacity_bytes: 1 << 40,
            inline_per_mille: 0,
            longer_alone: false,
            longer_ahead: false,
        }
    }
}

/// The number of a file on its disk, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct DiskFileId(pub u64);

/// Identifies a file in a disk's [`Backing`].
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
    state: Mutex<DiskState>,
    /// Only a write tells that it does not fit.
    hides_limit: AtomicBool,
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
    /// An empty disk in `world`. `number` identifies it in the trace.
    ///
    /// # Panics
    /// When the options have sizes that no device may have.
    pub fn new(world: &World, number: u64, options: DiskOptions) -> Arc<Self> {
        let timing = Timing::AnyOrder(AnyOrder::new(options.latency_ns, options.bytes_per_second));
        Self::with_timing(world, number, options, timing, None)
    }

    /// Like [`Disk::new`], with another model and a medium on which files have positions.
    pub(crate) fn with_timing(
        world: &World,
        number: u64,
        options: DiskOptions,
        timing: Timing,
        layout: Option<Layout>,
    ) -> Arc<Self> {
        assert!(options.block_bytes == 512 || options.block_bytes == 4096, "{options:?}");
        assert!(options.request_bytes_max >= 4096 && options.request_bytes_max.is_multiple_of(4096), "{options:?}");
        assert!(options.depth > 0 && options.bytes_per_second > 0, "{options:?}");
        let limits = Limits {
            block_bytes: options.block_bytes,
            request_bytes_max: options.request_bytes_max,
            depth: options.depth,
            file_bytes_max: options.file_bytes_max,
            volatile_cache: options.volatile_cache,
            syncs_overlap: true,
            ..Limits::default()
        };
        let shared = Arc::clone(world.shared());
        let state = DiskState {
            backed_bytes: WHOLE_PAGES,
            blocks: 0,
            files: BTreeMap::new(),
            files_made: 0,
            cached: VecDeque::new(),
            cached_bytes: 0,
            pending: BTreeMap::new(),
            ended: Vec::new(),
            changing: Changing::default(),
            requests: 0,
            gates: Gates::default(),
            service: Service::new(timing, layout),
            foreign: Foreign::default(),
            faults: Faults::default(),
            capacity_bytes: options.capacity_bytes,
            failures: 0,
            write_failures: WriteFailures::default(),
            random: shared.fork_random(),
            data_in_flight: 0,
            data_in_flight_max: 0,
            stall: StallClock::default(),
            timeline: Timeline::default(),
        };
        let disk = Arc::new_cyclic(|own: &Weak<Self>| Self {
            shared,
            number,
            options,
            limits,
            state: Mutex::new(state),
            hides_limit: AtomicBool::new(false),
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

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an empty file.
    pub fn create_file(&self) -> DiskFileId {
        let mut state = self.lock();
        let file = state.files_made;
        state.files_made += 1;
        let made = DiskFile::new(state.backed_bytes);
        state.files.insert(file, made);
        DiskFileId(file)
    }

    /// The file as a backing for an engine. Each call makes a new one.
    pub fn backing(&self, file: DiskFileId) -> Backing {
        Backing::new(Arc::new(SimFile { disk: self.number, file }))
    }

    /// The file of this disk that a backing stands for.
    pub fn file_of(&self, backing: &Backing) -> Option<DiskFileId> {
        backing.get::<SimFile>().filter(|own| own.disk == self.number).map(|own| own.file)
    }

    /// Removes a file and frees its space. Later requests for it fail as stale.
    pub fn remove_file(&self, file: DiskFileId) {
        let mut state = self.lock();
        state.files.remove(&file.0);
        state.service.remove_file(file);
        state.count_blocks();
    }

    /// The file's size as a read would find it; 0 if there is no such file.
    pub fn size(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.live.size())
    }

    /// The first offset at or after `from` that takes up space, or with `hole` the first that does not; the end of the
    /// file does not. `None` if there is none, or if the file ends at or before `from`.
    pub fn seek(&self, file: DiskFileId, from: u64, hole: bool) -> Option<u64> {
        let state = self.lock();
        let live = &state.files.get(&file.0)?.live;
        if hole { live.next_hole(from) } else { live.next_data(from) }
    }

    /// Gives a file the space of a range. False if there is too little, or no such file.
    pub fn reserve(&self, file: DiskFileId, range: Range<u64>) -> bool {
        let len = range.end.saturating_sub(range.start);
        self.lock().reserve(file, range.start, len, self.options.volatile_cache)
    }

    /// Gives a range of one file the bytes of another, or of its own, without a request. False if there is too little
    /// space, or no such file. A simulated clone takes space as a copy does.
    pub fn copy(&self, source: DiskFileId, from: u64, target: DiskFileId, to: Range<u64>) -> bool {
        self.lock().copy(source, from, target, to, self.options.volatile_cache)
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
        state.service.lay_out(file, 0, size);
        if let Some(file) = state.files.get_mut(&file.0) {
            file.change_behind(size, offset, bytes);
        }
        state.count_blocks();
    }

    /// Makes a file this long behind the engine's back, all of it a hole.
    pub fn make_sparse(&self, file: DiskFileId, size: u64) {
        if let Some(file) = self.lock().files.get_mut(&file.0) {
            file.change_behind(size, 0, &[]);
        }
    }

    /// Gives the first `bytes` of a file a position on the medium, as a file from before the run has. The bytes are in
    /// one piece if possible. Nothing is read, written or counted as space.
    pub fn lay_out(&self, file: DiskFileId, bytes: u64) {
        self.lock().service.lay_out(file, 0, bytes);
    }

    /// Gives a range of a file this position on the medium, before any of it is written or laid out. The space is free,
    /// and no file needs to exist. Without a medium this does nothing.
    pub fn place(&self, file: DiskFileId, offset: u64, position: u64, len: u64) {
        self.lock().service.place(file, offset, position, len);
    }

    /// Written bytes that no sync of their file has made durable. Bytes written twice count twice. 0 without a volatile
    /// cache.
    pub fn volatile_bytes(&self) -> u64 {
        self.lock().files.values().map(DiskFile::volatile_bytes).sum()
    }

    /// The figures so far.
    pub fn figures(&self) -> DiskFigures {
        let now_ns = self.shared.now_ns();
        self.lock().service.figures(now_ns)
    }

    /// Positions of requests on the medium: at most 20,000 requests, evenly thinned.
    pub fn offsets(&self) -> Vec<OffsetSample> {
        self.lock().service.offsets().to_vec()
    }

    /// The wait of a call on a file that began and ended at these instants. `reads` selects reads of the file or its
    /// other requests. Only the latest requests are known.
    pub fn waited(&self, file: DiskFileId, reads: bool, began_ns: u64, ended_ns: u64) -> DiskWait {
        self.lock().timeline.waited(file.0, reads, began_ns, ended_ns)
    }

    /// Adds a fault; faults added earlier take precedence.
    pub fn add_fault(&self, fault: Fault) {
        self.add_fault_within(fault, FaultWindow::default());
    }

    /// Adds a fault limited to some times or positions; faults added earlier take precedence.
    pub fn add_fault_within(&self, fault: Fault, window: FaultWindow) {
        self.lock().faults.add(fault, window);
    }

    /// Ends all faults. Requests already submitted still meet them.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Failed requests of `file` since the beginning.
    pub fn failures(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.failures)
    }

    /// Failed syncs of `file` since the beginning.
    pub fn sync_failures(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.sync_failures)
    }

    /// Sectors of `file` whose writes failed syncs have lost, each write counted.
    pub fn sectors_lost(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.sectors_lost)
    }

    /// Failed requests of all files since the beginning.
    pub fn failures_of_all(&self) -> u64 {
        self.lock().failures
    }

    /// Failed writes and syncs of all files.
    pub fn write_failures(&self) -> WriteFailures {
        self.lock().write_failures
    }

    /// True between [`Disk::hang`] and [`Disk::release`], or while a fault makes a request hang.
    pub fn is_hung(&self) -> bool {
        let state = self.lock();
        state.service.is_hung() || state.pending.values().any(|pending| pending.phase == Phase::Held)
    }

    /// The longest time in which the disk had requests and ended none.
    pub fn longest_stall_ns(&self) -> u64 {
        let state = self.lock();
        let now_ns = self.shared.now_ns();
        if state.pending.is_empty() { state.stall.longest_ns } else { state.stall.longest_at(now_ns) }
    }

    /// Stops the disk until [`Disk::release`]: no request ends, and the device's own time stands still.
    pub fn hang(&self) {
        let now_ns = self.shared.now_ns();
        self.lock().service.hang(now_ns);
    }

    /// Ends a hang, including requests that a fault made hang.
    pub fn release(&self) {
        let mut state = self.lock();
        let now_ns = self.shared.now_ns();
        state.service.release(now_ns);
        let held: Vec<u64> =
            (state.pending.iter()).filter(|(_, pending)| pending.phase == Phase::Held).map(|(id, _)| *id).collect();
        for id in held {
            self.hand_over(&mut state, id, false);
        }
        self.wake_at(&mut state, now_ns);
    }

    /// From now on everything takes this many times as long as the model says; 1 restores the model's speed.
    pub fn slow_down(&self, times: u64) {
        let mut state = self.lock();
        let now_ns = self.shared.now_ns();
        state.service.slow_down(now_ns, times);
        self.wake_at(&mut state, now_ns);
    }

    /// Changes how many bytes all files together may take up.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.lock().capacity_bytes = capacity_bytes;
    }

    /// From now on the disk reports free space that it may not have, as a network file system does that counts for each
    /// user.
    pub fn hide_limit(&self) {
        self.hides_limit.store(true, Ordering::Relaxed);
    }

    /// The space for all files together that the disk was made with.
    pub fn capacity_bytes(&self) -> u64 {
        self.options.capacity_bytes
    }

    /// Restores the space that the disk was made with.
    pub fn restore_capacity(&self) {
        self.set_capacity(self.options.capacity_bytes);
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.lock().pending.len() as u64
    }

    /// The most data requests that were ever in flight at once.
    pub fn data_in_flight_max(&self) -> u32 {
        self.lock().data_in_flight_max
    }

    /// Power is lost. Requests in flight are dropped with some of their sectors written. Each sector that is not
    /// durable survives or not, at random.
    pub fn crash(&self) {
        let lost = {
            let mut state = self.lock();
            let state = &mut *state;
            let mut lost = std::mem::take(&mut state.pending);
            state.changing.clear();
            for pending in lost.values_mut() {
                state.apply(pending, &self.options, false);
            }
            for file in state.files.values_mut() {
                file.lose_power(self.options.block_bytes.into(), &mut state.random);
            }
            state.count_blocks();
            state.data_in_flight = 0;
            state.gates.clear();
            state.foreign.clear();
            state.service.clear(self.shared.now_ns());
            lost
        };
        self.shared.trace("crash", &[self.number]);
        drop(lost);
    }

    /// The submitting process is gone. Requests in flight are carried out without an answer; faults already drawn for
    /// them hold.
    pub fn kill_process(&self) {
        let orphans = {
            let mut state = self.lock();
            let state = &mut *state;
            let orphans = std::mem::take(&mut state.pending);
            state.changing.clear();
            let ended: Vec<Ended> = orphans.into_values().map(|pending| state.end(pending, &self.options)).collect();
            state.data_in_flight = 0;
            state.gates.clear();
            state.foreign.clear();
            state.service.clear(self.shared.now_ns());
            ended
        };
        self.shared.trace("kill", &[self.number]);
        drop(orphans);
    }

    /// The world ends: requests in flight are dropped.
    fn abandon(&self) {
        let lost = std::mem::take(&mut self.lock().pending);
        drop(lost);
    }

    fn violation(&self, operation: Operation, what: &str) {
        self.shared.fail(format!("disk {}: {operation:?} breaks the device contract: {what}", self.number));
    }

    pub(crate) fn call_at(&self, at_ns: u64, call: impl FnOnce(&Disk) + Send + 'static) {
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

    /// Gives a request to the timing. `located` means that nothing has changed since its position was looked up.
    fn hand_over(&self, state: &mut DiskState, id: u64, located: bool) {
        let Some(pending) = state.pending.get_mut(&id) else { return };
        if let (Operation::Write { offset, len }, Some(file), true) =
            (pending.operation, state.files.get_mut(&pending.file.0), self.options.longer_ahead)
            && offset + u64::from(len) > file.live.size()
        {
            file.make_longer(pending.request.file_bytes(), self.options.volatile_cache);
        }
        if let (Operation::Write { offset, len }, true) = (pending.operation, self.options.longer_alone) {
            let size = state.files.get(&pending.file.0).map_or(0, |file| file.live.size());
            if !state.gates.enter(pending.file.0, id, offset + u64::from(len) > size) {
                return;
            }
        }
        let now_ns = self.shared.now_ns();
        pending.phase = Phase::Queued;
        let (file, operation) = (pending.file, pending.operation);
        if !located {
            state.service.locate(file, operation);
        }
        state.service.accept(now_ns, id, file, operation, self.options.volatile_cache);
        self.wake_at(state, now_ns);
    }

    /// Makes the timing run at this instant.
    fn wake_at(&self, state: &mut DiskState, at_ns: u64) {
        if state.service.wants_wake(at_ns) {
            self.call_at(at_ns, move |disk| disk.pump(at_ns));
        }
    }

    /// Runs the timing: starts requests, ends them with their effects, and answers them.
    fn pump(&self, woken_ns: u64) {
        let mut ended;
        {
            let mut state = self.lock();
            let state = &mut *state;
            if !state.service.woken(woken_ns) {
                return;
            }
            ended = std::mem::take(&mut state.ended);
            let now_ns = self.shared.now_ns();
            let next_ns = state.service.run(now_ns, &mut state.random);
            while let Some(event) = state.service.pop_event() {
                match event {
                    Event::Started(id) => {
                        let Some(pending) = state.pending.get_mut(&id) else { continue };
                        pending.phase = Phase::Transfer;
                        pending.started_ns = Some(now_ns);
                        state.timeline.started(id, now_ns);
                        pending.fetch_some(&mut state.random);
                    }
                    Event::Ended(id) => {
                        let Some(pending) = state.pending.remove(&id) else {
                            if let Some(program) = state.foreign.ended(id) {
                                self.foreign_goes_on(state, program);
                            }
                            continue;
                        };
                        let file = pending.file;
                        if !pending.direct {
                            state.changing.ended(file, pending.operation, self.options.block_bytes.into());
                        }
                        ended.push((id, self.end(state, id, pending, now_ns)));
                        state.gates.left(file.0, id).into_iter().for_each(|id| self.hand_over(state, id, false));
                    }
                }
            }
            if let Some(next_ns) = next_ns {
                self.wake_at(state, next_ns);
            }
        }
        for (id, ended) in ended.drain(..) {
            self.answer(id, ended);
        }
        self.lock().ended = ended;
    }

    /// Applies and counts a request's effect. The request is no longer in flight.
    fn end(&self, state: &mut DiskState, id: u64, pending: Box<Pending>, now_ns: u64) -> Ended {
        let (file, operation, position) = (pending.file, pending.operation, pending.position);
        state.timeline.ended(id, file.0, operation, pending.submitted_ns, pending.started_ns, now_ns);
        let extent = |state: &DiskState| state.files.get(&file.0).map(|file| (file.live.blocks(), file.live.size()));
        let before = extent(state);
        let ended = state.end(pending, &self.options);
        if extent(state) != before {
            state.service.owe_journal();
        }
        if matches!(operation, Operation::Write { .. } | Operation::Sync) {
            state.write_failures.note(ended.outcome == Outcome::Done, now_ns);
        }
        state.stall.ended(now_ns);
        let in_flight = state.pending.len() as u64;
        state.service.ended(now_ns, file, operation, position, ended.outcome == Outcome::Done, in_flight);
        ended
    }

    fn answer(&self, id: u64, ended: Ended) {
        let Ended { mut pending, outcome, read, changed } = ended;
        if let Some(at) = changed {
            self.violation(pending.operation, &format!("its memory changed while in flight, at byte {at}"));
        }
        if let (Operation::Read { len, .. }, false) = (pending.operation, read.is_empty()) {
            pending.request.copy_backed_in(0..len as usize, &read);
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

    /// The clause of the contract that a request breaks, if any.
    fn breach(&self, state: &DiskState, file: DiskFileId, request: &Request, direct: bool) -> Option<String> {
        let block = u64::from(self.options.block_bytes);
        let operation = request.operation();
        if let Operation::Read { offset, len } | Operation::Write { offset, len } = operation {
            let bytes = request.memory_bytes();
            if bytes != len as usize || len == 0 {
                return Some(format!("its memory is {bytes} bytes"));
            }
            if request.backed_bytes() as u64 != state.backed_bytes {
                return Some(format!(
                    "it keeps {} bytes a page, the disk {}",
                    request.backed_bytes(),
                    state.backed_bytes
                ));
            }
            if !offset.is_multiple_of(block) || len > self.options.request_bytes_max {
                return Some(format!("block {block}, at most {} bytes", self.options.request_bytes_max));
            }
            let tail = !u64::from(len).is_multiple_of(block);
            if tail && matches!(operation, Operation::Read { .. }) {
                return Some(format!("a read is whole blocks of {block}"));
            }
            // The engine may set as many requests aside as it has slots.
            if !direct && state.data_in_flight >= 2 * self.options.depth {
                return Some(format!("{} data requests are in flight already", state.data_in_flight));
            }
        }
        if let Operation::Punch { offset, len } = operation
            && (!offset.is_multiple_of(4096) || !len.is_multiple_of(4096) || len == 0)
        {
            return Some("a punch is whole pages".to_owned());
        }
        if direct {
            return None;
        }
        let other = state.changing.conflict(file, operation, block)?;
        Some(format!("{other:?} of the same bytes is in flight"))
    }
}

impl Device for Disk {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        self.take(request, false);
    }

    fn free_bytes_hint(&self) -> u64 {
        if self.hides_limit.load(Ordering::Relaxed) { u64::MAX } else { self.lock().blocks_free() * IMAGE_BLOCK_BYTES }
    }

    fn report(&self) -> DeviceReport {
        let refuses_late = self.hides_limit.load(Ordering::Relaxed);
        DeviceReport { refuses_late, ..DeviceReport::default() }
    }
}

impl Disk {
    /// Takes a direct request of a program, past the cache. It shares the queue with the engine's requests but does not
    /// count towards their limit in flight. It may overlap other writes in flight, as programs may do; the last to end
    /// wins.
    pub fn submit_direct(&self, request: Request) {
        self.take(request, true);
    }

    fn take(&self, request: Request, direct: bool) {
        let operation = request.operation();
        let Some(file) = self.file_of(request.backing()) else {
            self.violation(operation, "the backing is not a file of this disk");
            return request.complete(Err(DeviceError::Stale));
        };
        let now_ns = self.shared.now_ns();
        let mut state = self.lock();
        if let Some(what) = self.breach(&state, file, &request, direct) {
            drop(state);
            self.violation(operation, &what);
            return request.complete(Err(DeviceError::Unsupported));
        }
        let id = state.requests;
        state.requests += 1;
        let [kind, offset, len] = words(operation);
        self.shared.trace_at(now_ns, "submit", &[self.number, id, file.0, kind, offset, len]);
        let (pending, inline) = {
            let state = &mut *state;
            state.service.allocate(file, operation);
            state.service.locate(file, operation);
            (state.accept(request, file, now_ns, direct), state.random.chance(self.options.inline_per_mille))
        };
        if is_data(operation) && !direct {
            state.data_in_flight += 1;
            state.data_in_flight_max = state.data_in_flight_max.max(state.data_in_flight);
        }
        if state.pending.is_empty() {
            state.stall.begins(now_ns);
        }
        if inline && !state.service.is_hung() && pending.phase != Phase::Held {
            let ended = self.end(&mut state, id, pending, now_ns);
            drop(state);
            return self.answer(id, ended);
        }
        let phase = pending.phase;
        state.pending.insert(id, pending);
        if !direct {
            state.changing.begins(file, operation, self.options.block_bytes.into());
        }
        let in_flight = state.pending.len() as u64;
        state.service.in_flight(now_ns, in_flight);
        match phase {
            Phase::Waiting { ready_ns } if ready_ns > now_ns => {
                self.call_at(ready_ns, move |disk| disk.hand_over(&mut disk.lock(), id, false));
            }
            Phase::Waiting { .. } => self.hand_over(&mut state, id, true),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
