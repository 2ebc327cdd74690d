/*
 * Functions that rustc's ThreadSanitizer calls for copies. gcc 12's runtime lacks these names: it sees the calls as
 * memcpy() and similar functions.
 */
#include <string.h>

void *__tsan_memcpy(void *into, const void *from, size_t len);
void *__tsan_memmove(void *into, const void *from, size_t len);
void *__tsan_memset(void *into, int byte, size_t len);

void *__tsan_memcpy(void *into, const void *from, size_t len)
{
    return memcpy(into, from, len);
}

void *__tsan_memmove(void *into, const void *from, size_t len)
{
    return memmove(into, from, len);
}

void *__tsan_memset(void *into, int byte, size_t len)
{
    return memset(into, byte, len);
}
