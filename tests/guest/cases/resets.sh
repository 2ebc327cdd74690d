# The server's machine is reset under the load of a client on the host, again and again: each COMMITted byte is there. The figures say
# what else the client lost, must send again, and waited for: resets:NUMBER
# limit: 600
LISTEN=10.0.2.15 CLIENT=10.0.2.2
mkdir -p $DATA
[ $STAGE != 1 ] || mkfs.ext4 -q -F /dev/vdc
mount /dev/vdc $DATA
later "umount -l $DATA"
case $SERVER in
    afflux)
        place="$PORT $PORT /"
        serve $DATA --any-port --allow $CLIENT --squash none --arena /dev/shm/arena
        ;;
    knfsd)
        place="2049 20048 $DATA"
        printf '[mountd]\nport=20048\n' > /etc/nfs.conf.d/port.conf
        knfsd $DATA
        ;;
esac
next_stage
rounds=$(host load $SERVER $place ${ARG:-3})
for round in $rounds; do
    echo "= $round"
    case $round in *'"committed_lost":0,'*) ;; *) wrong "COMMITted bytes are lost" ;; esac
done
