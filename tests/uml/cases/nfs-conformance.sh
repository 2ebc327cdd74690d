# nfs-conformance by Linux's own client at version 4.2: each program passes or leaves itself out.
cp -a "$SUITES/nfs-conformance" "$WORK/suite"
disk "$WORK/disk"
serve "$WORK/disk"
machine c1 2
on c1 "mount -t nfs -o vers=4.2 $HOST:/ /mnt/a"
passed=0
for program in "$WORK"/suite/op_*.c; do
    name=$(basename "$program" .c)
    [ -x "$WORK/suite/$name" ] || wrong "$name is not built"
    code=0
    on c1 "mkdir /mnt/a/$name; cd /run/shared/suite; timeout -k 5 200 ./$name -d /mnt/a/$name" > "$WORK/said" 2>&1 || code=$?
    case $code in
        0) passed=$((passed + 1)) ;;
        77) echo "left out: $name: $(tail -n 1 "$WORK/said")" ;;
        *) cat "$WORK/said"; wrong=("${wrong[@]:-}" "$name") ;;
    esac
done
echo "$passed programs pass"
[ -z "${wrong[*]:-}" ] || wrong "${wrong[*]}"
[ $passed -gt 50 ] || wrong "too few programs ran"
alive
stop_server
