//! The guide: concepts, durability, errors, sizing, tuning. This module has only text.
//!
//! Owns: facts for users of the crate that belong to no single item.
//! Does not own: the documentation of a call (at the call).
//! Invariants: its examples run with the tests.
//!
//! # Concepts
//!
//! A [`Cache`](crate::Cache) is a fixed amount of memory for pages of 4 KiB, and a few threads. Files are opened
//! through it and read and written at offsets. A read of cached bytes is a copy; other reads wait for the device.
//! Writes go to pages, which are *dirty* until they are on the device; a *flusher* for each device writes them in the
//! background. Clean pages are evicted when their memory is needed, dirty ones never.
//!
//! **One file of the host is one file of the cache**, whatever names or descriptors it is opened by: a device and an
//! inode. All its handles see a write as soon as it returns.
//!
//! **The cache finds devices by itself**: each file system (`st_dev`) on which a file is opened is one, and so is each
//! block device. They do not wait for each other: a writer to a slow disk waits only for that disk, and the devices in
//! use share the dirty limit.
//!
//! **The cache bypasses the host's page cache** (`O_DIRECT`) where the file system allows it, so that the memory is not
//! used twice. A partial page at a file's end goes through the host's cache, and a small new file with it when it is
//! synced, which is faster; the host does not keep these pages. Programs on the host see writes once they have been
//! written back.
//!
//! **Blocking and async.** A call without `_async` blocks its thread, which does its reads itself: the shortest way to
//! the disk. A call with `_async` is a future. It needs no particular runtime, and starts nothing
//! before it is polled. Both may be mixed on one file. Do not block a thread of an async runtime for long; a hit does
//! not. For futures on a runtime, a thread of the cache reads. A thread that runs its futures with
//! [`Cache::run`](crate::Cache::run), or from a loop of its own as a [`ThreadReactor`](crate::ThreadReactor), reads by
//! itself, which costs less.
//!
//! ```
//! use afflux::{Cache, OpenOptions};
//!
//! # fn main() -> std::io::Result<()> {
//! # let place = tempfile::tempdir()?;
//! # let path = place.path().join("file");
//! let cache = Cache::builder().memory(16 << 20).build()?;
//! let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! runtime.block_on(async {
//!     let file = cache.open_async(&path, OpenOptions::new().read(true).write(true).create(true)).await?;
//!     file.write_at_async(b"from tokio", 0).await?;
//!     file.sync_data_async().await
//! })?;
//! let mut bytes = [0; 10];
//! cache.open_read(&path)?.read_exact_at(&mut bytes, 0)?;
//! assert_eq!(&bytes, b"from tokio");
//! # Ok(())
//! # }
//! ```
//!
//! **Dropping a future** is always allowed. No other call waits for a dropped future, which holds nothing any more.
//! Each call documents its possible effect until then: a write may have written a prefix of its bytes, a change of size
//! is all or nothing.
//!
//! **Without a copy.** [`File::read_pinned`](crate::File::read_pinned) shows bytes in the cache, a slice a page, for as
//! long as the guard lives: to send them, hash them, compare them. Meanwhile, a write of the same bytes goes to another
//! page.
//!
//! # Durability
//!
//! | after | the bytes are |
//! |-|-|
//! | [`write_at`](crate::File::write_at), [`append`](crate::File::append) | in the cache: gone if the process is killed |
//! | some time (`dirty_expire_centisecs`, 30 s) | on the device, and then flushed |
//! | [`sync_data`](crate::File::sync_data), [`sync_range`](crate::File::sync_range) | durable, with the file's size: they survive a loss of power |
//! | [`sync_all`](crate::File::sync_all) | durable, and the host's times and modes, too |
//! | [`File::close`](crate::File::close) of a handle that can write, [`Cache::drain`](crate::Cache::drain), [`Cache::close`](crate::Cache::close) | durable |
//! | the drop of a [`File`](crate::File) | in the cache still: written later |
//! | the drop of the last handle | durable, or reported |
//!
//! After a crash a *new* file is found only if the host has synced its directory: open the directory with `std::fs` and
//! call `sync_all` on it, as without a cache.
//!
//! Without a sync, pages are written in no particular order, and each may be written before earlier writes. If one
//! write must not reach the disk before another, sync in between: first a log, then the data that it describes. Or give
//! the order to the cache: [`File::order_after`](crate::File::order_after) keeps bytes off the disk until others are
//! durable, and [`File::withhold`](crate::File::withhold) until you say so. The cache never tears a page that it
//! writes; a device may tear it, so use checksums.
//!
//! **The end.** When the last handle (`Cache` or `File`) is dropped, or one calls
//! [`Cache::close`](crate::Cache::close), everything is written; there is a [time](crate::Builder::drain_time) for
//! that. `close` returns the files that could not be written. Otherwise they are reported to a
//! [hook](crate::Builder::on_unwritten), or without one to the standard error stream. From then on nothing is written.
//! On return the threads and descriptors are gone; the memory is freed with the last handle and the last
//! [`Pages`](crate::Pages). A thread that called a blocking method keeps a small ring for its next call until it ends,
//! or calls another cache. If the last handle is dropped on a thread of the cache itself, in a waker, the cache ends in
//! the background.
//!
//! A handle that is forgotten ([`std::mem::forget`]) keeps the cache alive: close it. A process that exits without
//! either loses its dirty bytes; `std::process::exit` runs no destructors.
//!
//! # Errors
//!
//! Every call returns an [`std::io::Error`]. Its kind tells the program what to do, and its text names the file. Inside
//! is an [`Error`](crate::Error) for programs, which keeps the host's [number](crate::Error::errno). Three kinds need
//! no further detail and have none inside: `WouldBlock`, `UnexpectedEof`, and `OutOfMemory` of a copy.
//!
//! **A failed write is not forgotten.** When the device fails, the write call has long returned. The pages stay dirty
//! and are tried again, with growing pauses. *Every* sync of the file returns the error until they are written, so that
//! each caller learns of it. A sync that succeeds means that everything before it is durable, whatever failed in
//! between. Unlike with the kernel's page cache, it is right to call it again after an error. While a file fails, its
//! own writers are refused once it holds too much memory; other writers go on.
//!
//! | kind | means |
//! |-|-|
//! | `WouldBlock` | of a `try_` call: it would have to wait |
//! | `StorageFull`, `QuotaExceeded` | no space for the bytes: free some; dirty bytes are kept and tried again |
//! | `TimedOut` | the device has completed nothing for so long that writers should not wait for it (knob `hang_error_ms`); dirty bytes are kept |
//! | `ResourceBusy` | another cache has the file; or its bytes are [withheld](crate::File::withhold) |
//! | `NotConnected` | the cache was closed, or went out of use by a panic in it |
//! | `Unsupported` | a forked child uses its parent's cache; an object that is no file |
//! | `Deadlock` | a blocking call on a thread of the cache, by a waker that runs tasks at once; an order of bytes after themselves |
//!
//! **A device that hangs**, or a frozen file system, blocks only the calls that need it. These are reads of uncached
//! bytes, syncs, and writes at the dirty limit. With little free space they include every write of new pages, since its
//! space is reserved first. Cached bytes are read and overwritten as ever, and files on other devices go on. Writes and
//! syncs wait as long as the device does nothing, as they would without a cache, or until the time of the knob
//! `hang_error_ms` is over. Its default, 0, means never; the device must complete nothing at all for that time, reads
//! included. Changes of size and holes are then refused, too; a change that the device has already received may still
//! happen when it goes on. Closing the cache ends these waits, and takes at most its [time](crate::Builder::drain_time)
//! and a few seconds; a future can be dropped. Two waits are bounded only by the kernel: a blocking read that was sent
//! to the device, since the device may still fill the pages, and calls that only the kernel can answer, such as opening
//! a file. The drop of a file's last handle closes the file on the host, on the thread that drops it. A mount that
//! hangs blocks only the users of its files.
//!
//! **A panic in the cache** does not end the process. It poisons the cache: every call fails with
//! [`Error::Poisoned`](crate::Error::Poisoned), nothing more is written, and dirty bytes are reported as unwritten.
//! This is so on a thread of yours, too, if it panics inside a call. A panic in a future of yours that
//! [`Cache::run`](crate::Cache::run) polls is no panic in the cache: your program gets it. A panic in a waker of yours,
//! or in a [hook](crate::Builder::on_unwritten), is none either: it is printed and ends there. A waker is called with
//! no lock held and may call the cache.
//!
//! **A forked child** has no threads of the cache. Its calls fail with [`Error::Forked`](crate::Error::Forked), and
//! dropping handles does nothing there. Calls from a signal handler are not allowed: they take locks.
//!
//! **Testing the answers.** [`Faults`](crate::Faults) fails or keeps requests to the disks, or cuts them off as a kill
//! would. So a program's tests meet each error at each request.
//!
//! # Other users of the same files
//!
//! *Another cache*, in this process or another, is refused ([`Error::InUse`](crate::Error::InUse)) unless both only
//! read: each would miss the other's writes. The claim is an open file description lock on a byte past all data, which
//! ends with the file's last descriptor. So another cache can open a file when it has no handle and is durable, when
//! the cache ends, or, after a kill, when the kernel has finished the process's requests. Opening a file waits for
//! that, two seconds at most. On file systems without locks no cache is refused.
//!
//! *Other programs* may read and write the host's files. The cache notices their writes when a file is opened, when its
//! [metadata](crate::File::metadata) is requested, and by a look at open files about once a second (a thousand files at
//! a time). If times or size have changed without a write of ours, the clean pages are void. Unwritten bytes are never
//! given up, and win where both wrote the same block. While a file is being written back, the origin of a change is
//! unknown; only its size is compared then. If another program cuts a file, the cut part reads as zeros until the cache
//! notices.
//!
//! # Sizing
//!
//! * **Memory**: for bytes that are read again and again, and for bursts of writes. Tables take about one percent more.
//!   A quarter of it may be held by [`Pages`](crate::Pages); half of it may be dirty (`dirty_ratio`).
//! * **Reactors**: one thread drives several fast disks. More help if many async tasks read uncached bytes.
//! * **Descriptors**: one for each open file, and up to [`descriptors`](crate::Builder::descriptors) more: for files
//!   without a handle that are not durable yet, and second ones for files whose end fills no block. The second
//!   descriptor is opened before a write that needs it is accepted, and kept until the file is durable. Files without a
//!   handle cost none once they are durable, and keep their pages: a later open finds them, if no other program changed
//!   the file. A lack of descriptors is an error ([`Error::OutOfDescriptors`](crate::Error::OutOfDescriptors)).
//! * **Files**: an open file costs about 1 KiB; a file without a handle costs the same while it is
//!   [kept](crate::Builder::idle_files).
//!
//! # Tuning
//!
//! The defaults need none of this: the cache learns a disk's speed while it is used. Knobs can be set before the start
//! ([`Builder::knob`](crate::Builder::knob)) and while the cache runs ([`Cache::set`](crate::Cache::set)).
//!
//! * Writers wait too long: [`Stats`](crate::Stats) shows the device, [`Delays`](crate::Delays) the cause. A larger
//!   `dirty_ratio` or `dirty_bytes` allows more dirty bytes; it does not make a busy disk faster.
//! * Large files are read once: [`Advice::NoReuse`](crate::Advice::NoReuse) or [`DontNeed`](crate::Advice::DontNeed)
//!   keep them from evicting other pages.
//! * Reads jump about: [`Advice::Random`](crate::Advice::Random) reads nothing ahead.
//! * The next range is known: [`File::prefetch`](crate::File::prefetch).
//!
//! ```
//! use afflux::{Advice, Cache, Knob};
//!
//! # fn main() -> std::io::Result<()> {
//! # let place = tempfile::tempdir()?;
//! let cache = Cache::builder().memory(64 << 20).build()?;
//! let file = cache.create(place.path().join("table"))?;
//! file.advise(0..u64::MAX, Advice::Random)?;
//! cache.set(Knob::DirtyRatio, 20)?;
//! assert_eq!(cache.stats().dirty_bytes, 0);
//! # Ok(())
//! # }
//! ```
