# Callers from another machine: refused without --allow; root squashed; `=ro` reads only; ports above 1023 refused; other users
# have their own rights; Kerberos and UDP are refused politely.
# limit: 600
[ $SERVER = afflux ] || skip "these are our flags"
disk /dev/vdc $DATA
chmod 755 $DATA
ip netns add client
later "ip netns del client"
ip link add toclient type veth peer name toserver netns client
later "ip link del toclient"
ip addr add 192.0.2.1/24 dev toclient
ip link set toclient up
ip -n client addr add 192.0.2.2/24 dev toserver
ip -n client addr add 192.0.2.3/24 dev toserver
ip -n client link set toserver up
ip -n client link set lo up
mkdir -p /mnt/a
client() { nsenter --net=/run/netns/client "$@"; }
try() { client timeout 60 mount -t nfs -o "vers=3,tcp,nolock,soft,timeo=50,retrans=1,retry=0,port=$PORT,mountport=$PORT,mountproto=tcp$1" 192.0.2.1:/ /mnt/a; }
open() {
    systemctl stop served 2> /dev/null || true
    systemctl reset-failed served 2> /dev/null || true
    mkdir -p /var/tmp/state
    systemd-run -q --unit=served afflux serve $DATA --listen 0.0.0.0:$PORT --cache 64MiB --state /var/tmp/state --control /run/served.sock "$@"
    answers
}
later "systemctl stop served; umount -f -l /mnt/a"

open
began=$SECONDS
fails try "" 2> $WORK.error
echo "= without --allow ($((SECONDS - began)) s): $(tail -n 1 $WORK.error)"
systemctl -q is-active served

open --allow 192.0.2.0/24
try ""
echo secret > $DATA/of-root; chmod 600 $DATA/of-root
install -d -o 1000 -g 1000 -m 750 $DATA/of-user
install -d -m 1777 $DATA/shared
fails client cat /mnt/a/of-root 2> /dev/null
fails client ls /mnt/a/of-user 2> /dev/null
client touch /mnt/a/shared/by-root
same "$(stat -c %u:%g $DATA/shared/by-root)" 65534:65534
as() { client setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }
as 1000 sh -c 'echo mine > /mnt/a/of-user/file'
same "$(stat -c %u:%g $DATA/of-user/file)" 1000:1000
fails as 1001 cat /mnt/a/of-user/file 2> /dev/null
fails as 1001 rm -f /mnt/a/shared/by-root 2> /dev/null
fails client chown 0 /mnt/a/shared/by-root 2> /dev/null
as 1000 sh -c 'echo mode > /mnt/a/of-user/read-only; chmod 444 /mnt/a/of-user/read-only'
fails as 1000 sh -c 'echo no > /mnt/a/of-user/read-only' 2> /dev/null
umount /mnt/a

fails try ,noresvport 2> $WORK.error
echo "= from a port above 1023: $(tail -n 1 $WORK.error)"

open --allow 192.0.2.0/24 --allow 192.0.2.2=ro
try ""
client cat /mnt/a/shared/by-root
fails as 1000 touch /mnt/a/of-user/more 2> $WORK.error
echo "= a write where =ro allows reads: $(sed 's/.*: //' $WORK.error)"
umount /mnt/a

open --allow 192.0.2.0/24
for flavour in krb5 krb5i krb5p none; do
    began=$SECONDS
    if try ",sec=$flavour" 2> $WORK.error; then
        echo "= sec=$flavour: mounted, $(grep -o 'sec=[a-z0-9]*' <(client cat /proc/mounts | grep 192.0.2.1) | head -n 1)"
        umount /mnt/a
    else
        echo "= sec=$flavour ($((SECONDS - began)) s): $(tail -n 1 $WORK.error)"
    fi
done
began=$SECONDS
client timeout 60 mount -t nfs -o port=$PORT,soft,timeo=50,retrans=1,retry=0 192.0.2.1:/ /mnt/a
echo "= without a version ($((SECONDS - began)) s): $(client cat /proc/mounts | grep -o 'vers=4[0-9.]*' | head -n 1)"
umount /mnt/a
fails client timeout 60 mount -t nfs -o vers=3,udp,nolock,soft,timeo=50,retrans=1,retry=0,port=$PORT,mountport=$PORT 192.0.2.1:/ /mnt/a 2> $WORK.error
echo "= over UDP ($((SECONDS - began)) s): $(tail -n 1 $WORK.error)"
systemctl -q is-active served
