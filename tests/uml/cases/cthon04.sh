# Connectathon's four groups by Linux's own client, at version 4.2 and at 3; its locks at 4.2 alone, as version 3 has none here.
cp -a "$SUITES/cthon04" "$WORK/suite"
disk "$WORK/disk"
serve "$WORK/disk"
machine c1 2
for version in 4.2 3; do
    case $version in
        3) options=$V3 groups="b g s" ;;
        *) options=vers=$version groups="b g s l" ;;
    esac
    on c1 "mount -t nfs -o $options $HOST:/ /mnt/a"
    for group in $groups; do
        begin c1 "cd /run/shared/suite; mkdir /mnt/a/$group; NFSTESTDIR=/mnt/a/$group ./runtests -$group -t /mnt/a/$group"
        eventually 600 has_ended "$BEGUN"
        ended "$BEGUN" > "$WORK/said" || { cat "$WORK/said"; wrong "group $group at version $version"; }
        # A group ends with these words, and a part that was not built is a failure.
        grep -qi 'tests completed\|Congratulations' "$WORK/said" || { cat "$WORK/said"; wrong "group $group at version $version has no end"; }
        echo "group $group at version $version: right"
    done
    on c1 'rm -rf /mnt/a/*; umount /mnt/a'
done
alive
stop_server
