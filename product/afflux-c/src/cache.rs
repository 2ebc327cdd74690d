//! Caches.
//!
//! Owns: the calls on a whole cache, its settings and figures in C's form.
//! Does not own: the cache (`afflux`).
//! Invariants: a struct that C may know in an older, shorter form comes with its size.

use std::ffi::{c_char, c_int, c_void};
use std::mem::size_of;
use std::time::Duration;

use afflux::{Cache, Caching, IoChoice};

use crate::border::{Answer, CallFailure, c_text, count, guarded, status};
use crate::handle::HandleTable;
use crate::memory::{Out, bytes, put_known, take_known, text};

static CACHES: HandleTable<Cache> = HandleTable::new(1, "cache");

/// A page cache with writeback: memory of a fixed size, and a few threads.
pub struct CacheHandle {
    _private: [u8; 0],
}

/// How files are read and written.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Io {
    /// io_uring if the host has it, otherwise system calls.
    Auto = 0,
    /// io_uring; making the cache fails if the host has none.
    Uring = 1,
    /// System calls on threads.
    Syscalls = 2,
}

/// Whether the host's own page cache is used.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostCaching {
    /// The cache bypasses it (O_DIRECT) if the file system allows that.
    Auto = 0,
    /// It is used.
    Buffered = 1,
}

/// Settings of a cache. Set all to zero, then `size` to sizeof(afflux_settings), then the members that differ from the
/// default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// sizeof(afflux_settings). The library may know more members than the program, or fewer if the others are 0.
    pub size: usize,
    /// Memory for pages, which never grows; 1 MiB or more. 0: 256 MiB. Tables use about one percent more.
    pub memory_bytes: u64,
    /// Threads that write in the background and read for queues, 1 to 256. 0: 1, which keeps several disks busy.
    pub reactors: u32,
    /// One of afflux_io.
    pub io: u32,
    /// One of afflux_host_caching.
    pub host_caching: u32,
    /// Must be 0.
    pub reserved: u32,
    /// How long afflux_cache_close() may take to write dirty pages, in milliseconds. 0: 30,000.
    pub drain_time_ms: u64,
    /// Descriptors that the cache may have beside one for each open file. 0: a quarter of the process's limit, at most
    /// 1,024.
    pub descriptors: u64,
    /// Files without a handle that keep their pages. 0: half of the number of pages.
    pub idle_files: u64,
    /// Knobs by name, separated by blanks or commas, such as "dirty_ratio=30 dirty_bytes=64MiB";
    /// docs/reference/knobs.md lists all. May be NULL.
    pub knobs: *const c_char,
}

/// Makes a cache; with the default settings if `settings` is NULL. Invalid settings are refused before anything is
/// started.
///
/// A forked child cannot use the cache: it makes its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_cache_new(settings: *const Settings, cache: *mut *mut CacheHandle) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { Out::new(cache, "the place for the cache") }?;
        // SAFETY: as above.
        let made = unsafe { built(settings) }?;
        place.put(CACHES.open(made)?);
        Ok(())
    })
}

/// # Safety
/// `settings` is null, or has as many bytes as its `size` says.
unsafe fn built(settings: *const Settings) -> Answer<Cache> {
    if settings.is_null() {
        return Ok(Cache::builder().build()?);
    }
    if !settings.is_aligned() {
        return Err(CallFailure::bad_address("the settings"));
    }
    // SAFETY: the caller's promise; the size comes first in every version.
    let size = unsafe { (&raw const (*settings).size).read() };
    let least = size_of::<Settings>();
    if !(least..=4096).contains(&size) {
        return Err(CallFailure::invalid(format!(
            "settings of {size} bytes: set size to sizeof(afflux_settings), {least}"
        )));
    }
    // SAFETY: the caller's promise.
    let newer = unsafe { bytes(settings.wrapping_add(1).cast(), size - least) }?;
    // SAFETY: as above.
    let settings: Settings = unsafe { take_known(settings, size) };
    let mut builder = Cache::builder();
    if settings.reserved != 0 || newer.iter().any(|byte| *byte != 0) {
        return Err(CallFailure::invalid(
            "settings that this version does not know: bytes that it does not know are not 0".to_owned(),
        ));
    }
    if settings.memory_bytes > 0 {
        builder = builder.memory(settings.memory_bytes);
    }
    if settings.reactors > 0 {
        builder = builder.reactors(settings.reactors as usize);
    }
    builder = builder.io(match settings.io {
        0 => IoChoice::Auto,
        1 => IoChoice::Uring,
        2 => IoChoice::Syscalls,
        other => return Err(CallFailure::invalid(format!("io is {other}: it is one of afflux_io, 0 to 2"))),
    });
    builder = builder.caching(match settings.host_caching {
        0 => Caching::Auto,
        1 => Caching::Buffered,
        other => {
            let what = format!("host_caching is {other}: it is one of afflux_host_caching, 0 or 1");
            return Err(CallFailure::invalid(what));
        }
    });
    if settings.drain_time_ms > 0 {
        builder = builder.drain_time(Duration::from_millis(settings.drain_time_ms));
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    if settings.descriptors > 0 {
        builder = builder.descriptors(number(settings.descriptors));
    }
    if settings.idle_files > 0 {
        builder = builder.idle_files(number(settings.idle_files));
    }
    if !settings.knobs.is_null() {
        // SAFETY: the caller's promise.
        let knobs = unsafe { text(settings.knobs, "the text of knobs") }?;
        for knob in knobs.split([' ', ',', '\n', '\t']).filter(|knob| !knob.is_empty()) {
            builder = builder.knob_text(knob);
        }
    }
    Ok(builder.build()?)
}

/// Does work with a cache.
#[inline]
pub(crate) fn on_cache<T>(cache: *mut CacheHandle, work: impl FnOnce(&Cache) -> Answer<T>) -> Answer<T> {
    let cache = CACHES.enter(cache)?;
    guarded(|| Cache::clone(&cache), || work(&cache))
}

/// Called for a file that could not be made durable before its cache ended. `path` is the file's path. `bytes` is the
/// number of lost bytes, in whole pages, or 0 if all was written and only its durability is in doubt. `error` is the
/// reason, or NULL if the time was over. The texts are valid until the function returns. It must return, and not by
/// longjmp() or an exception.
pub type UnwrittenFn =
    Option<unsafe extern "C" fn(context: *mut c_void, path: *const c_char, bytes: u64, error: *const c_char)>;

/// Ends a cache for all its handles: calls in progress and later ones fail, everything dirty is written, its threads
/// end, its descriptors are closed, and nothing is written after this returns. The program must still close its files
/// and release its pages; the memory is freed with the last of them.
///
/// May take the drain time. AFFLUX_ERROR_IO: some file could not be made durable. Then `told`, unless it is NULL, is
/// called for each such file with `context`, on this thread, and afflux_last_error() returns a summary. The handle is
/// closed in any case. If several threads close it, one succeeds, and the others get AFFLUX_ERROR_BAD_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_cache_close(cache: *mut CacheHandle, told: UnwrittenFn, context: *mut c_void) -> c_int {
    status(|| {
        let cache = CACHES.close(cache)?;
        let Err(unwritten) = Cache::clone(&cache).close() else { return Ok(()) };
        for file in told.iter().flat_map(|_| &unwritten.files) {
            let path = c_text(&file.path.to_string_lossy());
            let error = file.error.as_deref().map(c_text);
            let error = error.as_ref().map_or(std::ptr::null(), |error| error.as_ptr());
            if let Some(told) = told {
                // SAFETY: the caller's promise; the texts outlive the call.
                unsafe { told(context, path.as_ptr(), file.bytes, error) };
            }
        }
        Err(CallFailure::unwritten(&unwritten))
    })
}

/// Makes all earlier writes durable. The cache goes on. The error is that of the first file that could not be written;
/// the others were tried, and bytes that failed stay dirty.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_cache_drain(cache: *mut CacheHandle) -> c_int {
    status(|| on_cache(cache, |cache| Ok(cache.drain()?)))
}

/// Sets a knob while the cache runs, from a text such as "dirty_ratio=30".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_cache_set(cache: *mut CacheHandle, knob: *const c_char) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            // SAFETY: the caller's promise.
            Ok(cache.set_text(unsafe { text(knob, "the knob") }?)?)
        })
    })
}

/// The value of a knob, by its name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_cache_knob(cache: *mut CacheHandle, name: *const c_char, value: *mut u64) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(value, "the place for the value") }?;
            // SAFETY: as above.
            place.put(cache.knob_named(unsafe { text(name, "the name") }?)?);
            Ok(())
        })
    })
}

/// Drops every clean page that nobody holds, as drop_caches does in Linux. Returns the number of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_cache_drop_clean_pages(cache: *mut CacheHandle) -> i64 {
    count(|| on_cache(cache, |cache| Ok(cache.drop_clean_pages())))
}

/// The current figures of a cache.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Memory for pages.
    pub memory_bytes: u64,
    /// Free memory for pages.
    pub free_bytes: u64,
    /// Dirty bytes on all devices, writeback included.
    pub dirty_bytes: u64,
    /// Bytes under writeback.
    pub writeback_bytes: u64,
    /// Limit of dirty bytes, on all devices together.
    pub dirty_limit_bytes: u64,
    /// Memory held by afflux_pages.
    pub pinned_bytes: u64,
    /// Tables and indexes that describe the pages.
    pub metadata_bytes: u64,
    /// Files that have pages or a handle.
    pub files: u64,
    /// Descriptors of files.
    pub descriptors: u64,
    /// Number of devices; afflux_cache_device() returns the figures of each.
    pub devices: u64,
}

/// Stores the current figures of a cache. `size` is sizeof(afflux_stats).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_cache_stats(cache: *mut CacheHandle, stats: *mut Stats, size: usize) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            let known = cache.stats();
            let known = Stats {
                memory_bytes: known.memory_bytes,
                free_bytes: known.free_bytes,
                dirty_bytes: known.dirty_bytes,
                writeback_bytes: known.writeback_bytes,
                dirty_limit_bytes: known.dirty_limit_bytes,
                pinned_bytes: known.pinned_bytes,
                metadata_bytes: known.metadata_bytes,
                files: known.files,
                descriptors: known.descriptors,
                devices: known.devices.len() as u64,
            };
            // SAFETY: the caller's promise.
            unsafe { put_known(stats, size, &known, "the place for the figures") }
        })
    })
}

/// Stores a counter of the engine since the cache began, by its name; docs/reference/counters.md lists all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_cache_counter(cache: *mut CacheHandle, name: *const c_char, value: *mut u64) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(value, "the place for the value") }?;
            // SAFETY: as above.
            let name = unsafe { text(name, "the name") }?;
            let known = cache.stats().counter(name);
            place.put(known.ok_or_else(|| CallFailure::invalid(format!("there is no counter '{name}'")))?);
            Ok(())
        })
    })
}

/// A device of a cache. Texts end with a zero byte, and longer ones are cut.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceStats {
    /// Dirty bytes, writeback included.
    pub dirty_bytes: u64,
    /// Its dirty limit; above it, its writers wait.
    pub dirty_limit_bytes: u64,
    /// Bytes written since the cache began.
    pub written_bytes: u64,
    /// Its estimated write speed in bytes a second; 0 if it is not known.
    pub write_bandwidth_bytes_per_s: u64,
    /// Time since its last completion if it counts as hung, otherwise 0.
    pub stalled_ns: u64,
    /// Requests in flight.
    pub in_flight: u32,
    /// Writers that wait for its dirty limit.
    pub writers_waiting: u32,
    /// Files with unwritten bytes.
    pub files_dirty: u32,
    /// Files whose last write or flush failed.
    pub files_failed: u32,
    /// Its number on the host, as in /proc/self/mountinfo.
    pub name: [c_char; 48],
    /// How its files are read and written.
    pub access: [c_char; 128],
    /// The last error of a write or flush; empty if there was none.
    pub last_error: [c_char; 128],
}

/// Stores the current figures of a device, by its number from 0 on; AFFLUX_ERROR_INVALID if there is no such device.
/// `size` is sizeof(afflux_device_stats).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_cache_device(
    cache: *mut CacheHandle,
    number: u64,
    stats: *mut DeviceStats,
    size: usize,
) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            let all = cache.stats().devices;
            let device = usize::try_from(number).ok().and_then(|number| all.get(number));
            let none = || CallFailure::invalid(format!("there is no device {number}: there are {}", all.len()));
            let device = device.ok_or_else(none)?;
            let known = DeviceStats {
                dirty_bytes: device.dirty_bytes,
                dirty_limit_bytes: device.dirty_limit_bytes,
                written_bytes: device.written_bytes,
                write_bandwidth_bytes_per_s: device.write_bandwidth_bytes_per_s.unwrap_or(0),
                stalled_ns: device.stalled_ns.unwrap_or(0),
                in_flight: device.in_flight,
                writers_waiting: device.writers_waiting,
                files_dirty: device.files_dirty,
                files_failed: device.files_failed,
                name: fixed(&device.name),
                access: fixed(&device.access),
                last_error: fixed(device.last_error.as_deref().unwrap_or_default()),
            };
            // SAFETY: the caller's promise.
            unsafe { put_known(stats, size, &known, "the place for the figures") }
        })
    })
}

/// A text in an array, with a zero byte at the end.
fn fixed<const LEN: usize>(text: &str) -> [c_char; LEN] {
    let mut array = [0; LEN];
    for (place, byte) in array[..LEN - 1].iter_mut().zip(text.bytes()) {
        *place = byte.cast_signed();
    }
    array
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn afflux_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
