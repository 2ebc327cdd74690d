//! The guide: concepts, durability, errors, sizing, tuning. There is nothing here but text.
//!
//! Owns: what a user of the crate should know and that stands at no single item.
//! Does not own: what a call does (at the call).
//! Invariants: its examples run with the tests.
//!
//! # Concepts
//!
//! A [`Cache`](crate::Cache) is memory for pages of 4 KiB, all that it will ever use, and a few threads. Files are opened
//! through it and read and written at offsets. Reads that find their bytes are copies; others wait for the device.
//! Writes go to pages, which are *dirty* until they are on the device; a *flusher* for each device writes them in the
//! background. Clean pages are evicted when their memory is needed, dirty ones never.
//!
//! **One file of the host is one file of the cache**, whatever names or descriptors it is opened by: a device and an
//! inode. All its handles see a write as soon as it returns.
//!
//! **Devices are found by themselves**: each file system (`st_dev`) that a file is opened on is one, and each block
//! device. They do not wait for each other: who writes to a slow disk waits for that one only, and what may be dirty is
//! divided among those that are in use.
//!
//! **The host's page cache is gone past** (`O_DIRECT`) where the file system takes that; so the memory is not used
//! twice. What fills no page at a file's end goes through it, and a small new file with it when it is synced, which is
//! faster; the host does not keep that. Programs on the host see what was written when it has been written back.
//!
//! **Blocking and async.** A call without `_async` blocks its thread, and uses the thread's own ring for what it reads:
//! the shortest way to the disk. With `_async` it is a future for any runtime: it needs none, and starts nothing before
//! it is polled. Both may be mixed on one file. Do not block a thread of an async runtime for long; a hit does not.
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
//! **Dropping a future** is always allowed. Nobody else waits for it, nothing is held by it afterwards. What it may have
//! done until then stands at each call: a write a prefix of its bytes, a change of size all or nothing.
//!
//! **Without a copy.** [`File::read_pinned`](crate::File::read_pinned) shows bytes where they are, a slice a page, for as
//! long as the guard lives: to send them, hash them, compare them. Whoever writes the same bytes meanwhile writes to
//! another page.
//!
//! # Durability
//!
//! | after | the bytes are |
//! |-|-|
//! | [`write_at`](crate::File::write_at), [`append`](crate::File::append) | in the cache: gone if the process is killed |
//! | some time (`dirty_expire_centisecs`, 30 s) | on the device, and then flushed |
//! | [`sync_data`](crate::File::sync_data), [`sync_range`](crate::File::sync_range) | durable, with the file's size: they outlive a loss of power |
//! | [`sync_all`](crate::File::sync_all) | durable, and the host's times and modes, too |
//! | [`File::close`](crate::File::close) of a handle that can write, [`Cache::drain`](crate::Cache::drain), [`Cache::close`](crate::Cache::close) | durable |
//! | the drop of a [`File`](crate::File) | in the cache still: written later |
//! | the drop of the last handle | durable, or told |
//!
//! A file that is *made* is found after a crash once its directory was synced by the host: open the directory with
//! `std::fs` and call `sync_all` on it, as without a cache.
//!
//! Without a sync, pages are written in no particular order, and each may be written before those that were written
//! earlier. What must not be seen before something else has to be synced in between: a log, then what it speaks of. A
//! page that is written is never torn by the cache; a device may tear it, so use checksums.
//!
//! **The end.** When the last handle (`Cache` or `File`) is dropped, or one calls [`Cache::close`](crate::Cache::close),
//! everything is written; there is a [time](crate::Builder::drain_time) for that. What could not be written is returned
//! by `close`, or told to the standard error stream and a [hook](crate::Builder::on_unwritten). From then on nothing is
//! written. Threads and descriptors are gone when it returns; the memory goes with the last handle and the last
//! [`Pages`](crate::Pages). A thread that called a blocking method keeps a small ring for its next call until it ends,
//! or calls another cache. A last handle that is dropped on a thread of the cache itself, in a waker, ends it in the background.
//!
//! A handle that is forgotten ([`std::mem::forget`]) keeps the cache going: close it. A process that exits without either
//! loses what is dirty; `std::process::exit` runs no destructors.
//!
//! # Errors
//!
//! Every call returns an [`std::io::Error`] with a kind that says what to do, a text that says which file, and, inside, an
//! [`Error`](crate::Error) for programs, which keeps the host's [number](crate::Error::errno). Three kinds say it all and
//! have none inside: `WouldBlock`, `UnexpectedEof`, and `OutOfMemory` of a copy.
//!
//! **A failed write is not forgotten.** The write call has long returned when the device fails. The pages stay dirty and
//! are tried again, with growing pauses; *every* sync of the file returns the error until they are written, so that
//! whoever asks is told. A sync that succeeds means that everything before it is durable, whatever failed in between:
//! unlike with the kernel's page cache, calling it again after an error is right. While a file fails, its own writers
//! are refused once it holds too much memory; others go on.
//!
//! | kind | means |
//! |-|-|
//! | `WouldBlock` | of a `try_` call: it would have to wait |
//! | `StorageFull`, `QuotaExceeded` | no place for what is written: make some; what is dirty is kept and tried again |
//! | `TimedOut` | the device has completed nothing for so long that writers are not to wait for it (knob `hang_error_ms`); what is dirty is kept |
//! | `ResourceBusy` | another cache has the file |
//! | `NotConnected` | the cache was closed, or went out of use by a panic in it |
//! | `Unsupported` | a forked child uses its parent's cache; something that is no file |
//! | `Deadlock` | a blocking call on a thread of the cache, by a waker that runs tasks at once |
//!
//! **A device that hangs**, or a file system that is frozen, keeps those who need it: reads of what is not cached, syncs,
//! writes when so much is dirty as may be, and where little space is left every write of new pages, which has space
//! reserved first. What is cached is read and overwritten as ever, and files on other devices go on. Writes and syncs wait
//! as long as the device does nothing, as they would without a cache, or until the knob `hang_error_ms` says that it was
//! long enough (0, the default, is never; it has to complete nothing at all for that time, reads included). Changes of size
//! and holes are refused then, too; one that the device was asked for already may be made when it goes on. Closing the
//! cache ends these waits, and takes the [time](crate::Builder::drain_time) that it was given and a few seconds at most; a
//! future can be dropped. Two waits have no bound but the kernel's: a blocking read that the device was asked for, since
//! the device may still fill the pages, and calls that only the kernel can answer, such as opening a file. The drop of a
//! file's last handle closes the file on the host, on the thread that drops it. A mount that hangs keeps those alone who
//! use its files.
//!
//! **A panic in the cache** does not end the process. It poisons the cache: every call fails with
//! [`Error::Poisoned`](crate::Error::Poisoned), nothing more is written, and what was dirty is told as unwritten.
//! A panic in a waker of yours, or in a [hook](crate::Builder::on_unwritten), is no panic in the cache: it is printed and ends
//! there. A waker is called with no lock held and may call the cache.
//!
//! **A forked child** has no threads of the cache. Its calls fail with [`Error::Forked`](crate::Error::Forked), and
//! dropping handles does nothing there. Calls from a signal handler are not allowed: they take locks.
//!
//! # Others who use the same files
//!
//! *Another cache*, in this process or another, is refused ([`Error::InUse`](crate::Error::InUse)) unless both only
//! read: each would miss what the other writes. An open file description lock on a byte past all data says so; it goes
//! with the file's last descriptor, so a file is free for another cache when nobody has it open and it is durable, when
//! the cache ends, or, after a kill, when the kernel is done with what the process had asked for: opening a file waits
//! for that, two seconds at most. On file systems without locks nobody is refused.
//!
//! *Other programs* may read and write the host's files. What they write is noticed when a file is opened, when its
//! [metadata](crate::File::metadata) is asked for, and by a look at open files about once a second (a thousand files at a
//! time): if times or size are not as they were, and it was not our doing, the clean pages are void. Bytes not written
//! yet are never given up, and win where both wrote the same block. While a file is being written back nobody can tell
//! whose change it was; only its size is compared then. A file that is cut behind our back reads as zeros where it was cut
//! until that is noticed.
//!
//! # Sizing
//!
//! * **Memory**: what is read again and again, and what is written in bursts. Tables take about one percent more. A
//!   quarter of it may be held by [`Pages`](crate::Pages); half of it may be dirty (`dirty_ratio`).
//! * **Reactors**: one thread drives several fast disks. More help where many async tasks read what is not cached.
//! * **Descriptors**: one for each open file, and up to [`descriptors`](crate::Builder::descriptors) more: of files that
//!   nobody has open and that are not durable yet, and second ones for ends of files that fill no block. The second
//!   descriptor is opened before a write that needs it is accepted, and kept until the file is durable. Files that
//!   nobody has open cost none once they are durable, and keep their pages: opening them again finds them, if nobody
//!   changed them. Out of descriptors is told ([`Error::OutOfDescriptors`](crate::Error::OutOfDescriptors)).
//! * **Files**: an open file costs about 1 KiB, one that nobody has open the same while any are
//!   [kept](crate::Builder::idle_files).
//!
//! # Tuning
//!
//! The defaults need none of this: how fast a disk is, is learned while it is used. Knobs can be set before
//! ([`Builder::knob`](crate::Builder::knob)) and while it runs ([`Cache::set`](crate::Cache::set)).
//!
//! * Writers wait too long: [`Stats`](crate::Stats) says for which device, [`Delays`](crate::Delays) for what. More may
//!   be dirty with a larger `dirty_ratio` or `dirty_bytes`; a disk that is full of work stays so.
//! * Large files are read once: [`Advice::NoReuse`](crate::Advice::NoReuse) or
//!   [`DontNeed`](crate::Advice::DontNeed) keep them from pushing others out.
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
