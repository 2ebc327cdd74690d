//! The tasks of a world, in slots that are reused.
//!
//! Owns: the futures, the one waker of each task, each task's CPU time.
//! Does not own: the schedule (`shuffle`, `cpu`).
//! Invariants: a number is never reused, so a waker or a queue entry that outlives its task finds none. Slot 0 is the
//! future given to `World::run`, with the number 0.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::Shared;

pub(super) type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The future given to `World::run`; spawned tasks count from 1.
pub(super) const MAIN: TaskRef = TaskRef { slot: 0, number: 0 };

/// Identifies a task by its current slot and its lasting number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskRef {
    slot: u32,
    pub(super) number: u64,
}

#[cfg(test)]
impl TaskRef {
    pub(super) fn of(number: u64) -> Self {
        Self { slot: 0, number }
    }
}

/// A task's CPU time and waits so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskUsage {
    /// Time in which it ran.
    pub cpu_ns: u64,
    /// Time in which it could have run but another task did: its waits in the run queue.
    pub wait_ns: u64,
    /// Times that a CPU took it from the run queue.
    pub dispatches: u64,
    /// Returns to the run queue at the end of its slice.
    pub preemptions: u64,
}

pub(super) struct Task {
    pub(super) number: u64,
    name: &'static str,
    /// `None` while it is polled, and for `MAIN`. Its waker, used for polls, is taken along.
    future: Option<(TaskFuture, Waker)>,
    /// The same waker, to recognize it.
    waker: Waker,
    /// The task is ready and in a queue; or, on CPUs, it was woken while it runs.
    pub(super) queued: bool,
    /// The end of its last step, before which no CPU runs it.
    pub(super) free_ns: u64,
    /// On CPUs it runs before other ready tasks.
    pub(super) goes_ahead: bool,
    /// Its CPU time by a fair queue's account.
    pub(super) virtual_ns: u64,
    pub(super) usage: TaskUsage,
}

#[derive(Default)]
pub(super) struct Tasks {
    slots: Vec<Option<Task>>,
    free: Vec<u32>,
    started: u64,
}

struct TaskWaker {
    shared: Arc<Shared>,
    task: TaskRef,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.shared.wake(self.task);
    }
}

impl Task {
    fn new(shared: &Arc<Shared>, task: TaskRef, name: &'static str, future: Option<TaskFuture>) -> Self {
        let waker = Waker::from(Arc::new(TaskWaker { shared: Arc::clone(shared), task }));
        let future = future.map(|future| (future, waker.clone()));
        Self {
            number: task.number,
            name,
            future,
            waker,
            queued: false,
            free_ns: 0,
            goes_ahead: false,
            virtual_ns: 0,
            usage: TaskUsage::default(),
        }
    }
}

impl Tasks {
    /// Gives `MAIN` its slot; returns its waker.
    pub(super) fn add_main(&mut self, shared: &Arc<Shared>) -> Waker {
        if self.slots.is_empty() {
            self.slots.push(None);
        }
        let main = Task::new(shared, MAIN, "main", None);
        let waker = main.waker.clone();
        self.slots[0] = Some(main);
        waker
    }

    pub(super) fn add(&mut self, shared: &Arc<Shared>, name: &'static str, future: TaskFuture) -> TaskRef {
        if self.slots.is_empty() {
            self.slots.push(None);
        }
        self.started += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let task = TaskRef { slot, number: self.started };
        self.slots[slot as usize] = Some(Task::new(shared, task, name, Some(future)));
        task
    }

    pub(super) fn get_mut(&mut self, task: TaskRef) -> Option<&mut Task> {
        self.slots.get_mut(task.slot as usize)?.as_mut().filter(|found| found.number == task.number)
    }

    pub(super) fn get(&self, task: TaskRef) -> Option<&Task> {
        self.slots.get(task.slot as usize)?.as_ref().filter(|found| found.number == task.number)
    }

    pub(super) fn name(&self, task: TaskRef) -> Option<(&'static str, u64)> {
        self.get(task).map(|task| (task.name, task.number))
    }

    /// Takes the future out for a poll.
    pub(super) fn take_future(&mut self, task: TaskRef) -> Option<(TaskFuture, Waker)> {
        self.get_mut(task)?.future.take()
    }

    pub(super) fn put_future(&mut self, task: TaskRef, future: (TaskFuture, Waker)) {
        if let Some(task) = self.get_mut(task) {
            task.future = Some(future);
        }
    }

    /// Whether `waker` is the task's own, so that waking the task has the same effect.
    pub(super) fn is_own(&self, task: TaskRef, waker: &Waker) -> bool {
        self.get(task).is_some_and(|task| task.waker.will_wake(waker))
    }

    /// Removes the task. The caller drops it with no lock held.
    pub(super) fn remove(&mut self, task: TaskRef) -> Option<Task> {
        self.get(task)?;
        if task != MAIN {
            self.free.push(task.slot);
        }
        self.slots[task.slot as usize].take()
    }

    /// Name and number of the tasks that are `queued`, or of those that are not, in the order of their numbers.
    pub(super) fn names(&self, queued: bool) -> Vec<String> {
        let mut found: Vec<&Task> = self.slots.iter().flatten().filter(|task| task.queued == queued).collect();
        found.sort_by_key(|task| task.number);
        found.into_iter().map(|task| format!("{} #{}", task.name, task.number)).collect()
    }
}
