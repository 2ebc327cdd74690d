//! xfstests on `afflux mount`: the quick group, or named tests.
//!
//! Owns: the view of the machine in which the suite runs, the expected failures with their reasons.
//! Does not own: the suite, which is built elsewhere and is in no repository; the helpers of mount(8) (`packaging`).
//! Invariants: mounts, helpers and users exist for the suite alone. A failure that is not expected fails the run; an
//! expected one that passes is named.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::health::Messages;
use crate::repository;

/// Arguments: the suite, the place of its files, our programs, our helpers, then the words of the suite.
const SCRIPT: &str = r#"set -e
suite=$1 place=$2 built=$3 packaging=$4; shift 4
cd "$place"
# As on a host with systemd: a server's own view then follows others' unmounting.
mount --make-rshared /
mkdir upper work test scratch on-test on-scratch results home state
sbin=$(realpath /sbin)
mount -t overlay -o "lowerdir=$sbin,upperdir=$place/upper,workdir=$place/work" overlay "$sbin"
cp "$packaging/umount.fuse.afflux" "$sbin"
sed "s|logger -t afflux-mount|cat >> $place/server.log|" "$packaging/mount.fuse.afflux" > "$sbin/mount.fuse.afflux"
chmod 755 "$sbin/mount.fuse.afflux" "$sbin/umount.fuse.afflux"
# mount(8) gives its helpers a path of its own.
ln -s "$built/afflux" "$sbin/afflux"
for kind in passwd group; do cp "/etc/$kind" "$place"; done
number=61000
for user in fsgqa fsgqa2 123456-fsgqa; do
    grep -q "^$user:" passwd || echo "$user:*:$number:$number::$place/home:/bin/bash" >> passwd
    grep -q "^$user:" group || echo "$user:*:$number:" >> group
    number=$((number + 1))
done
for kind in passwd group; do mount --bind "$place/$kind" "/etc/$kind"; done
# The suite does not know our kind of mount by its whole name, and unmounts devices, which are directories here.
sed -e "s|-e 's/fuse.ceph-fuse/ceph-fuse/'|& -e 's/fuse.afflux/fuse/'|" \
    -e 's/_unmount $SCRATCH_DEV/_unmount $SCRATCH_MNT/; s/_unmount $TEST_DEV/_unmount $TEST_DIR/' \
    "$suite/common/rc" > rc
mount --bind rc "$suite/common/rc"
cat > local.config <<END
export FSTYP=fuse
export FUSE_SUBTYP=.afflux
export TEST_DEV=$place/test TEST_DIR=$place/on-test
export SCRATCH_DEV=$place/scratch SCRATCH_MNT=$place/on-scratch
export TEST_FS_MOUNT_OPTS="-o cache=128MiB" MOUNT_OPTIONS="-o cache=128MiB"
export RESULT_BASE=$place/results
END
export HOST_OPTIONS="$place/local.config" XDG_STATE_HOME="$place/state"
cd "$suite"
./check -fuse "$@" || true
umount "$place/on-test" "$place/on-scratch" 2> /dev/null || true
"#;

/// A test that fails, and why that is right.
struct Expected {
    test: &'static str,
    because: &'static str,
}

const DEVICES: &str = "device files have no effect below the mount";
const TRUSTED: &str = "trusted.* is refused";
const HANDLES: &str = "the kernel opens no file by a handle that it does not have in memory";
const SETGID: &str = "the server has no CAP_FSETID, so the host takes more setgid bits";
const BITS: &str = "bytes that root changes cost the setuid bits, too: the flusher cannot tell the writers apart";
const LIMITS: &str = "root without CAP_SYS_RESOURCE cannot raise the test's limit again";

const EXPECTED: &[Expected] = &[
    Expected { test: "generic/003", because: "reads change no time of access; the time of change is the writeback's" },
    Expected { test: "generic/020", because: "the host's ext4 holds fewer attributes than the suite expects of FUSE" },
    Expected { test: "generic/062", because: TRUSTED },
    Expected { test: "generic/097", because: TRUSTED },
    Expected { test: "generic/184", because: DEVICES },
    Expected { test: "generic/193", because: SETGID },
    Expected { test: "generic/306", because: DEVICES },
    Expected { test: "generic/346", because: "a mapped page is written back as it was before a write" },
    Expected { test: "generic/355", because: SETGID },
    Expected { test: "generic/394", because: LIMITS },
    Expected { test: "generic/403", because: TRUSTED },
    Expected { test: "generic/426", because: HANDLES },
    Expected { test: "generic/434", because: DEVICES },
    Expected { test: "generic/467", because: HANDLES },
    Expected { test: "generic/477", because: HANDLES },
    Expected { test: "generic/486", because: "the host's ext4 holds no attribute of this size" },
    Expected { test: "generic/504", because: "the suite's processes do not see an ended one's lock" },
    Expected { test: "generic/531", because: LIMITS },
    Expected { test: "generic/564", because: LIMITS },
    Expected { test: "generic/604", because: "no mount while the last server still has the directory" },
    Expected { test: "generic/633", because: "setuid bits have no effect below the mount" },
    Expected { test: "generic/683", because: BITS },
    Expected { test: "generic/684", because: BITS },
    Expected { test: "generic/685", because: BITS },
    Expected { test: "generic/688", because: "capabilities of files are refused" },
    Expected { test: "generic/732", because: "one directory is mounted once" },
    Expected { test: "generic/756", because: HANDLES },
    Expected { test: "generic/777", because: HANDLES },
];

/// Runs the suite's tests of these names, or its quick group.
pub(super) fn run(suite: &Path, built: &Path, place: &Path, names: &[String]) -> Result<()> {
    let suite = suite.canonicalize().with_context(|| suite.display().to_string())?;
    ensure!(suite.join("check").exists(), "{} is no xfstests", suite.display());
    ensure!(suite.join("ltp/fsstress").exists(), "xfstests is not built: make -C {}", suite.display());
    let messages = Messages::now()?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", SCRIPT, "bash"]);
    command.args([&suite, place, built, &repository::root().join("packaging")]);
    command.args(names).args(names.is_empty().then_some(["-g", "quick"]).into_iter().flatten());
    ensure!(command.status().context("unshare")?.success(), "the suite does not run");
    let log = place.join("results/check.log");
    let log = fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    let told = judged(&log, EXPECTED)?;
    let complaints = messages.complaints_since()?;
    complaints.iter().for_each(|line| println!("kernel: {line}"));
    println!("{}", told.text);
    if !told.unexpected.is_empty() || !complaints.is_empty() {
        bail!("failed without a known reason: {}; {} messages of the kernel", told.unexpected, complaints.len());
    }
    Ok(())
}

/// A verdict on a run.
struct Judged {
    text: String,
    /// Failed tests without a reason.
    unexpected: String,
}

/// The tests after a word of the log's last run.
fn after<'a>(log: &'a str, word: &str) -> Vec<&'a str> {
    let last = log.lines().rev().find_map(|line| line.strip_prefix(word));
    last.map(|tests| tests.split_whitespace().collect()).unwrap_or_default()
}

fn judged(log: &str, expected: &[Expected]) -> Result<Judged> {
    let (ran, left_out) = (after(log, "Ran:"), after(log, "Not run:"));
    ensure!(!ran.is_empty(), "no test ran");
    let failed = after(log, "Failures:");
    let mut text = format!("{} tests ran, {} do not apply, {} failed", ran.len(), left_out.len(), failed.len());
    for Expected { test, because } in expected {
        if failed.contains(test) {
            text += &format!("\nfails as expected: {test}: {because}");
        } else if ran.contains(test) {
            text += &format!("\npasses: {test}, though: {because}");
        }
    }
    let unexpected = failed.into_iter().filter(|test| expected.iter().all(|known| known.test != *test));
    Ok(Judged { text, unexpected: unexpected.collect::<Vec<_>>().join(" ") })
}

#[cfg(test)]
mod tests;
