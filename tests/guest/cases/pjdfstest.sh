# pjdfstest on the mount. Its failures are the answer; those of NFS itself stand below.
# limit: 2400
[ -x /kit/bin/pjdfstest ] || skip "pjdfstest is not in the kit"
all_mounted
chmod 755 /mnt/a
printf '[settings]\nnaptime = 1.1\nallow_remount = false\n[dummy_auth]\nentries = [["nobody", "nogroup"], ["daemon", "daemon"], ["bin", "bin"]]\n' > $WORK/users.toml
cd /mnt/a
/kit/bin/pjdfstest -c $WORK/users.toml -p /mnt/a > $WORK/out 2>&1 || true
cd /
grep '^Summary' $WORK/out | sed 's/^/= /'
grep ' FAILED$' $WORK/out | cut -d' ' -f1 | sort | sed 's/^/= failed: /'
grep -A4 panicked $WORK/out | head -n 60 || true
same "$(grep ' FAILED$' $WORK/out | cut -d' ' -f1 | sort | xargs)" "unlink::open_file_not_freed"
