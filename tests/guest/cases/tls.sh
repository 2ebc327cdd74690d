# Linux's own client through TLS, whose handshakes tlshd makes: versions 4.2 and 3, certificates of clients, a killed server, and a server
# that answers nobody in the clear.
# limit: 1800
[ $SERVER = afflux ] || skip "knfsd needs certificates in a keyring"
command -v tlshd > $WORK.tlshd || skip "this Debian has no tlshd"
OPTIONS=hard
CLIENT=localhost
disk /dev/vdc $DATA
mkdir -p $WORK /mnt/c
later "rm -rf $WORK $WORK.tlshd"
cd $WORK
# An authority, a certificate of the server with its names, one of a client, and one of a client that nobody knows.
authority() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout $1.key -out $1.pem \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}
issued() {
    local by=$1 name=$2 use=$3
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout $name.key -out $name.csr
    printf '%s\n' "subjectAltName=DNS:localhost,DNS:guest,IP:127.0.0.1" "extendedKeyUsage=$use" keyUsage=digitalSignature > $name.ext
    openssl x509 -req -in $name.csr -CA $by.pem -CAkey $by.key -CAcreateserial -days 2 -extfile $name.ext -out $name.pem
}
(
    set +e
    authority own
    authority strange
    issued own server serverAuth
    issued own client clientAuth
    issued strange stranger clientAuth
) > made 2>&1
openssl verify -CAfile own.pem server.pem client.pem > verified 2>&1 && openssl verify -CAfile strange.pem stranger.pem >> verified 2>&1 ||
    { cat made verified; wrong "no certificates"; }
shaking_hands() {
    printf '%s\n' '[authenticate.client]' "x509.truststore=$WORK/$1.pem" "x509.certificate=$WORK/$2.pem" "x509.private_key=$WORK/$2.key" \
        > /etc/tlshd.conf
    systemctl restart tlshd
}
chmod 600 *.key
modprobe tls
later "systemctl stop tlshd"
shaking_hands own client
secured() { mount -t nfs -o "$OPTIONS,port=$PORT,$1" "localhost:/" "$2" && later "umount -f -l $2"; }
mkdir -p /mnt/a /mnt/b

serve $DATA --tls $WORK/server.pem $WORK/server.key --tls-required
fails secured sec=sys /mnt/a 2> refused
echo "in the clear: $(cat refused)"
secured xprtsec=tls /mnt/a
grep -q ' /mnt/a nfs4 .*vers=4.2.*xprtsec=tls' /proc/mounts || wrong "$(grep /mnt/a /proc/mounts)"
head -c 5000000 /dev/urandom > bytes
cp bytes /mnt/a/file
umount /mnt/a
secured xprtsec=tls /mnt/a
cmp bytes /mnt/a/file
cmp bytes $DATA/file
# Two mounts with connections of their own exclude each other, and the wait ends by a call of the server.
secured xprtsec=tls,nosharecache,nconnect=2 /mnt/b
exec 5<> /mnt/a/file
flock 5
code=0
flock -n /mnt/b/file true 5>&- || code=$?
same $code 1 "flock of the second mount"
flock /mnt/b/file touch $WORK/got 5>&- &
sleep 2
[ ! -e got ] || wrong "the second mount did not wait"
exec 5>&-
eventually 60 test -e got
wait
# The connection of a killed server is made anew, with its handshake. What the client has not committed it sends again.
(cd /mnt/a && for number in $(seq 200); do echo $number > made.$number; done) &
eventually 60 test -e /mnt/a/made.20
killed
systemd-run -q --unit=served --property=KillMode=process --property=LimitMEMLOCK=infinity afflux serve $DATA --listen $LISTEN:$PORT \
    --cache 64MiB --state /var/tmp/state --control /run/served.sock --tls $WORK/server.pem $WORK/server.key --tls-required
answers
wait
same "$(cat /mnt/b/made.* | sort -n | xargs)" "$(seq 200 | xargs)"
control stat --verbose > stat
grep -i tls stat || true
umount /mnt/a
umount /mnt/b
ended

# Only clients with a certificate of the authority.
serve $DATA --tls $WORK/server.pem $WORK/server.key --tls-required --tls-clients $WORK/own.pem
secured xprtsec=mtls /mnt/a
cmp bytes /mnt/a/file
umount /mnt/a
fails timeout 60 mount -t nfs -o soft,retry=0,port=$PORT,xprtsec=tls localhost:/ /mnt/a 2> refused
echo "without a certificate: $(cat refused)"
shaking_hands own stranger
fails timeout 60 mount -t nfs -o soft,retry=0,port=$PORT,xprtsec=mtls localhost:/ /mnt/a 2> refused
echo "with another authority's: $(cat refused)"
alive
ended

# A client does not trust a server of another authority.
shaking_hands strange stranger
serve $DATA --tls $WORK/server.pem $WORK/server.key
fails timeout 60 mount -t nfs -o soft,retry=0,port=$PORT,xprtsec=tls localhost:/ /mnt/a 2> refused
echo "a server of another authority: $(cat refused)"
shaking_hands own client
# Version 3, whose MOUNT goes in the clear.
mount -t nfs -o hard,vers=3,nolock,tcp,port=$PORT,mountport=$PORT,mountproto=tcp,xprtsec=tls localhost:/ /mnt/c
later "umount -f -l /mnt/c"
cmp bytes /mnt/c/file
rm /mnt/c/file
[ ! -e $DATA/file ] || wrong "the file is still there"
umount /mnt/c
alive
