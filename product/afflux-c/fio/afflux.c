/*
 * An I/O engine for fio that goes through Afflux: see README.md here.
 *
 * Jobs that are threads (`thread`) share one cache; a job that is a process has its own. Hits, and all calls at a queue
 * depth of 1, are made in place; other calls are in flight, and the job's thread makes their reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fio.h>
#include <optgroup.h>

#include <afflux.h>

struct options {
    /* fio takes no option at offset 0. */
    void *pad;
    unsigned long long memory;
    unsigned int reactors;
    unsigned int io;
    unsigned int host_caching;
    unsigned int drain_ms;
    unsigned int stats;
    char *knobs;
};

#define OPTION(what) .off1 = offsetof(struct options, what), .category = FIO_OPT_C_ENGINE, .group = FIO_OPT_G_INVALID

static struct fio_option options[] = {
    {
        .name = "afflux_memory",
        .lname = "Memory of the cache",
        .type = FIO_OPT_STR_VAL,
        OPTION(memory),
        .def = "256m",
        .help = "Memory for pages",
    },
    {
        .name = "afflux_reactors",
        .lname = "Threads of the cache",
        .type = FIO_OPT_INT,
        OPTION(reactors),
        .def = "1",
        .help = "Threads that write in the background",
    },
    {
        .name = "afflux_io",
        .lname = "How files are driven",
        .type = FIO_OPT_STR,
        OPTION(io),
        .def = "auto",
        .help = "io_uring or system calls",
        .posval = {
            {.ival = "auto", .oval = AFFLUX_IO_AUTO, .help = "io_uring where the host has it"},
            {.ival = "uring", .oval = AFFLUX_IO_URING, .help = "io_uring"},
            {.ival = "syscalls", .oval = AFFLUX_IO_SYSCALLS, .help = "System calls on threads"},
        },
    },
    {
        .name = "afflux_host_caching",
        .lname = "Whether the host's page cache is used",
        .type = FIO_OPT_STR,
        OPTION(host_caching),
        .def = "auto",
        .help = "Whether the host's page cache is gone past",
        .posval = {
            {.ival = "auto", .oval = AFFLUX_HOST_CACHING_AUTO, .help = "Gone past where the file system can"},
            {.ival = "buffered", .oval = AFFLUX_HOST_CACHING_BUFFERED, .help = "Used"},
        },
    },
    {
        .name = "afflux_knobs",
        .lname = "Knobs of the cache",
        .type = FIO_OPT_STR_STORE,
        OPTION(knobs),
        .help = "Knobs by name, with commas between, as dirty_ratio=30,budget_ms=2000",
    },
    {
        .name = "afflux_drain_ms",
        .lname = "Time for the end",
        .type = FIO_OPT_INT,
        OPTION(drain_ms),
        .def = "30000",
        .help = "How long writing what is dirty at the end may take",
    },
    {
        .name = "afflux_stats",
        .lname = "Tell figures of the cache",
        .type = FIO_OPT_STR_SET,
        OPTION(stats),
        .help = "Tell figures of the cache when the last job has ended",
    },
    {.name = NULL},
};

/* The cache that the threads of a process share. */
static struct {
    pthread_mutex_t lock;
    pid_t process;
    afflux_cache *cache;
    unsigned int jobs;
    /* The options of the job that made it. */
    struct options options;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct job {
    afflux_cache *cache;
    /* NULL at a queue depth of 1. */
    afflux_queue *queue;
    afflux_request *pending;
    unsigned int pending_count;
    afflux_completion *outcomes;
    unsigned int depth;
};

/* Prints the failed step with the library's message, and passes the error to fio. */
static int failed(struct thread_data *td, const char *what, int64_t code)
{
    log_err("afflux: %s: %s\n", what, afflux_last_error());
    td_verror(td, (int)-code, what);
    return 1;
}

static void tell_figures(afflux_cache *cache)
{
    static const char *const names[] = {"read_hit_pages", "read_miss_pages", "write_hit_pages", "nr_written"};
    afflux_stats stats;
    if (afflux_cache_stats(cache, &stats, sizeof stats) == 0)
        log_info("afflux: memory_bytes=%llu free_bytes=%llu dirty_bytes=%llu devices=%llu",
                 (unsigned long long)stats.memory_bytes, (unsigned long long)stats.free_bytes,
                 (unsigned long long)stats.dirty_bytes, (unsigned long long)stats.devices);
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        uint64_t value;
        if (afflux_cache_counter(cache, names[at], &value) == 0)
            log_info(" %s=%llu", names[at], (unsigned long long)value);
    }
    log_info("\n");
}

static void tell_lost(void *context, const char *path, uint64_t bytes, const char *error)
{
    (void)context;
    fprintf(stderr, "afflux: %s: %llu bytes are lost: %s\n", path, (unsigned long long)bytes,
            error ? error : "no time was left");
}

/* With the lock held. */
static int close_shared(void)
{
    afflux_cache *cache = shared.cache;
    if (!cache)
        return 0;
    if (shared.options.stats)
        tell_figures(cache);
    shared.cache = NULL;
    return afflux_cache_close(cache, tell_lost, NULL);
}

/* Threads of later jobs find the pages that earlier ones have cached, so their cache ends with the process. */
__attribute__((destructor)) static void end_of_process(void)
{
    int code = 0;

    /* fio's threads have ended, but fio knows this only from a flag. */
    pthread_mutex_lock(&shared.lock);
    if (shared.process == getpid())
        code = close_shared();
    pthread_mutex_unlock(&shared.lock);
    if (code < 0)
        _exit(1);
}

static bool same(const struct options *one, const struct options *other)
{
    const char *knobs = one->knobs ? one->knobs : "", *others = other->knobs ? other->knobs : "";
    return one->memory == other->memory && one->reactors == other->reactors && one->io == other->io &&
           one->host_caching == other->host_caching && one->drain_ms == other->drain_ms && !strcmp(knobs, others);
}

/* With the lock held. */
static int make_shared(struct thread_data *td, const struct options *wanted)
{
    afflux_settings settings = {
        .size = sizeof settings,
        .memory_bytes = wanted->memory,
        .reactors = wanted->reactors,
        .io = wanted->io,
        .host_caching = wanted->host_caching,
        .drain_time_ms = wanted->drain_ms,
        .knobs = wanted->knobs,
    };
    if (shared.process != getpid()) {
        /* A job in a process of its own: the cache here is its parent's. */
        shared.process = getpid();
        shared.cache = NULL;
        shared.jobs = 0;
    }
    if (shared.cache && same(&shared.options, wanted)) {
        shared.options.stats |= wanted->stats;
        return 0;
    }
    if (shared.cache && shared.jobs > 0) {
        log_err("afflux: jobs that are threads share a cache: give them the same afflux options\n");
        td_verror(td, EINVAL, "afflux options");
        return 1;
    }
    int64_t code = close_shared();
    if (code < 0)
        return failed(td, "close the cache", code);
    free(shared.options.knobs);
    code = afflux_cache_new(&settings, &shared.cache);
    if (code < 0) {
        shared.cache = NULL;
        shared.options.knobs = NULL;
        return failed(td, "make a cache", code);
    }
    shared.options = *wanted;
    shared.options.knobs = wanted->knobs ? strdup(wanted->knobs) : NULL;
    return 0;
}

static void free_job(struct job *job)
{
    free(job->pending);
    free(job->outcomes);
    free(job);
}

static int init(struct thread_data *td)
{
    struct job *job = calloc(1, sizeof *job);
    int bad;

    if (!job)
        return 1;
    job->depth = td->o.iodepth;
    if (job->depth > 1) {
        job->pending = calloc(job->depth, sizeof *job->pending);
        job->outcomes = calloc(job->depth, sizeof *job->outcomes);
        if (!job->pending || !job->outcomes) {
            free_job(job);
            return failed(td, "make a queue", AFFLUX_ERROR_NO_MEMORY);
        }
    } else {
        /* fio then counts latency as for other engines that make calls in place. */
        td->flags |= (unsigned long long)FIO_SYNCIO << TD_ENG_FLAG_SHIFT;
    }
    pthread_mutex_lock(&shared.lock);
    bad = make_shared(td, td->eo);
    if (!bad && job->depth > 1) {
        /* This thread makes all calls of the job. */
        int64_t code = afflux_queue_new_own(shared.cache, job->depth, &job->queue);
        bad = code < 0 && failed(td, "make a queue", code);
    }
    if (!bad)
        shared.jobs++;
    job->cache = shared.cache;
    pthread_mutex_unlock(&shared.lock);
    if (bad) {
        free_job(job);
        return 1;
    }
    td->io_ops_data = job;
    return 0;
}

static void cleanup(struct thread_data *td)
{
    struct job *job = td->io_ops_data;
    int64_t code = 0;

    if (!job)
        return;
    td->io_ops_data = NULL;
    if (job->queue)
        afflux_queue_close(job->queue);
    pthread_mutex_lock(&shared.lock);
    if (--shared.jobs == 0) {
        code = afflux_cache_drain(shared.cache);
        if (code < 0)
            failed(td, "write what is dirty", code);
        /* A process that fio forked ends without a message. */
        if (!td->o.use_thread) {
            code = close_shared();
            if (code < 0)
                failed(td, "close the cache", code);
        }
    }
    pthread_mutex_unlock(&shared.lock);
    free_job(job);
}

static int open_file(struct thread_data *td, struct fio_file *f)
{
    struct job *job = td->io_ops_data;
    afflux_file *file;
    int64_t code;

    /* fio makes the file, and keeps a descriptor for its own calls to the host. */
    if (generic_open_file(td, f))
        return 1;
    FILE_SET_ENG_DATA(f, NULL);
    /* fio asks for a block device's size before there is a job. */
    if (!job)
        return 0;
    code = afflux_open(job->cache, f->file_name, td_write(td) || td_trim(td) ? O_RDWR : O_RDONLY, 0, &file);
    if (code < 0) {
        failed(td, "open", code);
        if (code == AFFLUX_ERROR_BUSY && !td->o.use_thread)
            log_err("afflux: jobs that share files have to share the cache: add `thread`\n");
        int ignored = generic_close_file(td, f);
        (void)ignored;
        return 1;
    }
    FILE_SET_ENG_DATA(f, file);
    return 0;
}

static int close_file(struct thread_data *td, struct fio_file *f)
{
    afflux_file *file = FILE_ENG_DATA(f);

    FILE_SET_ENG_DATA(f, NULL);
    if (file)
        afflux_release(file);
    return generic_close_file(td, f);
}

/* Drops the file's clean pages, as other engines have the host do. */
static int invalidate(struct thread_data *td, struct fio_file *f)
{
    afflux_file *file = FILE_ENG_DATA(f);
    int code;

    /* The host's pages that fio itself has written to lay the file out. */
    if (f->fd >= 0)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (!file)
        return 0;
    code = afflux_advise(file, 0, UINT64_MAX, AFFLUX_ADVICE_DONT_NEED);
    return code < 0 ? failed(td, "invalidate", code) : 0;
}

/* The range for a sync of a range, as for the host's call. */
static uint64_t written_from(const struct fio_file *f)
{
    return f->first_write == -1ULL ? 0 : f->first_write;
}

static uint64_t written_len(const struct fio_file *f)
{
    return f->first_write == -1ULL ? 0 : f->last_write - f->first_write;
}

/* The outcome of an io_u; 0 or more is the number of bytes. */
static void ended(struct thread_data *td, struct io_u *io_u, int64_t result)
{
    if (result < 0) {
        io_u->error = (unsigned int)-result;
        return;
    }
    io_u->error = 0;
    if (io_u->ddir == DDIR_READ || io_u->ddir == DDIR_WRITE)
        io_u->resid = io_u->xfer_buflen - (unsigned long long)result;
}

static enum fio_q_status ended_now(struct thread_data *td, struct io_u *io_u, int64_t result)
{
    ended(td, io_u, result);
    if (io_u->error) {
        io_u_log_error(td, io_u);
        td_verror(td, (int)io_u->error, "xfer");
    }
    return FIO_Q_COMPLETED;
}

static int64_t in_place(struct io_u *io_u, afflux_file *file)
{
    switch (io_u->ddir) {
    case DDIR_READ:
        return afflux_read(file, io_u->xfer_buf, io_u->xfer_buflen, io_u->offset);
    case DDIR_WRITE:
        return afflux_write(file, io_u->xfer_buf, io_u->xfer_buflen, io_u->offset);
    case DDIR_TRIM:
        return afflux_punch_hole(file, io_u->offset, io_u->xfer_buflen);
    case DDIR_SYNC:
        return afflux_sync_all(file);
    case DDIR_DATASYNC:
        return afflux_sync_data(file);
    case DDIR_SYNC_FILE_RANGE:
        return afflux_sync_range(file, written_from(io_u->file), written_len(io_u->file));
    default:
        return AFFLUX_ERROR_INVALID;
    }
}

/* A hit. */
static int64_t at_once(struct io_u *io_u, afflux_file *file)
{
    switch (io_u->ddir) {
    case DDIR_READ:
        return afflux_try_read(file, io_u->xfer_buf, io_u->xfer_buflen, io_u->offset);
    case DDIR_WRITE:
        return afflux_try_write(file, io_u->xfer_buf, io_u->xfer_buflen, io_u->offset);
    default:
        return AFFLUX_ERROR_WOULD_BLOCK;
    }
}

static afflux_request request_of(struct io_u *io_u, afflux_file *file)
{
    afflux_request request = {
        .file = file,
        .data = io_u->xfer_buf,
        .len = io_u->xfer_buflen,
        .offset = io_u->offset,
        .tag = (uint64_t)(uintptr_t)io_u,
    };
    switch (io_u->ddir) {
    case DDIR_READ:
        request.op = AFFLUX_OP_READ;
        break;
    case DDIR_WRITE:
        request.op = AFFLUX_OP_WRITE;
        break;
    case DDIR_SYNC:
        request.op = AFFLUX_OP_SYNC_ALL;
        break;
    case DDIR_DATASYNC:
        request.op = AFFLUX_OP_SYNC_DATA;
        break;
    case DDIR_SYNC_FILE_RANGE:
        request.op = AFFLUX_OP_SYNC_RANGE;
        request.offset = written_from(io_u->file);
        request.len = written_len(io_u->file);
        break;
    default:
        request.op = UINT32_MAX;
        break;
    }
    return request;
}

static enum fio_q_status queue(struct thread_data *td, struct io_u *io_u)
{
    struct job *job = td->io_ops_data;
    afflux_file *file = FILE_ENG_DATA(io_u->file);
    int64_t result;

    fio_ro_check(td, io_u);
    /* As in other engines, a trim ends before the next call: `trimwrite` writes the same block next. */
    if (io_u->ddir == DDIR_TRIM && job->pending_count > 0)
        return FIO_Q_BUSY;
    if (!job->queue || io_u->ddir == DDIR_TRIM)
        return ended_now(td, io_u, in_place(io_u, file));
    result = at_once(io_u, file);
    if (result != AFFLUX_ERROR_WOULD_BLOCK)
        return ended_now(td, io_u, result);
    if (job->pending_count == job->depth)
        return FIO_Q_BUSY;
    job->pending[job->pending_count++] = request_of(io_u, file);
    return FIO_Q_QUEUED;
}

static int commit(struct thread_data *td)
{
    struct job *job = td->io_ops_data;
    unsigned int done = 0;

    if (!job->queue)
        return 0;
    while (done < job->pending_count) {
        int64_t taken = afflux_submit(job->queue, job->pending + done, job->pending_count - done);
        if (taken < 0) {
            job->pending_count = 0;
            failed(td, "submit", taken);
            return (int)taken;
        }
        done += (unsigned int)taken;
    }
    if (done > 0) {
        io_u_mark_submit(td, done);
        job->pending_count = 0;
    }
    return 0;
}

static int getevents(struct thread_data *td, unsigned int min, unsigned int max, const struct timespec *time)
{
    struct job *job = td->io_ops_data;
    int64_t timeout_ns = time ? (int64_t)time->tv_sec * 1000000000 + time->tv_nsec : -1, count;

    if (!job->queue)
        return 0;
    count = afflux_wait(job->queue, job->outcomes, max < job->depth ? max : job->depth, min, timeout_ns);
    if (count < 0) {
        failed(td, "wait", count);
        return (int)count;
    }
    return (int)count;
}

static struct io_u *event(struct thread_data *td, int number)
{
    struct job *job = td->io_ops_data;
    afflux_completion *outcome = &job->outcomes[number];
    struct io_u *io_u = (struct io_u *)(uintptr_t)outcome->tag;

    ended(td, io_u, outcome->result);
    return io_u;
}

static char *errdetails(struct io_u *io_u)
{
    (void)io_u;
    return strdup(afflux_last_error());
}

struct ioengine_ops ioengine = {
    .name = "afflux",
    .version = FIO_IOOPS_VERSION,
    .init = init,
    .cleanup = cleanup,
    .queue = queue,
    .commit = commit,
    .getevents = getevents,
    .event = event,
    .errdetails = errdetails,
    .open_file = open_file,
    .close_file = close_file,
    .invalidate = invalidate,
    .get_file_size = generic_get_file_size,
    .options = options,
    .option_struct_size = sizeof(struct options),
};
