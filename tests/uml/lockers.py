# lockers.py KIND FILE HELD COUNT STOP ROUNDS: takes a lock of FILE and gives it back COUNT times, or until there is a file STOP. Under the lock it adds
# one to the number in FILE, and makes the folder HELD, on a file system that all machines share: a lock that two have shows at once. The file
# ROUNDS grows by a byte for each turn. Ends with 1 after an error or a double grant.
import fcntl, os, struct, sys

OFD_SETLKW = 38
kind, path, held, count, stop, rounds = sys.argv[1:]
opened = os.open(path, os.O_RDWR)
turns = open(rounds, "ab", buffering=0)


def lock(type):
    if kind == "flock":
        fcntl.flock(opened, {fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_UNLCK: fcntl.LOCK_UN}[type])
    else:
        how = OFD_SETLKW if kind == "ofd" else fcntl.F_SETLKW
        fcntl.fcntl(opened, how, struct.pack("hhqqi4x", type, 0, 0, 0, 0))


for _ in range(int(count)):
    if os.path.exists(stop):
        break
    lock(fcntl.F_WRLCK)
    os.mkdir(held)
    value = int(os.pread(opened, 100, 0) or b"0")
    os.pwrite(opened, b"%d\n" % (value + 1), 0)
    os.fsync(opened)
    os.rmdir(held)
    turns.write(b".")
    lock(fcntl.F_UNLCK)
