//! Virtual CPUs: who runs where and when, in slices, and what that comes to.
//!
//! The model: all CPUs take tasks from one run queue, in the order in which these became ready;
//! simultaneous ones in an order drawn from the seed. One queue, because that is what a scheduler
//! with good balancing comes to, because no balancer has to be modelled, and because its waits are
//! known in closed form. A task keeps its CPU until it waits for something, or until a preemption
//! point at which its slice is used up: then it goes to the end of the queue. A slice ends nowhere
//! else, so whoever computes for long does it in `SimPlatform::work`. Tasks that go ahead of others have a queue of
//! their own, which is looked at first; they do not cut another's slice short.
//!
//! Each CPU has a clock of its own. What comes next is what has the earliest instant: an event, or a
//! step of the CPU with the lowest clock. A step is run whole before the next is looked for; a task
//! whose clock is ahead of what others could do waits at its preemption points, still on its CPU,
//! until they have done it. Between two such points others see effects earlier than they should.
//!
//! Events (a device's completion, a timer) happen at their instants, on no CPU. The CPU time that a
//! call at an instant uses is taken from the CPU that was free first, as an interrupt would.
//!
//! Owns: the run queue, the CPUs' clocks and slices, their accounts.
//! Does not own: what a step costs (`clock`), tasks, timers.
//! Invariants: a task is in the queue once or on a CPU, never both. No CPU is idle while the queue
//! holds a task that is ready by its clock.

use std::collections::VecDeque;

use super::task::{TaskRef, Tasks};
use crate::costs::CostTable;
use crate::random::Random;

/// Most virtual CPUs of a world.
pub const CPUS_MAX: usize = 1024;

/// How long a task may run while others wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slice {
    /// Always this long, in nanoseconds.
    Fixed(u64),
    /// Drawn anew each time, exponentially distributed about this mean, in nanoseconds.
    Exponential(u64),
}

/// The CPUs of a world.
#[derive(Clone, Debug)]
pub struct CpuOptions {
    /// How many: 1 to [`CPUS_MAX`].
    pub cpus: usize,
    /// How long a task may run while others wait.
    pub slice: Slice,
    /// Of 1,000 preemption points, how many switch the task out whether or not its slice is used up:
    /// 0 in experiments; more where races are looked for.
    pub switch_per_mille: u64,
    /// What things cost.
    pub costs: CostTable,
}

impl CpuOptions {
    /// So many CPUs with slices of 3 ms (what Linux has called its base slice) and the costs of
    /// [`CostTable::standard`].
    pub fn count(cpus: usize) -> Self {
        Self { cpus, slice: Slice::Fixed(3_000_000), switch_per_mille: 0, costs: CostTable::standard() }
    }
}

/// What a virtual CPU has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    /// Time it ran tasks or was interrupted.
    pub busy_ns: u64,
    /// Of that, in calls at an instant.
    pub interrupt_ns: u64,
    /// Tasks it took from the run queue.
    pub dispatches: u64,
    /// Of these, how often it was not the task that it had run last.
    pub switches: u64,
}

/// What all virtual CPUs have done so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuUsage {
    /// Each CPU.
    pub cpus: Vec<CpuTime>,
    /// Time that tasks waited in the run queue, all together.
    pub wait_ns: u64,
    /// Tasks put back into the run queue with their slice used up.
    pub preemptions: u64,
}

impl CpuUsage {
    /// Time that the CPUs were busy, all together.
    pub fn busy_ns(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.busy_ns).sum()
    }

    /// Tasks taken from the run queue by a CPU that had last run another, on all CPUs.
    pub fn switches(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.switches).sum()
    }
}

#[derive(Default)]
struct Cpu {
    /// It is free, or its task goes on, from here on.
    clock_ns: u64,
    /// A task that gave way to what comes before it, and keeps the CPU.
    held_by: Option<TaskRef>,
    /// The number of the task that ran here last.
    last: Option<u64>,
    slice_end_ns: u64,
    carry_ps: u64,
    time: CpuTime,
}

struct Queued {
    ready_ns: u64,
    tie: u64,
    task: TaskRef,
    /// It was put back because its slice was used up, by this CPU.
    preempted_on: Option<usize>,
}

/// What to do at a preemption point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preempt {
    /// Nothing else comes before.
    GoOn,
    /// Others come first; the CPU is kept.
    GiveWay,
    /// To the end of the run queue.
    Switch,
}

/// A step that may be next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub(super) at_ns: u64,
    cpu: usize,
    from: Place,
}

/// Where a task that may run next is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// On its CPU, having given way.
    Cpu,
    Queue,
    /// In the queue of those who go ahead.
    Ahead,
}

/// A step that begins.
pub(super) struct Dispatch {
    pub(super) task: TaskRef,
    pub(super) cpu: usize,
    /// With the base costs passed.
    pub(super) start_ns: u64,
    pub(super) carry_ps: u64,
}

pub(super) struct Cpus {
    options: CpuOptions,
    cpus: Vec<Cpu>,
    /// In the order of `ready_ns` and `tie`.
    queue: VecDeque<Queued>,
    /// The same of tasks that go ahead of those.
    ahead: VecDeque<Queued>,
    random: Random,
    /// The CPU that runs the step, and the instant it began, base costs included.
    current: usize,
    begun_ns: u64,
    /// What the last preemption point of the step decided.
    pub(super) decided: Preempt,
    wait_ns: u64,
    preemptions: u64,
}

impl Cpus {
    /// # Panics
    /// When the options ask for no CPU or too many, or for slices of no length.
    pub(super) fn new(options: CpuOptions, random: Random) -> Self {
        assert!((1..=CPUS_MAX).contains(&options.cpus), "{} CPUs; allowed are 1 to {CPUS_MAX}", options.cpus);
        let (Slice::Fixed(ns) | Slice::Exponential(ns)) = options.slice;
        assert!(ns > 0, "slices of 0 ns; allowed are 1 and more");
        Self {
            cpus: (0..options.cpus).map(|_| Cpu::default()).collect(),
            options,
            queue: VecDeque::new(),
            ahead: VecDeque::new(),
            random,
            current: 0,
            begun_ns: 0,
            decided: Preempt::GoOn,
            wait_ns: 0,
            preemptions: 0,
        }
    }

    fn slice_ns(&mut self) -> u64 {
        match self.options.slice {
            Slice::Fixed(ns) => ns,
            Slice::Exponential(mean_ns) => self.random.exponential(mean_ns).max(1),
        }
    }

    /// A task is ready from `ready_ns` on.
    pub(super) fn enqueue(&mut self, task: TaskRef, goes_ahead: bool, ready_ns: u64, preempted_on: Option<usize>) {
        let tie = self.random.bits();
        let queued = Queued { ready_ns, tie, task, preempted_on };
        let queue = if goes_ahead { &mut self.ahead } else { &mut self.queue };
        let is_last = queue.back().is_none_or(|last| (last.ready_ns, last.tie) <= (ready_ns, tie));
        if is_last {
            queue.push_back(queued);
        } else {
            let at = queue.partition_point(|other| (other.ready_ns, other.tie) <= (ready_ns, tie));
            queue.insert(at, queued);
        }
    }

    /// The CPU that was free first.
    fn free_first(&self) -> usize {
        let (mut first, mut first_ns) = (0, u64::MAX);
        for (at, cpu) in self.cpus.iter().enumerate() {
            if cpu.clock_ns < first_ns {
                (first, first_ns) = (at, cpu.clock_ns);
            }
        }
        first
    }

    /// The step that could begin earliest; `busy` is a CPU that cannot.
    fn candidate_without(&self, busy: Option<usize>) -> Option<Candidate> {
        // Clock and number of the first of each kind.
        let (mut held, mut free) = (None, None);
        let (mut held_ns, mut free_ns) = (u64::MAX, u64::MAX);
        for (at, cpu) in self.cpus.iter().enumerate() {
            if Some(at) == busy {
                continue;
            }
            if cpu.held_by.is_some() {
                if cpu.clock_ns < held_ns || held.is_none() {
                    (held, held_ns) = (Some((cpu.clock_ns, at)), cpu.clock_ns);
                }
            } else if cpu.clock_ns < free_ns || free.is_none() {
                (free, free_ns) = (Some((cpu.clock_ns, at)), cpu.clock_ns);
            }
        }
        let held = held.map(|(at_ns, cpu)| Candidate { at_ns, cpu, from: Place::Cpu });
        let first_of = |queue: &VecDeque<Queued>, from| {
            let (first, (clock_ns, cpu)) = queue.front().zip(free)?;
            Some(Candidate { at_ns: clock_ns.max(first.ready_ns), cpu, from })
        };
        let ahead = first_of(&self.ahead, Place::Ahead);
        let others = first_of(&self.queue, Place::Queue);
        let queued = match (ahead, others) {
            (Some(ahead), Some(other)) if other.at_ns < ahead.at_ns => Some(other),
            (ahead, others) => ahead.or(others),
        };
        match (held, queued) {
            (Some(held), Some(queued)) if queued.at_ns < held.at_ns => Some(queued),
            (Some(held), _) => Some(held),
            (None, queued) => queued,
        }
    }

    /// The step that comes next if no event comes before it.
    pub(super) fn candidate(&self) -> Option<Candidate> {
        self.candidate_without(None)
    }

    /// What the running task is to do at a preemption point at `now_ns`, with the next event at
    /// `event_ns`; it keeps its CPU unless it `may_switch`. And the instant before which, by what is
    /// known now, it is to go on at all further points.
    pub(super) fn preempt(&mut self, now_ns: u64, event_ns: Option<u64>, may_switch: bool) -> (Preempt, u64) {
        let draws = self.options.switch_per_mille > 0;
        let drawn = draws && self.random.chance(self.options.switch_per_mille);
        let slice_end_ns = self.cpus[self.current].slice_end_ns;
        let other_ns = self.candidate_without(Some(self.current)).map(|other| other.at_ns);
        let first_ns = other_ns.into_iter().chain(event_ns).min().unwrap_or(u64::MAX);
        self.decided = if may_switch && (drawn || now_ns >= slice_end_ns) {
            Preempt::Switch
        } else if first_ns < now_ns {
            Preempt::GiveWay
        } else {
            Preempt::GoOn
        };
        (self.decided, if draws { 0 } else { first_ns.min(slice_end_ns) })
    }

    /// Nanoseconds until the running task's slice is used up.
    pub(super) fn slice_left_ns(&self, now_ns: u64) -> u64 {
        self.cpus[self.current].slice_end_ns.saturating_sub(now_ns)
    }

    /// The candidate's step begins. Nothing if its task has ended meanwhile.
    pub(super) fn begin(&mut self, candidate: Candidate, tasks: &mut Tasks) -> Option<Dispatch> {
        let number = candidate.cpu;
        if candidate.from == Place::Cpu {
            let cpu = &mut self.cpus[number];
            let task = cpu.held_by.take()?;
            (self.current, self.begun_ns, self.decided) = (number, cpu.clock_ns, Preempt::GoOn);
            return Some(Dispatch { task, cpu: number, start_ns: cpu.clock_ns, carry_ps: cpu.carry_ps });
        }
        let queue = if candidate.from == Place::Ahead { &mut self.ahead } else { &mut self.queue };
        let Queued { ready_ns, task, preempted_on, .. } = queue.pop_front()?;
        let found = tasks.get_mut(task)?;
        let waited_ns = candidate.at_ns - ready_ns;
        self.wait_ns += waited_ns;
        found.usage.wait_ns += waited_ns;
        found.usage.dispatches += 1;
        let slice_ns = self.slice_ns();
        let cpu = &mut self.cpus[number];
        let stays = cpu.last == Some(task.number);
        cpu.time.dispatches += 1;
        cpu.time.switches += u64::from(!stays);
        // Nobody else wanted the CPU: the task never left it.
        let base_ns = if waited_ns == 0 && stays && preempted_on == Some(number) {
            0
        } else {
            self.options.costs.step_ns() + if stays { 0 } else { self.options.costs.switch_ns() }
        };
        cpu.last = Some(task.number);
        cpu.time.busy_ns += base_ns;
        found.usage.cpu_ns += base_ns;
        let start_ns = candidate.at_ns + base_ns;
        cpu.slice_end_ns = start_ns.saturating_add(slice_ns);
        (self.current, self.begun_ns, self.decided) = (number, start_ns, Preempt::GoOn);
        Some(Dispatch { task, cpu: number, start_ns, carry_ps: cpu.carry_ps })
    }

    /// Instant at which the running step began, base costs included.
    pub(super) fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// The step has ended after `used_ns`; its task, if it goes on, may be woken already.
    pub(super) fn end(&mut self, task: TaskRef, used_ns: u64, carry_ps: u64, tasks: &mut Tasks) {
        let end_ns = self.begun_ns.saturating_add(used_ns);
        let cpu = &mut self.cpus[self.current];
        (cpu.clock_ns, cpu.carry_ps) = (end_ns, carry_ps);
        cpu.time.busy_ns += used_ns;
        let Some(found) = tasks.get_mut(task) else { return };
        found.free_ns = end_ns;
        found.usage.cpu_ns += used_ns;
        if !found.queued {
            return;
        }
        if self.decided == Preempt::GiveWay {
            cpu.held_by = Some(task);
            return;
        }
        let preempted = self.decided == Preempt::Switch;
        found.usage.preemptions += u64::from(preempted);
        self.preemptions += u64::from(preempted);
        let goes_ahead = found.goes_ahead;
        self.enqueue(task, goes_ahead, end_ns, preempted.then_some(self.current));
    }

    /// A call at `at_ns` begins: the CPU that it interrupts, and that CPU's carry.
    pub(super) fn begin_call(&mut self, at_ns: u64) -> (usize, u64) {
        self.current = self.free_first();
        self.begun_ns = at_ns;
        (self.current, self.cpus[self.current].carry_ps)
    }

    /// The call has ended; it used `used_ns`.
    pub(super) fn end_call(&mut self, used_ns: u64, carry_ps: u64) {
        let cpu = &mut self.cpus[self.current];
        cpu.carry_ps = carry_ps;
        if used_ns > 0 {
            cpu.clock_ns = cpu.clock_ns.max(self.begun_ns).saturating_add(used_ns);
            cpu.time.busy_ns += used_ns;
            cpu.time.interrupt_ns += used_ns;
        }
    }

    /// A run has ended: its future leaves queue and CPU.
    pub(super) fn forget(&mut self, task: TaskRef) {
        self.queue.retain(|queued| queued.task != task);
        self.ahead.retain(|queued| queued.task != task);
        for cpu in &mut self.cpus {
            if cpu.held_by == Some(task) {
                cpu.held_by = None;
            }
        }
    }

    pub(super) fn usage(&self) -> CpuUsage {
        CpuUsage {
            cpus: self.cpus.iter().map(|cpu| cpu.time).collect(),
            wait_ns: self.wait_ns,
            preemptions: self.preemptions,
        }
    }
}

#[cfg(test)]
mod tests;
