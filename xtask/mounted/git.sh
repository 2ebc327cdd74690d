export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q "$1/r"
cd "$1/r"
for i in $(seq 0 19); do
    seq $((i * 300)) > "f$i"
    git -c user.name=t -c user.email=t@t add -A
    git -c user.name=t -c user.email=t@t commit -qm "$i"
done
git gc -q
git fsck --full --strict
git clone -q "$1/r" "$1/c"
cd "$1/c"
[ "$(git log --oneline | wc -l)" = 20 ]
git status --porcelain > "$2/status"
[ ! -s "$2/status" ]
