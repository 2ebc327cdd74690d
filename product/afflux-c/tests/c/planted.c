/*
 * Errors that only a sanitizer can find: memory that is freed, or used by another thread, while a call uses it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <afflux.h>

static afflux_file *file;
static afflux_queue *queue;

static afflux_request *request_of(char *bytes)
{
    afflux_request *request = calloc(1, sizeof *request);
    if (request)
        *request = (afflux_request){.op = AFFLUX_OP_WRITE, .file = file, .data = bytes, .len = 8};
    return request;
}

/* The requests belong to the library until the call returns. */
static void freed(char *bytes)
{
    /* The compiler cannot see that it is freed. */
    afflux_request *volatile request = request_of(bytes);
    free(request);
    afflux_submit(queue, request, 1);
}

static void *changes(void *request)
{
    ((afflux_request *)request)->offset = 8;
    return NULL;
}

static void raced(char *bytes)
{
    afflux_request *request = request_of(bytes);
    pthread_t other;
    if (pthread_create(&other, NULL, changes, request) == 0) {
        afflux_submit(queue, request, 1);
        pthread_join(other, NULL);
    }
}

int main(int count, char **words)
{
    static char bytes[8] = "planted";
    afflux_cache *cache;
    if (count != 3 || afflux_cache_new(NULL, &cache) < 0 ||
        afflux_open(cache, words[2], O_RDWR | O_CREAT, 0600, &file) < 0 || afflux_queue_new(4, &queue) < 0)
        return 2;
    if (!strcmp(words[1], "freed"))
        freed(bytes);
    else
        raced(bytes);
    afflux_queue_close(queue);
    afflux_cache_close(cache, NULL, NULL);
    return 0;
}
