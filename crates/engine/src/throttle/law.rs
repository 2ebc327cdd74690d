//! What a law of throttling is: a snapshot and its own memory in, a decision out.
//!
//! Owns: the trait that laws implement, the decision and its causes, the form in which the engine
//! keeps a law whose memory it cannot name.
//! Does not own: any law; the carrying out (`balance`).
//! Invariants: a law is pure: same view, same memory, same decision. It sees no clock but the view's.

use std::any::Any;

use super::view::View;

/// Why a writer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum PauseCause {
    /// Its device's equal part of the dirty limit is used up.
    DevicePart,
    /// Its device has more than its share of the limit.
    DeviceShare,
    /// All devices together have more than the limit allows.
    GlobalLimit,
    /// The device is held to its own share.
    StrictLimit,
    /// It dirties faster than its part of the device's bandwidth.
    Rate,
    /// It wrote what it could, and waits for a request queue to have room.
    Congestion,
    /// Dirty pages would leave too few frames to readers, whatever the law says.
    MemoryGuard,
}

impl PauseCause {
    /// All causes, by number.
    pub const ALL: [Self; 7] = [
        Self::DevicePart,
        Self::DeviceShare,
        Self::GlobalLimit,
        Self::StrictLimit,
        Self::Rate,
        Self::Congestion,
        Self::MemoryGuard,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::DevicePart => "device's part of the dirty limit",
            Self::DeviceShare => "device's share of the dirty limit",
            Self::GlobalLimit => "dirty limit",
            Self::StrictLimit => "strict limit of the device",
            Self::Rate => "dirty rate",
            Self::Congestion => "congested queue",
            Self::MemoryGuard => "memory guard",
        }
    }
}

/// What ends a pause before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WokenBy {
    /// Nothing.
    Time,
    /// Any device's queue that stops being congested.
    CongestionClears,
}

/// What follows a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// The writer goes on.
    Return,
    /// Another snapshot and decision.
    Decide,
}

/// A writer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// At most so long.
    pub ns: u64,
    /// Why.
    pub cause: PauseCause,
    /// What may end it early.
    pub woken_by: WokenBy,
    /// What follows.
    pub then: Then,
}

/// What a writer does whose allowance is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It goes on.
    Continue,
    /// It waits.
    Pause(Pause),
    /// It writes so many pages of the device itself; another decision follows.
    WriteBack {
        /// Most pages.
        pages: u64,
    },
}

/// What the engine itself has to know until the next decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Pages the writer may dirty before it is asked about again.
    pub task_pages: u64,
    /// Pages all writers of a CPU may dirty before one of them is asked about.
    pub cpu_pages: u64,
    /// The device is over: its writers are asked about after [`EXCEEDED_PAGES`] at most.
    pub exceeded: bool,
    /// Pages of the writer that are not yet taken into account.
    pub unpaid_pages: u64,
    /// Background writeback has to start.
    pub start_background: bool,
}

/// Pages between decisions about writers to a device that is over (kernel: 32 KiB).
pub const EXCEEDED_PAGES: u64 = 8;

/// What a law remembers, lent for a decision.
pub struct Memory<'a, L: Law + ?Sized> {
    /// About the writer.
    pub task: &'a mut L::Task,
    /// About the device.
    pub device: &'a mut L::Device,
    /// About everything.
    pub shared: &'a mut L::Shared,
    /// What the engine is to know. Comes in as the last decision left it, except that
    /// `unpaid_pages` is what the writer dirtied by now and `start_background` is false.
    pub pace: &'a mut Pace,
}

/// A law's limits, for those who ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitPages {
    /// The device's dirty limit.
    pub dirty: u64,
    /// Above it background writeback starts: what the law's own estimate makes of a threshold in time
    /// included.
    pub background: u64,
    /// Pages a second that the device writes, by the law's own estimate; `None` if it makes none.
    pub bandwidth: Option<u64>,
}

/// A law of throttling, and of when and how much background writeback writes.
pub trait Law: Send + Sync + 'static {
    /// What it remembers of a writer: an open file.
    type Task: Default + Send + 'static;
    /// What it remembers of a device.
    type Device: Default + Send + 'static;
    /// What it remembers of all together.
    type Shared: Default + Send + 'static;

    /// Its name.
    fn name(&self) -> &'static str;

    /// The longest pause in nanoseconds that it ever asks for at once.
    fn pause_ns_max(&self) -> u64;

    /// The pace before the first decision, on a machine of so many pages and CPUs.
    fn start(&self, memory_pages: u64, cpus: u64) -> Pace;

    /// What the writer does.
    fn decide(&self, view: &View, memory: Memory<'_, Self>) -> Decision;

    /// So many pages of the device have been written.
    fn wrote(&self, view: &View, pages: u64, device: &mut Self::Device, shared: &mut Self::Shared);

    /// Whether background writeback of the device goes on, or starts.
    fn over_background(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> bool;

    /// Most pages that a flusher writes of one file before it turns to the next.
    fn slice_pages(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> u64;

    /// The limits in force.
    fn limits(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> LimitPages;
}

/// Memory of a law that the engine keeps and cannot look into.
pub(crate) type Kept = Box<dyn Any + Send>;

/// A [`Law`] without the types of its memory.
pub trait AnyLaw: Send + Sync + 'static {
    /// [`Law::name`].
    fn name(&self) -> &'static str;
    /// [`Law::pause_ns_max`].
    fn pause_ns_max(&self) -> u64;
    /// [`Law::start`].
    fn start(&self, memory_pages: u64, cpus: u64) -> Pace;
    /// Memory of a new writer.
    fn new_task(&self) -> Box<dyn Any + Send>;
    /// Memory of a new device.
    fn new_device(&self) -> Box<dyn Any + Send>;
    /// Memory of all together.
    fn new_shared(&self) -> Box<dyn Any + Send>;
    /// [`Law::decide`], with memory that this law made.
    fn decide(
        &self,
        view: &View,
        task: &mut dyn Any,
        device: &mut dyn Any,
        shared: &mut dyn Any,
        pace: &mut Pace,
    ) -> Decision;
    /// [`Law::wrote`].
    fn wrote(&self, view: &View, pages: u64, device: &mut dyn Any, shared: &mut dyn Any);
    /// [`Law::over_background`].
    fn over_background(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> bool;
    /// [`Law::slice_pages`].
    fn slice_pages(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> u64;
    /// [`Law::limits`].
    fn limits(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> LimitPages;
}

fn own<T: 'static>(memory: &mut dyn Any) -> &mut T {
    memory.downcast_mut().unwrap_or_else(|| unreachable!("memory is handed to the law that made it"))
}

impl<L: Law> AnyLaw for L {
    fn name(&self) -> &'static str {
        Law::name(self)
    }

    fn pause_ns_max(&self) -> u64 {
        Law::pause_ns_max(self)
    }

    fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        Law::start(self, memory_pages, cpus)
    }

    fn new_task(&self) -> Box<dyn Any + Send> {
        Box::new(L::Task::default())
    }

    fn new_device(&self) -> Box<dyn Any + Send> {
        Box::new(L::Device::default())
    }

    fn new_shared(&self) -> Box<dyn Any + Send> {
        Box::new(L::Shared::default())
    }

    fn decide(
        &self,
        view: &View,
        task: &mut dyn Any,
        device: &mut dyn Any,
        shared: &mut dyn Any,
        pace: &mut Pace,
    ) -> Decision {
        Law::decide(self, view, Memory { task: own(task), device: own(device), shared: own(shared), pace })
    }

    fn wrote(&self, view: &View, pages: u64, device: &mut dyn Any, shared: &mut dyn Any) {
        Law::wrote(self, view, pages, own(device), own(shared));
    }

    fn over_background(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> bool {
        Law::over_background(self, view, own(device), own(shared))
    }

    fn slice_pages(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> u64 {
        Law::slice_pages(self, view, own(device), own(shared))
    }

    fn limits(&self, view: &View, device: &mut dyn Any, shared: &mut dyn Any) -> LimitPages {
        Law::limits(self, view, own(device), own(shared))
    }
}
