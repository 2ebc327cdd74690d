import mmap, struct, sys, time
path, size, ends = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
file = open(path, 'w+b')
file.truncate(size)
mapped = mmap.mmap(file.fileno(), size)
turn = 0
while turn == 0 or time.monotonic() < ends:
    for page in range(size // 4096):
        at = page * 4096
        before = struct.unpack_from('<QQ', mapped, at)
        if before != ((page, turn) if turn else (0, 0)):
            sys.exit(f'page {page} has {before} after round {turn}')
        struct.pack_into('<QQ', mapped, at, page, turn + 1)
        if page % 256 == 0:
            print('.', flush=True)
    turn += 1
mapped.flush()
print(turn, flush=True)
