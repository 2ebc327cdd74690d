//! A page cache with writeback, to put under a storage engine, a file server or a copy tool.
//!
//! Files are read and written through memory whose size you set. The cache writes dirty pages to each disk at the pace
//! that it has learned the disk can take; a writer waits only for the disk that it writes to. A hit is a copy: no
//! system call, no lock shared between files. No accepted byte is lost silently: failed writes stay dirty and are tried
//! again, and every sync returns the error until they succeed.
//!
//! ```
//! use afflux::Cache;
//!
//! # fn main() -> std::io::Result<()> {
//! # let place = tempfile::tempdir()?;
//! # let path = place.path().join("data");
//! let cache = Cache::builder().memory(256 << 20).build()?;
//! let file = cache.create(&path)?;
//! let at = file.append(b"a record")?;
//! file.sync_data()?;
//! let mut record = [0; 8];
//! file.read_exact_at(&mut record, at)?;
//! assert_eq!(&record, b"a record");
//! cache.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Every call has a form that blocks and one that can be awaited on any runtime. The [guide] explains the concepts,
//! durability, errors, sizing and tuning; the examples in the crate's `examples` directory are a key-value store, a
//! storage for redb, a copy tool and a server.
//!
//! # The crate
//!
//! Owns: handles to caches and files, opening files, the order of the end; the `std::io` kind of each error.
//! Does not own: pages, writeback, reading (`engine`), threads and rings (`linux-device`), the pace (`budget`).
//! Invariants: no panic for bad input, no global state. After a cache has ended each call fails, and nothing of it is
//! written.

#![forbid(unsafe_code)]

mod builder;
mod cache;
mod coherence;
mod core;
mod devices;
mod ending;
mod error;
mod faults;
mod file;
mod files;
mod gate;
pub mod guide;
mod open;
mod pages;
mod stats;
mod stream;
mod thread_reactor;
mod upkeep;

pub use afflux_budget::BudgetKnob;
pub use afflux_engine::settings::Knob;
pub use afflux_engine::{Advice, Delay, DeviceError, WaitTimes};
pub use afflux_linux_device::{Caching, IoChoice};
pub use builder::{Builder, MEMORY_BYTES_MIN};
pub use cache::{Cache, CacheKnob};
pub use error::{Error, Unwritten, UnwrittenFile};
pub use faults::{Faults, RequestKind};
pub use file::{File, Metadata, Withheld};
pub use open::OpenOptions;
pub use pages::Pages;
pub use stats::{Delays, DeviceStats, Stats};
pub use stream::Stream;
pub use thread_reactor::ThreadReactor;

/// The README's program is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
