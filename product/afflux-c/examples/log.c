/*
 * A log of records: appended, made durable, read back in several ways, and checked.
 *
 *     cc $(pkg-config --cflags afflux) log.c -o log $(pkg-config --libs afflux)
 *     ./log FILE [syscalls]
 *
 * With `syscalls` the cache does not use io_uring. valgrind needs this: it lets no other thread run while one waits for
 * a ring.
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <afflux.h>

#define RECORDS 1000
#define AT_A_TIME 32

struct record {
    uint32_t number;
    uint32_t sum;
    char text[248];
};

static uint32_t sum_of(const struct record *record)
{
    uint32_t sum = 2166136261u ^ record->number;
    for (size_t at = 0; at < sizeof record->text; at++)
        sum = (sum ^ (unsigned char)record->text[at]) * 16777619u;
    return sum;
}

static struct record record_of(uint32_t number)
{
    struct record record = {.number = number};
    snprintf(record.text, sizeof record.text, "this is record %u", (unsigned)number);
    record.sum = sum_of(&record);
    return record;
}

static void check(const struct record *record, uint32_t number)
{
    if (record->number != number || record->sum != sum_of(record))
        errx(1, "record %u is not what was written", (unsigned)number);
}

/* Ends with the library's message if a call failed. */
static int64_t done(const char *what, int64_t result)
{
    if (result < 0)
        errx(1, "%s: %s (%s)", what, afflux_last_error(), afflux_strerror(result));
    return result;
}

static void append_all(afflux_file *log)
{
    for (uint32_t number = 0; number < RECORDS; number++) {
        struct record record = record_of(number);
        int64_t at = done("append", afflux_append(log, &record, sizeof record));
        if (at != (int64_t)(number * sizeof record))
            errx(1, "record %u is at %lld", (unsigned)number, (long long)at);
    }
    done("sync", afflux_sync_data(log));
}

/* Record by record, with a wait for each read. */
static void read_one_by_one(afflux_file *log)
{
    for (uint32_t number = 0; number < RECORDS; number++) {
        struct record record;
        if (done("read", afflux_read(log, &record, sizeof record, number * sizeof record)) != sizeof record)
            errx(1, "the log is short");
        check(&record, number);
    }
}

/* Many reads in flight on one thread; their outcomes come in any order. */
static void read_many_at_a_time(afflux_file *log)
{
    static struct record records[AT_A_TIME];
    afflux_queue *queue;
    afflux_completion outcomes[AT_A_TIME];
    uint32_t next = 0;
    unsigned vacant[AT_A_TIME], vacant_count = AT_A_TIME;

    for (unsigned place = 0; place < AT_A_TIME; place++)
        vacant[place] = place;
    done("queue", afflux_queue_new(AT_A_TIME, &queue));
    for (uint32_t finished = 0; finished < RECORDS;) {
        while (next < RECORDS && vacant_count > 0) {
            unsigned place = vacant[--vacant_count];
            afflux_request request = {
                .op = AFFLUX_OP_READ,
                .file = log,
                .data = &records[place],
                .len = sizeof records[place],
                .offset = next * sizeof records[place],
                .tag = (uint64_t)next << 8 | place,
            };
            done("submit", afflux_submit(queue, &request, 1));
            next++;
        }
        int64_t count = done("wait", afflux_wait(queue, outcomes, AT_A_TIME, 1, -1));
        for (int64_t at = 0; at < count; at++) {
            unsigned place = outcomes[at].tag & 255;
            if (done("read", outcomes[at].result) != sizeof records[place])
                errx(1, "the log is short");
            check(&records[place], (uint32_t)(outcomes[at].tag >> 8));
            vacant[vacant_count++] = place;
            finished++;
        }
    }
    done("close the queue", afflux_queue_close(queue));
}

/* Without a copy: the pages in the cache. */
static void look_at_pages(afflux_file *log)
{
    afflux_pages *pages;
    afflux_slice slices[16];
    size_t first = 0;
    uint64_t bytes = 0;
    uint32_t number = 0;
    int64_t len = done("look", afflux_pages_get(log, 0, RECORDS * sizeof(struct record), &pages)), count;

    do {
        count = done("slices", afflux_pages_slices(pages, first, slices, 16));
        for (int64_t at = 0; at < count; at++) {
            const char *data = slices[at].data;
            /* A page has a whole number of records here. */
            for (size_t in = 0; in + sizeof(struct record) <= slices[at].len; in += sizeof(struct record)) {
                struct record record;
                memcpy(&record, data + in, sizeof record);
                check(&record, number++);
            }
            bytes += slices[at].len;
        }
        first += (size_t)count;
    } while (count == 16);
    if (bytes != (uint64_t)len || number != RECORDS)
        errx(1, "%llu bytes of %lld were shown", (unsigned long long)bytes, (long long)len);
    done("release", afflux_pages_release(pages));
}

static void tell(void *context, const char *path, uint64_t bytes, const char *error)
{
    (void)context;
    warnx("%s: %llu bytes are lost: %s", path, (unsigned long long)bytes, error ? error : "no time was left");
}

int main(int count, char **words)
{
    afflux_settings settings = {.size = sizeof settings, .memory_bytes = 8 << 20, .knobs = "dirty_ratio=30"};
    afflux_cache *cache;
    afflux_file *log;
    afflux_stats stats;

    if (count != 2 && !(count == 3 && !strcmp(words[2], "syscalls")))
        errx(2, "usage: log FILE [syscalls]");
    if (count == 3)
        settings.io = AFFLUX_IO_SYSCALLS;
    done("cache", afflux_cache_new(&settings, &cache));
    done("open", afflux_open(cache, words[1], O_RDWR | O_CREAT | O_TRUNC, 0644, &log));
    append_all(log);
    done("close", afflux_close(log));

    /* The same from the disk. */
    afflux_cache_drop_clean_pages(cache);
    done("open", afflux_open(cache, words[1], O_RDONLY, 0, &log));
    read_many_at_a_time(log);
    read_one_by_one(log);
    look_at_pages(log);
    done("release", afflux_release(log));

    done("stats", afflux_cache_stats(cache, &stats, sizeof stats));
    printf("%d records, %llu bytes dirty, %llu files\n", RECORDS, (unsigned long long)stats.dirty_bytes,
           (unsigned long long)stats.files);
    if (afflux_cache_close(cache, tell, NULL) < 0)
        errx(1, "%s", afflux_last_error());
    return 0;
}
