//! The host's mounts.
//!
//! Owns: the format of `mountinfo`.
//! Does not own: block devices (`block`).
//! Invariants: a line that makes no sense is skipped.

use std::fs;
use std::path::PathBuf;

use super::bdi::Host;

/// A mount, as this process sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// Its number in the kernel.
    pub id: String,
    /// The number of the mount that has its mount point.
    pub parent: String,
    /// Major and minor number of its file system.
    pub number: String,
    /// The mount point.
    pub mount_point: PathBuf,
    /// The kind of its file system.
    pub kind: String,
    /// The device or directory behind it.
    pub source: String,
    /// The group of mounts that come and go together with it.
    pub shared: Option<String>,
    /// The group of mounts with which it comes and goes.
    pub master: Option<String>,
}

impl Mounted {
    /// The mounts in the text of a `mountinfo`, older ones first.
    pub fn listed(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::of).collect()
    }

    fn of(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' '), after.split(' '));
        let (id, parent, number) = (before.next()?.to_owned(), before.next()?.to_owned(), before.next()?.to_owned());
        let mount_point = PathBuf::from(unescaped(before.nth(1)?));
        let groups: Vec<&str> = before.skip(1).collect();
        let group = |word| groups.iter().find_map(|group| group.strip_prefix(word)).map(str::to_owned);
        let (kind, source) = (after.next()?.to_owned(), unescaped(after.next()?));
        Some(Self { id, parent, number, mount_point, kind, source, shared: group("shared:"), master: group("master:") })
    }
}

impl Host {
    /// All mounts, older ones first.
    pub fn mounts(&self) -> Vec<Mounted> {
        Mounted::listed(&fs::read_to_string(self.path("proc/self/mountinfo")).unwrap_or_default())
    }

    /// Kind and source of the file system with this number.
    pub(super) fn mount_of(&self, number: &str) -> Option<(String, String)> {
        self.mounts().into_iter().find(|mount| mount.number == number).map(|mount| (mount.kind, mount.source))
    }

    /// The whole disk of the file system with this number; for btrfs, which has a number of its own, the disk of its
    /// source.
    pub fn whole_of_mount(&self, number: &str) -> Option<String> {
        self.whole_of_number(number).or_else(|| self.whole(&self.mount_of(number)?.1))
    }

    /// The mount points of file systems on a disk, on its partitions, or on devices made from these; each once.
    pub fn mounts_of(&self, disk: &str) -> Vec<PathBuf> {
        let numbers = self.numbers_on(disk);
        let is_on = |number: &str, source: &str| {
            // btrfs has a number of its own; its source names the device.
            numbers.iter().any(|on| on == number) || self.whole(source).is_some_and(|whole| whole == disk)
        };
        let mut seen = Vec::new();
        let mut places = Vec::new();
        for Mounted { number, mount_point, source, .. } in self.mounts() {
            if is_on(&number, &source) && !seen.contains(&number) {
                seen.push(number);
                places.push(mount_point);
            }
        }
        places
    }

    /// The numbers of a disk, of its partitions, and of the devices made from any of them.
    pub fn numbers_on(&self, disk: &str) -> Vec<String> {
        let mut numbers = vec![disk.to_owned()];
        let mut at = 0;
        while at < numbers.len() {
            let entry = self.path("sys/dev/block").join(&numbers[at]);
            at += 1;
            let Ok(directory) = fs::canonicalize(entry) else { continue };
            let below = fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path());
            let parts = below.filter(|path| path.join("partition").exists());
            let holders = fs::read_dir(directory.join("holders")).into_iter().flatten().flatten();
            for path in parts.chain(holders.map(|entry| entry.path())) {
                let number = fs::read_to_string(path.join("dev")).unwrap_or_default().trim().to_owned();
                if !number.is_empty() && !numbers.contains(&number) {
                    numbers.push(number);
                }
            }
        }
        numbers
    }
}

/// `mountinfo` writes spaces and line ends as octal numbers.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, letter)| text.replace(code, letter))
}
