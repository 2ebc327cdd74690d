# The package under systemd: installed and not started, enabled, started, reloaded, refused with a wrong file, restarted by an
# upgrade while a client writes, removed, purged with nothing left.
# limit: 900
[ $SERVER = afflux ] || skip "this is about our package"
all_files() { find / -xdev \( -path /proc -o -path /sys -o -path /var/lib/guest -o -path /var/tmp -o -path /var/log \
    -o -path /var/lib/dpkg -o -path /var/cache -o -path /tmp -o -path /mnt -o -path /kit -o -path /srv \) -prune -o -print | sort;
    find /run -xdev -iname '*afflux*' | sort; }
dpkg --purge afflux > /dev/null 2>&1 || true
later "dpkg --purge afflux"
mkdir -p $WORK
later "rm -rf $WORK"
all_files > $WORK/before

dpkg -i /kit/afflux-older.deb > $WORK/out 2>&1 || { cat $WORK/out; wrong "the package cannot be installed"; }
same "$(systemctl is-active afflux || true)" inactive "after the installation"
same "$(systemctl is-enabled afflux || true)" disabled "after the installation"
dpkg --verify afflux

disk /dev/vdc $DATA
configured
systemctl enable --now afflux 2> /dev/null || { journalctl -u afflux -o cat -n 20; wrong "the service does not start"; }
systemctl -q is-active afflux
systemctl show -P StatusText afflux | sed 's/^/= status: /'
mounted /mnt/a
echo kept > /mnt/a/file
sync /mnt/a/file

# Reload: a rule and a knob at once; a wrong file changes nothing.
before=$(systemctl show -P MainPID afflux)
echo 'budget_ms = 2000' >> /etc/afflux/config.toml
systemctl reload afflux
eventually 20 bash -c "afflux stat --json 2> /dev/null | grep -q 2000 || journalctl -q -u afflux -o cat | grep -q budget_ms"
cp /etc/afflux/config.toml $WORK/config
echo 'no_such_knob = 1' >> /etc/afflux/config.toml
fails systemctl reload afflux 2> /dev/null
same "$(systemctl show -P MainPID afflux)" "$before" "a failed reload"
systemctl -q is-active afflux
cp $WORK/config /etc/afflux/config.toml
systemctl reload afflux
echo more >> /mnt/a/file

# The upgrade, while a client writes.
head -c 24000000 /dev/urandom > $WORK/bytes
( cp $WORK/bytes /mnt/a/copy; sync /mnt/a/copy ) &
copy=$!
sleep 2
dpkg -i --force-confold /kit/afflux.deb > $WORK/out 2>&1 || { cat $WORK/out; wrong "the upgrade"; }
wait $copy
[ "$(systemctl show -P MainPID afflux)" != "$before" ] || wrong "the upgrade did not restart the server"
systemctl -q is-active afflux
cmp $WORK/bytes /mnt/a/copy
cmp $WORK/bytes $DATA/copy
same "$(cat /mnt/a/file | xargs)" "kept more"

# A stop writes what clients had not committed.
head -c 8000000 /dev/urandom > /mnt/a/late
sha256sum < /mnt/a/late > $WORK/late
umount /mnt/a
began=$SECONDS
systemctl stop afflux
echo "= the stop takes $((SECONDS - began)) s"
same "$(systemctl show -P Result afflux)" success
same "$(sha256sum < $DATA/late)" "$(cat $WORK/late)"

systemctl start afflux
dpkg --remove afflux > $WORK/out 2>&1 || { cat $WORK/out; wrong "the removal"; }
fails systemctl -q is-active afflux
[ -e /etc/afflux/config.toml ] || wrong "the removal took the configuration"
dpkg --purge afflux > $WORK/out 2>&1 || { cat $WORK/out; wrong "the purge"; }
umount $DATA
all_files > $WORK/after
diff $WORK/before $WORK/after > $WORK/left || { grep '^[<>]' $WORK/left; wrong "the purge leaves or takes files"; }
fails systemctl cat afflux.service 2> /dev/null
