//! Measures a case in this process: contenders in turns, each run on new threads.
//!
//! Owns: the threads of a run, their clocks, the number of operations in a run.
//! Does not own: the operations, the order of turns (`afflux_rig`).
//! Invariants: only one contender runs at a time. The first run of each is not counted. Neither is a thread's first
//! operation in a run: an allocator, a ring or other state of the thread may be created for it.

use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use afflux_rig::Raced;
use rustix::time::{ClockId, clock_gettime};

use crate::case::Figure;

pub(crate) const PAGE: usize = 4096;

/// Operations of the first run, from which the number for later runs is estimated.
const FIRST: u64 = 256;

/// Most warm-up runs before a case; below, the gain of a run over the previous one that counts as none.
const WARMING_MAX: usize = 32;
const STEADY: f64 = 1.1;
const SWEEPS_MAX: usize = 4;

/// In the middle of a page. A copy between places of the same offset, or slightly more, makes loads wait for unrelated
/// stores. Where a contender keeps its bytes would decide which one is affected.
#[repr(align(4096))]
struct Buffer([u8; 2 * PAGE]);

/// The state of a thread in a run.
pub(crate) struct Worker {
    pub(crate) thread: usize,
    random: u64,
    buffer: Box<Buffer>,
}

impl Worker {
    fn new(thread: usize, run: u64) -> Self {
        let random = (run << 8 | thread as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { thread, random, buffer: Box::new(Buffer([7; 2 * PAGE])) }
    }

    /// A random number below `of`; all contenders have the same sequence.
    pub(crate) fn any(&mut self, of: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 32) * of) >> 32
    }

    pub(crate) fn page(&mut self) -> &mut [u8; PAGE] {
        let page = &mut self.buffer.0[PAGE / 2..PAGE / 2 + PAGE];
        page.try_into().expect("a page is that long")
    }
}

type Prepare<'a> = Box<dyn Fn() -> io::Result<()> + 'a>;
type Sweep<'a> = Box<dyn Fn(&mut Worker) -> io::Result<()> + Sync + 'a>;
type WorkFn<'a> = Box<dyn Fn(&mut Worker, u64) -> io::Result<()> + Sync + 'a>;

/// A contender in a case.
pub(crate) struct Subject<'a> {
    name: &'static str,
    sweep: Option<Sweep<'a>>,
    before: Prepare<'a>,
    work: WorkFn<'a>,
    count_max: u64,
}

impl<'a> Subject<'a> {
    /// A contender that repeats this operation.
    pub(crate) fn new(name: &'static str, operation: impl Fn(&mut Worker) -> io::Result<()> + Sync + 'a) -> Self {
        let work = move |worker: &mut Worker, count| (0..count).try_for_each(|_| operation(worker));
        Self { name, sweep: None, before: Box::new(|| Ok(())), work: Box::new(work), count_max: u64::MAX }
    }

    /// A contender that does this with random pages out of this many. Before the first case of one thread, it goes over
    /// all pages until that gets no faster.
    pub(crate) fn on_pages(
        name: &'static str,
        pages: u64,
        operation: impl Fn(&mut Worker, u64) -> io::Result<()> + Clone + Sync + 'a,
    ) -> Self {
        let swept = operation.clone();
        let sweep = move |worker: &mut Worker| (0..pages).try_for_each(|number| swept(worker, number));
        let random = Self::new(name, move |worker: &mut Worker| {
            let number = worker.any(pages);
            operation(worker, number)
        });
        Self { sweep: Some(Box::new(sweep)), ..random }
    }

    /// Sets a preparation before each run, and the most operations of a thread in a run.
    pub(crate) fn after(self, before: impl Fn() -> io::Result<()> + 'a, count_max: u64) -> Self {
        Self { before: Box::new(before), count_max, ..self }
    }
}

/// The measurement of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) run: Duration,
    pub(crate) threads: usize,
    /// Measures wall-clock time, if a device is waited for; otherwise the threads' processor time.
    pub(crate) clock: bool,
}

/// The names of additional figures, in nanoseconds per operation. The first two are processor time, the last is the
/// time from the first thread's begin to the last thread's end, times the threads.
pub(crate) const BESIDE: &[&str] = &["threads_cpu_ns", "process_cpu_ns", "clock_ns"];
const CLOCK: usize = 2;

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// One run of one contender.
fn run(subject: &Subject<'_>, plan: &Plan, count: u64, number: u64) -> io::Result<Figure> {
    let threads = plan.threads;
    (subject.before)()?;
    let barrier = Barrier::new(threads + 1);
    let (mut own, mut process, mut begin, mut end) = (0, 0, None, None);
    let mut process_begin = 0;
    std::thread::scope(|scope| {
        let work = |thread| {
            let (barrier, subject) = (&barrier, &subject.work);
            move || {
                let mut worker = Worker::new(thread, number);
                let first = subject(&mut worker, 1);
                barrier.wait();
                first?;
                let (began, cpu) = (Instant::now(), now_ns(ClockId::ThreadCPUTime));
                let result = subject(&mut worker, count);
                let own = now_ns(ClockId::ThreadCPUTime) - cpu;
                result.map(|()| (own, now_ns(ClockId::ProcessCPUTime), began, Instant::now()))
            }
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        process_begin = now_ns(ClockId::ProcessCPUTime);
        barrier.wait();
        for thread in running {
            let (cpu, all, began, ended) = thread.join().map_err(|_| io::Error::other("a thread panicked"))??;
            own += cpu;
            process = all.max(process);
            begin = Some(begin.map_or(began, |before: Instant| before.min(began)));
            end = Some(end.map_or(ended, |before: Instant| before.max(ended)));
        }
        io::Result::Ok(())
    })?;
    let operations = (count * threads as u64) as f64;
    let elapsed = begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end.duration_since(begin));
    let beside = vec![
        own as f64 / operations,
        process.saturating_sub(process_begin) as f64 / operations,
        elapsed.as_nanos() as f64 * threads as f64 / operations,
    ];
    Ok(Figure { value: beside[if plan.clock { CLOCK } else { 0 }], beside })
}

/// Runs on a new thread, like a run: an allocator may keep memory by thread.
fn sweep_through(sweep: &Sweep<'_>) -> io::Result<()> {
    let mut before = f64::INFINITY;
    for _ in 0..SWEEPS_MAX {
        let began = Instant::now();
        let swept = std::thread::scope(|scope| scope.spawn(|| sweep(&mut Worker::new(0, 0))).join());
        swept.map_err(|_| io::Error::other("a thread panicked"))??;
        let took = began.elapsed().as_secs_f64();
        if took * STEADY >= before {
            break;
        }
        before = took;
    }
    Ok(())
}

/// The number of a thread's operations that take about the planned time. It is found by trying, until the runs get no
/// faster: then memory has been touched, and contenders that learn about a disk know it.
fn count(subject: &Subject<'_>, plan: &Plan) -> io::Result<u64> {
    if let Some(sweep) = subject.sweep.as_ref().filter(|_| plan.threads == 1) {
        sweep_through(sweep)?;
    }
    let mut count = FIRST.min(subject.count_max);
    let mut before = f64::INFINITY;
    for _ in 0..WARMING_MAX {
        let each = run(subject, plan, count, 0)?.beside[CLOCK];
        let wanted = plan.run.as_nanos() as f64 / each.max(0.1);
        let is_long = count as f64 * 2.0 >= wanted || count == subject.count_max;
        if is_long && each * STEADY >= before {
            break;
        }
        before = if is_long { each } else { f64::INFINITY };
        count = (wanted as u64).clamp(1, count * 8).min(subject.count_max);
    }
    Ok(count)
}

/// All rounds of a case, after one that does not count.
pub(crate) fn race(subjects: &[Subject<'_>], plan: &Plan) -> Raced<&'static str, Figure> {
    let names: Vec<&'static str> = subjects.iter().map(|subject| subject.name).collect();
    let counts: Vec<io::Result<u64>> = subjects.iter().map(|subject| count(subject, plan)).collect();
    let one = |name: &str, number: usize| {
        let at = names.iter().position(|known| *known == name).unwrap_or_default();
        match &counts[at] {
            Ok(count) => run(&subjects[at], plan, *count, number as u64).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    for name in &names {
        // A contender that fails here fails again.
        let _ = one(name, 0);
    }
    Raced::new(&names, plan.rounds, |name, round| one(name, round + 1))
}

#[cfg(test)]
mod tests;
