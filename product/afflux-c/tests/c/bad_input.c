/*
 * A C program's mistakes, and each kind of call once: every mistake is an error, and has no other effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <afflux.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s; last error: %s\n", __FILE__, __LINE__, #what, afflux_last_error());    \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#define IS(code, call) CHECK((call) == (code))

/* Printed before the step, so that a step that hangs is the last one printed. */
#define STEP(call)                                                                                                     \
    do {                                                                                                               \
        puts(#call);                                                                                                   \
        fflush(stdout);                                                                                                \
        call;                                                                                                          \
    } while (0)

/* The sanitizer of gcc 12 does not take its allocator's locks before a fork. A child may find one held, and hang. */
#ifdef __SANITIZE_ADDRESS__
#define CAN_FORK 0
#else
#define CAN_FORK 1
#endif

/* How caches read and write files: one of afflux_io. */
static uint32_t io;
static char path[4096];

static const char *in(const char *directory, const char *name)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static afflux_cache *made(void)
{
    afflux_settings settings = {.size = sizeof settings, .memory_bytes = 8 << 20, .io = io};
    afflux_cache *cache = NULL;
    IS(0, afflux_cache_new(&settings, &cache));
    CHECK(cache != NULL);
    return cache;
}

static void settings_that_cannot_be(void)
{
    afflux_cache *cache = (afflux_cache *)(uintptr_t)7;
    afflux_settings settings = {0};
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_cache_new(NULL, NULL));
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&settings, &cache));
    CHECK(strstr(afflux_last_error(), "sizeof(afflux_settings)"));
    settings.size = sizeof settings;
    settings.memory_bytes = 5;
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&settings, &cache));
    CHECK(strstr(afflux_last_error(), "at least 1048576"));
    settings.memory_bytes = 8 << 20;
    settings.reactors = 100000;
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&settings, &cache));
    settings.reactors = 0;
    settings.io = 9;
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&settings, &cache));
    settings.io = 0;
    settings.reserved = 1;
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&settings, &cache));
    settings.reserved = 0;
    /* A program that knows more settings than the library, and uses one. */
    struct {
        afflux_settings known;
        uint64_t newer;
    } of_later = {.known = settings, .newer = 1};
    of_later.known.size = sizeof of_later;
    of_later.known.io = io;
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&of_later.known, &cache));
    CHECK(strstr(afflux_last_error(), "does not know"));
    of_later.newer = 0;
    afflux_cache *of_now;
    IS(0, afflux_cache_new(&of_later.known, &of_now));
    IS(0, afflux_cache_close(of_now, NULL, NULL));
    settings.knobs = "dirty_ratoi=5";
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&settings, &cache));
    CHECK(strstr(afflux_last_error(), "dirty_ratio"));
    settings.knobs = "dirty_ratio=500";
    IS(AFFLUX_ERROR_INVALID, afflux_cache_new(&settings, &cache));
    settings.memory_bytes = UINT64_MAX;
    settings.knobs = NULL;
    CHECK(afflux_cache_new(&settings, &cache) < 0);
    CHECK(cache == (afflux_cache *)(uintptr_t)7);
}

static void handles_that_are_none(const char *directory)
{
    afflux_cache *cache = made();
    afflux_file *file, *other;
    afflux_pages *pages;
    char byte = 1;
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_cache_close(NULL, NULL, NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_close(NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_release(NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_read(NULL, &byte, 1, 0));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_pages_release(NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_queue_close(NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_wait(NULL, NULL, 0, 0, 0));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_read((afflux_file *)(void *)&byte, &byte, 1, 0));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_read((afflux_file *)(void *)cache, &byte, 1, 0));
    IS(0, afflux_open(cache, in(directory, "handles"), O_RDWR | O_CREAT, 0600, &file));
    IS(1, afflux_write(file, &byte, 1, 0));
    IS(1, afflux_pages_get(file, 0, 1, &pages));
    IS(0, afflux_close(file));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_close(file));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_write(file, &byte, 1, 0));
    IS(0, afflux_open(cache, in(directory, "handles"), O_RDWR, 0, &other));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_write(file, &byte, 1, 0));
    IS(1, afflux_write(other, &byte, 1, 0));
    IS(0, afflux_cache_close(cache, NULL, NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_cache_close(cache, NULL, NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_cache_drain(cache));
    IS(AFFLUX_ERROR_CLOSED, afflux_write(other, &byte, 1, 0));
    IS(AFFLUX_ERROR_CLOSED, afflux_sync_data(other));
    IS(AFFLUX_ERROR_CLOSED, afflux_close(other));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_close(other));
    afflux_slice slice;
    IS(1, afflux_pages_slices(pages, 0, &slice, 1));
    CHECK(slice.len == 1 && *(const char *)slice.data == 1);
    IS(0, afflux_pages_release(pages));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_pages_release(pages));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_pages_slices(pages, 0, &slice, 1));
}

static void arguments_that_cannot_be(const char *directory)
{
    afflux_cache *cache = made();
    afflux_file *file, *reader;
    char bytes[10] = "012345678";
    uint64_t value;
    IS(-2, afflux_open(cache, in(directory, "absent"), O_RDWR, 0, &file));
    CHECK(strstr(afflux_last_error(), "absent"));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_open(cache, NULL, O_RDWR, 0, &file));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_open(cache, in(directory, "file"), O_RDWR | O_CREAT, 0600, NULL));
    IS(AFFLUX_ERROR_INVALID, afflux_open(cache, in(directory, "file"), O_RDWR | O_APPEND, 0, &file));
    IS(AFFLUX_ERROR_INVALID, afflux_open(cache, "/dev/null", O_RDWR, 0, &file));
    IS(AFFLUX_ERROR_INVALID, afflux_open(cache, "/proc/self/mem", O_RDWR, 0, &file));
    CHECK(strstr(afflux_last_error(), "it is on proc, which stores no files"));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_open_fd(cache, -1, &file));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_open_fd(cache, 1 << 20, &file));
    IS(0, afflux_open(cache, in(directory, "file"), O_RDWR | O_CREAT, 0600, &file));
    IS(-17, afflux_open(cache, in(directory, "file"), O_RDWR | O_CREAT | O_EXCL, 0600, &reader));
    IS(AFFLUX_ERROR_INVALID, afflux_open(cache, in(directory, "file"), O_RDONLY | O_TRUNC, 0, &reader));
    CHECK(symlink("round", in(directory, "round")) == 0);
    IS(-ELOOP, afflux_open(cache, in(directory, "round"), O_RDONLY, 0, &reader));
    CHECK(strstr(afflux_last_error(), "round"));
    IS(0, afflux_open(cache, in(directory, "file"), O_RDONLY, 0, &reader));
    IS(AFFLUX_ERROR_NOT_PERMITTED, afflux_write(reader, bytes, 1, 0));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_write(file, NULL, 1, 0));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_read(file, NULL, 1, 0));
    IS(0, afflux_write(file, NULL, 0, 0));
    IS(0, afflux_read(file, NULL, 0, 0));
    IS(AFFLUX_ERROR_INVALID, afflux_write(file, bytes, SIZE_MAX, 0));
    IS(AFFLUX_ERROR_TOO_LARGE, afflux_write(file, bytes, 10, UINT64_MAX - 4));
    IS(AFFLUX_ERROR_TOO_LARGE, afflux_read(file, bytes, 10, INT64_MAX));
    IS(AFFLUX_ERROR_TOO_LARGE, afflux_set_len(file, UINT64_MAX));
    IS(AFFLUX_ERROR_INVALID, afflux_punch_hole(file, 10, UINT64_MAX));
    IS(AFFLUX_ERROR_INVALID, afflux_sync_range(file, 10, UINT64_MAX));
    IS(AFFLUX_ERROR_INVALID, afflux_advise(file, 0, 1, 77));
    struct iovec none = {.iov_base = NULL, .iov_len = 3}, halves[2] = {{bytes, 5}, {bytes + 5, 5}};
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_writev(file, &none, 1, 0));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_writev(file, NULL, 1, 0));
    IS(AFFLUX_ERROR_INVALID, afflux_writev(file, halves, -1, 0));
    IS(AFFLUX_ERROR_INVALID, afflux_readv(file, halves, 100000, 0));
    IS(AFFLUX_ERROR_INVALID, afflux_cache_set(cache, "nonsense"));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_cache_set(cache, NULL));
    IS(AFFLUX_ERROR_INVALID, afflux_cache_knob(cache, "nonsense", &value));
    IS(AFFLUX_ERROR_INVALID, afflux_cache_counter(cache, "nonsense", &value));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_cache_knob(cache, "dirty_ratio", NULL));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_cache_stats(cache, NULL, 8));

    /* And valid calls. */
    IS(10, afflux_writev(file, halves, 2, 0));
    IS(10, afflux_append(file, bytes, 10));
    IS(20, afflux_appendv(file, halves, 2));
    IS(30, afflux_len(file));
    memset(bytes, 0, sizeof bytes);
    IS(10, afflux_readv(file, halves, 2, 20));
    CHECK(!strcmp(bytes, "012345678"));
    IS(10, afflux_try_read(file, bytes, 10, 20));
    int64_t tried = afflux_try_write(file, "abc", 3, 0);
    CHECK(tried == 3 || tried == AFFLUX_ERROR_WOULD_BLOCK);
    IS(0, afflux_sync_range(file, 0, 10));
    IS(0, afflux_sync_all(file));
    IS(0, afflux_punch_hole(file, 0, 5));
    IS(0, afflux_set_len(file, 12));
    IS(0, afflux_prefetch(file, 0, 12));
    IS(0, afflux_advise(file, 0, UINT64_MAX, AFFLUX_ADVICE_RANDOM));
    afflux_metadata metadata;
    IS(0, afflux_stat(file, &metadata, sizeof metadata));
    CHECK(metadata.len == 12 && metadata.links == 1 && S_ISREG(metadata.mode));
    IS(0, afflux_cache_set(cache, "dirty_ratio=33"));
    IS(0, afflux_cache_knob(cache, "dirty_ratio", &value));
    CHECK(value == 33);
    IS(0, afflux_cache_counter(cache, "read_hit_pages", &value));
    afflux_device_stats device;
    IS(0, afflux_cache_device(cache, 0, &device, sizeof device));
    CHECK(strchr(device.name, ':'));
    IS(AFFLUX_ERROR_INVALID, afflux_cache_device(cache, 99, &device, sizeof device));
    /* A program that knows fewer figures gets only those. */
    afflux_stats stats;
    memset(&stats, 0xEE, sizeof stats);
    IS(0, afflux_cache_stats(cache, &stats, 8));
    CHECK(stats.memory_bytes == 8 << 20 && stats.free_bytes == 0xEEEEEEEEEEEEEEEE);

    int fd = open(in(directory, "file"), O_RDWR);
    afflux_file *same;
    IS(0, afflux_open_fd(cache, fd, &same));
    IS(12, afflux_len(same));
    CHECK(fcntl(fd, F_GETFD) >= 0);
    close(fd);
    IS(0, afflux_cache_drain(cache));
    afflux_cache *another = made();
    IS(AFFLUX_ERROR_BUSY, afflux_open(another, in(directory, "file"), O_RDWR, 0, &same));
    CHECK(strstr(afflux_last_error(), "another cache"));
    IS(0, afflux_cache_close(another, NULL, NULL));
    IS(0, afflux_cache_close(cache, NULL, NULL));
}

static void a_forked_child(const char *directory)
{
    afflux_cache *cache = made();
    afflux_file *file;
    afflux_pages *pages;
    afflux_queue *queue;
    char bytes[8] = "parent", back[8] = {0};
    IS(0, afflux_open(cache, in(directory, "parent"), O_RDWR | O_CREAT, 0600, &file));
    IS(8, afflux_write(file, bytes, 8, 0));
    IS(8, afflux_pages_get(file, 0, 8, &pages));
    IS(0, afflux_queue_new(4, &queue));
    pid_t child = fork();
    if (child == 0) {
        afflux_completion outcome;
        afflux_request request = {.op = AFFLUX_OP_READ, .file = file, .data = back, .len = 8};
        IS(AFFLUX_ERROR_FORKED, afflux_read(file, back, 8, 0));
        IS(AFFLUX_ERROR_FORKED, afflux_write(file, "child", 5, 0));
        IS(AFFLUX_ERROR_FORKED, afflux_sync_data(file));
        IS(AFFLUX_ERROR_FORKED, afflux_close(file));
        IS(AFFLUX_ERROR_FORKED, afflux_pages_release(pages));
        IS(AFFLUX_ERROR_FORKED, afflux_submit(queue, &request, 1));
        IS(AFFLUX_ERROR_FORKED, afflux_wait(queue, &outcome, 1, 1, -1));
        IS(AFFLUX_ERROR_FORKED, afflux_queue_close(queue));
        IS(AFFLUX_ERROR_FORKED, afflux_cache_close(cache, NULL, NULL));
#ifndef __SANITIZE_THREAD__
        /* It makes its own. ThreadSanitizer supports no new threads in a child of a process with threads. */
        afflux_cache *own = made();
        afflux_file *mine;
        IS(0, afflux_open(own, in(directory, "child"), O_RDWR | O_CREAT, 0600, &mine));
        IS(5, afflux_write(mine, "child", 5, 0));
        IS(AFFLUX_ERROR_FORKED, afflux_read(file, back, 8, 0));
        IS(0, afflux_close(mine));
        IS(AFFLUX_ERROR_BUSY, afflux_open(own, in(directory, "parent"), O_RDWR, 0, &mine));
        IS(0, afflux_cache_close(own, NULL, NULL));
#endif
        /* Success. Ends as another program, or valgrind would report its parent's threads' stacks as lost. */
        execlp("sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    }
    int how;
    CHECK(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 7);
    IS(8, afflux_read(file, back, 8, 0));
    CHECK(!strcmp(back, "parent"));
    IS(0, afflux_pages_release(pages));
    IS(0, afflux_queue_close(queue));
    IS(0, afflux_close(file));
    IS(0, afflux_cache_close(cache, NULL, NULL));
}

/* Bytes that are withheld, and bytes that wait for others. */
static void bytes_that_wait(const char *directory)
{
    afflux_cache *cache = made();
    afflux_file *log, *table, *reader;
    afflux_withheld *withheld = (afflux_withheld *)(uintptr_t)7;
    struct stat host;
    IS(0, afflux_open(cache, in(directory, "log"), O_RDWR | O_CREAT, 0600, &log));
    IS(0, afflux_open(cache, in(directory, "table"), O_RDWR | O_CREAT, 0600, &table));
    IS(0, afflux_open(cache, path, O_RDONLY, 0, &reader));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_let_go(NULL));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_withhold(NULL, 0, 1, &withheld));
    IS(AFFLUX_ERROR_BAD_ADDRESS, afflux_withhold(table, 0, 1, NULL));
    IS(AFFLUX_ERROR_NOT_PERMITTED, afflux_withhold(reader, 0, 1, &withheld));
    CHECK(withheld == (afflux_withheld *)(uintptr_t)7);

    IS(0, afflux_withhold(table, 0, UINT64_MAX, &withheld));
    IS(3, afflux_write(table, "row", 3, 0));
    IS(AFFLUX_ERROR_BUSY, afflux_sync_data(table));
    CHECK(stat(path, &host) == 0 && host.st_size == 0);
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_release((afflux_file *)withheld));

    IS(6, afflux_write(log, "record", 6, 0));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_order_after(table, 0, 3, NULL, 0, 6));
    IS(AFFLUX_ERROR_NOT_PERMITTED, afflux_order_after(reader, 0, 3, log, 0, 6));
    IS(0, afflux_order_after(table, 0, 3, log, 0, 6));
    IS(-EDEADLK, afflux_order_after(log, 0, 6, table, 0, 3));
    // Only now: bytes that nothing holds may go to the disk at any time.
    IS(0, afflux_let_go(withheld));
    IS(AFFLUX_ERROR_BAD_HANDLE, afflux_let_go(withheld));
    IS(0, afflux_sync_data(table));
    CHECK(stat(path, &host) == 0 && host.st_size == 3);
    CHECK(stat(in(directory, "log"), &host) == 0 && host.st_size == 6);
    IS(0, afflux_close(reader));
    IS(0, afflux_close(table));
    IS(0, afflux_close(log));
    IS(0, afflux_cache_close(cache, NULL, NULL));
}

struct shared {
    afflux_cache *cache;
    afflux_file *file;
    int64_t closed;
};

static void *use_until_closed(void *given)
{
    struct shared *shared = given;
    char bytes[5000];
    memset(bytes, 3, sizeof bytes);
    for (uint64_t at = 0;; at += 4096) {
        int64_t result = at % 3 ? afflux_write(shared->file, bytes, sizeof bytes, at % (1 << 20))
                                : afflux_read(shared->file, bytes, sizeof bytes, at % (1 << 20));
        if (result < 0) {
            CHECK(result == AFFLUX_ERROR_BAD_HANDLE || result == AFFLUX_ERROR_CLOSED);
            break;
        }
    }
    if (afflux_close(shared->file) != AFFLUX_ERROR_BAD_HANDLE)
        __atomic_add_fetch(&shared->closed, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void threads_that_use_what_others_close(const char *directory)
{
    for (int round = 0; round < 6; round++) {
        struct shared shared = {.cache = made()};
        pthread_t threads[3];
        IS(0, afflux_open(shared.cache, in(directory, "shared"), O_RDWR | O_CREAT, 0600, &shared.file));
        for (int at = 0; at < 3; at++)
            CHECK(pthread_create(&threads[at], NULL, use_until_closed, &shared) == 0);
        usleep(2000);
        if (round % 2)
            IS(0, afflux_cache_close(shared.cache, NULL, NULL));
        else if (afflux_close(shared.file) != AFFLUX_ERROR_BAD_HANDLE)
            shared.closed++;
        for (int at = 0; at < 3; at++)
            pthread_join(threads[at], NULL);
        CHECK(shared.closed == 1);
        if (round % 2 == 0)
            IS(0, afflux_cache_close(shared.cache, NULL, NULL));
    }
}

/* A file whose end fills no block may need a second descriptor. Without one its bytes are refused, and never lost. */
static void descriptors_that_are_short(const char *directory)
{
    afflux_settings settings = {.size = sizeof settings, .memory_bytes = 8 << 20, .io = io};
    struct rlimit limit, old;
    afflux_cache *cache;
    afflux_file *file;
    afflux_queue *queue;
    afflux_completion completion;
    static char bytes[5000];
    IS(0, afflux_cache_new(&settings, &cache));
    IS(0, afflux_queue_new(1, &queue));
    IS(0, afflux_open(cache, in(directory, "short"), O_RDWR | O_CREAT, 0600, &file));
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    limit = old;
    int lowest = dup(0);
    CHECK(lowest > 0 && close(lowest) == 0);
    limit.rlim_cur = (rlim_t)lowest;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int64_t wrote = afflux_write(file, bytes, sizeof bytes, 0);
    if (wrote != sizeof bytes) {
        CHECK(wrote == AFFLUX_ERROR_NO_DESCRIPTORS && strstr(afflux_last_error(), "ulimit"));
        afflux_request request = {.op = AFFLUX_OP_WRITE, .file = file, .data = bytes, .len = sizeof bytes, .tag = 7};
        IS(1, afflux_submit(queue, &request, 1));
        IS(1, afflux_wait(queue, &completion, 1, 1, -1));
        CHECK(completion.tag == 7 && completion.result == AFFLUX_ERROR_NO_DESCRIPTORS);
    } else {
        IS(0, afflux_sync_data(file));
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    IS(sizeof bytes, afflux_write(file, bytes, sizeof bytes, 0));
    IS(0, afflux_close(file));
    IS(0, afflux_queue_close(queue));
    IS(0, afflux_cache_close(cache, NULL, NULL));
}

static int lost;

static void tell(void *context, const char *name, uint64_t bytes, const char *error)
{
    CHECK(context == &lost && strstr(name, "long") && bytes > 0 && error);
    lost++;
}

/* The host accepts no byte of a file above this process's limit, so that the cache cannot write its bytes there. */
static void what_cannot_be_written_is_told(const char *directory)
{
    afflux_settings settings = {.size = sizeof settings, .memory_bytes = 8 << 20, .io = io, .drain_time_ms = 500};
    struct rlimit limit = {.rlim_cur = 65536, .rlim_max = RLIM_INFINITY};
    afflux_cache *cache;
    afflux_file *file;
    static char bytes[1 << 18];
    IS(0, afflux_cache_new(&settings, &cache));
    IS(0, afflux_open(cache, in(directory, "long"), O_RDWR | O_CREAT, 0600, &file));
    /* Only now: writes above the limit at the time of the open would be refused. */
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    IS(sizeof bytes, afflux_write(file, bytes, sizeof bytes, 0));
    IS(AFFLUX_ERROR_TOO_LARGE, afflux_sync_data(file));
    IS(AFFLUX_ERROR_TOO_LARGE, afflux_sync_data(file));
    IS(AFFLUX_ERROR_TOO_LARGE, afflux_close(file));
    IS(AFFLUX_ERROR_TOO_LARGE, afflux_cache_drain(cache));
    IS(AFFLUX_ERROR_IO, afflux_cache_close(cache, tell, &lost));
    CHECK(lost == 1 && strstr(afflux_last_error(), "could not be written"));
}

int main(int count, char **words)
{
    CHECK(count == 3);
    io = (uint32_t)atoi(words[1]);
    CHECK(!strcmp(afflux_last_error(), "no error"));
    STEP(settings_that_cannot_be());
    STEP(handles_that_are_none(words[2]));
    STEP(arguments_that_cannot_be(words[2]));
    if (CAN_FORK)
        STEP(a_forked_child(words[2]));
    STEP(bytes_that_wait(words[2]));
    STEP(threads_that_use_what_others_close(words[2]));
    STEP(descriptors_that_are_short(words[2]));
    STEP(what_cannot_be_written_is_told(words[2]));
    puts("all is as it should be");
    return 0;
}
