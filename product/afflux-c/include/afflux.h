/*
 * afflux.h - a page cache with writeback, to put under a storage engine, a file server or a copy tool.
 *
 * Generated from the sources of the crate afflux-c by `cargo xtask docs`: do not edit.
 *
 * Files are read and written through memory whose size you set. The cache writes dirty pages to each disk at the pace
 * that it has learned the disk can take; a writer waits only for the disk that it writes to. A hit is a copy: no system
 * call, no lock shared between files. No accepted byte is lost silently: failed writes stay dirty and are tried again, and
 * every sync returns the error until they succeed.
 *
 *     afflux_cache *cache;
 *     afflux_file *file;
 *     if (afflux_cache_new(NULL, &cache) < 0 || afflux_open(cache, "data", O_RDWR | O_CREAT, 0644, &file) < 0)
 *         errx(1, "%s", afflux_last_error());
 *     int64_t at = afflux_append(file, "a record", 8);
 *     int64_t failed = at < 0 ? at : afflux_sync_data(file);
 *     ...
 *     afflux_close(file);
 *     afflux_cache_close(cache, NULL, NULL);
 *
 * Errors. A call that fails returns a number below 0: a negative errno. The library's own codes are afflux_error; the
 * host's come unchanged. afflux_strerror() has a text for each, and afflux_last_error() describes the thread's last failed
 * call: the failure and the file.
 *
 * Threads. Any thread may make any call, and several threads may use one handle at once. If one thread closes a handle
 * while others use it, their calls go on, and later calls fail.
 *
 * Handles are numbers, not addresses. NULL, a closed handle, or one of another kind gives AFFLUX_ERROR_BAD_HANDLE, whatever
 * has been opened since. A call with a file of a closed cache gives AFFLUX_ERROR_CLOSED.
 *
 * Memory passed to a call must be valid, and used by nobody else, until the call returns; for a call in a queue, until its
 * outcome is taken or the queue is closed. Results (afflux_file **, afflux_stats *) are written only if the call succeeds.
 *
 * fork(2). A child has none of the library's threads. With its parent's handles every call, even a close, gives
 * AFFLUX_ERROR_FORKED and changes nothing in the parent. The child may make a cache of its own, for files that its parent
 * does not have open. (Before Linux 4.14 this is not detected.)
 *
 * Signals. Calls from a signal handler are not allowed: they take locks. This is not detected.
 *
 * valgrind (3.19) keeps all threads from running while one waits for a ring: under it, make caches with AFFLUX_IO_SYSCALLS.
 *
 * A cache that is not closed before the process ends loses its dirty pages: exit(3) closes no cache.
 */

#ifndef AFFLUX_H
#define AFFLUX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// Most calls in a queue.
#define AFFLUX_DEPTH_MAX 65536

// Why a call failed. These are the library's own codes. The host's errors come as their own negative `errno`, such as
// -ENOENT for a missing file. afflux_strerror() has a text for each.
enum afflux_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The device failed the call, or bytes could not be written before the end (-EIO).
    AFFLUX_ERROR_IO = -5,
    // The handle is NULL, was closed, is of another kind, or never was one (-EBADF).
    AFFLUX_ERROR_BAD_HANDLE = -9,
    // The call would have to wait, or the queue is full (-EAGAIN).
    AFFLUX_ERROR_WOULD_BLOCK = -11,
    // The host provides no memory, or no thread (-ENOMEM).
    AFFLUX_ERROR_NO_MEMORY = -12,
    // The handle was not opened for this (-EACCES).
    AFFLUX_ERROR_NOT_PERMITTED = -13,
    // A pointer is NULL, or not aligned (-EFAULT).
    AFFLUX_ERROR_BAD_ADDRESS = -14,
    // Another cache has the file, or its bytes are withheld (-EBUSY).
    AFFLUX_ERROR_BUSY = -16,
    // An invalid argument; afflux_last_error() names it, and the allowed values (-EINVAL).
    AFFLUX_ERROR_INVALID = -22,
    // No descriptors are left (-EMFILE).
    AFFLUX_ERROR_NO_DESCRIPTORS = -24,
    // A range above the largest size of a file (-EFBIG).
    AFFLUX_ERROR_TOO_LARGE = -27,
    // No space on the device; dirty bytes are kept, and tried again (-ENOSPC).
    AFFLUX_ERROR_NO_SPACE = -28,
    // The device accepts no writes (-EROFS).
    AFFLUX_ERROR_READ_ONLY = -30,
    // The device, or its file system, cannot do this (-EOPNOTSUPP).
    AFFLUX_ERROR_UNSUPPORTED = -95,
    // The cache was closed, or the queue (-ESHUTDOWN).
    AFFLUX_ERROR_CLOSED = -108,
    // The device has completed nothing for too long; dirty bytes are kept (-ETIMEDOUT).
    AFFLUX_ERROR_TIMED_OUT = -110,
    // The file is gone from the host (-ESTALE).
    AFFLUX_ERROR_GONE = -116,
    // A quota is used up, or the room for withheld bytes (-EDQUOT).
    AFFLUX_ERROR_QUOTA = -122,
    // The handle belongs to the process that this one was forked from (-EOWNERDEAD).
    AFFLUX_ERROR_FORKED = -130,
    // A bug in the library made the cache unusable; afflux_last_error() has its message. Please report it
    // (-ENOTRECOVERABLE).
    AFFLUX_ERROR_POISONED = -131,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum afflux_error afflux_error;
#else
typedef int32_t afflux_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How files are read and written.
typedef enum {
    // io_uring if the host has it, otherwise system calls.
    AFFLUX_IO_AUTO = 0,
    // io_uring; making the cache fails if the host has none.
    AFFLUX_IO_URING = 1,
    // System calls on threads.
    AFFLUX_IO_SYSCALLS = 2,
} afflux_io;

// Whether the host's own page cache is used.
typedef enum {
    // The cache bypasses it (O_DIRECT) if the file system allows that.
    AFFLUX_HOST_CACHING_AUTO = 0,
    // It is used.
    AFFLUX_HOST_CACHING_BUFFERED = 1,
} afflux_host_caching;

// How a range of a file will be read.
typedef enum {
    // Nothing is known: earlier advice no longer holds.
    AFFLUX_ADVICE_NORMAL = 0,
    // In order.
    AFFLUX_ADVICE_SEQUENTIAL = 1,
    // At random places: nothing is read ahead.
    AFFLUX_ADVICE_RANDOM = 2,
    // Soon: it is read ahead now, as far as there is room.
    AFFLUX_ADVICE_WILL_NEED = 3,
    // Not any more: its clean pages leave the cache.
    AFFLUX_ADVICE_DONT_NEED = 4,
    // Once: pages leave the cache once a stream has passed them.
    AFFLUX_ADVICE_NO_REUSE = 5,
} afflux_advice;

// The kind of a call in a queue.
typedef enum {
    // As afflux_read(): `data`, `len`, `offset`.
    AFFLUX_OP_READ = 0,
    // As afflux_write(): `data`, `len`, `offset`.
    AFFLUX_OP_WRITE = 1,
    // As afflux_sync_data().
    AFFLUX_OP_SYNC_DATA = 2,
    // As afflux_sync_all().
    AFFLUX_OP_SYNC_ALL = 3,
    // As afflux_sync_range(): `offset`, `len`.
    AFFLUX_OP_SYNC_RANGE = 4,
    // As afflux_punch_hole(): `offset`, `len`.
    AFFLUX_OP_PUNCH_HOLE = 5,
    // As afflux_append(): `data`, `len`. The outcome is the offset of the bytes.
    AFFLUX_OP_APPEND = 6,
    // As afflux_set_len(): `len`.
    AFFLUX_OP_SET_LEN = 7,
} afflux_op;

// A page cache with writeback: memory of a fixed size, and a few threads.
typedef struct afflux_cache afflux_cache;

// An open file of a cache. Opening it twice, by one name or two, gives handles of one file, which see each other's
// bytes at once.
typedef struct afflux_file afflux_file;

// Bytes of a file as a read found them, until they are released. They hold memory of the cache: keep them for as long
// as a reply takes, not for ever.
typedef struct afflux_pages afflux_pages;

// A queue of calls in flight. The threads that submit or wait carry the calls on, so that the queue needs no threads
// of its own. Calls may be for files of several caches. Several threads may use a queue of afflux_queue_new().
typedef struct afflux_queue afflux_queue;

// Bytes of a file that stay off the disk until they are let go.
typedef struct afflux_withheld afflux_withheld;

// Settings of a cache. Set all to zero, then `size` to sizeof(afflux_settings), then the members that differ from the
// default.
typedef struct {
    // sizeof(afflux_settings). The library may know more members than the program, or fewer if the others are 0.
    size_t size;
    // Memory for pages, which never grows; 1 MiB or more. 0: 256 MiB. Tables use about one percent more.
    uint64_t memory_bytes;
    // Threads that write in the background and read for queues, 1 to 256. 0: 1, which keeps several disks busy.
    uint32_t reactors;
    // One of afflux_io.
    uint32_t io;
    // One of afflux_host_caching.
    uint32_t host_caching;
    // Must be 0.
    uint32_t reserved;
    // How long afflux_cache_close() may take to write dirty pages, in milliseconds. 0: 30,000.
    uint64_t drain_time_ms;
    // Descriptors that the cache may have beside one for each open file. 0: a quarter of the process's limit, at most
    // 1,024.
    uint64_t descriptors;
    // Files without a handle that keep their pages. 0: half of the number of pages.
    uint64_t idle_files;
    // Knobs by name, separated by blanks or commas, such as "dirty_ratio=30 dirty_bytes=64MiB";
    // docs/reference/knobs.md lists all. May be NULL.
    const char *knobs;
} afflux_settings;

// Called for a file that could not be made durable before its cache ended. `path` is the file's path. `bytes` is the
// number of lost bytes, in whole pages, or 0 if all was written and only its durability is in doubt. `error` is the
// reason, or NULL if the time was over. The texts are valid until the function returns. It must return, and not by
// longjmp() or an exception.
typedef void (*afflux_unwritten_fn)(void *context, const char *path, uint64_t bytes, const char *error);

// The current figures of a cache.
typedef struct {
    // Memory for pages.
    uint64_t memory_bytes;
    // Free memory for pages.
    uint64_t free_bytes;
    // Dirty bytes on all devices, writeback included.
    uint64_t dirty_bytes;
    // Bytes under writeback.
    uint64_t writeback_bytes;
    // Limit of dirty bytes, on all devices together.
    uint64_t dirty_limit_bytes;
    // Memory held by afflux_pages.
    uint64_t pinned_bytes;
    // Tables and indexes that describe the pages.
    uint64_t metadata_bytes;
    // Files that have pages or a handle.
    uint64_t files;
    // Descriptors of files.
    uint64_t descriptors;
    // Number of devices; afflux_cache_device() returns the figures of each.
    uint64_t devices;
} afflux_stats;

// A device of a cache. Texts end with a zero byte, and longer ones are cut.
typedef struct {
    // Dirty bytes, writeback included.
    uint64_t dirty_bytes;
    // Its dirty limit; above it, its writers wait.
    uint64_t dirty_limit_bytes;
    // Bytes written since the cache began.
    uint64_t written_bytes;
    // Its estimated write speed in bytes a second; 0 if it is not known.
    uint64_t write_bandwidth_bytes_per_s;
    // Time since its last completion if it counts as hung, otherwise 0.
    uint64_t stalled_ns;
    // Requests in flight.
    uint32_t in_flight;
    // Writers that wait for its dirty limit.
    uint32_t writers_waiting;
    // Files with unwritten bytes.
    uint32_t files_dirty;
    // Files whose last write or flush failed.
    uint32_t files_failed;
    // Its number on the host, as in /proc/self/mountinfo.
    char name[48];
    // How its files are read and written.
    char access[128];
    // The last error of a write or flush; empty if there was none.
    char last_error[128];
} afflux_device_stats;

// A file's metadata: the size and the dirty bytes are the cache's, the other members the host's.
typedef struct {
    // The size, including unwritten bytes.
    uint64_t len;
    // Unwritten bytes, in whole pages.
    uint64_t dirty_bytes;
    // Bytes allocated on the device.
    uint64_t allocated_bytes;
    // Its number in its file system.
    uint64_t inode;
    // Its kind and permissions, as in st_mode.
    uint32_t mode;
    // Number of its names.
    uint32_t links;
} afflux_metadata;

// A part of the bytes: laid out as struct iovec, and read-only.
typedef struct {
    // The first byte.
    const void *data;
    // Number of bytes.
    size_t len;
} afflux_slice;

// A call to make.
typedef struct {
    // One of afflux_op.
    uint32_t op;
    // Must be 0.
    uint32_t reserved;
    // The file. Its handle may be released while the call is in flight.
    afflux_file *file;
    // Memory to read into or to write from. It belongs to the call until its outcome is taken, or the queue is closed.
    void *data;
    // Number of bytes.
    uint64_t len;
    // Offset in the file.
    uint64_t offset;
    // Returned with the outcome.
    uint64_t tag;
} afflux_request;

// The outcome of a call.
typedef struct {
    // The tag of the request.
    uint64_t tag;
    // The result of the blocking call: a count, or an error below 0.
    int64_t result;
} afflux_completion;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The text of a code: the library's own text for its named codes, otherwise that of the host's `errno`. It is valid
// for ever.
const char *afflux_strerror(int64_t code);

// The text of this thread's last failed call: the failure, the file, and the next step for the user. The text is valid
// until another call of this thread fails. "no error" if none has failed.
const char *afflux_last_error(void);

// Makes a cache; with the default settings if `settings` is NULL. Invalid settings are refused before anything is
// started.
//
// A forked child cannot use the cache: it makes its own.
int afflux_cache_new(const afflux_settings *settings, afflux_cache **cache);

// Ends a cache for all its handles: calls in progress and later ones fail, everything dirty is written, its threads
// end, its descriptors are closed, and nothing is written after this returns. The program must still close its files
// and release its pages; the memory is freed with the last of them.
//
// May take the drain time. AFFLUX_ERROR_IO: some file could not be made durable. Then `told`, unless it is NULL, is
// called for each such file with `context`, on this thread, and afflux_last_error() returns a summary. The handle is
// closed in any case. If several threads close it, one succeeds, and the others get AFFLUX_ERROR_BAD_HANDLE.
int afflux_cache_close(afflux_cache *cache, afflux_unwritten_fn told, void *context);

// Makes all earlier writes durable. The cache goes on. The error is that of the first file that could not be written;
// the others were tried, and bytes that failed stay dirty.
int afflux_cache_drain(afflux_cache *cache);

// Sets a knob while the cache runs, from a text such as "dirty_ratio=30".
int afflux_cache_set(afflux_cache *cache, const char *knob);

// The value of a knob, by its name.
int afflux_cache_knob(afflux_cache *cache, const char *name, uint64_t *value);

// Drops every clean page that nobody holds, as drop_caches does in Linux. Returns the number of bytes.
int64_t afflux_cache_drop_clean_pages(afflux_cache *cache);

// Stores the current figures of a cache. `size` is sizeof(afflux_stats).
int afflux_cache_stats(afflux_cache *cache, afflux_stats *stats, size_t size);

// Stores a counter of the engine since the cache began, by its name; docs/reference/counters.md lists all.
int afflux_cache_counter(afflux_cache *cache, const char *name, uint64_t *value);

// Stores the current figures of a device, by its number from 0 on; AFFLUX_ERROR_INVALID if there is no such device.
// `size` is sizeof(afflux_device_stats).
int afflux_cache_device(afflux_cache *cache, uint64_t number, afflux_device_stats *stats, size_t size);

// The version of the library, such as "0.1.0".
const char *afflux_version(void);

// Opens a file, with the flags and the mode of open(2): O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC,
// O_CLOEXEC. Other flags are refused (AFFLUX_ERROR_INVALID), and so are O_CREAT and O_TRUNC with O_RDONLY. The cache
// accepts regular files and block devices. If another cache has the file, the call waits for up to two seconds, then
// fails with AFFLUX_ERROR_BUSY.
int afflux_open(afflux_cache *cache, const char *name, int flags, uint32_t mode, afflux_file **file);

// Takes a copy of a descriptor that is open for reading, or for reading and writing; the caller keeps its own. A write
// through the caller's descriptor goes behind the cache's back.
int afflux_open_fd(afflux_cache *cache, int fd, afflux_file **file);

// Makes a file durable if the handle can write, and gives the handle back in any case, even after an error. Bytes that
// are not durable then stay dirty, and are written when possible. Calls with it that are in progress on other threads
// go on.
int afflux_close(afflux_file *file);

// Gives the handle back without waiting: dirty bytes are written later. afflux_cache_drain() and afflux_cache_close()
// report whether that succeeds.
int afflux_release(afflux_file *file);

// Reads up to `len` bytes from `offset` on. Returns their number: fewer only at the file's end.
int64_t afflux_read(afflux_file *file, void *into, size_t len, uint64_t offset);

// afflux_read() if it need not wait, otherwise AFFLUX_ERROR_WOULD_BLOCK, and `into` may have some of the bytes. Makes
// no system call and takes no lock.
int64_t afflux_try_read(afflux_file *file, void *into, size_t len, uint64_t offset);

// Reads into several buffers, one after the other, as preadv(2). The buffers must not overlap.
int64_t afflux_readv(afflux_file *file, const struct iovec *into, int count_of, uint64_t offset);

// Writes all of `from` at `offset`; the file grows as needed. Returns `len`. The bytes are in the cache then, and
// every handle sees them. They are on the device after a successful sync, or otherwise after some time. Waits for
// room, since the dirty bytes of a device are bounded. After an error, a prefix of the bytes may have been written.
int64_t afflux_write(afflux_file *file, const void *from, size_t len, uint64_t offset);

// afflux_write() of bytes that are dirty in the cache already, which is a copy. Otherwise AFFLUX_ERROR_WOULD_BLOCK:
// some bytes may have been written; writing all of them again completes the write.
int64_t afflux_try_write(afflux_file *file, const void *from, size_t len, uint64_t offset);

// Writes several buffers, one after the other, as pwritev(2). Returns the number of all bytes.
int64_t afflux_writev(afflux_file *file, const struct iovec *from, int count_of, uint64_t offset);

// Writes at the file's end. Returns the offset of the bytes. Appends take turns, so that two of them never overlap.
int64_t afflux_append(afflux_file *file, const void *from, size_t len);

// Appends several buffers, as one append. Returns the offset of the first.
int64_t afflux_appendv(afflux_file *file, const struct iovec *from, int count_of);

// Makes all earlier writes to the file durable, through any handle, with its size: fdatasync(2). Every sync returns an
// error until the bytes that failed have been written. So a sync that succeeds can be trusted, even after an error.
int afflux_sync_data(afflux_file *file);

// afflux_sync_data(), and the file's times and mode with it: fsync(2).
int afflux_sync_all(afflux_file *file);

// afflux_sync_data() of a range, and of the file's size.
int afflux_sync_range(afflux_file *file, uint64_t offset, uint64_t len);

// Sets the size: bytes past a smaller one are gone, bytes up to a larger one read as zeros. Durable after a sync.
int afflux_set_len(afflux_file *file, uint64_t len);

// Makes a range read as zeros, and frees the space of its whole pages if the device can. The size stays.
int afflux_punch_hole(afflux_file *file, uint64_t offset, uint64_t len);

// Announces how a range will be read, by one of afflux_advice. A `len` of UINT64_MAX means up to the end. Waits for
// nothing and promises nothing.
int afflux_advise(afflux_file *file, uint64_t offset, uint64_t len, int advice);

// Has a range read in the background, as far as there is room.
int afflux_prefetch(afflux_file *file, uint64_t offset, uint64_t len);

// The file's size, as every handle sees it: immediately after a write.
int64_t afflux_len(afflux_file *file);

// Stores a file's metadata, from the host. This also notices other programs' changes of the file. `size` is
// sizeof(afflux_metadata).
int afflux_stat(afflux_file *file, afflux_metadata *metadata, size_t size);

// Keeps `len` bytes from `offset` on off the disk until afflux_let_go(): unwritten ones, and ones that are written
// later. The range is widened to whole pages of 4 KiB, and may reach past the file's end. Readers of the cache see the
// bytes as ever. Waits for syncs that began earlier.
//
// Until then every sync of these bytes, and the close of the file, fail with AFFLUX_ERROR_BUSY. Withheld bytes may
// take a quarter of the disk's part of the dirty limit, and a write of more fails with AFFLUX_ERROR_QUOTA. This call
// fails so if 4,096 ranges of the file are withheld.
int afflux_withhold(afflux_file *file, uint64_t offset, uint64_t len, afflux_withheld **withheld);

// Lets go of withheld bytes, and gives the handle back. From now on the cache writes them as any others, unless
// another handle withholds them, too.
int afflux_let_go(afflux_withheld *withheld);

// Orders `len` bytes from `offset` on after `earlier_len` bytes of `first`, another file or the same, from
// `earlier_offset` on. The later bytes, unwritten ones and ones that are written later, go to the disk only after all
// bytes that were written to the earlier range before this call are durable. Both ranges are widened to whole pages.
//
// So a log comes before the data that it describes, without a sync for each change: append the record, call this,
// write the data. A sync of the data syncs the log first. Fails with -EDEADLK if the earlier bytes wait for the later
// ones.
int afflux_order_after(afflux_file *file,
                       uint64_t offset,
                       uint64_t len,
                       afflux_file *first,
                       uint64_t earlier_offset,
                       uint64_t earlier_len);

// Shows up to `len` bytes from `offset` on. Returns their number: fewer only at the file's end. Meanwhile, a write of
// the same bytes goes to other pages. At most a quarter of the cache can be held this way; beyond that the bytes
// are copied.
int64_t afflux_pages_get(afflux_file *file, uint64_t offset, uint64_t len, afflux_pages **pages);

// afflux_pages_get() if it need not wait or copy, otherwise AFFLUX_ERROR_WOULD_BLOCK.
int64_t afflux_pages_try_get(afflux_file *file, uint64_t offset, uint64_t len, afflux_pages **pages);

// The bytes, in the file's order, a slice a page: fills up to `room` slices, from slice number `first` on. Returns the
// number of filled slices; fewer than `room` means that these are the last. They may be read until the pages are
// released.
int64_t afflux_pages_slices(afflux_pages *pages, size_t first, afflux_slice *slices, size_t room);

// Gives the pages back; their slices must not be read any more.
int afflux_pages_release(afflux_pages *pages);

// Makes a queue for `depth` calls at a time, 1 to AFFLUX_DEPTH_MAX.
int afflux_queue_new(uint32_t depth, afflux_queue **queue);

// As afflux_queue_new(), for this thread alone: a ring of its own makes the reads of `cache`, and no other thread is
// woken for them. That is the shortest way for many reads in flight. Another thread that submits or waits gets
// AFFLUX_ERROR_INVALID.
//
// A read completes only while this thread is in afflux_submit(), afflux_wait() or a blocking call of the cache. Until
// then, other callers wait for the same pages, a sync or a change of size may wait, too, and the disk looks slow or
// hung. So a thread that stays away for long closes the queue. A loop that sleeps in epoll_wait(2) uses the other kind
// of queue, which has a descriptor.
int afflux_queue_new_own(afflux_cache *cache, uint32_t depth, afflux_queue **queue);

// Submits calls, in order, and begins them. Returns the number that the queue accepted: fewer than `requests` if it is
// full, or at an invalid request (then afflux_last_error() names the reason). If the first one is refused, returns its
// error. A call whose bytes are cached is done when this returns; its outcome comes as all others do.
int64_t afflux_submit(afflux_queue *queue, const afflux_request *calls, size_t requests);

// Carries calls on, and takes outcomes: up to `room`, waiting for `least` of them for at most `timeout_ns`
// nanoseconds, or for ever if that is below 0. Returns the number taken: fewer than `least` if the time was over, or
// if no more calls are in the queue.
int64_t afflux_wait(afflux_queue *queue, afflux_completion *outcomes, size_t room, size_t least, int64_t timeout_ns);

// A descriptor for poll(2) and epoll(7), readable when afflux_wait() has something to do. Perhaps an outcome is there,
// or a call can go on and ends only later; so use a timeout of 0 then. The queue owns the descriptor: do not read it;
// it closes with the queue. A queue of afflux_queue_new_own() has none (AFFLUX_ERROR_UNSUPPORTED).
int afflux_queue_fd(afflux_queue *queue);

// Closes a queue. Calls in flight are given up: a read returns nothing, a write may have written a part, a sync
// guarantees nothing. When this returns, the memory of calls is not used any more. Threads that wait for the queue get
// AFFLUX_ERROR_CLOSED. A queue of afflux_queue_new_own() is closed by its thread, which waits for its reads; once this
// thread has ended, any thread may close it.
int afflux_queue_close(afflux_queue *queue);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AFFLUX_H */
