//! The executor: virtual CPUs, virtual nanoseconds, tasks in an order drawn from the seed.
//!
//! Owns: the choice of the next step or event, the trace, the world's end.
//! Does not own: disks and links, which schedule calls at an instant and trace their own events.
//! Invariants: one thing runs at a time, with no lock held. A run ends: with the future's output, or with an error that
//! names the waiting tasks.

mod clock;
mod cpu;
mod error;
mod platform;
mod shuffle;
mod task;
mod timer;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use afflux_engine::Nanos;

use crate::random::Random;
use crate::trace::Trace;

use clock::Clock;
pub use cpu::{CPUS_MAX, CpuOptions, CpuTime, CpuUsage, RunOrder, Slice};
use cpu::{Cpus, Preempt};
pub use error::RunError;
pub use platform::SimPlatform;
use platform::Yield;
use shuffle::Shuffle;
pub use task::TaskUsage;
use task::{MAIN, TaskFuture, TaskRef, Tasks};
use timer::{Due, Timers};

/// Options of a world.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// The source of everything random.
    pub seed: u64,
    /// Virtual CPU time of one poll of one task, in nanoseconds; 0 is allowed. With `cpus`, their table of costs
    /// applies instead.
    pub step_ns: u64,
    /// Polls and calls after which a run is given up.
    pub steps_max: u64,
    /// Virtual time at which a run is given up, in nanoseconds.
    pub time_ns_max: u64,
    /// Keep the last events in words, for [`World::trace_lines`].
    pub keep_lines: bool,
    /// The CPUs, for a world in which time passes as on a machine. Without them there is one CPU, which runs ready
    /// tasks in an order drawn from the seed and switches at every preemption point. That finds races.
    pub cpus: Option<CpuOptions>,
}

impl WorldOptions {
    /// This seed, and common values for tests: 100 ns a step, at most 20 million steps and ten hours.
    pub fn seed(seed: u64) -> Self {
        Self {
            seed,
            step_ns: 100,
            steps_max: 20_000_000,
            time_ns_max: 36_000 * Nanos::SECOND,
            keep_lines: false,
            cpus: None,
        }
    }

    /// A machine with these CPUs: at most 10^11 steps and ten hours.
    pub fn machine(seed: u64, cpus: CpuOptions) -> Self {
        Self { steps_max: 100_000_000_000, cpus: Some(cpus), ..Self::seed(seed) }
    }
}

pub(crate) type Call = Box<dyn FnOnce() + Send>;

enum Next {
    Call(Call),
    /// A step of a task; without a future it is a step of `MAIN`.
    Step(TaskRef, Option<(TaskFuture, Waker)>),
    /// A step of a task that has ended already.
    Nothing,
}

enum Ended {
    Nothing,
    Call,
    /// A step after which the task continues.
    Step(TaskRef, Option<(TaskFuture, Waker)>),
    /// The task's last step.
    Last(TaskRef, TaskFuture),
}

/// The result of a choice.
enum Choice {
    Next(Next),
    /// Wake these with no lock held, then choose again.
    Wake(Vec<Due>),
    Again,
}

struct Core {
    tasks: Tasks,
    /// The task of the current step.
    running: Option<TaskRef>,
    /// With virtual CPUs, they choose the next step.
    cpus: Option<Cpus>,
    /// Without virtual CPUs, this chooses the next step.
    shuffle: Shuffle,
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

/// The state shared by the world's parts. The lock is held for bookkeeping only, never while a task or a call runs or
/// is dropped.
pub(crate) struct Shared {
    clock: Clock,
    /// Reads of the clock and the counters since the last step, to find a step that never ends.
    looks: AtomicU64,
    core: Mutex<Core>,
    options: WorldOptions,
}

/// A world in virtual time. Dropping it drops its tasks.
pub struct World {
    shared: Arc<Shared>,
    platform: Arc<SimPlatform>,
}

impl Core {
    fn make_ready(&mut self, task: TaskRef, now_ns: u64) {
        let running = self.running == Some(task);
        let Some(found) = self.tasks.get_mut(task).filter(|found| !found.queued) else { return };
        found.queued = true;
        match &mut self.cpus {
            None => self.shuffle.ready_task(task),
            // A task woken in its own step is queued at the end of that step.
            Some(_) if running => {}
            Some(cpus) => {
                let ready_ns = now_ns.max(found.free_ns);
                cpus.enqueue(task, found, ready_ns, None);
            }
        }
    }

    fn count_step(&mut self, steps_max: u64, now_ns: u64) -> Result<(), RunError> {
        if self.steps == steps_max {
            return Err(RunError::StepsUp { ready: self.tasks.names(true), now_ns });
        }
        self.steps += 1;
        Ok(())
    }

    /// Takes the task's future out for a step.
    fn begin_step(&mut self, task: TaskRef) -> Next {
        let Some(found) = self.tasks.get_mut(task) else { return Next::Nothing };
        found.queued = false;
        let future = self.tasks.take_future(task);
        if future.is_none() && task != MAIN {
            return Next::Nothing;
        }
        self.running = Some(task);
        Next::Step(task, future)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Runs `call` at `at_ns`; the seed orders simultaneous calls.
    pub(crate) fn call_at(&self, at_ns: u64, call: Call) {
        let mut core = self.lock();
        if core.ended {
            drop(core);
            drop(call);
            return;
        }
        let tie = core.schedule.bits();
        core.timers.add(at_ns, tie, Due::Call(call));
        self.clock.disturb(at_ns);
    }

    /// Wakes a task at `at_ns`. This cannot be cancelled: a woken task checks whether there is anything to do.
    pub(crate) fn wake_at(&self, at_ns: u64, waker: Waker) {
        let mut core = self.lock();
        if core.ended {
            drop(core);
            drop(waker);
            return;
        }
        let tie = core.schedule.bits();
        core.timers.add(at_ns, tie, Due::Wake(waker));
    }

    pub(crate) fn trace(&self, kind: &str, words: &[u64]) {
        self.trace_at(self.now_ns(), kind, words);
    }

    /// Like `trace`, for a caller that knows the time.
    #[inline]
    pub(crate) fn trace_at(&self, now_ns: u64, kind: &str, words: &[u64]) {
        self.lock().trace.event(now_ns, kind, words);
    }

    pub(crate) fn fail(&self, what: String) {
        self.lock().failure.get_or_insert(what);
    }

    /// Runs `call` when the world ends.
    pub(crate) fn at_end(&self, call: Call) {
        self.lock().at_end.push(call);
    }

    /// A generator for a new part of the world.
    pub(crate) fn fork_random(&self) -> Random {
        let mut core = self.lock();
        let part = core.forks.bits();
        core.forks.fork(part)
    }

    fn spawn(self: &Arc<Self>, name: &'static str, goes_ahead: bool, future: TaskFuture) {
        let now_ns = self.now_ns();
        let mut core = self.lock();
        if core.ended {
            drop(core);
            drop(future);
            return;
        }
        let task = core.tasks.add(self, name, future);
        if let Some(added) = core.tasks.get_mut(task) {
            added.goes_ahead = goes_ahead;
        }
        core.trace.event(now_ns, name, &[task.number]);
        core.make_ready(task, now_ns);
        self.clock.disturb(now_ns);
    }

    fn wake(&self, task: TaskRef) {
        let now_ns = self.now_ns();
        self.lock().make_ready(task, now_ns);
        self.clock.disturb(now_ns);
    }

    /// Settles the step that has ended and chooses the next; time advances until there is one.
    fn advance(&self, ended: Ended) -> Result<Next, RunError> {
        let mut core = self.lock();
        let ended = match ended {
            Ended::Last(task, future) => {
                let removed = core.tasks.remove(task);
                drop(core);
                drop((removed, future));
                core = self.lock();
                Ended::Step(task, None)
            }
            ended => ended,
        };
        self.settle(&mut core, ended);
        loop {
            if let Some(what) = core.failure.clone() {
                return Err(RunError::Failed { what });
            }
            let choice = if core.cpus.is_some() { self.next_on_cpus(&mut core) } else { self.next_shuffled(&mut core) };
            match choice? {
                Choice::Next(next) => {
                    self.looks.store(0, Ordering::Relaxed);
                    return Ok(next);
                }
                Choice::Again => {}
                Choice::Wake(woken) => {
                    drop(core);
                    self.wake_all(woken);
                    core = self.lock();
                }
            }
        }
    }

    fn wake_all(&self, woken: Vec<Due>) {
        for due in woken {
            match due {
                Due::Task(task) => self.wake(task),
                Due::Wake(waker) => waker.wake(),
                Due::Call(call) => call(),
            }
        }
    }

    /// Puts the task back and advances time by the CPU time that it used.
    fn settle(&self, core: &mut Core, ended: Ended) {
        let is_step = match ended {
            Ended::Nothing => return,
            Ended::Call => None,
            Ended::Last(task, _) => Some(task),
            Ended::Step(task, future) => {
                if let Some(future) = future {
                    core.tasks.put_future(task, future);
                }
                Some(task)
            }
        };
        match (&mut core.cpus, is_step) {
            (None, _) => self.clock.charge(self.options.step_ns),
            (Some(cpus), None) => {
                let (used_ns, carry_ps) = self.clock.end(cpus.begun_ns());
                cpus.end_call(used_ns, carry_ps);
            }
            (Some(cpus), Some(task)) => {
                let (used_ns, carry_ps) = self.clock.end(cpus.begun_ns());
                cpus.end(task, used_ns, carry_ps, &mut core.tasks);
            }
        }
        core.running = None;
    }

    /// Chooses the earliest: an event, or a step of the CPU with the lowest clock.
    fn next_on_cpus(&self, core: &mut Core) -> Result<Choice, RunError> {
        let Core { cpus: Some(cpus), tasks, timers, .. } = core else { return Ok(Choice::Again) };
        let event_ns = timers.first_ns();
        let step = cpus.candidate();
        let step_ns = step.map(|step| step.at_ns);
        let at_ns = match (event_ns, step_ns) {
            (Some(event_ns), Some(step_ns)) => event_ns.min(step_ns),
            (Some(at_ns), None) | (None, Some(at_ns)) => at_ns,
            (None, None) => return Err(RunError::Deadlock { waiting: tasks.names(false) }),
        };
        if at_ns > self.options.time_ns_max {
            return Err(RunError::TimeUp { waiting: tasks.names(false) });
        }
        if event_ns == Some(at_ns) {
            let due = timers.pop_due(at_ns);
            return self.begin_event(core, at_ns, due);
        }
        let Some(begun) = step.and_then(|step| cpus.begin(step, tasks)) else { return Ok(Choice::Again) };
        core.count_step(self.options.steps_max, at_ns)?;
        core.trace.event(at_ns, "step", &[begun.task.number, begun.cpu as u64]);
        self.clock.begin(begun.cpu, begun.start_ns, begun.carry_ps);
        afflux_frames::run_as_cpu(Some(begun.cpu as u32));
        Ok(Choice::Next(core.begin_step(begun.task)))
    }

    fn begin_event(&self, core: &mut Core, at_ns: u64, due: Option<Due>) -> Result<Choice, RunError> {
        self.clock.set(at_ns);
        match due {
            Some(Due::Task(task)) => core.make_ready(task, at_ns),
            Some(Due::Wake(waker)) => return Ok(Choice::Wake(vec![Due::Wake(waker)])),
            Some(Due::Call(call)) => {
                core.count_step(self.options.steps_max, at_ns)?;
                core.trace.event(at_ns, "call", &[]);
                if let Some(cpus) = &mut core.cpus {
                    let (cpu, carry_ps) = cpus.begin_call(at_ns);
                    self.clock.begin_call(cpu, at_ns, carry_ps);
                    afflux_frames::run_as_cpu(Some(cpu as u32));
                }
                return Ok(Choice::Next(Next::Call(call)));
            }
            None => {}
        }
        Ok(Choice::Again)
    }

    fn slice_left_ns(&self) -> u64 {
        let now_ns = self.now_ns();
        let core = self.lock();
        match &core.cpus {
            Some(cpus) if core.running.is_some() => cpus.slice_left_ns(now_ns),
            _ => u64::MAX,
        }
    }

    fn running_task(&self) -> Option<(&'static str, u64)> {
        let core = self.lock();
        core.tasks.name(core.running?)
    }

    fn task_usage(&self) -> TaskUsage {
        let now_ns = self.now_ns();
        let core = self.lock();
        let Core { running: Some(task), cpus: Some(cpus), tasks, .. } = &*core else { return TaskUsage::default() };
        let mut usage = tasks.get(*task).map(|task| task.usage).unwrap_or_default();
        usage.cpu_ns += now_ns.saturating_sub(cpus.begun_ns());
        usage
    }

    /// A preemption point of the running task, which keeps its CPU unless it `may_switch`. The decision is made here,
    /// since the caller awaits the result at once.
    fn preempt(&self, may_switch: bool) -> Yield {
        if self.options.cpus.is_none() {
            return Yield(false);
        }
        let now_ns = self.now_ns();
        if self.clock.is_quiet(now_ns) {
            return Yield(true);
        }
        let mut core = self.lock();
        let event_ns = core.timers.first_ns();
        let inside = core.running.is_some();
        let Core { cpus: Some(cpus), .. } = &mut *core else { return Yield(true) };
        if !inside {
            return Yield(true);
        }
        let (decided, quiet_ns) = cpus.preempt(now_ns, event_ns, may_switch);
        self.clock.set_quiet(quiet_ns);
        Yield(decided == Preempt::GoOn)
    }
}

/// While a world runs, its thread takes and returns frames as the current step's virtual CPU, or as CPU 0 without
/// virtual CPUs. With the thread's own lists, the frames would depend on the process's other threads.
struct FrameLists;

impl FrameLists {
    fn of_the_world() -> Self {
        afflux_frames::run_as_cpu(Some(0));
        Self
    }
}

impl Drop for FrameLists {
    fn drop(&mut self) {
        afflux_frames::run_as_cpu(None);
    }
}

impl World {
    /// A world at time 0 with nothing in it.
    ///
    /// # Panics
    /// When [`WorldOptions::cpus`] has no CPU or too many, or slices without length.
    pub fn new(options: WorldOptions) -> Self {
        let seeds = Random::new(options.seed);
        let core = Core {
            tasks: Tasks::default(),
            running: None,
            cpus: options.cpus.clone().map(|cpus| Cpus::new(cpus, seeds.fork(4))),
            shuffle: Shuffle::default(),
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
        let cpus = options.cpus.as_ref();
        let clock = Clock::new(cpus.map_or(1, |cpus| cpus.cpus), cpus.map(|cpus| cpus.costs.clone()));
        let shared = Arc::new(Shared { clock, looks: AtomicU64::new(0), core: Mutex::new(core), options });
        Self { platform: Arc::new(SimPlatform::new(Arc::clone(&shared))), shared }
    }

    /// The world as the engine sees it.
    pub fn platform(&self) -> &Arc<SimPlatform> {
        &self.platform
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs everything until `future` is done. Unfinished tasks continue in the next run.
    ///
    /// # Errors
    /// When nothing can run any more, a bound is passed, or a check fails. The future is dropped.
    pub fn run<F: Future>(&self, future: F) -> Result<F::Output, RunError> {
        let mut future = pin!(future);
        let _lists = FrameLists::of_the_world();
        let now_ns = self.shared.now_ns();
        let waker = {
            let mut core = self.shared.lock();
            let waker = core.tasks.add_main(&self.shared);
            core.make_ready(MAIN, now_ns);
            waker
        };
        self.shared.clock.forget_uncharged();
        let mut ended = Ended::Nothing;
        let result = loop {
            ended = match self.shared.advance(ended) {
                Err(error) => break Err(error),
                Ok(Next::Call(call)) => {
                    call();
                    Ended::Call
                }
                Ok(Next::Step(task, Some((mut future, waker)))) => {
                    let done = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
                    if done { Ended::Last(task, future) } else { Ended::Step(task, Some((future, waker))) }
                }
                Ok(Next::Step(_, None)) => match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(output) => break Ok(output),
                    Poll::Pending => Ended::Step(MAIN, None),
                },
                Ok(Next::Nothing) => Ended::Call,
            };
        };
        let mut core = self.shared.lock();
        if result.is_ok() && core.cpus.is_some() {
            self.shared.settle(&mut core, Ended::Step(MAIN, None));
        }
        core.running = None;
        let main = core.tasks.remove(MAIN);
        core.shuffle.forget(MAIN);
        if let Some(cpus) = &mut core.cpus {
            cpus.forget(MAIN);
        }
        let failure = core.failure.clone();
        drop(core);
        drop(main);
        match (result, failure) {
            (Ok(_), Some(what)) => Err(RunError::Failed { what }),
            (result, _) => result,
        }
    }

    /// Advances the clock between two runs, as for a suspended machine or a stopped process. Everything due meanwhile
    /// comes late and all at once.
    pub fn jump(&self, ns: u64) {
        self.shared.clock.set(self.shared.now_ns().saturating_add(ns));
    }

    /// Starts a task, as the engine does through the platform.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(name, false, Box::pin(task));
    }

    /// Ends the run with an error that says `what`. The first error counts.
    pub fn fail(&self, what: String) {
        self.shared.fail(what);
    }

    /// Adds an event of the caller to the trace.
    pub fn trace(&self, kind: &str, words: &[u64]) {
        self.shared.trace(kind, words);
    }

    /// The hash of all events so far.
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

    /// The figures of the virtual CPUs so far; nothing is accounted without [`WorldOptions::cpus`].
    pub fn cpu_usage(&self) -> CpuUsage {
        self.shared.lock().cpus.as_ref().map(Cpus::usage).unwrap_or_default()
    }

    /// Names of the unfinished tasks that are not ready.
    pub fn waiting(&self) -> Vec<String> {
        self.shared.lock().tasks.names(false)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Tasks hold the engine, which holds the platform, which holds the tasks. This breaks the cycle. A dropped task
        // may wake, spawn or submit, so the tasks are dropped without the lock.
        let (tasks, ready, timers, at_end) = {
            let mut core = self.shared.lock();
            core.ended = true;
            let core = &mut *core;
            (
                std::mem::take(&mut core.tasks),
                std::mem::take(&mut core.shuffle),
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
