# Linux's client mounts, writes, reads back after a new mount, and lists; the server's disk has the same bytes.
# limit: 600
all_mounted
head -c 3000000 /dev/urandom > $WORK/bytes
cp $WORK/bytes /mnt/a/file
mkdir -p /mnt/a/one/two
ln -s ../file /mnt/a/one/link
ln /mnt/a/file /mnt/a/one/second
umount /mnt/a
mounted /mnt/a
cmp $WORK/bytes /mnt/a/one/link
same "$(stat -c %h /mnt/a/one/second)" 2
same "$(cd /mnt/a; find . ! -path '*lost+found*' | sort | xargs)" ". ./file ./one ./one/link ./one/second ./one/two"
cmp $WORK/bytes $DATA/file
fails mkdir /mnt/a/one/two 2> /dev/null
rm -r /mnt/a/one /mnt/a/file
same "$(ls /mnt/a)" lost+found
echo "= $(grep -o 'rsize=[0-9]*,wsize=[0-9]*' /proc/mounts | head -n 1)"
