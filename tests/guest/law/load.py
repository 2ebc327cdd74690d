"""A load beside the kernel's counters and its own decisions, second by second.

`stream` writes 64 KiB at a time at full speed, and ends with an fsync. `at-rate` does so at a rate. `small-sync` has a second
process from second 10 on: it writes 4 KiB to a small file and syncs it, again and again. `burst` has a second process, too: it
writes to another, faster disk, and syncs each burst.

Prints lines `# NAME: VALUE` and a table. A line of the table has the state at a second and what the kernel decided in the
second that follows. Pages: dirty or under writeback, accepted and written since the start. The disk's pages are exact; `written`
follows in steps, because ext4 ends the writeback of a whole extent at once.

Some lines are for the simulator: processor time of the kernel's workers for a page, and of a burst's writer for a call; with
`small-sync` the files' places.
"""
import fcntl
import glob
import os
import struct
import sys
import time

LOAD, SECONDS, RATE, HZ = sys.argv[1], *map(int, sys.argv[2:5])
BLOCK = 65536
FILL, REST = 10, 0.1
BURST_BYTES, BURSTS_AT = 104857600, (15, 25, 35)
TRACE = '/sys/kernel/tracing/'
EVENTS = ('balance_dirty_pages', 'bdi_dirty_ratelimit')
now = time.monotonic


def put(path, text):
    with open(path, 'w') as file:
        file.write(text)


def switch(on):
    for event in EVENTS:
        put(TRACE + 'events/writeback/' + event + '/enable', on)


def counters(text):
    return dict(line.replace(':', ' ').split()[:2] for line in text.decode().splitlines() if ' ' in line)


def look(vmstat, disk, bdi):
    machine, device = counters(os.pread(vmstat, 65536, 0)), counters(os.pread(bdi, 65536, 0))
    return {
        'dirty': int(machine['nr_dirty']) + int(machine['nr_writeback']),
        'accepted': int(machine['nr_dirtied']),
        'written': int(machine['nr_written']),
        'disk': int(os.pread(disk, 256, 0).split()[6]) // 8,
        'limit': int(machine['nr_dirty_threshold']),
        'background': int(machine['nr_dirty_background_threshold']),
        'bandwidth': int(device['BdiWriteBandwidth']) // 4,
    }


def ticks():
    """The kernel's count of ticks: timers of seconds fire at multiples of 64."""
    with open('/proc/timer_list') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('jiffies:'))


def workers_ns():
    """Processor time of the kernel's workers. Flushers are workers, and so are the threads that end ext4's writeback."""
    taken = 0
    for path in glob.glob('/proc/[0-9]*/comm'):
        with open(path) as comm, open(path[:-4] + 'schedstat') as times:
            if comm.read().startswith('kworker/'):
                taken += int(times.read().split()[0])
    return taken


def places(file):
    """The pieces of a file on the disk by FIEMAP, as `PAGE_OF_FILE PAGE_OF_DISK PAGES`. Adjoining extents are one piece."""
    count = 512
    asked = bytearray(struct.pack('=QQIIII', 0, 2**64 - 1, 0, 0, count, 0) + bytes(56 * count))
    fcntl.ioctl(file, 0xC020660B, asked)
    found = []
    for at in range(struct.unpack_from('=I', asked, 20)[0]):
        page, place, pages = (value // 4096 for value in struct.unpack_from('=QQQ', asked, 32 + 56 * at))
        if found and (page, place) == (found[-1][0] + found[-1][2], found[-1][1] + found[-1][2]):
            found[-1][2] += pages
        else:
            found.append([page, place, pages])
    return ', '.join('%d %d %d' % tuple(piece) for piece in found)


def until(instant):
    time.sleep(max(0, instant - now()))


def opened(path):
    return os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)


def synced(file):
    began = now()
    os.fsync(file)
    return now() - began


def stream(file, begin):
    block, offset, took = b'Z' * BLOCK, 0, []
    until(begin)
    busy, began = time.process_time(), now()
    while began < begin + SECONDS:
        os.pwrite(file, block, offset)
        offset += BLOCK
        end = now()
        took.append(end - began)
        if RATE:
            until(begin + offset / RATE)
            end = now()
        began = end
    busy = time.process_time() - busy
    sync = synced(file)
    took.sort()
    call = took[len(took) // 10]
    lines = 'accepted_bytes: %d\nsync_ms: %.1f\ncall_us: %.0f\nlongest_call_ms: %.1f\nwriter_cpu_percent: %.1f\n'
    return lines % (offset, 1e3 * sync, 1e6 * call, 1e3 * took[-1], 100 * busy / SECONDS)


def small_syncs(file, begin):
    times = []
    until(begin + FILL)
    while now() < begin + SECONDS:
        began = now()
        os.pwrite(file, b'Z' * 4096, len(times) * 4096)
        os.fsync(file)
        times.append('%.0f' % (1e3 * (now() - began)))
        time.sleep(REST)
    return 'small_syncs_ms: %s\n' % ' '.join(times)


def idle():
    """Seconds that the processor has been idle."""
    with open('/proc/stat') as file:
        return sum(map(int, file.readline().split()[4:6])) / 100


def bursts(files, begin):
    times, rests, busy, block = [], [], 0, b'Z' * BLOCK
    for file, at in zip(files, BURSTS_AT):
        until(begin + at)
        rested, busy = idle(), busy - time.process_time()
        for offset in range(0, BURST_BYTES, BLOCK):
            os.pwrite(file, block, offset)
        times.append('%.0f' % (1e3 * (now() - begin - at)))
        busy += time.process_time()
        rests.append('%.0f' % (1e3 * (idle() - rested)))
        times.append('%.0f' % (1e3 * synced(file)))
    call = busy * BLOCK / (BURST_BYTES * len(files))
    lines = 'bursts_and_syncs_ms: %s\nidle_in_bursts_ms: %s\nburst_call_us: %.0f\n'
    return lines % (' '.join(times), ' '.join(rests), 1e6 * call)


def started(program, file, begin, pipe):
    """Runs in a process of its own, whose words go to the pipe."""
    child = os.fork()
    if child == 0:
        os.write(pipe, program(file, begin).encode())
        os._exit(0)
    return child


def has_ended(children):
    while children and os.waitpid(children[0], os.WNOHANG)[0]:
        children.pop(0)
    return not children


def decisions(begin):
    """By second: [pauses, their ms, updates of the rate limit, the limit in pages a second at the last of them]."""
    found = {}
    with open(TRACE + 'trace') as trace:
        for line in trace:
            if line.startswith('#'):
                continue
            head, _, body = line.partition(': ')
            name, _, body = body.partition(': ')
            own = found.setdefault(int(float(head.split()[-1]) - begin), [0, 0, 0, 0])
            values = dict(word.split('=', 1) for word in body.split() if '=' in word)
            if name == EVENTS[1]:
                own[2] += 1
                own[3] = int(values['dirty_ratelimit']) // 4
            elif int(values['pause']) > 0:
                own[0] += 1
                own[1] += int(values['pause'])
    return found


def main():
    put(TRACE + 'trace_clock', 'mono')
    put(TRACE + 'buffer_size_kb', '32768')
    number = open('/sys/block/dm-0/dev').read().strip()
    paths = '/proc/vmstat', '/sys/block/slow/stat', '/sys/kernel/debug/bdi/%s/stats' % number
    files = [os.open(path, os.O_RDONLY) for path in paths]
    programs = [(stream, opened('/tmp/slow/stream'))]
    if LOAD == 'small-sync':
        programs.append((small_syncs, opened('/tmp/slow/small')))
    if LOAD == 'burst':
        programs.append((bursts, [opened('/tmp/faster/%d' % at) for at in BURSTS_AT]))
    # The second cleans what the first dirtied. The rest is longer than the flusher's period, so that its first run comes 5 s
    # after the first write.
    for rest in 1, 6:
        os.system('sync')
        time.sleep(rest)
    inodes, unused = map(int, open('/proc/sys/fs/inode-nr').read().split()[:2])
    print('# inodes: %d' % (inodes - unused))
    first = look(*files)
    reader, pipe = os.pipe()
    switch('1')
    begin = float(int(now()) + 1)
    until(begin - 0.1)
    print('# ticks_at_begin: %d' % (ticks() + HZ * (begin - now())))
    worked = workers_ns()
    children = [started(program, file, begin, pipe) for program, file in programs]
    rows = []
    while not rows or not has_ended(children):
        until(begin + len(rows))
        rows.append(look(*files))
    worked = workers_ns() - worked
    switch('0')
    print('# worker_ns_per_page: %d' % (worked / (rows[-1]['written'] - first['written'])))
    if LOAD == 'small-sync':
        for program, file in programs:
            print('# places_of_%s: %s' % (program.__name__, places(file)))
    for line in os.read(reader, 65536).decode().splitlines():
        print('#', line)
    decided = decisions(begin)
    print('second dirty accepted written disk limit background bandwidth pauses pause_ms updates rate')
    for second, row in enumerate(rows):
        for sum_ in ('accepted', 'written', 'disk'):
            row[sum_] -= first[sum_]
        print(second, *row.values(), *decided.get(second, [0, 0, 0, 0]))


main()
