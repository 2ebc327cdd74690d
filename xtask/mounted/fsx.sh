# fsx 0.3.2 keeps each mapping that it reads by. So a seed grows slow with its operations, and some 200,000 reach the kernel's
# limit of mappings: many seeds of 20,000 do more in the same time.
printf '[opsize]\nmax = 65536\n[weights]\n' > "$2/fsx.toml"
if [ "$3" = fuse ]; then
    printf 'punch_hole = 1\ncopy_file_range = 1\n' >> "$2/fsx.toml"
else
    printf 'mapread = 0\nmapwrite = 0\npunch_hole = 0\nposix_fallocate = 0\n' >> "$2/fsx.toml"
fi
for seed in $(seq "$8" $(($8 + $6 - 1))); do
    rm -f "$1/file"
    fsx -f "$2/fsx.toml" -N "$4" -S "$seed" "$1/file" > "$2/out" || { tail -n 30 "$2/out"; echo "seed $seed"; exit 1; }
    [ $((seed % 10)) -ne 0 ] || echo "         fsx: seed $seed"
done
