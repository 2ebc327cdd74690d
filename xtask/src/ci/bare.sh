# Makes what plain.sh uses in SCRATCH for a USER's number: links to the programs that a bare Debian has, with what a build needs (gcc, git); the user's own folders.
set -eu
scratch=$1 user=$2
mkdir "$scratch/bin"
{
    dpkg-query -W -f '${Package} ${Essential} ${Priority}\n' | while read -r package essential priority; do
        [ "$essential" != yes ] && [ "$priority" != required ] || echo "$package"
    done
    dpkg-query -W -f '${Package}\n' 'gcc*' 'cpp*' 'binutils*' git
} | xargs dpkg -L 2> /dev/null | while read -r file; do
    case $file in /bin/* | /sbin/* | /usr/bin/* | /usr/sbin/*) ln -sf "$file" "$scratch/bin/" ;; esac
done
for name in awk cc; do ln -sf "$(command -v $name)" "$scratch/bin/"; done
mkdir "$scratch/needed"
for folder in tmp home; do install -d -o "$user" -g "$user" -m 700 "$scratch/$folder"; done
chmod 755 "$scratch"
