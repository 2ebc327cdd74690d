//! One CPU that runs ready tasks in an order drawn from the seed, for tests.
//!
//! The model: while anything is ready, time advances only by a fixed cost a step. Due calls and tasks join the ready
//! ones, and the seed picks the next. Every preemption point is a switch. So seeds try orders that no scheduler with
//! queues would.
//!
//! Owns: the ready tasks and calls.
//! Does not own: tasks, timers, the clock.
//! Invariants: each ready task or call is there once.

use super::task::TaskRef;
use super::timer::Due;
use super::{Call, Choice, Core, Next, RunError, Shared};

enum Ready {
    Task(TaskRef),
    Call(Call),
}

#[derive(Default)]
pub(super) struct Shuffle {
    ready: Vec<Ready>,
}

impl Shuffle {
    pub(super) fn ready_task(&mut self, task: TaskRef) {
        self.ready.push(Ready::Task(task));
    }

    /// A run has ended: its future is no longer ready.
    pub(super) fn forget(&mut self, task: TaskRef) {
        self.ready.retain(|ready| !matches!(ready, Ready::Task(other) if *other == task));
    }
}

impl Core {
    /// Makes due calls and tasks ready, calls first. If a foreign waker is due, it returns all due tasks and wakers
    /// instead, in their order, to be woken unlocked.
    fn collect_due(&mut self, now_ns: u64) -> Vec<Due> {
        let mut woken = Vec::new();
        while let Some(due) = self.timers.pop_due(now_ns) {
            match due {
                Due::Call(call) => self.shuffle.ready.push(Ready::Call(call)),
                due => woken.push(due),
            }
        }
        if woken.iter().any(|due| matches!(due, Due::Wake(_))) {
            return woken;
        }
        for due in woken {
            if let Due::Task(task) = due {
                self.make_ready(task, now_ns);
            }
        }
        Vec::new()
    }
}

impl Shared {
    /// Chooses the next step; time advances until there is one.
    pub(super) fn next_shuffled(&self, core: &mut Core) -> Result<Choice, RunError> {
        let now_ns = self.now_ns();
        let woken = core.collect_due(now_ns);
        if !woken.is_empty() {
            return Ok(Choice::Wake(woken));
        }
        if now_ns > self.options.time_ns_max {
            return Err(RunError::TimeUp { waiting: core.tasks.names(false) });
        }
        if core.shuffle.ready.is_empty() {
            let Some(at_ns) = core.timers.first_ns() else {
                return Err(RunError::Deadlock { waiting: core.tasks.names(false) });
            };
            if at_ns > self.options.time_ns_max {
                return Err(RunError::TimeUp { waiting: core.tasks.names(false) });
            }
            self.clock.set(at_ns.max(now_ns));
            return Ok(Choice::Again);
        }
        core.count_step(self.options.steps_max, now_ns)?;
        let count = core.shuffle.ready.len() as u64;
        let chosen = core.schedule.below(count);
        let ready = core.shuffle.ready.swap_remove(chosen as usize);
        let number = if let Ready::Task(task) = &ready { task.number } else { u64::MAX };
        core.trace.event(now_ns, "step", &[number, chosen, count]);
        Ok(Choice::Next(match ready {
            Ready::Call(call) => Next::Call(call),
            Ready::Task(task) => core.begin_step(task),
        }))
    }
}
