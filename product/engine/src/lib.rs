//! The page cache and writeback engine, generic over the world it runs in.
//!
//! Owns: pages in memory, dirty state, and the decisions when to write, evict and read ahead.
//! Does not own: names and handles (`volume`), clocks, threads, files, randomness (a `Platform` supplies them),
//! protocols (front ends).
//! Invariants: never touches `std::{time, fs, net, thread, env}`. Accepted data is never dropped: a page that failed to
//! write stays dirty and reports it. Every wait has an owner that ends it.

#![forbid(unsafe_code)]

mod adopt;
mod base;
mod call;
mod client;
pub mod counters;
mod devices;
mod dirty;
mod durations;
mod engine;
pub mod error;
pub mod gauges;
mod in_force;
pub mod platform;
pub mod policy;
mod readahead;
mod reading;
mod reclaim;
mod recovery;
mod recycler;
mod request;
mod reshape;
pub mod settings;
mod throttle;
pub mod trace;
mod writeback;
mod writing;

pub use afflux_pages::cache::{Census, PinnedPages};
pub use afflux_pages::{eviction, rare};
pub use client::Client;
pub use devices::delays::{ACCOUNTS_MAX, AccountOwner, Delay, DelayTimes, Delayed, DeviceDelays, PerDelay};
pub use devices::status::{DEVICE_FIGURES, DeviceStatus};
pub use devices::waits::{DeviceWaits, PauseStatus, PerWait, Waiter, WaitsFor};
pub use devices::{DeviceId, ListedFiles};
pub use durations::{WaitHistogram, WaitTimes};
pub use engine::{ENGINE_FIGURES, Engine, EngineStatus, File, NamesPriority, Policies, Withheld};
pub use error::{DeviceError, Error};
pub use platform::{Device, DeviceReport, Limits, Nanos, Platform, WallNanos};
pub use readahead::{Advice, Cached, Readahead, ReadaheadLimits, ReadaheadPolicy};
pub use reading::Waiting;
pub use reclaim::Dropped;
pub use recovery::{FILE_KEY_BYTES_MAX, FileKey, Quarantined, Recovered, RescuedFile};
pub use recycler::{Recycler, SharedRecycler};
pub use request::{Backing, Operation, PastCache, ProbeMemory, Request, TransferHere};

/// The largest size a file can have: 2^63 - 1, the largest signed offset of a host.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;
