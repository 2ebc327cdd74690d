# Uncommitted bytes die with the server; the client sees the changed verifier at its COMMIT, and sends them again.
# limit: 300
[ $SERVER = afflux ] || skip "only our server can be killed"
CACHE=256MiB all_mounted
head -c 16000000 /dev/urandom > $WORK/bytes
control set budget_ms=60000 dirty_expire_centisecs=100000 dirty_writeback_centisecs=100000 > /dev/null || true
# Sent, and not committed: the file stays open.
exec 7<> /mnt/a/file
cat $WORK/bytes >&7
python3 - <<'P'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
descriptor = os.open("/mnt/a/file", os.O_WRONLY)
if libc.sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), 7):
    raise OSError(ctypes.get_errno(), "sync_file_range")
P
unwritten=$(control stat --json 2> /dev/null | python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin))[:400])' || true)
killed
lost=$(cmp $WORK/bytes $DATA/file 2>&1 | head -n 1 || true)
serve $DATA
sync /mnt/a/file
cmp $WORK/bytes $DATA/file
exec 7>&-
cmp $WORK/bytes /mnt/a/file
echo "= before the second sending: ${lost:-all bytes were on the disk already}"
