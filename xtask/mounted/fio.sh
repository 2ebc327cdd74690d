fio --name=verify --directory="$1" --rw=randrw --bsrange=512-64k --size=24m --verify=crc32c --do_verify=1 \
    --verify_state_save=0 --fsync=97 --minimal > "$2/out"
fio --name=seq --directory="$1" --rw=write --bs=256k --size=64m --verify=crc32c --do_verify=1 \
    --verify_state_save=0 --end_fsync=1 --minimal > "$2/out2"
