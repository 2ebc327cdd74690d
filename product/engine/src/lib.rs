//! The page cache and writeback engine, generic over the world it runs in.
//!
//! Owns: pages in memory, dirty state, and the decisions when to write, evict and read ahead.
//! Does not own: names and handles (`volume`), clocks, threads, files, randomness (a `Platform` supplies them),
//! protocols (front ends).
//! Invariants: never touches `std::{time, fs, net, thread, env}`. Accepted data is never dropped: a page that failed to
//! write stays dirty and reports it. Every wait has an owner that ends it.

#![forbid(unsafe_code)]

mod base;
mod call;
mod dirty;
mod engine;
mod in_force;
mod reading;
mod reclaim;
mod recovery;
mod recycler;
mod reshape;
mod throttle;
pub mod trace;
mod withholding;
mod writeback;
mod writing;

pub use afflux_device::client::Client;
pub use afflux_device::devices::delays::{
    ACCOUNTS_MAX, AccountOwner, Delay, DelayTimes, Delayed, DeviceDelays, PerDelay,
};
pub use afflux_device::devices::file::WriteObstacle;
pub use afflux_device::devices::status::{DEVICE_FIGURES, DeviceStatus};
pub use afflux_device::devices::waits::{DeviceWaits, PauseStatus, PerWait, Waiter, WaitsFor};
pub use afflux_device::devices::{DeviceId, ListedFiles};
pub use afflux_device::durations::{WaitHistogram, WaitTimes};
pub use afflux_device::error::{DeviceError, Error};
pub use afflux_device::platform::{Device, DeviceReport, Limits, Nanos, Platform, WallNanos};
pub use afflux_device::readahead::{Advice, Cached, Readahead, ReadaheadLimits, ReadaheadPolicy};
pub use afflux_device::recovery::{FILE_KEY_BYTES_MAX, FileKey, Quarantined, Recovered, RescuedFile};
pub use afflux_device::request::{Backing, Operation, PastCache, ProbeMemory, Request, TransferHere};
pub use afflux_device::{FILE_BYTES_MAX, counters, error, gauges, knobs, platform, policy, settings};
pub use afflux_pages::cache::{Census, PinnedPages};
pub use afflux_pages::wait::lock;
pub use afflux_pages::{eviction, rare};

pub use engine::{ENGINE_FIGURES, Engine, EngineStatus, File, NamesPriority, Policies, WithheldRange};
pub use reading::Waiting;
pub use reclaim::Dropped;
pub use recycler::{Recycler, SharedRecycler};
