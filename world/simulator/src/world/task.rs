//! The tasks of a world, in slots that are used again.
//!
//! Owns: the futures, the one waker of each task, what each has used of the CPUs.
//! Does not own: when a task runs (`shuffle`, `cpu`).
//! Invariants: a number is never used again, so a waker or a queue entry that outlived its task
//! finds nobody. Slot 0 is the future given to `World::run`, with the number 0.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::Shared;

pub(super) type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The future given to `World::run`; spawned tasks count from 1.
pub(super) const MAIN: TaskRef = TaskRef { slot: 0, number: 0 };

/// Which task: its slot for now, its number for ever.
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

/// What a task has had of the CPUs so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskUsage {
    /// Time it ran.
    pub cpu_ns: u64,
    /// Time it could have run and another did: its waits in the run queue.
    pub wait_ns: u64,
    /// How often a CPU took it from the run queue.
    pub dispatches: u64,
    /// How often it was put back there with its slice used up.
    pub preemptions: u64,
}

pub(super) struct Task {
    pub(super) number: u64,
    name: &'static str,
    /// Taken out while it is polled; the waker to poll with goes along. None for `MAIN`.
    future: Option<(TaskFuture, Waker)>,
    /// The same waker, to know it by.
    waker: Waker,
    /// Ready, and in the queue for it; or, on CPUs, woken while it runs.
    pub(super) queued: bool,
    /// When the last step ended: on CPUs nobody runs it before.
    pub(super) free_ns: u64,
    /// On CPUs it is taken before others that are ready.
    pub(super) goes_ahead: bool,
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

    /// Takes the future out to be polled.
    pub(super) fn take_future(&mut self, task: TaskRef) -> Option<(TaskFuture, Waker)> {
        self.get_mut(task)?.future.take()
    }

    pub(super) fn put_future(&mut self, task: TaskRef, future: (TaskFuture, Waker)) {
        if let Some(task) = self.get_mut(task) {
            task.future = Some(future);
        }
    }

    /// Whether `waker` is the task's own, so that waking the task is the same.
    pub(super) fn is_own(&self, task: TaskRef, waker: &Waker) -> bool {
        self.get(task).is_some_and(|task| task.waker.will_wake(waker))
    }

    /// Forgets the task. What is returned is dropped with no lock held.
    pub(super) fn remove(&mut self, task: TaskRef) -> Option<Task> {
        self.get(task)?;
        if task != MAIN {
            self.free.push(task.slot);
        }
        self.slots[task.slot as usize].take()
    }

    /// Name and number of the tasks that are `queued`, or that are not, in the order of their numbers.
    pub(super) fn names(&self, queued: bool) -> Vec<String> {
        let mut found: Vec<&Task> = self.slots.iter().flatten().filter(|task| task.queued == queued).collect();
        found.sort_by_key(|task| task.number);
        found.into_iter().map(|task| format!("{} #{}", task.name, task.number)).collect()
    }
}
