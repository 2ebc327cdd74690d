/*
 * afflux.h - a page cache with writeback, to put under a storage engine, a file server or a copy tool.
 *
 * Generated from the sources of the crate afflux-c by `cargo xtask docs`: not to be changed by hand.
 *
 * Files are read and written through memory that you size. What is written is on its way to the disk at the pace that
 * the disk can take; a writer waits only for the disk that it writes to. A hit is a copy: no system call, no lock shared
 * between files. Nothing accepted is dropped without a word: what failed stays dirty, is tried again, and every sync says
 * so until it is written.
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
 * Errors. A call that fails returns a number below 0: a negative errno. Those that the library itself says are
 * afflux_error; the host's come as they are. afflux_strerror() has a text for each, and afflux_last_error() says what
 * happened to which file in the last call of the thread that failed.
 *
 * Threads. Every call may be made by any thread, also several with one handle at once. A handle that one thread closes
 * while others use it goes on for their calls, and for no later one.
 *
 * Handles are numbers, not addresses. NULL, one that was closed, one of another kind: AFFLUX_ERROR_BAD_HANDLE, whatever
 * has been opened since. Calls with files of a cache that was closed: AFFLUX_ERROR_CLOSED.
 *
 * Memory that is given to a call must be there, and nobody else's, until the call returns; of a call in a queue, until its
 * outcome is taken or the queue is closed. Places for answers (afflux_file **, afflux_stats *) are written only where the
 * call succeeds.
 *
 * fork(2). A child has none of the library's threads. With its parent's handles every call is AFFLUX_ERROR_FORKED, closing
 * too, and nothing of the parent's changes; the child may make a cache of its own, for files that its parent does not have
 * open. (Before Linux 4.14 this is not detected.)
 *
 * Signals. Calls from a signal handler are not allowed: they take locks. This is not detected.
 *
 * valgrind (3.19) keeps all threads from running while one waits for a ring: under it, make caches with AFFLUX_IO_SYSCALLS.
 *
 * A cache that nobody closes before the process ends loses what is dirty: exit(3) closes none.
 */

#ifndef AFFLUX_H
#define AFFLUX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// Most calls in a queue.
#define AFFLUX_DEPTH_MAX 65536

// Why a call failed. These are what the library itself says; what the host says comes as its own negative `errno`, as
// -ENOENT of a file that is not there. afflux_strerror() has a text for each.
enum afflux_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The device failed it, or bytes could not be written before the end (-EIO).
    AFFLUX_ERROR_IO = -5,
    // The handle is NULL, was closed, is of another kind, or never was one (-EBADF).
    AFFLUX_ERROR_BAD_HANDLE = -9,
    // It would have to wait, or the queue is full (-EAGAIN).
    AFFLUX_ERROR_WOULD_BLOCK = -11,
    // The host gives no memory, or no thread (-ENOMEM).
    AFFLUX_ERROR_NO_MEMORY = -12,
    // The handle was not opened for that (-EACCES).
    AFFLUX_ERROR_NOT_PERMITTED = -13,
    // A pointer is NULL, or not aligned (-EFAULT).
    AFFLUX_ERROR_BAD_ADDRESS = -14,
    // Another cache has the file (-EBUSY).
    AFFLUX_ERROR_BUSY = -16,
    // An argument that cannot be; afflux_last_error() says which, and what can (-EINVAL).
    AFFLUX_ERROR_INVALID = -22,
    // No descriptors are left (-EMFILE).
    AFFLUX_ERROR_NO_DESCRIPTORS = -24,
    // A range above the largest size of a file (-EFBIG).
    AFFLUX_ERROR_TOO_LARGE = -27,
    // No space on the device; what is dirty is kept, and tried again (-ENOSPC).
    AFFLUX_ERROR_NO_SPACE = -28,
    // The device takes no writes (-EROFS).
    AFFLUX_ERROR_READ_ONLY = -30,
    // The device, or its file system, cannot do it (-EOPNOTSUPP).
    AFFLUX_ERROR_UNSUPPORTED = -95,
    // The cache was closed, or the queue (-ESHUTDOWN).
    AFFLUX_ERROR_CLOSED = -108,
    // The device has completed nothing for too long; what is dirty is kept (-ETIMEDOUT).
    AFFLUX_ERROR_TIMED_OUT = -110,
    // The file is gone from the host (-ESTALE).
    AFFLUX_ERROR_GONE = -116,
    // A quota is used up (-EDQUOT).
    AFFLUX_ERROR_QUOTA = -122,
    // The handle belongs to the process that this one was forked from (-EOWNERDEAD).
    AFFLUX_ERROR_FORKED = -130,
    // A bug in the library made the cache unusable; what it said is in afflux_last_error(). Please report it
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

// How files are driven.
typedef enum {
    // io_uring where the host has it, otherwise system calls.
    AFFLUX_IO_AUTO = 0,
    // io_uring; the cache cannot be made where the host has none.
    AFFLUX_IO_URING = 1,
    // System calls on threads.
    AFFLUX_IO_SYSCALLS = 2,
} afflux_io;

// Whether the host's own page cache is used.
typedef enum {
    // It is gone past (O_DIRECT) where the file system can.
    AFFLUX_HOST_CACHING_AUTO = 0,
    // It is used.
    AFFLUX_HOST_CACHING_BUFFERED = 1,
} afflux_host_caching;

// How a range of a file will be read.
typedef enum {
    // Nothing is known: what was said before is taken back.
    AFFLUX_ADVICE_NORMAL = 0,
    // In order.
    AFFLUX_ADVICE_SEQUENTIAL = 1,
    // Here and there: nothing is read ahead.
    AFFLUX_ADVICE_RANDOM = 2,
    // Soon: it is read ahead now, as far as there is room.
    AFFLUX_ADVICE_WILL_NEED = 3,
    // No more: its clean pages leave the cache.
    AFFLUX_ADVICE_DONT_NEED = 4,
    // Once: pages leave the cache once a stream has passed them.
    AFFLUX_ADVICE_NO_REUSE = 5,
} afflux_advice;

// What a call in a queue does.
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
    // As afflux_append(): `data`, `len`. The outcome is where the bytes begin.
    AFFLUX_OP_APPEND = 6,
    // As afflux_set_len(): `len`.
    AFFLUX_OP_SET_LEN = 7,
} afflux_op;

// A page cache with writeback: memory of a fixed size, and a few threads.
typedef struct afflux_cache afflux_cache;

// An open file of a cache. Opened twice, by one name or another, it is one file: handles see each other's bytes at once.
typedef struct afflux_file afflux_file;

// Bytes of a file as a read found them, until they are released. They hold memory of the cache: keep them for as long as
// a reply takes, not for ever.
typedef struct afflux_pages afflux_pages;

// A queue of calls in flight. It goes on with them while somebody submits to it or waits for it, so it needs no threads
// of its own; several threads may use one. Calls of files of several caches may be in it.
typedef struct afflux_queue afflux_queue;

// Settings of a cache. Set all to zero, then `size` to sizeof(afflux_settings), then what is to be other than by default.
typedef struct {
    // sizeof(afflux_settings): the library may know more members than the program, or fewer, if the others are 0.
    size_t size;
    // Memory for pages, all there will ever be; 1 MiB or more. 0: 256 MiB. About one percent more is used for tables.
    uint64_t memory_bytes;
    // Threads that write in the background and read for queues, 1 to 256. 0: 1, which keeps several disks busy.
    uint32_t reactors;
    // One of afflux_io.
    uint32_t io;
    // One of afflux_host_caching.
    uint32_t host_caching;
    // Must be 0.
    uint32_t reserved;
    // How long afflux_cache_close() may take to write what is dirty. 0: 30,000.
    uint64_t drain_time_ms;
    // Descriptors that the cache may have beside one for each open file. 0: a quarter of what the process may have, at
    // most 1,024.
    uint64_t descriptors;
    // Files that nobody has open and whose pages are kept. 0: half as many as there are pages.
    uint64_t idle_files;
    // Knobs by name, with blanks or commas between, as "dirty_ratio=30 dirty_bytes=64MiB"; docs/knobs.md has them all.
    // May be NULL.
    const char *knobs;
} afflux_settings;

// Told of a file that could not be made durable before its cache ended: its path; how many bytes are lost, in whole
// pages, or 0 where all was written and only its durability is in doubt; why, or NULL where no time was left. The texts
// are there until it returns. It must return, and not by longjmp() or an exception.
typedef void (*afflux_unwritten_fn)(void *context, const char *path, uint64_t bytes, const char *error);

// How a cache is doing.
typedef struct {
    // Memory for pages.
    uint64_t memory_bytes;
    // Of it, free.
    uint64_t free_bytes;
    // Not yet written, on all devices, what is being written included.
    uint64_t dirty_bytes;
    // Being written.
    uint64_t writeback_bytes;
    // What may be dirty, on all devices together.
    uint64_t dirty_limit_bytes;
    // Held by afflux_pages.
    uint64_t pinned_bytes;
    // Tables and indexes that describe the pages.
    uint64_t metadata_bytes;
    // Files that have pages or a handle.
    uint64_t files;
    // Descriptors of files.
    uint64_t descriptors;
    // Devices, each of which afflux_cache_device() tells of.
    uint64_t devices;
} afflux_stats;

// A device of a cache. Texts end with a zero byte, and are cut if they are longer.
typedef struct {
    // Not yet written, what is being written included.
    uint64_t dirty_bytes;
    // Above so much, its writers wait.
    uint64_t dirty_limit_bytes;
    // Written since the cache began.
    uint64_t written_bytes;
    // What it writes in a second, as estimated; 0 where that is not known.
    uint64_t write_bandwidth_bytes_per_s;
    // It has completed nothing for so long that it counts as hung; 0: it does not.
    uint64_t stalled_ns;
    // Requests in flight.
    uint32_t in_flight;
    // Writers that wait for its dirty limit.
    uint32_t writers_waiting;
    // Files with something not yet written.
    uint32_t files_dirty;
    // Files whose last write or flush failed.
    uint32_t files_failed;
    // Its number on the host, as /proc/self/mountinfo has it.
    char name[48];
    // How its files are read and written.
    char access[128];
    // The last error of a write or flush; empty if there was none.
    char last_error[128];
} afflux_device_stats;

// What is known of a file: the size and what is dirty as the cache has it, the rest as the host has it.
typedef struct {
    // The size, with what is not written yet.
    uint64_t len;
    // Bytes not written yet, in whole pages.
    uint64_t dirty_bytes;
    // Bytes that it takes on its device.
    uint64_t allocated_bytes;
    // Its number in its file system.
    uint64_t inode;
    // Its kind and permissions, as st_mode has them.
    uint32_t mode;
    // How many names it has.
    uint32_t links;
} afflux_metadata;

// Some of the bytes: laid out as struct iovec, and not to be written to.
typedef struct {
    // The first byte.
    const void *data;
    // How many.
    size_t len;
} afflux_slice;

// A call to be made.
typedef struct {
    // One of afflux_op.
    uint32_t op;
    // Must be 0.
    uint32_t reserved;
    // Of which file. It may be released while the call is in flight.
    afflux_file *file;
    // Memory to read into or to write from. It belongs to the call until its outcome is taken, or the queue is closed.
    void *data;
    // How many bytes.
    uint64_t len;
    // From where in the file.
    uint64_t offset;
    // Told with the outcome.
    uint64_t tag;
} afflux_request;

// The outcome of a call.
typedef struct {
    // Of the request.
    uint64_t tag;
    // What the blocking call would have returned: a count, or an error below 0.
    int64_t result;
} afflux_completion;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The text of a code: of this library's where it names it, otherwise of the host's `errno`. It is there for ever.
const char *afflux_strerror(int64_t code);

// What the last call of this thread that failed said: what happened, to which file, and what to do. The text is there
// until a call of this thread fails again. "no error" if none has.
const char *afflux_last_error(void);

// Makes a cache; with NULL for settings, by default. Settings that cannot be are refused before anything is started.
//
// A child that was forked cannot use it: it makes its own.
int afflux_cache_new(const afflux_settings *settings, afflux_cache **cache);

// Ends a cache for all its handles: calls in progress and later ones fail, everything dirty is written, its threads end,
// its descriptors are closed, and nothing is written after this returns. Its files and pages are still to be closed and
// released; its memory goes with the last of them.
//
// May take the drain time. AFFLUX_ERROR_IO: something could not be made durable; then `told`, unless it is NULL, is
// called for each such file with `context`, on this thread, and afflux_last_error() has a summary. The handle is gone in
// any case; of several threads that close it one does, and the others hear AFFLUX_ERROR_BAD_HANDLE.
int afflux_cache_close(afflux_cache *cache,
                       afflux_unwritten_fn told,
                       void *context);

// Makes everything durable that was written before the call. The cache goes on. The error is that of the first file that
// could not be written; the others were tried, and what failed stays dirty.
int afflux_cache_drain(afflux_cache *cache);

// Sets a knob while the cache runs, from a text such as "dirty_ratio=30".
int afflux_cache_set(afflux_cache *cache, const char *knob);

// The value of a knob, by its name.
int afflux_cache_knob(afflux_cache *cache, const char *name, uint64_t *value);

// Lets go of every clean page that nobody holds, as drop_caches does in Linux. How many bytes went.
int64_t afflux_cache_drop_clean_pages(afflux_cache *cache);

// How a cache is doing: `size` is sizeof(afflux_stats).
int afflux_cache_stats(afflux_cache *cache, afflux_stats *stats, size_t size);

// A counter of the engine since the cache began, by its name; docs/counters.md has them all.
int afflux_cache_counter(afflux_cache *cache, const char *name, uint64_t *value);

// How a device is doing, by its number from 0 on; AFFLUX_ERROR_INVALID if there is none of that number. `size` is
// sizeof(afflux_device_stats).
int afflux_cache_device(afflux_cache *cache, uint64_t number, afflux_device_stats *stats, size_t size);

// The version of the library, as "0.1.0".
const char *afflux_version(void);

// Opens a file, with the flags and the mode of open(2): O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC,
// O_CLOEXEC; others are refused (AFFLUX_ERROR_INVALID), O_CREAT and O_TRUNC with O_RDONLY, too. The cache takes regular files and block devices. One that another
// cache has is waited for, two seconds at most, then it is AFFLUX_ERROR_BUSY.
int afflux_open(afflux_cache *cache,
                const char *name,
                int flags,
                uint32_t mode,
                afflux_file **file);

// Takes a copy of a descriptor that is open for reading, or for reading and writing; the caller keeps its own. Whoever
// goes on writing through that one writes behind the cache's back.
int afflux_open_fd(afflux_cache *cache, int fd, afflux_file **file);

// Makes a file durable if the handle can write, and gives the handle back, in any case: after an error, too, it is gone.
// What is not durable then stays dirty, and is written when it can be. Calls that are in progress with it on other
// threads go on.
int afflux_close(afflux_file *file);

// Gives the handle back without waiting for anything: what is dirty is written later, and whether that succeeds is told
// by afflux_cache_drain() and afflux_cache_close().
int afflux_release(afflux_file *file);

// Reads up to `len` bytes from `offset` on. How many were read: fewer only at the file's end.
int64_t afflux_read(afflux_file *file, void *into, size_t len, uint64_t offset);

// afflux_read() if that need not wait, otherwise AFFLUX_ERROR_WOULD_BLOCK, and `into` may have some of the bytes. Without
// a system call or a lock.
int64_t afflux_try_read(afflux_file *file,
                        void *into,
                        size_t len,
                        uint64_t offset);

// Reads into several buffers, one after the other, as preadv(2). No two may have bytes in common.
int64_t afflux_readv(afflux_file *file, const struct iovec *into, int count_of, uint64_t offset);

// Writes all of `from` at `offset`; the file grows as needed. Returns `len`. The bytes are in the cache then, seen by
// every handle, and on the device after a sync that succeeds; without one, by and by. Waits for room: so much may be
// dirty for a device. After an error a part of the bytes, from the first on, may have been written.
int64_t afflux_write(afflux_file *file, const void *from, size_t len, uint64_t offset);

// afflux_write() of bytes that are dirty in the cache already, which is a copy; otherwise AFFLUX_ERROR_WOULD_BLOCK, and
// some may have been written, which writing all of them again makes good.
int64_t afflux_try_write(afflux_file *file, const void *from, size_t len, uint64_t offset);

// Writes several buffers, one after the other, as pwritev(2). Returns how many bytes: all of them.
int64_t afflux_writev(afflux_file *file, const struct iovec *from, int count_of, uint64_t offset);

// Writes at the file's end. Returns where the bytes begin. One append at a time: what two of them write never overlaps.
int64_t afflux_append(afflux_file *file, const void *from, size_t len);

// Appends several buffers, as one append. Returns where the first begins.
int64_t afflux_appendv(afflux_file *file, const struct iovec *from, int count_of);

// Makes everything durable that was written to the file before the call, through whatever handle, with its size:
// fdatasync(2). An error is told by every sync until what failed has been written, so one that succeeds is to be
// believed, after an error, too.
int afflux_sync_data(afflux_file *file);

// afflux_sync_data(), and the file's times and mode with it: fsync(2).
int afflux_sync_all(afflux_file *file);

// afflux_sync_data() of a range, and of the file's size.
int afflux_sync_range(afflux_file *file, uint64_t offset, uint64_t len);

// Sets the size: bytes past a smaller one are gone, bytes up to a larger one read as zeros. Durable after a sync.
int afflux_set_len(afflux_file *file, uint64_t len);

// Makes a range read as zeros, and gives the space of its whole pages back where the device can. The size stays.
int afflux_punch_hole(afflux_file *file, uint64_t offset, uint64_t len);

// Says how a range will be read, by one of afflux_advice; a `len` of UINT64_MAX is up to any end. Waits for nothing and
// promises nothing.
int afflux_advise(afflux_file *file, uint64_t offset, uint64_t len, int advice);

// Has a range read in the background, as far as there is room.
int afflux_prefetch(afflux_file *file, uint64_t offset, uint64_t len);

// The file's size, as every handle sees it: at once after a write.
int64_t afflux_len(afflux_file *file);

// Asks the host after a file; what others changed in it is noticed by this, too. `size` is sizeof(afflux_metadata).
int afflux_stat(afflux_file *file, afflux_metadata *metadata, size_t size);

// Shows up to `len` bytes from `offset` on. How many: fewer only at the file's end. Whoever writes the same bytes
// meanwhile writes to other pages. At most a quarter of the cache (knob pinned_ratio) can be held this way; what is
// beyond is a copy.
int64_t afflux_pages_get(afflux_file *file, uint64_t offset, uint64_t len, afflux_pages **pages);

// afflux_pages_get() if that need not wait or copy, otherwise AFFLUX_ERROR_WOULD_BLOCK.
int64_t afflux_pages_try_get(afflux_file *file, uint64_t offset, uint64_t len, afflux_pages **pages);

// The bytes, in the file's order, a slice a page: fills up to `room` slices, from slice number `first` on. How many were
// filled; fewer than `room` are the last. They may be read until the pages are released.
int64_t afflux_pages_slices(afflux_pages *pages,
                            size_t first,
                            afflux_slice *slices,
                            size_t room);

// Gives the pages back; their slices are not to be read any more.
int afflux_pages_release(afflux_pages *pages);

// Makes a queue for so many calls at a time, 1 to AFFLUX_DEPTH_MAX.
int afflux_queue_new(uint32_t depth, afflux_queue **queue);

// Submits calls, in order, and begins them. How many were taken: fewer than `requests` where the queue is full, or where
// one cannot be (then afflux_last_error() says why); the error itself if that is so of the first. What finds its bytes in
// the cache is done when this returns; its outcome comes as all others do.
int64_t afflux_submit(afflux_queue *queue,
                      const afflux_request *calls,
                      size_t requests);

// Goes on with calls, and takes outcomes: up to `room`, waiting for `least` of them for at most `timeout_ns` nanoseconds,
// for ever if that is below 0. How many were taken: fewer than `least` when the time was over, or when no more calls are
// in the queue.
int64_t afflux_wait(afflux_queue *queue,
                    afflux_completion *outcomes,
                    size_t room,
                    size_t least,
                    int64_t timeout_ns);

// A descriptor that is readable, for poll(2) and epoll(7), when afflux_wait() has something to do: perhaps an outcome is
// there, perhaps a call can go on and ends only later; so wait with a timeout of 0 then. It is the queue's: it is not to
// be read, and closes with it.
int afflux_queue_fd(afflux_queue *queue);

// Closes a queue. What is in flight is given up: a read brings nothing, a write may have written a part, a sync says
// nothing. The memory of calls is not used any more when this returns. Who waits for it on another thread hears
// AFFLUX_ERROR_CLOSED.
int afflux_queue_close(afflux_queue *queue);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AFFLUX_H */
