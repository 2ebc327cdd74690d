//! The executor: one virtual CPU, virtual nanoseconds, tasks in an order drawn from the seed.
//!
//! Owns: the tasks, what is ready, what is due when, the clock, the trace, and the end of all that.
//! Does not own: disks and links; they ask for calls at an instant and trace what they do.
//! Invariants: one thing runs at a time, with no lock held. What is ready runs in an order drawn from
//! the seed; time moves when nothing is ready, and by a fixed cost a step. A run ends: with the
//! future's output, or with an error that names who waits.

mod platform;
mod timer;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use engine::Nanos;

use crate::random::Random;
use crate::trace::Trace;

pub use platform::SimPlatform;
use timer::{Due, Timers};

/// What a world is made from.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// Everything that is drawn is drawn from this.
    pub seed: u64,
    /// Virtual CPU time that one poll of one task costs, in nanoseconds. 0 is allowed.
    pub step_ns: u64,
    /// Polls and calls after which a run is given up.
    pub steps_max: u64,
    /// Virtual time at which a run is given up, in nanoseconds.
    pub time_ns_max: u64,
    /// Keep the last events in words, for [`World::trace_lines`].
    pub keep_lines: bool,
}

impl WorldOptions {
    /// A seed, and the rest as most tests want it: 100 ns a step, at most 20 million steps and
    /// ten hours.
    pub fn seed(seed: u64) -> Self {
        Self { seed, step_ns: 100, steps_max: 20_000_000, time_ns_max: 36_000 * Nanos::SECOND, keep_lines: false }
    }
}

/// Why a run did not end with its future's output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing is ready and nothing is due: these tasks wait for each other, or for nobody.
    Deadlock {
        /// The tasks that wait, as name and number.
        waiting: Vec<String>,
    },
    /// The run passed [`WorldOptions::time_ns_max`].
    TimeUp {
        /// The tasks that wait, as name and number.
        waiting: Vec<String>,
    },
    /// The run passed [`WorldOptions::steps_max`].
    StepsUp {
        /// The tasks that are ready, as name and number.
        ready: Vec<String>,
        /// The virtual time by then.
        now_ns: u64,
    },
    /// A check failed: see [`World::fail`].
    Failed {
        /// What was found.
        what: String,
    },
}

impl std::fmt::Display for RunError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Deadlock { waiting } => {
                write!(out, "deadlock: nothing is ready and no timer is set; waiting: {}", waiting.join(", "))
            }
            Self::TimeUp { waiting } => {
                write!(out, "not done in the virtual time allowed; waiting: {}", waiting.join(", "))
            }
            Self::StepsUp { ready, now_ns } => {
                write!(out, "not done in the steps allowed, now at {now_ns} ns; ready: {}", ready.join(", "))
            }
            Self::Failed { what } => write!(out, "{what}"),
        }
    }
}

impl std::error::Error for RunError {}

type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
pub(crate) type Call = Box<dyn FnOnce() + Send>;

/// The future given to [`World::run`]; spawned tasks count from 1.
const MAIN: u64 = 0;

struct Task {
    name: &'static str,
    /// Taken out while it is polled.
    future: Option<TaskFuture>,
    queued: bool,
}

enum Ready {
    Task(u64),
    Call(Call),
}

struct Core {
    tasks: BTreeMap<u64, Task>,
    tasks_started: u64,
    ready: Vec<Ready>,
    timers: Timers,
    schedule: Random,
    noise: Random,
    forks: Random,
    trace: Trace,
    steps: u64,
    failure: Option<String>,
    at_end: Vec<Call>,
    ended: bool,
}

/// What the world's parts share. The lock is held for bookkeeping only, never while a task or a call
/// runs or is dropped.
pub(crate) struct Shared {
    now_ns: AtomicU64,
    /// Looks at the clock and the counters since the last step, to find a step that never ends.
    looks: AtomicU64,
    core: Mutex<Core>,
    options: WorldOptions,
}

/// A world in virtual time. Dropping it drops its tasks.
pub struct World {
    shared: Arc<Shared>,
    platform: Arc<SimPlatform>,
}

struct TaskWaker {
    shared: Arc<Shared>,
    task: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.shared.lock().make_ready(self.task);
    }
}

impl Core {
    fn make_ready(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id)
            && !task.queued
        {
            task.queued = true;
            self.ready.push(Ready::Task(id));
        }
    }

    /// Moves what is due by `now_ns` to the ready list. The wakers returned are to be woken unlocked.
    fn collect_due(&mut self, now_ns: u64) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(due) = self.timers.pop_due(now_ns) {
            match due {
                Due::Wake(waker) => wakers.push(waker),
                Due::Call(call) => self.ready.push(Ready::Call(call)),
            }
        }
        wakers
    }

    fn waiting(&self) -> Vec<String> {
        self.tasks.iter().filter(|(_, task)| !task.queued).map(|(id, task)| format!("{} #{id}", task.name)).collect()
    }

    fn queued(&self) -> Vec<String> {
        self.tasks.iter().filter(|(_, task)| task.queued).map(|(id, task)| format!("{} #{id}", task.name)).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Runs `call` at `at_ns`, in an order drawn from the seed among what is ready then.
    pub(crate) fn call_at(&self, at_ns: u64, call: Call) {
        let mut core = self.lock();
        if core.ended {
            drop(core);
            drop(call);
            return;
        }
        let tie = core.schedule.bits();
        core.timers.add(at_ns, tie, Due::Call(call));
    }

    pub(crate) fn trace(&self, kind: &str, words: &[u64]) {
        self.lock().trace.event(self.now_ns(), kind, words);
    }

    pub(crate) fn fail(&self, what: String) {
        self.lock().failure.get_or_insert(what);
    }

    /// Runs `call` when the world ends.
    pub(crate) fn at_end(&self, call: Call) {
        self.lock().at_end.push(call);
    }

    /// A generator for a part of the world that is made now.
    pub(crate) fn fork_random(&self) -> Random {
        let mut core = self.lock();
        let part = core.forks.bits();
        core.forks.fork(part)
    }

    fn spawn(self: &Arc<Self>, name: &'static str, future: TaskFuture) {
        let mut core = self.lock();
        if core.ended {
            drop(core);
            drop(future);
            return;
        }
        core.tasks_started += 1;
        let id = core.tasks_started;
        core.trace.event(self.now_ns(), name, &[id]);
        core.tasks.insert(id, Task { name, future: Some(future), queued: true });
        core.ready.push(Ready::Task(id));
    }

    /// What runs next; time moves on until there is something.
    fn choose(&self) -> Result<Ready, RunError> {
        loop {
            let mut core = self.lock();
            if let Some(what) = core.failure.clone() {
                return Err(RunError::Failed { what });
            }
            let wakers = core.collect_due(self.now_ns());
            if !wakers.is_empty() {
                drop(core);
                wakers.into_iter().for_each(Waker::wake);
                continue;
            }
            if self.now_ns() > self.options.time_ns_max {
                return Err(RunError::TimeUp { waiting: core.waiting() });
            }
            if core.ready.is_empty() {
                let Some(at_ns) = core.timers.first_ns() else {
                    return Err(RunError::Deadlock { waiting: core.waiting() });
                };
                if at_ns > self.options.time_ns_max {
                    return Err(RunError::TimeUp { waiting: core.waiting() });
                }
                self.now_ns.fetch_max(at_ns, Ordering::Relaxed);
                continue;
            }
            if core.steps == self.options.steps_max {
                return Err(RunError::StepsUp { ready: core.queued(), now_ns: self.now_ns() });
            }
            core.steps += 1;
            let count = core.ready.len() as u64;
            let chosen = core.schedule.below(count) as usize;
            let ready = core.ready.swap_remove(chosen);
            let id = if let Ready::Task(id) = &ready { *id } else { u64::MAX };
            core.trace.event(self.now_ns(), "step", &[id, chosen as u64, count]);
            self.looks.store(0, Ordering::Relaxed);
            return Ok(ready);
        }
    }

    fn step_task(self: &Arc<Self>, id: u64) {
        let taken = {
            let mut core = self.lock();
            core.tasks.get_mut(&id).and_then(|task| {
                task.queued = false;
                task.future.take()
            })
        };
        let Some(mut future) = taken else { return };
        let waker = Waker::from(Arc::new(TaskWaker { shared: Arc::clone(self), task: id }));
        let done = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let mut core = self.lock();
        if done {
            core.tasks.remove(&id);
        } else if let Some(task) = core.tasks.get_mut(&id) {
            task.future = Some(future);
            return;
        }
        drop(core);
    }
}

impl World {
    /// A world at time 0 with nothing in it.
    pub fn new(options: WorldOptions) -> Self {
        let seeds = Random::new(options.seed);
        let core = Core {
            tasks: BTreeMap::new(),
            tasks_started: 0,
            ready: Vec::new(),
            timers: Timers::default(),
            schedule: seeds.fork(1),
            noise: seeds.fork(2),
            forks: seeds.fork(3),
            trace: Trace::new(options.keep_lines),
            steps: 0,
            failure: None,
            at_end: Vec::new(),
            ended: false,
        };
        let shared =
            Arc::new(Shared { now_ns: AtomicU64::new(0), looks: AtomicU64::new(0), core: Mutex::new(core), options });
        Self { platform: Arc::new(SimPlatform::new(Arc::clone(&shared))), shared }
    }

    /// The world as the engine sees it.
    pub fn platform(&self) -> &Arc<SimPlatform> {
        &self.platform
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs everything until `future` is done; what else is unfinished then goes on in the next run.
    ///
    /// # Errors
    /// When nothing can run any more, a bound is passed, or a check failed. The future is dropped.
    pub fn run<F: Future>(&self, future: F) -> Result<F::Output, RunError> {
        let mut future = pin!(future);
        {
            let mut core = self.shared.lock();
            core.tasks.insert(MAIN, Task { name: "main", future: None, queued: false });
            core.make_ready(MAIN);
        }
        let waker = Waker::from(Arc::new(TaskWaker { shared: Arc::clone(&self.shared), task: MAIN }));
        let result = loop {
            match self.shared.choose() {
                Err(error) => break Err(error),
                Ok(Ready::Call(call)) => call(),
                Ok(Ready::Task(MAIN)) => {
                    if let Some(task) = self.shared.lock().tasks.get_mut(&MAIN) {
                        task.queued = false;
                    }
                    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                        break Ok(output);
                    }
                }
                Ok(Ready::Task(id)) => self.shared.step_task(id),
            }
            self.shared.now_ns.fetch_add(self.shared.options.step_ns, Ordering::Relaxed);
        };
        let mut core = self.shared.lock();
        core.tasks.remove(&MAIN);
        core.ready.retain(|ready| !matches!(ready, Ready::Task(MAIN)));
        match (result, &core.failure) {
            (Ok(_), Some(what)) => Err(RunError::Failed { what: what.clone() }),
            (result, _) => result,
        }
    }

    /// Starts a task, as the engine does through the platform.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(name, Box::pin(task));
    }

    /// Makes the run end with an error that says `what`. The first one counts.
    pub fn fail(&self, what: String) {
        self.shared.fail(what);
    }

    /// Adds an event of the caller's to the trace.
    pub fn trace(&self, kind: &str, words: &[u64]) {
        self.shared.trace(kind, words);
    }

    /// All that happened so far, as one number.
    pub fn trace_hash(&self) -> u64 {
        self.shared.lock().trace.hash()
    }

    /// The last events in words; empty unless [`WorldOptions::keep_lines`].
    pub fn trace_lines(&self) -> Vec<String> {
        self.shared.lock().trace.lines()
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.shared.lock().steps
    }

    /// Names of the unfinished tasks that are not ready.
    pub fn waiting(&self) -> Vec<String> {
        self.shared.lock().waiting()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Tasks hold the engine, which holds the platform, which holds the tasks: cut here. What is
        // dropped may wake, spawn or submit, so it is dropped unlocked.
        let (tasks, ready, timers, at_end) = {
            let mut core = self.shared.lock();
            core.ended = true;
            let core = &mut *core;
            (
                std::mem::take(&mut core.tasks),
                std::mem::take(&mut core.ready),
                std::mem::take(&mut core.timers),
                std::mem::take(&mut core.at_end),
            )
        };
        at_end.into_iter().for_each(|call| call());
        drop((tasks, ready, timers));
    }
}

#[cfg(test)]
mod tests;
