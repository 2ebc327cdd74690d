//! Runs one clone of a job.
//!
//! Owns: the time of the next operation (pauses, the job's time, the depth of its queue), its call, its duration.
//! Does not own: the choice of the next operation (`sequence`), rates (`pace`), files and contents (`simulated`).
//! Invariants: one operation runs at a time, except with engines that have several in flight. A clone ends at its first
//! error that is not allowed, at the end of its time, or when all jobs are stopped. It waits for its calls in flight.
//!
//! The mmap engine: an absent page is read before any part of it is touched, as by a fault. Then the bytes are stored
//! in it as by `write`, with the same waits for dirty limits, and no time is charged for a call. A partial page is
//! written back by its sectors, where a kernel would write the whole page.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use afflux_engine::{Client, DeviceError, Error, Nanos, Platform};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;

use crate::group::{Everybody, FlowShare, Gate};
use crate::job::{Engine, Job};
use crate::locking::lock;
use crate::outcome::CallWaits;
use crate::pace::Pace;
use crate::recorder::{CallLog, Recorder};
use crate::sequence::{Block, Direction, Sequence};
use crate::simulated::WorkFile;
use crate::site::{Site, WaitsFor};
use crate::verifying::Written;
use afflux_simulator::Random;

const PAGE_BYTES: u64 = 4096;
/// Calls and pages after which a clone that never had to wait yields to the executor, which treats an endless step as
/// an error.
const UNBROKEN_MAX: u64 = 65_536;
/// Interval at which a pausing clone checks whether it has to end, if other jobs' ends may end it.
const LOOK_NS: u64 = 10_000_000;
/// Wait of a clone whose flow is ahead, unless `flow_sleep` is set.
const FLOW_LOOK_NS: u64 = 20_000;

/// A clone's current operation, for the report of a clone that never ends.
#[derive(Default)]
pub(crate) struct Doing {
    /// 0: nothing, 1: a pause, 2: a read, 3: a write, 4: a sync, 5: a trim.
    what: AtomicU64,
    file: AtomicU64,
    offset: AtomicU64,
    len: AtomicU64,
    since_ns: AtomicU64,
}

impl Doing {
    #[inline]
    fn begin(&self, what: u64, file: usize, range: (u64, u64), now_ns: u64) {
        self.what.store(what, Ordering::Relaxed);
        self.file.store(file as u64, Ordering::Relaxed);
        self.offset.store(range.0, Ordering::Relaxed);
        self.len.store(range.1, Ordering::Relaxed);
        self.since_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Whether it is in the middle of an operation.
    pub(crate) fn is_busy(&self) -> bool {
        self.what.load(Ordering::Relaxed) != 0
    }

    /// Whether it is in a pause of its own.
    pub(crate) fn pauses(&self) -> bool {
        self.what.load(Ordering::Relaxed) == 1
    }
}

/// One clone of a job.
pub(crate) struct Clone<F> {
    pub(crate) name: String,
    pub(crate) number: u64,
    /// The owner of its waits.
    pub(crate) task: Client,
    pub(crate) job: Arc<Job>,
    pub(crate) files: Vec<Arc<F>>,
    /// The files that no other clone uses.
    pub(crate) removable: Vec<bool>,
    pub(crate) sequence: Sequence,
    /// Added to the job's own delay.
    pub(crate) delay_ns: u64,
    pub(crate) recorder: Arc<Mutex<Recorder>>,
    pub(crate) log: Option<Arc<Mutex<CallLog>>>,
    pub(crate) doing: Arc<Doing>,
    /// The gate of its own job; below, the gate of the job that it waits for.
    pub(crate) gate: Arc<Gate>,
    pub(crate) waits_for: Option<Arc<Gate>>,
    pub(crate) flow: Option<FlowShare>,
    /// Its number among all clones.
    pub(crate) member: usize,
    pub(crate) everybody: Arc<Everybody>,
    /// For times; the sequence draws the operations.
    pub(crate) random: Random,
}

/// A clone's current operation, in words.
pub(crate) fn described(name: &str, number: u64, files: &[Arc<WorkFile>], doing: &Doing) -> String {
    let of = |field: &AtomicU64| field.load(Ordering::Relaxed);
    let path = files.get(of(&doing.file) as usize).map_or("", |file| file.path.as_str());
    let (offset, len, since) = (of(&doing.offset), of(&doing.len), of(&doing.since_ns));
    let what = match of(&doing.what) {
        0 => return format!("{name} ({number}): between operations"),
        1 => return format!("{name} ({number}): in a pause since {since} ns"),
        2 => format!("read of {len} bytes at {offset} of"),
        3 => format!("write of {len} bytes at {offset} of"),
        5 => format!("trim of {len} bytes at {offset} of"),
        _ => "sync of".to_owned(),
    };
    format!("{name} ({number}): {what} {path} since {since} ns")
}

/// The reason that a clone stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopReason {
    /// All its work is done.
    Done,
    /// Its time is over, or another job ended it.
    Over,
    Failed,
}

/// Calls in flight; each returns its buffer.
type InFlight = FuturesUnordered<Pin<Box<dyn Future<Output = Returned> + Send>>>;

/// A call that has ended, with others in flight.
struct Returned {
    call: Call,
    began_ns: u64,
    ended_ns: u64,
    result: Result<(), Error>,
    buffer: Vec<u8>,
}

/// A call and its purpose.
#[derive(Clone, Copy)]
struct Call {
    direction: Direction,
    block: Block,
    /// The call reads back written data.
    verifies: bool,
}

/// A clone at work.
struct Running<S: Site> {
    clone: Clone<S::File>,
    site: Arc<S>,
    buffer: Vec<u8>,
    /// Buffers of ended calls, for the next ones.
    spare: Vec<Vec<u8>>,
    in_flight: InFlight,
    /// Calls that will be submitted together with the next ones.
    gathered: Vec<Pin<Box<dyn Future<Output = Returned> + Send>>>,
    depth: usize,
    failed: bool,
    written: Option<Written>,
    pace: Pace,
    start_ns: u64,
    /// Operations are counted from this time on.
    counted_ns: u64,
    /// The end of its time.
    end_ns: u64,
    /// Calls since the last pause, and the time of that pause.
    since_pause: (u64, u64),
    /// Calls and pages since the last yield to the executor.
    unbroken: u64,
}

/// Runs a clone to its end.
pub(crate) async fn run<S: Site>(site: Arc<S>, mut clone: Clone<S::File>) {
    if let Some(gate) = clone.waits_for.take() {
        gate.all_ended().await;
    }
    let (gate, everybody) = (Arc::clone(&clone.gate), Arc::clone(&clone.everybody));
    let (member, ends, mut has_failed) = (clone.member, clone.job.more.ends, false);
    if !everybody.is_end_requested(member) {
        everybody.begins(member);
        let flow = clone.flow.take();
        if let Some(flow) = &flow {
            flow.begins();
        }
        clone.flow = flow;
        has_failed = run_now(site, clone).await;
    }
    everybody.ended(member, ends, has_failed);
    gate.ended();
}

/// Runs it now. Returns whether it ended by an error.
async fn run_now<S: Site>(site: Arc<S>, clone: Clone<S::File>) -> bool {
    let job = Arc::clone(&clone.job);
    let now_ns = site.now_ns();
    let sizes = job.block_bytes;
    let mut running = Running {
        buffer: vec![0; sizes[0].max.max(sizes[1].max) as usize],
        spare: Vec::new(),
        in_flight: FuturesUnordered::new(),
        gathered: Vec::new(),
        depth: usize::try_from(job.in_flight_max()).unwrap_or(usize::MAX).max(1),
        failed: false,
        written: Written::of(&job),
        pace: Pace::of(&job, now_ns, clone.random.clone()),
        start_ns: now_ns,
        counted_ns: 0,
        end_ns: u64::MAX,
        since_pause: (0, now_ns),
        unbroken: 0,
        clone,
        site,
    };
    let drawn_ns = match job.start_delay_max_ns.saturating_sub(job.start_delay_ns) {
        0 => 0,
        span_ns => running.clone.random.below(span_ns.saturating_add(1)),
    };
    let delay_ns = job.start_delay_ns.saturating_add(drawn_ns).saturating_add(running.clone.delay_ns);
    running.pause_until(now_ns.saturating_add(delay_ns)).await;
    running.start_ns = running.site.now_ns();
    running.pace.begins(running.start_ns);
    running.since_pause.1 = running.start_ns;
    if job.more.ramp_ns > 0 {
        running.counted_ns = running.start_ns.saturating_add(job.more.ramp_ns);
    }
    if job.runtime_ns > 0 {
        running.end_ns = running.start_ns.saturating_add(job.runtime_ns).saturating_add(job.more.ramp_ns);
    }
    if !job.more.create_only {
        running.prepare().await;
        running.all_loops().await;
    }
    running.leave();
    running.clone.doing.begin(0, 0, (0, 0), 0);
    running.failed
}

impl<S: Site> Running<S> {
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns.min(self.site.stop_ns())
            || self.site.has_failed()
            || self.clone.everybody.is_end_requested(self.clone.member)
    }

    async fn pause_until(&mut self, at_ns: u64) {
        let at_ns = at_ns.min(self.end_ns).min(self.site.stop_ns());
        let mut now_ns = self.site.now_ns();
        if at_ns <= now_ns {
            return;
        }
        self.clone.doing.begin(1, 0, (0, 0), now_ns);
        if !self.clone.everybody.any_ends_others {
            return self.site.world().sleep_until(Nanos(at_ns)).await;
        }
        // fio checks as often whether a job has to end.
        while now_ns < at_ns && !self.clone.everybody.is_end_requested(self.clone.member) {
            let next_ns = at_ns.min(now_ns.saturating_add(LOOK_NS));
            self.site.world().sleep_until(Nanos(next_ns)).await;
            now_ns = self.site.now_ns();
        }
    }

    /// Drops the files' pages that earlier jobs left in the cache, as fio does by default.
    async fn prepare(&mut self) {
        let job = Arc::clone(&self.clone.job);
        let forgets = job.pattern.reads && job.more.invalidate && !job.is_direct() && !job.more.pre_read;
        for file in &self.clone.files {
            if self.site.begin_use(file) && forgets {
                self.site.forget_clean(file).await;
            }
        }
        if job.more.pre_read {
            for file in self.clone.files.clone() {
                let mut offset = 0;
                let buffer = &mut self.buffer;
                while let Ok(count @ 1..) = self.site.read(&self.clone.task, &file, offset, buffer).await {
                    offset += count as u64;
                }
            }
        }
    }

    async fn all_loops(&mut self) {
        if self.clone.job.engine == Engine::Cpu {
            return self.burn().await;
        }
        if self.clone.job.engine == Engine::Names {
            return self.names().await;
        }
        loop {
            let mut stop = self.operations().await;
            self.settle().await;
            self.failed |= stop == StopReason::Failed;
            if self.failed {
                stop = StopReason::Failed;
            }
            let job = &self.clone.job;
            let closes = (job.end_fsync || job.more.fsync_on_close) && job.pattern.writes && job.moves_bytes();
            if stop != StopReason::Failed && closes && !self.clone.sequence.synced_last() {
                self.close().await;
            }
            if stop == StopReason::Done
                && let Some(written) = &mut self.written
            {
                let rest = written.rest();
                self.read_back(rest).await;
                self.settle().await;
            }
            if stop != StopReason::Done || self.failed || self.is_over(self.site.now_ns()) {
                return;
            }
            if !self.clone.sequence.next_loop() {
                return;
            }
            self.rewind().await;
        }
    }

    /// Releases its share of the flow and removes its own files.
    fn leave(&mut self) {
        if let Some(flow) = &self.clone.flow {
            flow.ends();
        }
        if self.clone.job.more.unlink {
            let own = self.clone.files.iter().zip(&self.clone.removable).filter(|(_, removable)| **removable);
            own.for_each(|(file, _)| self.site.remove(file));
        }
    }

    /// Takes a share of a CPU, in pieces that let other tasks run between them.
    async fn burn(&mut self) {
        const PIECE_NS: u64 = 1_000_000;
        let (percent, chunk_ns) = (self.clone.job.more.cpu_percent.clamp(1, 100), self.clone.job.more.cpu_chunk_ns);
        while !self.is_over(self.site.now_ns()) {
            for _ in 0..chunk_ns.div_ceil(PIECE_NS).max(1) {
                self.site.charge_ns(PIECE_NS.min(chunk_ns.max(1)));
                self.site.world().preemption_point().await;
            }
            let idle_ns = chunk_ns.saturating_mul(100 - percent) / percent;
            self.pause_until(self.site.now_ns().saturating_add(idle_ns)).await;
            next_step().await;
        }
    }

    /// Makes one call per file, about its name.
    async fn names(&mut self) {
        for _ in 0..self.clone.job.files {
            let began_ns = self.site.now_ns();
            if self.is_over(began_ns) {
                return;
            }
            self.site.charge_calls(1, Direction::Read);
            self.site.world().preemption_point().await;
            self.record(Direction::Read, Block { file: 0, offset: 0, len: 0 }, began_ns, self.site.now_ns());
        }
    }

    async fn operations(&mut self) -> StopReason {
        loop {
            if self.clone.sequence.is_done() {
                return StopReason::Done;
            }
            if self.failed {
                return StopReason::Failed;
            }
            if self.is_over(self.site.now_ns()) {
                return StopReason::Over;
            }
            if !self.flow_allows().await {
                continue;
            }
            let result = match self.clone.sequence.sync_due() {
                Some(_) => match self.clone.sequence.sync() {
                    Some(file) => self.sync(file, false).await,
                    None => return StopReason::Done,
                },
                None => {
                    let mut direction = self.clone.sequence.direction();
                    if self.pace.has_rates() {
                        direction = self.paced(direction).await;
                        if self.is_over(self.site.now_ns()) {
                            return StopReason::Over;
                        }
                    }
                    let Some(block) = self.clone.sequence.block(direction) else { return StopReason::Done };
                    self.unbroken += 1 + block.len / PAGE_BYTES;
                    self.rewind().await;
                    let result = self.block(Call { direction, block, verifies: false }).await;
                    if result.is_ok() {
                        self.think().await;
                    }
                    result
                }
            };
            if result.is_err() {
                return StopReason::Failed;
            }
            if let Some(written) = &mut self.written {
                let due = written.due();
                self.read_back(due).await;
            }
            if self.falls_behind() {
                return StopReason::Failed;
            }
            if self.unbroken >= UNBROKEN_MAX {
                self.unbroken = 0;
                next_step().await;
            }
            self.site.world().preemption_point().await;
        }
    }

    /// Whether the job's share of its flow allows a call now. If not, it returns after a wait.
    async fn flow_allows(&mut self) -> bool {
        let Some(flow) = &mut self.clone.flow else { return true };
        if flow.take() {
            return true;
        }
        let sleep_ns = self.clone.job.more.flow_sleep_ns;
        if sleep_ns > 0 {
            self.settle().await;
        } else {
            // fio polls here; this loop handles ended calls meanwhile.
            self.reap_ended().await;
        }
        self.pause_until(self.site.now_ns().saturating_add(sleep_ns.max(FLOW_LOOK_NS))).await;
        false
    }

    /// The pause after a number of calls or a time.
    async fn think(&mut self) {
        let job = Arc::clone(&self.clone.job);
        let (think_ns, more) = (job.think_ns, &job.more);
        if think_ns == 0 {
            return;
        }
        self.since_pause.0 += 1;
        let now_ns = self.site.now_ns();
        let by_time = more.think_after_ns > 0 && now_ns.saturating_sub(self.since_pause.1) >= more.think_after_ns;
        let by_calls = more.think_after_ns == 0 && self.since_pause.0 >= more.think_every;
        if !by_time && !by_calls {
            return;
        }
        let spin_ns = more.think_spin_ns.min(think_ns);
        self.settle().await;
        let now_ns = self.site.now_ns();
        if spin_ns > 0 {
            self.site.charge_ns(spin_ns);
        }
        self.pause_until(now_ns.saturating_add(think_ns)).await;
        self.since_pause = (0, self.site.now_ns());
    }

    /// Whether the job falls below a minimum rate.
    fn falls_behind(&mut self) -> bool {
        if !self.pace.has_least(&self.clone.job) {
            return false;
        }
        let now_ns = self.site.now_ns();
        if now_ns < self.counted_ns {
            return false;
        }
        let Some(what) = self.pace.falls_behind(&self.clone.job, now_ns) else { return false };
        lock(&self.clone.recorder).error(what);
        true
    }

    /// Waits until a rate allows the next block. In a mixed job the direction that is due first goes first.
    async fn paced(&mut self, wanted: Direction) -> Direction {
        let mixed = self.clone.job.pattern.reads && self.clone.job.pattern.writes;
        let now_ns = self.site.now_ns();
        let Some((direction, at_ns)) = self.pace.next(wanted, mixed, now_ns) else { return wanted };
        if self.clone.job.more.offload {
            // The clone handles ended calls during the wait and continues on time.
            self.submit_gathered();
            let site = Arc::clone(&self.site);
            let mut sleep = pin!(async move { site.world().sleep_until(Nanos(at_ns)).await });
            while !self.in_flight.is_empty() {
                match select(&mut sleep, self.in_flight.next()).await {
                    Either::Left(_) => return direction,
                    Either::Right((returned, _)) => returned.into_iter().for_each(|returned| self.returned(returned)),
                }
            }
        } else {
            self.settle().await;
        }
        self.pause_until(at_ns).await;
        direction
    }

    async fn rewind(&mut self) {
        let rewound = self.clone.sequence.take_rewound();
        let job = &self.clone.job;
        if job.pattern.reads && job.more.invalidate && !job.is_direct() && job.moves_bytes() {
            for file in rewound {
                self.site.forget_clean(&self.clone.files[file]).await;
            }
        }
    }

    /// Makes a call. Waits for the call's end, or until another call may be in flight.
    async fn block(&mut self, call: Call) -> Result<(), ()> {
        let Call { direction, block: Block { file: number, offset, len }, .. } = call;
        let began_ns = self.site.now_ns();
        self.site.charge_calls(calls(&self.clone.job), direction);
        // With every engine, a trim is waited for.
        if self.depth > 1 && direction != Direction::Trim {
            return self.block_beside_others(call, began_ns).await;
        }
        let what = match direction {
            Direction::Read => 2,
            Direction::Write => 3,
            Direction::Trim => 5,
        };
        self.clone.doing.begin(what, number, (offset, len), began_ns);
        let result = match self.clone.files.get(number) {
            Some(file) => {
                let buffer = &mut self.buffer[..len as usize];
                carry_out(&*self.site, &self.clone.task, &self.clone.job, file, direction, offset, buffer).await
            }
            // Nothing to read or write.
            None => Ok(()),
        };
        let ended_ns = self.site.now_ns();
        self.ended(call, began_ns, ended_ns, result)
    }

    async fn block_beside_others(&mut self, call: Call, began_ns: u64) -> Result<(), ()> {
        let more = &self.clone.job.more;
        let (batch, low) = (more.batch.max(1) as usize, more.depth_low as usize);
        let low = if low == 0 { self.depth } else { low.min(self.depth) };
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(call.block.len as usize, 0);
        let (site, task) = (Arc::clone(&self.site), self.clone.task.clone());
        let (file, job) = (self.clone.files.get(call.block.file).cloned(), Arc::clone(&self.clone.job));
        self.pace.issued(call.direction, call.block.len);
        let Call { direction, block: Block { offset, .. }, .. } = call;
        // A future is as large as the largest future that it may await, and it is moved into its box. Most calls in
        // flight bypass the cache and need a tenth of a cached call's size.
        self.gathered.push(match file {
            Some(file) if goes_straight_to_the_disk(&job, direction) => Box::pin(async move {
                let result = site.direct(&task, &file, direction, offset, &mut buffer).await.map(drop);
                Returned { call, began_ns, ended_ns: site.now_ns(), result, buffer }
            }),
            file => Box::pin(async move {
                let result = match file {
                    Some(file) => carry_out(&*site, &task, &job, &file, direction, offset, &mut buffer).await,
                    None => Ok(()),
                };
                Returned { call, began_ns, ended_ns: site.now_ns(), result, buffer }
            }),
        });
        let full = self.in_flight.len() + self.gathered.len() >= self.depth;
        if self.gathered.len() >= batch || full {
            self.submit_gathered();
            self.reap_ended().await;
        }
        while self.in_flight.len() >= self.depth || full && self.in_flight.len() > low.max(1) - 1 {
            let what = if call.direction == Direction::Read { 2 } else { 3 };
            let Block { file, offset, len } = call.block;
            self.clone.doing.begin(what, file, (offset, len), began_ns);
            match self.in_flight.next().await {
                Some(returned) => self.returned(returned),
                None => break,
            }
        }
        if self.failed { Err(()) } else { Ok(()) }
    }

    fn submit_gathered(&mut self) {
        self.in_flight.extend(self.gathered.drain(..));
    }

    /// Starts submitted calls and handles ended ones, without waiting.
    async fn reap_ended(&mut self) {
        while let Some(Some(returned)) = poll_once(&mut self.in_flight).await {
            self.returned(returned);
        }
    }

    /// Waits for all calls in flight.
    async fn settle(&mut self) {
        self.submit_gathered();
        while let Some(returned) = self.in_flight.next().await {
            self.returned(returned);
        }
    }

    fn returned(&mut self, returned: Returned) {
        let Returned { call, began_ns, ended_ns, result, buffer } = returned;
        self.spare.push(buffer);
        self.failed |= self.ended(call, began_ns, ended_ns, result).is_err();
    }

    /// Counts a call that has ended, and notes written blocks.
    fn ended(&mut self, call: Call, began_ns: u64, ended_ns: u64, result: Result<(), Error>) -> Result<(), ()> {
        let Call { direction, block, verifies } = call;
        match result {
            Ok(()) => {
                self.record(direction, block, began_ns, ended_ns);
                if !verifies {
                    self.pace.moved(direction, block.len, self.depth > 1);
                }
                if let (Direction::Write, Some(written)) = (direction, &mut self.written) {
                    written.add(block);
                }
                Ok(())
            }
            Err(error) => {
                let fill = self.clone.job.more.fill && error == Error::Device(DeviceError::NoSpace);
                if fill {
                    // A full device is the purpose of `fill_device`.
                    self.end_ns = 0;
                    return Ok(());
                }
                let what = match direction {
                    Direction::Read => "read",
                    Direction::Write => "write",
                    Direction::Trim => "trim",
                };
                lock(&self.clone.recorder).error(format!("{what}: {error}"));
                if self.clone.job.more.may_fail[direction.sizes()] { Ok(()) } else { Err(()) }
            }
        }
    }

    #[inline]
    fn record(&mut self, direction: Direction, block: Block, began_ns: u64, ended_ns: u64) {
        if began_ns < self.counted_ns {
            return;
        }
        if lock(&self.clone.recorder).moves[direction as usize].record(began_ns, ended_ns, block.len) {
            let job = &self.clone.job;
            let writes = direction != Direction::Read && (job.is_direct() || job.more.sync_writes);
            let waits_for = if writes { WaitsFor::Writes } else { WaitsFor::Reads };
            if let Some(waits) = self.waits(block.file, waits_for, began_ns, ended_ns) {
                lock(&self.clone.recorder).moves[direction as usize].explain(began_ns, ended_ns, waits);
            }
        }
        if let Some(log) = &self.clone.log {
            lock(log).add(ended_ns - self.start_ns, ended_ns - began_ns, direction, block);
        }
    }

    #[cold]
    fn waits(&self, file: usize, waits_for: WaitsFor, began_ns: u64, ended_ns: u64) -> Option<CallWaits> {
        let file = self.clone.files.get(file)?;
        self.site.waits(&self.clone.task, file, waits_for, began_ns, ended_ns)
    }

    /// Reads back written blocks.
    async fn read_back(&mut self, blocks: Vec<Block>) {
        if blocks.is_empty() {
            return;
        }
        self.settle().await;
        for block in blocks {
            if self.is_over(self.site.now_ns()) || self.failed {
                return;
            }
            self.unbroken += 1 + block.len / PAGE_BYTES;
            let call = Call { direction: Direction::Read, block, verifies: true };
            self.failed |= self.block(call).await.is_err();
            if self.unbroken >= UNBROKEN_MAX {
                self.unbroken = 0;
                next_step().await;
            }
            self.site.world().preemption_point().await;
        }
    }

    async fn sync(&mut self, number: usize, closing: bool) -> Result<(), ()> {
        let Some(file) = self.clone.files.get(number).cloned() else { return Ok(()) };
        self.submit_gathered();
        self.reap_ended().await;
        let began_ns = self.site.now_ns();
        self.clone.doing.begin(4, number, (0, 0), began_ns);
        let result = self.site.sync(&self.clone.task, &file).await;
        if let Err(error) = result {
            lock(&self.clone.recorder).error(format!("sync: {error}"));
            return Err(());
        }
        if began_ns < self.counted_ns {
            return Ok(());
        }
        let ended_ns = self.site.now_ns();
        let mut recorder = lock(&self.clone.recorder);
        let syncs = if closing { &mut recorder.closing_syncs } else { &mut recorder.syncs };
        if syncs.record(began_ns, ended_ns, 0)
            && let Some(waits) = self.waits(number, WaitsFor::Writes, began_ns, ended_ns)
        {
            syncs.explain(began_ns, ended_ns, waits);
        }
        Ok(())
    }

    /// `end_fsync`: one file after the other.
    async fn close(&mut self) {
        for number in 0..self.clone.files.len() {
            if self.sync(number, true).await.is_err() {
                return;
            }
        }
    }
}

/// The number of system calls for one operation: `sync` seeks first, and asynchronous engines have to ask for
/// completions.
fn calls(job: &Job) -> u64 {
    match job.engine {
        Engine::Psync | Engine::Null | Engine::Cpu | Engine::Names => 1,
        Engine::Sync | Engine::Libaio | Engine::Posixaio | Engine::Uring => 2,
        Engine::Mmap => 0,
    }
}

/// Runs one call to its end.
async fn carry_out<S: Site>(
    site: &S,
    task: &Client,
    job: &Job,
    file: &S::File,
    direction: Direction,
    offset: u64,
    buffer: &mut [u8],
) -> Result<(), Error> {
    let direction = if job.more.checks { Direction::Read } else { direction };
    match (job.engine, direction) {
        (_, Direction::Trim) => site.trim(file, offset, buffer.len() as u64).await?,
        _ if job.is_direct() => site.direct(task, file, direction, offset, buffer).await.map(|_| ())?,
        (Engine::Mmap, _) => mapped(site, task, file, direction, offset, buffer).await?,
        (_, Direction::Read) => site.read(task, file, offset, buffer).await.map(|_| ())?,
        (_, Direction::Write) => site.write(task, file, offset, buffer).await?,
    }
    if job.more.sync_writes && direction == Direction::Write {
        site.sync(task, file).await?;
    }
    Ok(())
}

/// Whether [`carry_out`] would only read or write past the cache.
fn goes_straight_to_the_disk(job: &Job, direction: Direction) -> bool {
    job.is_direct() && direction != Direction::Trim && !job.more.checks && !job.more.sync_writes
}

/// An ended call, if there is one already.
async fn poll_once(in_flight: &mut InFlight) -> Option<Option<Returned>> {
    poll_fn(|cx| match in_flight.poll_next_unpin(cx) {
        Poll::Ready(returned) => Poll::Ready(returned.map(Some)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Ends the step; the task continues in another one.
async fn next_step() {
    let mut over = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut over, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Loads or stores through a mapping, page by page.
async fn mapped<S: Site>(
    site: &S,
    task: &Client,
    file: &S::File,
    direction: Direction,
    offset: u64,
    buffer: &mut [u8],
) -> Result<(), Error> {
    let mut done = 0;
    while done < buffer.len() {
        let at = offset + done as u64;
        let end = buffer.len().min(done + (PAGE_BYTES - at % PAGE_BYTES) as usize);
        let part = &mut buffer[done..end];
        if direction == Direction::Read {
            site.read(task, file, at, part).await?;
        } else {
            site.fault(task, file, at / PAGE_BYTES * PAGE_BYTES).await?;
            site.write(task, file, at, part).await?;
        }
        done = end;
    }
    Ok(())
}
