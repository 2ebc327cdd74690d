# The protocol's rules, asked of the server: `cargo run -p afflux-nfs-client --bin protocol-check`.
# limit: 900
[ -x /kit/bin/protocol-check ] || skip "protocol-check is not in the kit"
disk /dev/vdc $DATA
mkdir -p $WORK
later "rm -rf $WORK"
code=0
case $SERVER in
    afflux) serve $DATA; /kit/bin/protocol-check 127.0.0.1:$PORT / > $WORK/out || code=$? ;;
    knfsd)
        knfsd $DATA
        mount=$(rpcinfo -p 127.0.0.1 | awk '$1 == 100005 && $2 == 3 && $3 == "tcp" { print $4; exit }')
        /kit/bin/protocol-check 127.0.0.1:2049 $DATA --mount "127.0.0.1:$mount" > $WORK/out || code=$? ;;
esac
tail -n 1 $WORK/out | sed 's/^/= /'
grep '^broken' $WORK/out | sed 's/^/= /' || true
grep -q "rules hold" $WORK/out || { cat $WORK/out; wrong "it did not run to its end"; }
# What Linux's own server does otherwise is a result, not a fault of ours.
[ $SERVER = knfsd ] || same $code 0
