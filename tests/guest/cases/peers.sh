# Linux's client unpacks a tree and clones a repository, on our server and on nfs-ganesha, both on the host, by turns: the times, their ratio,
# and the calls of each kind that the client sends. Our answers must not make the client ask more than ganesha's do. The client alone is
# emulated. ganesha answers before a change of names is durable, so ours does, too (`--async-metadata`). peers for version 4.1 and three
# rounds, or peers:VERSION,ROUNDS
# limit: 3600
mkdir -p $WORK /mnt/afflux /mnt/ganesha
later "umount -f -l /mnt/afflux /mnt/ganesha; rm -rf $WORK"
ours=$(host server start --async-metadata)
peers=$(host server ganesha)
version=${ARG%%,*} rounds=${ARG#*,}
[ "$rounds" != "$ARG" ] || rounds=3
mount -t nfs -o "vers=${version:-4.1},tcp,hard,port=$ours" 10.0.2.2:/ /mnt/afflux
mount -t nfs -o "vers=${version:-4.1},tcp,hard,port=$peers" 10.0.2.2:/exp /mnt/ganesha
cat > $WORK/race.py <<'P'
import os, subprocess, sys, time
work, rounds = sys.argv[1], int(sys.argv[2])
SERVERS = ["afflux", "ganesha"]
FILES, COMMITS = 2000, 300

def run(*words, **more):
    subprocess.run(words, check=True, **more)

def tree():
    for at in range(FILES):
        folder = f"{work}/tree/d{at // 50}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/f{at}", "wb") as file:
            file.write(os.urandom(at * 37 % 16384))
    run("tar", "-C", work, "-cf", f"{work}/tree.tar", "tree")

def repository():
    """Each commit has a new file and changes three."""
    lines = []
    for commit in range(COMMITS):
        lines += [f"commit refs/heads/main\ncommitter t <t@t> {1700000000 + commit} +0000\ndata 1\nc"]
        for at in {commit, commit // 2, commit // 3, commit * 7 // 11}:
            text = "".join(f"{at} {line} {line % 40 - commit % 40 and 'same' or commit}\n" for line in range(at % 300 + 5))
            lines += [f"M 100644 inline d{at % 20}/f{at}\ndata {len(text)}\n{text}"]
    run("git", "init", "-q", "--bare", f"{work}/repository")
    run("git", "-C", f"{work}/repository", "symbolic-ref", "HEAD", "refs/heads/main")
    run("git", "-C", f"{work}/repository", "fast-import", "--quiet", input="\n".join(lines).encode())

LOADS = {
    "untar": lambda point: run("tar", "-C", point, "-xf", f"{work}/tree.tar"),
    "git clone": lambda point: run("git", "clone", "-q", "--no-local", f"{work}/repository", f"{point}/clone"),
    "git status": lambda point: run("git", "-C", f"{point}/clone", "status", "--short"),
    "rm -r": lambda point: run("rm", "-r", f"{point}/tree", f"{point}/clone"),
}

def calls(point):
    """The number of calls of each kind, and the milliseconds until their answers."""
    counted, here = {}, False
    for line in open("/proc/self/mountstats"):
        words = line.split()
        if words[:1] == ["device"]:
            here = point in words
        elif here and len(words) > 8 and words[0][-1] == ":" and words[0][0].isupper() and words[1].isdigit():
            counted[words[0][:-1]] = (int(words[1]), int(words[7]))
    return counted

def turn(load, server, sent):
    point = f"/mnt/{server}"
    before, began = calls(point), time.monotonic()
    LOADS[load](point)
    took = time.monotonic() - began
    for kind, after in calls(point).items():
        had = sent.setdefault(kind, {}).setdefault(server, [0, 0])
        for at in range(2):
            had[at] += after[at] - before.get(kind, (0, 0))[at]
    return took

def tell(load, times, sent):
    each = [sorted(times[server])[rounds // 2] for server in SERVERS]
    ratios = sorted(peer / ours for ours, peer in zip(times["afflux"], times["ganesha"]))
    print(f"= {load}: afflux {each[0]:.2f} s, ganesha {each[1]:.2f} s, speed {ratios[rounds // 2]:.2f} of it "
          f"({ratios[0]:.2f} to {ratios[-1]:.2f})")
    differ = []
    for kind, of in sorted(sent.items()):
        count = [round(of[server][0] / rounds) for server in SERVERS]
        waited = [of[server][1] / max(1, of[server][0]) for server in SERVERS]
        if any(count):
            print(f"{load}: {kind} {count[0]} of {waited[0]:.2f} ms, ganesha {count[1]} of {waited[1]:.2f} ms")
        if abs(count[0] - count[1]) > max(count) / 10 + 1:
            differ.append(f"{kind} {count[0]}, {count[1]}")
    both = [sum(of[server][0] for of in sent.values()) // rounds for server in SERVERS]
    print(f"= {load}: {both[0]} calls, ganesha {both[1]}; these differ: {'; '.join(differ) or 'none'}", flush=True)
    # git reads each file again that it wrote in the same second as its index, so a faster server has more of them.
    if load != "git status" and both[0] > both[1] * 1.1:
        sys.exit("WRONG: the client asks our server more often")

tree()
repository()
times = {load: {server: [] for server in SERVERS} for load in LOADS}
sent = {load: {} for load in LOADS}
for number in range(rounds):
    for server in SERVERS if number % 2 == 0 else SERVERS[::-1]:
        for load in LOADS:
            times[load][server].append(turn(load, server, sent[load]))
            print(f"{load} {server} {times[load][server][-1]:.2f}", flush=True)
for load in LOADS:
    tell(load, times[load], sent[load])
P
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$WORK
python3 $WORK/race.py $WORK "$rounds"
umount /mnt/afflux /mnt/ganesha
host server stop > /dev/null
