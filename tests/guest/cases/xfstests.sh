# The tests of xfstests that `tests/guest/xfstests` names, over Linux's client, with the verdict that the list has for this server:
# xfstests, or xfstests:NUMBER,NUMBER... for a few. With xfstests:4.2 or xfstests:4.1, and numbers behind it, the list is
# `tests/guest/xfstests-4`. A list also says where knfsd differs from ours, and why a test fails.
# limit: 7200
[ -d /kit/suite ] || skip "xfstests is not in the kit: --xfstests DIR"
disk /dev/vdc $DATA
disk /dev/vdd /srv/other
tests_of=/kit/xfstests ports=port=$PORT,mountport=$PORT,mountproto=tcp
case $ARG in
    4.*) OPTIONS=vers=${ARG%%,*},tcp,hard tests_of=/kit/xfstests-4 ports=port=$PORT numbers=${ARG#4.?} ;;
    *) numbers=$ARG ;;
esac
case $SERVER in
    afflux)
        serve $DATA /srv/other
        control set nfs_xattrs=1
        tests=/data scratch=/other options=$OPTIONS,$ports
        ;;
    knfsd) knfsd $DATA /srv/other; tests=$DATA scratch=/srv/other options=$OPTIONS ;;
esac
mkdir -p $WORK/upper $WORK/work $WORK/suite /mnt/a /mnt/b
later "rm -rf $WORK"
mount -t overlay -o lowerdir=/kit/suite,upperdir=$WORK/upper,workdir=$WORK/work overlay $WORK/suite
later "umount -f -l /mnt/a /mnt/b; umount -l $WORK/suite"
for user in fsgqa fsgqa2 123456-fsgqa; do
    ! grep -q "^$user:" /etc/passwd || continue
    number=$((61000 + $(wc -l < /etc/passwd)))
    echo "$user:*:$number:$number::/tmp:/bin/bash" >> /etc/passwd
    echo "$user:*:$number:" >> /etc/group
done
cat > $WORK/config <<C
export FSTYP=nfs NFS_MOUNT_OPTIONS="-o $options" RESULT_BASE=$WORK/results
export TEST_DEV=127.0.0.1:$tests TEST_DIR=/mnt/a SCRATCH_DEV=127.0.0.1:$scratch SCRATCH_MNT=/mnt/b
C
if [ -n "$numbers" ]; then
    for number in ${numbers//,/ }; do grep "^generic/$number" $tests_of || echo "generic/$number"; done > $WORK/list
else
    grep '^generic/' $tests_of > $WORK/list
fi
cd $WORK/suite
# A test that does not end is a failure, and the next one goes on. Some make thousands of files or of calls.
sed -i 's,exec ./$seq,exec timeout -k 10 $(case $seq in */089 | */247 | */354 | */391 | */471 | */676 | */736) echo 1500 ;; *) echo 240 ;; esac) ./$seq,' check
grep -q 'echo 1500' check
# One of the tests prints the number of a descriptor, so none of ours may be open.
LD_LIBRARY_PATH=$WORK/suite/libraries HOST_OPTIONS=$WORK/config ./check -nfs --exact-order $(cut -d ' ' -f 1 $WORK/list) 3>&- 2>&1 | tee $WORK/out || true
cd /
[ $SERVER != afflux ] || alive
awk -v server=$SERVER '
    FNR == NR { told[$1] = /\[not run\]/ ? "left-out" : / [0-9]+s$/ ? "passes" : "fails"; next }
    {
        test = $1; ours = $2 ? $2 : "passes"; knfsd = $3 ? $3 : "passes"
        $1 = $2 = $3 = ""
        wanted = server == "knfsd" ? knfsd : ours
        verdict = test in told ? told[test] : "not-reached"
        count[verdict]++
        by_chance = wanted == "either" && (verdict == "passes" || verdict == "fails")
        if (by_chance) print "= " test " " verdict ", by chance"
        else if (verdict != wanted) { wrong++; print "= " test " " verdict ", not " wanted }
        if (ours != knfsd) print "= differs: " test ": ours " ours ", knfsd " knfsd ":" $0
    }
    END {
        printf "= %d pass, %d fail, %d do not apply, %d not reached\n", count["passes"], count["fails"], count["left-out"], count["not-reached"]
        exit wrong > 0
    }' $WORK/out $WORK/list || wrong "verdicts that the list does not have"
