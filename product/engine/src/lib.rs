//! The page cache and writeback engine, generic over the world it runs in.
//!
//! Owns: devices and their files with all state of writeback (`devices`), dirty accounting, the steps of reads, writes,
//! syncs and reclaim, readahead, the scan of memory after a kill (`recovery`).
//! Does not own: cached pages (`afflux-pages`), the seams to policies and worlds (`afflux-device`), the choice when to
//! write and who waits (policies), names and handles (`volume`), clocks, threads, files and randomness (a `Platform`
//! supplies them), protocols (front ends).
//! Invariants: never touches `std::{time, fs, net, thread, env}`. Accepted data is never dropped: a page that failed to
//! write stays dirty and reports it. Every wait has an owner that ends it.

#![forbid(unsafe_code)]

mod base;
mod call;
mod devices;
mod dirty;
mod durations;
mod engine;
mod in_force;
mod readahead;
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
pub use afflux_device::error::{DeviceError, Error};
pub use afflux_device::platform::{Device, DeviceReport, Limits, Nanos, Platform, WallNanos};
pub use afflux_device::request::{Backing, Operation, PastCache, ProbeMemory, Request, TransferHere};
pub use afflux_device::{FILE_BYTES_MAX, counters, error, gauges, knobs, platform, policy, settings};
pub use afflux_pages::cache::{Census, PinnedPages};
pub use afflux_pages::wait::lock;
pub use afflux_pages::{eviction, rare};

pub use devices::delays::{ACCOUNTS_MAX, AccountOwner, Delay, DelayTimes, Delayed, DeviceDelays, PerDelay};
pub use devices::file::WriteObstacle;
pub use devices::status::{DEVICE_FIGURES, DeviceStatus};
pub use devices::waits::{DeviceWaits, PauseStatus, PerWait, Waiter, WaitsFor};
pub use devices::{DeviceId, ListedFiles};
pub use durations::{WaitHistogram, WaitTimes};
pub use engine::{ENGINE_FIGURES, Engine, EngineStatus, File, NamesPriority, Policies, WithheldRange};
pub use readahead::{Advice, Cached, Readahead, ReadaheadLimits, ReadaheadPolicy};
pub use reading::Waiting;
pub use reclaim::Dropped;
pub use recovery::{FILE_KEY_BYTES_MAX, FileKey, Quarantined, Recovered, RescuedFile};
pub use recycler::{Recycler, SharedRecycler};
