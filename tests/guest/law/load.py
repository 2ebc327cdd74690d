"""A writer of 64 KiB at a time at full speed, and an fsync; the kernel's counters and its own decisions, second by second.

Prints lines `# NAME: VALUE` and a table. A line of the table has the state at a second and what the kernel decided in the
second that follows. Pages: dirty or under writeback, accepted and written since the start. The disk's pages are exact; `written`
follows in steps, because ext4 ends the writeback of a whole extent at once.
"""
import os
import sys
import time

SECONDS = int(sys.argv[1])
BLOCK = 65536
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


def write(file, begin, pipe):
    """Runs in a process of its own and never returns."""
    block, offset, took = b'Z' * BLOCK, 0, []
    time.sleep(max(0, begin - now()))
    busy, began = time.process_time(), now()
    while began < begin + SECONDS:
        os.pwrite(file, block, offset)
        offset += BLOCK
        end = now()
        took.append(end - began)
        began = end
    busy = time.process_time() - busy
    began = now()
    os.fsync(file)
    sync = now() - began
    took.sort()
    call = took[len(took) // 10]
    lines = 'accepted_bytes: %d\nsync_ms: %.1f\ncall_us: %.0f\nlongest_call_ms: %.1f\nwriter_cpu_percent: %.1f\n'
    os.write(pipe, (lines % (offset, 1e3 * sync, 1e6 * call, 1e3 * took[-1], 100 * busy / SECONDS)).encode())
    os._exit(0)


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
    stream = os.open('/tmp/mnt/stream', os.O_WRONLY | os.O_CREAT, 0o600)
    os.system('sync')
    time.sleep(2)
    first = look(*files)
    reader, pipe = os.pipe()
    switch('1')
    begin = float(int(now()) + 1)
    child = os.fork()
    if child == 0:
        write(stream, begin, pipe)
    rows = []
    while not rows or not os.waitpid(child, os.WNOHANG)[0]:
        time.sleep(max(0, begin + len(rows) - now()))
        rows.append(look(*files))
    switch('0')
    for line in os.read(reader, 1000).decode().splitlines():
        print('#', line)
    decided = decisions(begin)
    print('second dirty accepted written disk limit background bandwidth pauses pause_ms updates rate')
    for second, row in enumerate(rows):
        for sum_ in ('accepted', 'written', 'disk'):
            row[sum_] -= first[sum_]
        print(second, *row.values(), *decided.get(second, [0, 0, 0, 0]))


main()
