//! Virtual CPUs: tasks run on them in slices; their time is accounted.
//!
//! The model: all CPUs take tasks from one run queue, in the order in which the tasks became ready, or by the CPU time
//! that they have had ([`RunOrder`]). The seed orders simultaneous tasks. There is one queue because a scheduler with
//! good balancing amounts to that, because no balancer has to be modelled, and because its waits are known in closed
//! form. A task keeps its CPU until it waits, or until a preemption point after the end of its slice. Then it goes to
//! the end of the queue. A slice ends nowhere else, so a task that computes for long does so in `SimPlatform::work`.
//! Tasks that go ahead have their own queue, which is served first; they do not cut a running slice short.
//!
//! Each CPU has its own clock. The earliest comes next: an event, or a step of the CPU with the lowest clock. A step
//! runs as a whole before the next is chosen. A task whose clock is ahead of possible work of others waits at its
//! preemption points, still on its CPU, until the others have done that work. Between two such points, other tasks see
//! a step's effects earlier than they should.
//!
//! Events (a device's completion, a timer) happen at their instants, on no CPU. The CPU time of a call at an instant is
//! taken from the CPU that was free first, as an interrupt's would be.
//!
//! Owns: the run queue, the CPUs' clocks and slices, their accounts.
//! Does not own: the cost of a step (`clock`), tasks, timers.
//! Invariants: a task is in the queue once or on a CPU, never both. No CPU is idle while the queue
//! holds a task that is ready by its clock.

use std::collections::VecDeque;

use super::task::{Task, TaskRef, Tasks};
use crate::costs::CostTable;
use crate::random::Random;

/// Most virtual CPUs of a world.
pub const CPUS_MAX: usize = 1024;

/// The time that a task may run while others wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slice {
    /// Always this long, in nanoseconds.
    Fixed(u64),
    /// Drawn anew each time from an exponential distribution with this mean, in nanoseconds.
    Exponential(u64),
}

/// The order of the run queue. Tasks that go ahead come before all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunOrder {
    /// As the tasks became ready.
    Ready,
    /// The task with the least CPU time first, like the completely fair scheduler of Linux 2.6.23 and later. A task
    /// that has slept is at most `credit_ns` behind the queue, and a new one starts a mean slice after it. A waking
    /// task cuts no running slice short.
    Fair {
        /// Half of `sched_latency` in Linux.
        credit_ns: u64,
    },
}

/// The CPUs of a world.
#[derive(Clone, Debug)]
pub struct CpuOptions {
    /// The number of CPUs: 1 to [`CPUS_MAX`].
    pub cpus: usize,
    /// The time that a task may run while others wait.
    pub slice: Slice,
    /// The order in which tasks get CPUs.
    pub order: RunOrder,
    /// Whether tasks that ask for it go ahead of others.
    pub may_go_ahead: bool,
    /// Preemption points of 1,000 at which the task is switched out even if its slice lasts: 0 in experiments; more in
    /// searches for races.
    pub switch_per_mille: u64,
    /// The table of CPU costs.
    pub costs: CostTable,
}

impl CpuOptions {
    /// This many CPUs, with slices of 3 ms (Linux's base slice) and the costs of [`CostTable::standard`].
    pub fn count(cpus: usize) -> Self {
        let (slice, order) = (Slice::Fixed(3_000_000), RunOrder::Ready);
        Self { cpus, slice, order, may_go_ahead: true, switch_per_mille: 0, costs: CostTable::standard() }
    }
}

/// A virtual CPU's figures so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    /// Time in which it ran tasks or was interrupted.
    pub busy_ns: u64,
    /// The part of that in calls at an instant.
    pub interrupt_ns: u64,
    /// Tasks it took from the run queue.
    pub dispatches: u64,
    /// Dispatches of a task other than the one that the CPU had run last.
    pub switches: u64,
}

/// The figures of all virtual CPUs so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuUsage {
    /// Each CPU.
    pub cpus: Vec<CpuTime>,
    /// Total time that tasks waited in the run queue.
    pub wait_ns: u64,
    /// Tasks put back into the run queue at the end of their slice.
    pub preemptions: u64,
}

impl CpuUsage {
    /// Total time that the CPUs were busy.
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
    /// The instant from which the CPU is free, or its task continues.
    clock_ns: u64,
    /// A task that yielded to earlier work and keeps the CPU.
    held_by: Option<TaskRef>,
    /// The number of the task that ran here last.
    last: Option<u64>,
    slice_end_ns: u64,
    carry_ps: u64,
    time: CpuTime,
}

struct Queued {
    /// The rank in the queue: the instant at which the task became ready, or its virtual time.
    rank: u64,
    ready_ns: u64,
    tie: u64,
    task: TaskRef,
    /// The CPU that put it back at the end of its slice.
    preempted_on: Option<usize>,
}

/// The decision at a preemption point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preempt {
    /// Nothing else comes before the task.
    GoOn,
    /// Others come first; the task keeps its CPU.
    Yield,
    /// The task goes to the end of the run queue.
    Switch,
}

/// A candidate for the next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub(super) at_ns: u64,
    cpu: usize,
    from: TaskLocation,
}

/// The location of a candidate's task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TaskLocation {
    /// On its CPU, after it yielded.
    Cpu,
    /// At this index of the queue.
    Queue(usize),
    /// In the queue of tasks that go ahead.
    Ahead,
}

/// A step that begins.
pub(super) struct Dispatch {
    pub(super) task: TaskRef,
    pub(super) cpu: usize,
    /// Includes the base costs.
    pub(super) start_ns: u64,
    pub(super) carry_ps: u64,
}

pub(super) struct Cpus {
    options: CpuOptions,
    cpus: Vec<Cpu>,
    /// In the order of `rank` and `tie`.
    queue: VecDeque<Queued>,
    /// The queue, in the same order, of tasks that go ahead.
    ahead: VecDeque<Queued>,
    random: Random,
    /// The largest rank of the queue that a CPU has taken: `min_vruntime` of a fair queue.
    taken_rank: u64,
    /// The CPU of the running step; below, the step's start with base costs.
    current: usize,
    begun_ns: u64,
    /// The decision at the step's last preemption point.
    pub(super) decided: Preempt,
    wait_ns: u64,
    preemptions: u64,
}

impl Cpus {
    /// # Panics
    /// When the options have no CPU or too many, or slices without length.
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
            taken_rank: 0,
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
    pub(super) fn enqueue(&mut self, task: TaskRef, found: &mut Task, ready_ns: u64, preempted_on: Option<usize>) {
        let tie = self.random.bits();
        let goes_ahead = found.goes_ahead && self.options.may_go_ahead;
        let rank = if goes_ahead { ready_ns } else { self.rank(found, ready_ns) };
        let queued = Queued { rank, ready_ns, tie, task, preempted_on };
        let queue = if goes_ahead { &mut self.ahead } else { &mut self.queue };
        let is_last = queue.back().is_none_or(|last| (last.rank, last.tie) <= (rank, tie));
        if is_last {
            queue.push_back(queued);
        } else {
            let at = queue.partition_point(|other| (other.rank, other.tie) <= (rank, tie));
            queue.insert(at, queued);
        }
    }

    /// The task's rank in the queue. In a fair one this is its virtual time, which it catches up with after a sleep
    /// (`place_entity`).
    fn rank(&self, found: &mut Task, ready_ns: u64) -> u64 {
        let RunOrder::Fair { credit_ns } = self.options.order else { return ready_ns };
        let (Slice::Fixed(slice_ns) | Slice::Exponential(slice_ns)) = self.options.slice;
        found.virtual_ns = match found.usage.dispatches {
            0 => self.taken_rank + slice_ns,
            _ => found.virtual_ns.max(self.taken_rank.saturating_sub(credit_ns)),
        };
        found.virtual_ns
    }

    /// The index in the queue of the task that a CPU takes which is free from `clock_ns` on, and when that is ready.
    fn first_in_queue(&self, clock_ns: u64) -> Option<(usize, u64)> {
        if self.options.order == RunOrder::Ready {
            return self.queue.front().map(|first| (0, first.ready_ns));
        }
        let ready = self.queue.iter().position(|queued| queued.ready_ns <= clock_ns);
        let at = ready.or_else(|| {
            let next = self.queue.iter().enumerate().min_by_key(|(_, queued)| queued.ready_ns);
            next.map(|(at, _)| at)
        })?;
        Some((at, self.queue[at].ready_ns))
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

    /// The step that could begin earliest, except on the CPU `busy`.
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
        let held = held.map(|(at_ns, cpu)| Candidate { at_ns, cpu, from: TaskLocation::Cpu });
        let ahead = free.zip(self.ahead.front()).map(|((clock_ns, cpu), first)| Candidate {
            at_ns: clock_ns.max(first.ready_ns),
            cpu,
            from: TaskLocation::Ahead,
        });
        let others = free.and_then(|(clock_ns, cpu)| {
            let (at, ready_ns) = self.first_in_queue(clock_ns)?;
            Some(Candidate { at_ns: clock_ns.max(ready_ns), cpu, from: TaskLocation::Queue(at) })
        });
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

    /// Decides for the running task at a preemption point at `now_ns`, with the next event at `event_ns`. The task
    /// keeps its CPU unless it `may_switch`. Also returns the instant before which, as known now, the task continues at
    /// all further points.
    pub(super) fn preempt(&mut self, now_ns: u64, event_ns: Option<u64>, may_switch: bool) -> (Preempt, u64) {
        let draws = self.options.switch_per_mille > 0;
        let drawn = draws && self.random.chance(self.options.switch_per_mille);
        let slice_end_ns = self.cpus[self.current].slice_end_ns;
        let other_ns = self.candidate_without(Some(self.current)).map(|other| other.at_ns);
        let first_ns = other_ns.into_iter().chain(event_ns).min().unwrap_or(u64::MAX);
        self.decided = if may_switch && (drawn || now_ns >= slice_end_ns) {
            Preempt::Switch
        } else if first_ns < now_ns {
            Preempt::Yield
        } else {
            Preempt::GoOn
        };
        (self.decided, if draws { 0 } else { first_ns.min(slice_end_ns) })
    }

    /// Nanoseconds left in the running task's slice.
    pub(super) fn slice_left_ns(&self, now_ns: u64) -> u64 {
        self.cpus[self.current].slice_end_ns.saturating_sub(now_ns)
    }

    /// Begins the candidate's step. `None` if its task has ended meanwhile.
    pub(super) fn begin(&mut self, candidate: Candidate, tasks: &mut Tasks) -> Option<Dispatch> {
        let number = candidate.cpu;
        if candidate.from == TaskLocation::Cpu {
            let cpu = &mut self.cpus[number];
            let task = cpu.held_by.take()?;
            (self.current, self.begun_ns, self.decided) = (number, cpu.clock_ns, Preempt::GoOn);
            return Some(Dispatch { task, cpu: number, start_ns: cpu.clock_ns, carry_ps: cpu.carry_ps });
        }
        let queued = match candidate.from {
            TaskLocation::Queue(at) => self.queue.remove(at)?,
            _ => self.ahead.pop_front()?,
        };
        let Queued { rank, ready_ns, task, preempted_on, .. } = queued;
        if candidate.from != TaskLocation::Ahead {
            self.taken_rank = self.taken_rank.max(rank);
        }
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
        // No other task wanted the CPU, so the task never left it.
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

    /// The instant at which the running step began, base costs included.
    pub(super) fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// The step has ended after `used_ns`. If its task continues, it may have been woken already.
    pub(super) fn end(&mut self, task: TaskRef, used_ns: u64, carry_ps: u64, tasks: &mut Tasks) {
        let end_ns = self.begun_ns.saturating_add(used_ns);
        let cpu = &mut self.cpus[self.current];
        (cpu.clock_ns, cpu.carry_ps) = (end_ns, carry_ps);
        cpu.time.busy_ns += used_ns;
        let Some(found) = tasks.get_mut(task) else { return };
        found.free_ns = end_ns;
        found.usage.cpu_ns += used_ns;
        found.virtual_ns += used_ns;
        if !found.queued {
            return;
        }
        if self.decided == Preempt::Yield {
            cpu.held_by = Some(task);
            return;
        }
        let preempted = self.decided == Preempt::Switch;
        found.usage.preemptions += u64::from(preempted);
        self.preemptions += u64::from(preempted);
        self.enqueue(task, found, end_ns, preempted.then_some(self.current));
    }

    /// A call at `at_ns` begins. Returns the CPU that it interrupts, and that CPU's carry.
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

    /// A run has ended: its future leaves the queue and the CPU.
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
