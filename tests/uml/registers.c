/*
 * User Mode Linux 6.1 keeps the extended registers of a program in 2,696 bytes, and gives them back with that size. A processor with AMX has more,
 * and its kernel refuses a part of them, so no program of a machine starts. This library stands between that machine and ptrace(2): it adds
 * the registers of AMX, in their first state. A program of a machine never asks for AMX, so it loses nothing.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HEADER = 512, MOST = 1 << 16 };
static const uint64_t AMX = 3 << 17;

static long set_registers(pid_t pid, const struct iovec *kept)
{
    static _Thread_local unsigned char all[MOST] __attribute__((aligned(64)));
    struct iovec whole = { all, sizeof all };
    uint64_t in_use;

    if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &whole))
        return -1;
    if (whole.iov_len <= kept->iov_len)
        return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, kept);
    memset(all, 0, whole.iov_len);
    memcpy(all, kept->iov_base, kept->iov_len);
    memcpy(&in_use, all + HEADER, sizeof in_use);
    in_use &= ~AMX;
    memcpy(all + HEADER, &in_use, sizeof in_use);
    return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &whole);
}

long ptrace(enum __ptrace_request request, ...)
{
    va_list words;
    va_start(words, request);
    pid_t pid = va_arg(words, pid_t);
    void *address = va_arg(words, void *);
    void *data = va_arg(words, void *);
    va_end(words);

    if (request == PTRACE_SETREGSET && (intptr_t)address == NT_X86_XSTATE)
        return set_registers(pid, data);
    if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
        /* The system call puts the word into memory, the function of the C library returns it. */
        long word = -1;
        if (syscall(SYS_ptrace, request, pid, address, &word))
            return -1;
        errno = 0;
        return word;
    }
    return syscall(SYS_ptrace, request, pid, address, data);
}
