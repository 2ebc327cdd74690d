//! Carries out one clone of a job.
//!
//! Owns: when the next operation happens (rates, pauses, the job's time), how it is called, what it took.
//! Does not own: which operation is next (`sequence`), files and contents (`simulated`).
//! Invariants: one operation at a time, as with fio's synchronous engines. A clone ends at its first error,
//! when its time is over or all is stopped; a call that has begun is waited for.
//!
//! The mmap engine: a page that is not in the cache is read before it is touched, whatever part of it is,
//! as by a fault; then the bytes are put into it as by `write`, with the same waiting for dirty limits, and
//! no time is charged for a call. What is smaller than a page is written back by its sectors, where a kernel
//! would write the page.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use engine::{Client, Error, Nanos, Platform};

use crate::job::{Engine, Job};
use crate::locking::lock;
use crate::recorder::Recorder;
use crate::sequence::{Block, Direction, Sequence};
use crate::simulated::WorkFile;
use crate::site::Site;

/// Bytes in a page.
const PAGE_BYTES: u64 = 4096;
/// Calls and pages after which a clone that never had to wait lets the executor have its turn: it takes a
/// step that goes on and on for one that never ends.
const UNBROKEN_MAX: u64 = 65_536;

/// What a clone is doing, for a report of one that never ends.
#[derive(Default)]
pub(crate) struct Doing {
    /// 0: nothing, 1: a pause, 2: a read, 3: a write, 4: a sync.
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

    /// Whether it is in the middle of something.
    pub(crate) fn is_busy(&self) -> bool {
        self.what.load(Ordering::Relaxed) != 0
    }

    /// Whether it waits by itself and for nobody.
    pub(crate) fn pauses(&self) -> bool {
        self.what.load(Ordering::Relaxed) == 1
    }
}

/// One clone of a job.
pub(crate) struct Clone<F> {
    pub(crate) name: String,
    pub(crate) number: u64,
    /// Whose its waits are.
    pub(crate) task: Client,
    pub(crate) job: Arc<Job>,
    pub(crate) files: Vec<Arc<F>>,
    pub(crate) sequence: Sequence,
    /// Added to the job's own delay.
    pub(crate) delay_ns: u64,
    pub(crate) recorder: Arc<Mutex<Recorder>>,
    pub(crate) doing: Arc<Doing>,
}

/// What a clone is doing, in words.
pub(crate) fn described(name: &str, number: u64, files: &[Arc<WorkFile>], doing: &Doing) -> String {
    let of = |field: &AtomicU64| field.load(Ordering::Relaxed);
    let path = files.get(of(&doing.file) as usize).map_or("", |file| file.path.as_str());
    let (offset, len, since) = (of(&doing.offset), of(&doing.len), of(&doing.since_ns));
    let what = match of(&doing.what) {
        0 => return format!("{name} ({number}): between operations"),
        1 => return format!("{name} ({number}): in a pause since {since} ns"),
        2 => format!("read of {len} bytes at {offset} of"),
        3 => format!("write of {len} bytes at {offset} of"),
        _ => "sync of".to_owned(),
    };
    format!("{name} ({number}): {what} {path} since {since} ns")
}

/// Why a clone does no more.
enum Stop {
    /// All is done, or its time is over.
    Done,
    Failed,
}

/// A clone at work.
struct Running<S: Site> {
    clone: Clone<S::File>,
    site: Arc<S>,
    buffer: Vec<u8>,
    start_ns: u64,
    /// When its time is over.
    end_ns: u64,
    /// Bytes read and written, for rates.
    moved: [u64; 2],
    /// Bytes a second of each; 0: no limit.
    rates: [u64; 2],
    /// Calls and pages since the executor last had its turn.
    unbroken: u64,
}

/// Runs a clone to its end.
pub(crate) async fn run<S: Site>(site: Arc<S>, clone: Clone<S::File>) {
    let job = Arc::clone(&clone.job);
    let now_ns = site.now_ns();
    let sizes = job.block_bytes;
    // A number of calls a second is a rate in the smallest blocks, as in fio.
    let rate = |at: usize| job.rate_bytes[at].max(job.rate_calls[at].saturating_mul(sizes[at].min));
    let mut running = Running {
        buffer: vec![0; sizes[0].max.max(sizes[1].max) as usize],
        start_ns: now_ns,
        end_ns: u64::MAX,
        moved: [0; 2],
        rates: [rate(0), rate(1)],
        unbroken: 0,
        clone,
        site,
    };
    let delay_ns = job.start_delay_ns.saturating_add(running.clone.delay_ns);
    running.pause_until(now_ns.saturating_add(delay_ns)).await;
    running.start_ns = running.site.now_ns();
    if job.runtime_ns > 0 {
        running.end_ns = running.start_ns.saturating_add(job.runtime_ns);
    }
    running.prepare().await;
    let stop = running.operations().await;
    if matches!(stop, Stop::Done) && job.end_fsync && job.pattern.writes && !running.clone.sequence.synced_last() {
        running.close().await;
    }
    running.clone.doing.begin(0, 0, (0, 0), 0);
}

impl<S: Site> Running<S> {
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns.min(self.site.stop_ns()) || self.site.has_failed()
    }

    async fn pause_until(&self, at_ns: u64) {
        let at_ns = at_ns.min(self.end_ns).min(self.site.stop_ns());
        let now_ns = self.site.now_ns();
        if at_ns > now_ns {
            self.clone.doing.begin(1, 0, (0, 0), now_ns);
            self.site.world().sleep_until(Nanos(at_ns)).await;
        }
    }

    /// What earlier jobs left of the files in the cache is dropped, as fio does by default.
    async fn prepare(&self) {
        for file in &self.clone.files {
            if self.site.begin_use(file) && self.clone.job.pattern.reads {
                self.site.forget_clean(file).await;
            }
        }
    }

    async fn operations(&mut self) -> Stop {
        loop {
            if self.clone.sequence.is_done() || self.is_over(self.site.now_ns()) {
                return Stop::Done;
            }
            let result = match self.clone.sequence.sync_due() {
                Some(_) => match self.clone.sequence.sync() {
                    Some(file) => self.sync(file, false).await,
                    None => return Stop::Done,
                },
                None => {
                    let direction = self.clone.sequence.direction();
                    let direction = self.paced(direction).await;
                    if self.is_over(self.site.now_ns()) {
                        return Stop::Done;
                    }
                    let Some(block) = self.clone.sequence.block(direction) else { return Stop::Done };
                    self.unbroken += 1 + block.len / PAGE_BYTES;
                    self.rewind().await;
                    let result = self.block(direction, block).await;
                    if self.clone.job.think_ns > 0 && result.is_ok() {
                        self.pause_until(self.site.now_ns().saturating_add(self.clone.job.think_ns)).await;
                    }
                    result
                }
            };
            if result.is_err() {
                return Stop::Failed;
            }
            if self.unbroken >= UNBROKEN_MAX {
                self.unbroken = 0;
                next_step().await;
            }
            self.site.world().preemption_point().await;
        }
    }

    /// Waits until a rate allows the next block. Of a mixed job the direction that may go on first goes first.
    async fn paced(&self, wanted: Direction) -> Direction {
        if self.rates == [0; 2] {
            return wanted;
        }
        let due = |at: usize| match self.rates[at] {
            0 => self.start_ns,
            rate => {
                let ns = u128::from(self.moved[at]) * u128::from(Nanos::SECOND) / u128::from(rate);
                self.start_ns.saturating_add(ns.min(u128::from(u64::MAX)) as u64)
            }
        };
        let other = if wanted == Direction::Read { Direction::Write } else { Direction::Read };
        let mixed = self.clone.job.pattern.reads && self.clone.job.pattern.writes;
        let now_ns = self.site.now_ns();
        let (own_ns, other_ns) = (due(wanted as usize), due(other as usize));
        if own_ns <= now_ns {
            return wanted;
        }
        if mixed && other_ns < own_ns {
            self.pause_until(other_ns).await;
            return other;
        }
        self.pause_until(own_ns).await;
        wanted
    }

    async fn rewind(&mut self) {
        let rewound = self.clone.sequence.take_rewound();
        if self.clone.job.pattern.reads {
            for file in rewound {
                self.site.forget_clean(&self.clone.files[file]).await;
            }
        }
    }

    async fn block(&mut self, direction: Direction, block: Block) -> Result<(), ()> {
        let Block { file: number, offset, len } = block;
        let file = &self.clone.files[number];
        let began_ns = self.site.now_ns();
        let what = if direction == Direction::Read { 2 } else { 3 };
        self.site.charge_calls(calls(self.clone.job.engine), direction);
        self.clone.doing.begin(what, number, (offset, len), began_ns);
        let buffer = &mut self.buffer[..len as usize];
        let result = match (self.clone.job.engine, direction) {
            (Engine::Mmap, _) => mapped(&*self.site, &self.clone.task, file, direction, offset, buffer).await,
            (_, Direction::Read) => self.site.read(&self.clone.task, file, offset, buffer).await.map(|_| ()),
            (_, Direction::Write) => self.site.write(&self.clone.task, file, offset, buffer).await,
        };
        let mut recorder = lock(&self.clone.recorder);
        match result {
            Ok(()) => {
                recorder.moves[direction as usize].record(began_ns, self.site.now_ns(), len);
                self.moved[direction as usize] += len;
                Ok(())
            }
            Err(error) => {
                recorder.error(format!("{}: {error}", if what == 2 { "read" } else { "write" }));
                Err(())
            }
        }
    }

    async fn sync(&mut self, number: usize, closing: bool) -> Result<(), ()> {
        let began_ns = self.site.now_ns();
        self.clone.doing.begin(4, number, (0, 0), began_ns);
        let result = self.site.sync(&self.clone.task, &self.clone.files[number]).await;
        let mut recorder = lock(&self.clone.recorder);
        match result {
            Ok(()) => {
                let syncs = if closing { &mut recorder.closing_syncs } else { &mut recorder.syncs };
                syncs.record(began_ns, self.site.now_ns(), 0);
                Ok(())
            }
            Err(error) => {
                recorder.error(format!("sync: {error}"));
                Err(())
            }
        }
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

/// Calls that one operation takes: `sync` seeks first.
fn calls(engine: Engine) -> u64 {
    match engine {
        Engine::Psync => 1,
        Engine::Sync => 2,
        Engine::Mmap => 0,
    }
}

/// Ends the step; the task goes on in another.
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
