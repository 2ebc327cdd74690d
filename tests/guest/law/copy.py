"""A copy over NFS to a server of the same guest, and what the server had written by then.

A client sends a file in windows at a rate: unstable WRITEs of 128 KiB, then a COMMIT. While it waits for a COMMIT it sends
nothing. It keeps no page of its own, so all dirty pages are the server's.

Prints lines `# NAME: VALUE` and a table: a line is a window. `left` is what the server had taken and the disk had not, in bytes,
when the COMMIT was sent; `dirty` is the kernel's own count of dirty pages and pages under writeback, in bytes.
"""
import os
import select
import socket
import struct
import sys
import time

PORT, MOUNT_PORT, EXPORT, RATE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
WRITE, WINDOWS, WINDOW, IN_FLIGHT = 131072, 4, 800 * 131072, 64
NFS, MOUNT = (100003, 3), (100005, 3)
now = time.monotonic


def opaque(data):
    return struct.pack('>I', len(data)) + data + bytes(-len(data) % 4)


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.got = 0, b''

    def send(self, program, procedure, arguments):
        self.number += 1
        user = struct.pack('>I', 0) + opaque(b'guest') + struct.pack('>III', 0, 0, 0)
        head = struct.pack('>IIIIII', self.number, 0, 2, *program, procedure)
        call = head + struct.pack('>I', 1) + opaque(user) + struct.pack('>II', 0, 0) + arguments
        self.socket.sendall(struct.pack('>I', 0x80000000 | len(call)) + call)

    def has_reply(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def bytes(self, count):
        while len(self.got) < count:
            more = self.socket.recv(65536)
            if not more:
                raise SystemExit('the server closed the connection')
            self.got += more
        taken, self.got = self.got[:count], self.got[count:]
        return taken

    def reply(self):
        (length,) = struct.unpack('>I', self.bytes(4))
        body = self.bytes(length & 0x7fffffff)
        said = struct.unpack_from('>%dI' % min(6, len(body) // 4), body)
        if len(said) < 6 or said[2] or said[5]:
            raise SystemExit('refused: %r' % (said,))
        status, result = struct.unpack_from('>I', body, 24)[0], body[28:]
        if status:
            raise SystemExit('status %d' % status)
        return result

    def call(self, program, procedure, arguments):
        self.send(program, procedure, arguments)
        return self.reply()


def handle(result):
    (length,) = struct.unpack_from('>I', result)
    return result[4:4 + length]


def connected(port):
    while True:
        try:
            return Connection(port)
        except OSError:
            time.sleep(0.1)


def taken_by_disk():
    """Bytes that the disk has taken since the guest's start."""
    with open('/sys/block/slow/stat') as file:
        return int(file.read().split()[6]) * 512


def dirty():
    with open('/proc/vmstat') as file:
        counters = dict(line.split() for line in file)
    return 4096 * (int(counters['nr_dirty']) + int(counters['nr_writeback']))


def main():
    root = handle(connected(MOUNT_PORT).call(MOUNT, 1, opaque(EXPORT.encode())))
    nfs = connected(PORT)
    # UNCHECKED, with a mode alone.
    created = nfs.call(NFS, 8, opaque(root) + opaque(b'file') + struct.pack('>I', 0) + struct.pack('>IIIIIII', 1, 0o600, 0, 0, 0, 0, 0))
    file = handle(created[4:])
    block = os.urandom(WRITE)
    time.sleep(7)
    at_begin, begin, first, dirty_max = taken_by_disk(), now(), None, 0
    offset, times, rows = 0, [], []
    for window in range(WINDOWS):
        flying, due = 0, now()
        for _ in range(WINDOW // WRITE):
            time.sleep(max(0, due - now()))
            due = max(due, now() - WRITE / RATE) + WRITE / RATE
            while flying and (flying >= IN_FLIGHT or nfs.has_reply()):
                nfs.reply()
                flying -= 1
            nfs.send(NFS, 7, opaque(file) + struct.pack('>QII', offset, WRITE, 0) + opaque(block))
            flying += 1
            offset += WRITE
            if first is None and taken_by_disk() > at_begin:
                first = offset
        while flying:
            nfs.reply()
            flying -= 1
        left, own = offset - (taken_by_disk() - at_begin), dirty()
        dirty_max = max(dirty_max, own)
        asked = now()
        nfs.call(NFS, 21, opaque(file) + struct.pack('>QI', 0, 0))
        times.append(now() - asked)
        rows.append('%d %.0f %d %d' % (window, 1e3 * times[-1], left, own))
    took = now() - begin
    print('# copied_bytes: %d' % offset)
    print('# seconds: %.2f' % took)
    print('# mb_per_s: %.2f' % (offset / took / 1e6))
    print('# mean_commit_ms: %.0f' % (1e3 * sum(times) / len(times)))
    print('# received_before_disk_mb: %.1f' % ((first or offset) / 1e6))
    print('# dirty_at_commit_max_mb: %.1f' % (dirty_max / 1e6))
    print('window commit_ms left dirty')
    print('\n'.join(rows))


main()
