//! The users of a disk: processes, devices that the kernel makes from it, and mounts of `afflux mount` over it.
//!
//! Owns: looking in `/proc` and `/sys`; finding those mounts, the disk behind a mount point, the path to a file system
//! that such a mount covers.
//! Does not own: the verdict (`eject`), other mounts (crate `govern`), the servers behind mounts (`servers`).
//! Invariants: no call waits for a file system, nor for the server of a mount. The result says whether some processes
//! are closed to this user. Only mounts that the kernel lists are found, by this process's own view alone.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use afflux_govern::{Disk, Host, Mounted};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, open, statx};
use rustix::io::Errno;

use crate::processes;

/// The position of the flags behind the program's name in `/proc/PID/stat`.
const FLAGS_FIELD: usize = 6;
/// The kernel's flag `PF_KTHREAD`.
const KERNEL_THREAD: u32 = 0x0020_0000;

#[derive(Debug, Default)]
pub(super) struct DiskUsers {
    /// Processes, by number.
    pub(super) processes: Vec<Process>,
    /// Swap, loop devices and other devices over it, in words.
    pub(super) kernel: Vec<String>,
    /// Some processes are closed to this user.
    pub(super) some_unseen: bool,
}

/// A process, and the first use that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) program: String,
    /// The use, such as `has /media/usb/file open`.
    pub(super) how: String,
    /// It has a file of the disk in use. Otherwise its mount namespace has the disk, and it may know nothing of it.
    pub(super) has_files: bool,
}

/// A mounted file system of the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileSystem {
    pub(super) mount_point: PathBuf,
    /// A path that leads there, also if another mount covers the mount point; none if nobody has one.
    pub(super) path: Option<PathBuf>,
}

/// Major and minor number.
type DeviceNumber = (u32, u32);

/// A disk by all its names.
pub(super) struct SoughtDisk<'a> {
    host: &'a Host,
    disk: &'a Disk,
    devices: BTreeSet<DeviceNumber>,
    /// Mounts of `afflux mount` that stand on it, older ones first.
    own_mounts: Vec<Mounted>,
}

impl<'a> SoughtDisk<'a> {
    pub(super) fn new(host: &'a Host, disk: &'a Disk) -> Self {
        let on_disk = host.numbers_on(&disk.number);
        let mut devices: BTreeSet<DeviceNumber> = on_disk.iter().filter_map(|it| device_of(it)).collect();
        let mounts = host.mounts();
        // Files of btrfs have device numbers of their own. Another mount may cover the mount point.
        let covered =
            |mount_point: &PathBuf| mounts.iter().any(|mount| mount.kind == KIND && mount.mount_point == *mount_point);
        let places = host.mounts_of(&disk.number).into_iter().filter(|mount_point| !covered(mount_point));
        devices.extend(places.filter_map(|mount_point| looked_at(&mount_point)).map(|found| found.on));
        let mut sought = Self { host, disk, devices, own_mounts: Vec::new() };
        sought.own_mounts = on(&mounts, |mount| sought.is_mounted_by(mount));
        sought
    }

    /// The points of the mounts of `afflux mount` that stand on the disk, in the order to unmount them.
    pub(super) fn own_points(&self) -> Vec<PathBuf> {
        self.own_mounts.iter().rev().map(|mount| mount.mount_point.clone()).collect()
    }

    pub(super) fn file_systems(&self) -> Vec<FileSystem> {
        let covered = |mount_point: &Path| self.own_mounts.iter().any(|mount| mount.mount_point == *mount_point);
        let is_own = |found: &Seen| self.own_mounts.iter().any(|mount| device_of(&mount.number) == Some(found.on));
        let leads_there =
            |path: &Path| looked_at(path).is_some_and(|found| self.devices.contains(&found.on) && !is_own(&found));
        let path = |mount_point: &PathBuf| match covered(mount_point) {
            true => below(mount_point, leads_there),
            false => Some(mount_point.clone()),
        };
        let places = self.host.mounts_of(&self.disk.number).into_iter();
        places.map(|mount_point| FileSystem { path: path(&mount_point), mount_point }).collect()
    }

    /// Everything that uses the disk now, except this process and the mounts in its own namespace.
    pub(super) fn users(&self) -> DiskUsers {
        let mut found = DiskUsers { kernel: self.kernel(), ..DiskUsers::default() };
        let own_namespace = fs::read_link("/proc/self/ns/mnt").ok();
        let mut namespaces: BTreeSet<PathBuf> = own_namespace.into_iter().collect();
        for pid in processes::all().filter(|pid| *pid != std::process::id()) {
            let process = PathBuf::from(format!("/proc/{pid}"));
            if is_kernel_thread(&process) {
                continue;
            }
            let how = match self.use_by(&process) {
                Ok(how) => how,
                Err(error) => {
                    found.some_unseen |= error.kind() == ErrorKind::PermissionDenied;
                    continue;
                }
            };
            let namespace = fs::read_link(process.join("ns/mnt")).ok();
            let is_new = namespace.is_some_and(|namespace| namespaces.insert(namespace));
            let has_files = how.is_some();
            let how = how.or_else(|| is_new.then(|| self.mounted_for(&process)).flatten());
            if let Some(how) = how {
                found.processes.push(Process { pid, program: processes::program(pid), how, has_files });
            }
        }
        found
    }

    /// How a process uses the disk. A process that ends meanwhile is no error.
    fn use_by(&self, process: &Path) -> std::io::Result<Option<String>> {
        let mounts: Vec<String> = self.mounts_for(process).map(|mount| mount.id).collect();
        for (link, word) in [("cwd", "works in"), ("root", "has its root in")] {
            if self.is_on_it(&process.join(link)) {
                return Ok(Some(format!("{word} {}", target(&process.join(link)))));
            }
        }
        let descriptors = match fs::read_dir(process.join("fd")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        for entry in descriptors {
            // A process that has ended holds nothing any more.
            let Ok(entry) = entry else { return Ok(None) };
            let is_below = || {
                let info = fs::read_to_string(process.join("fdinfo").join(entry.file_name())).unwrap_or_default();
                let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(str::trim);
                id.is_some_and(|id| mounts.iter().any(|mount| mount == id))
            };
            if self.is_on_it(&entry.path()) || is_below() {
                return Ok(Some(format!("has {} open", target(&entry.path()))));
            }
        }
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        Ok(maps
            .lines()
            .find_map(|line| mapped(line, |device| self.is_sought(device)))
            .map(|file| format!("has {file} mapped")))
    }

    fn is_on_it(&self, path: &Path) -> bool {
        looked_at(path)
            .is_some_and(|found| self.is_sought(found.on) || found.is.is_some_and(|is| self.devices.contains(&is)))
    }

    /// Whether the device is one of the disk or of a mount that stands on it.
    fn is_sought(&self, device: DeviceNumber) -> bool {
        self.devices.contains(&device) || self.own_mounts.iter().any(|mount| device_of(&mount.number) == Some(device))
    }

    /// The disk's mount point in the namespace of a process, unless the mount goes together with one of this process.
    fn mounted_for(&self, process: &Path) -> Option<String> {
        let here = self.host.mounts();
        let goes_along = |mount: &Mounted| {
            let groups = [&mount.shared, &mount.master];
            here.iter().any(|own| own.shared.is_some() && groups.contains(&&own.shared) && self.is_mounted_by(own))
        };
        let mut there = self.mounts_for(process).filter(|mount| !goes_along(mount));
        there.next().map(|mount| format!("has it mounted on {} in its mount namespace", mount.mount_point.display()))
    }

    /// The mounts of the disk that a process sees.
    fn mounts_for(&self, process: &Path) -> impl Iterator<Item = Mounted> {
        let text = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
        Mounted::listed(&text).into_iter().filter(|mount| self.is_mounted_by(mount))
    }

    /// Whether the mount is one of the disk's file systems, or stands on the disk.
    fn is_mounted_by(&self, mount: &Mounted) -> bool {
        device_of(&mount.number).is_some_and(|device| self.is_sought(device))
            || self.host.whole(&mount.source).is_some_and(|whole| whole == self.disk.number)
    }

    /// Swap, loop devices and mapped devices over the disk, in words.
    fn kernel(&self) -> Vec<String> {
        let mut found = Vec::new();
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        for area in swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()) {
            if self.is_on_it(Path::new(area)) {
                found.push(format!("{area} is swap: swapoff {area}"));
            }
        }
        for number in self.host.numbers_on(&self.disk.number) {
            if self.host.whole_of_number(&number).is_some_and(|whole| whole != self.disk.number && whole == number) {
                let name = self.host.disk(&number).map_or(number, |disk| match disk.model {
                    Some(model) => format!("{} ({model})", disk.name),
                    None => disk.name,
                });
                found.push(format!("{name} is made from it: close it"));
            }
        }
        for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
            let Ok(file) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
            let (file, name) = (file.trim_end(), entry.file_name().to_string_lossy().into_owned());
            let is_below = || {
                // A deleted file cannot be asked for its device.
                let places = self.host.mounts_of(&self.disk.number);
                file.ends_with(" (deleted)")
                    && places.iter().any(|mount_point| Path::new(file).starts_with(mount_point))
            };
            if name != self.disk.name && (self.is_on_it(Path::new(file)) || is_below()) {
                found.push(format!("{name} is made from {file}: losetup -d /dev/{name}"));
            }
        }
        found
    }

    /// The device files of the disk and its partitions that the kernel protects from exclusive use.
    pub(super) fn claimed(&self) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let names = self.devices.iter().filter_map(|(major, minor)| {
            let entry = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
            Some(format!("/dev/{}", entry.file_name()?.to_string_lossy()))
        });
        names
            .filter(|name| open(name.as_str(), flags, Mode::empty()).is_err_and(|error| error == Errno::BUSY))
            .collect()
    }
}

/// Whether the process is a thread of the kernel. Such a thread shows the root directory as its own, but a disk can be
/// unplugged in spite of it.
fn is_kernel_thread(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The program's name ends at the last parenthesis, and may hold spaces.
    let flags = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(FLAGS_FIELD));
    flags.and_then(|flags| flags.parse::<u32>().ok()).is_some_and(|flags| flags & KERNEL_THREAD != 0)
}

/// The numbers of a file.
struct Seen {
    /// The device that holds the file.
    on: DeviceNumber,
    /// The block device that the file stands for.
    is: Option<DeviceNumber>,
}

/// Reads a file's attributes without waiting for its file system.
fn looked_at(path: &Path) -> Option<Seen> {
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT, StatxFlags::TYPE).ok()?;
    let is_device = FileType::from_raw_mode(found.stx_mode.into()) == FileType::BlockDevice;
    let is = is_device.then_some((found.stx_rdev_major, found.stx_rdev_minor));
    Some(Seen { on: (found.stx_dev_major, found.stx_dev_minor), is })
}

/// The file in a line of maps, if it is on one of the sought devices.
fn mapped(line: &str, is_sought: impl Fn(DeviceNumber) -> bool) -> Option<String> {
    let mut fields = line.split_ascii_whitespace();
    let (major, minor) = fields.nth(3)?.split_once(':')?;
    let hexadecimal = |text| u32::from_str_radix(text, 16).ok();
    let device = (hexadecimal(major)?, hexadecimal(minor)?);
    let is_file = fields.next()? != "0";
    (is_file && is_sought(device)).then(|| fields.collect::<Vec<_>>().join(" "))
}

fn device_of(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn target(link: &Path) -> String {
    fs::read_link(link).map_or_else(|_| "a file".to_owned(), |target| target.display().to_string())
}

/// The kind of the mounts, as the kernel shows it.
pub(super) const KIND: &str = "fuse.afflux";

/// The mounts that stand on a disk: mounts of its directories, and mounts at its directories. `is_of_disk` knows the
/// disk's own mounts.
pub(super) fn on(mounts: &[Mounted], is_of_disk: impl Fn(&Mounted) -> bool) -> Vec<Mounted> {
    let stands = |mount: &&Mounted| behind(mounts, mount).chain(above(mounts, mount)).any(&is_of_disk);
    mounts.iter().filter(|mount| mount.kind == KIND).filter(stands).cloned().collect()
}

/// The number of the disk behind a mount of `afflux mount` at this mount point.
pub(super) fn disk_behind(host: &Host, mount_point: &Path) -> Option<String> {
    let mount_point: PathBuf = std::path::absolute(mount_point).ok()?.components().collect();
    let mounts = host.mounts();
    let mount = mounts.iter().rev().find(|mount| mount.kind == KIND && mount.mount_point == mount_point)?;
    host.whole_of_mount(&behind(&mounts, mount).last()?.number)
}

/// The path to a file system at a mount point that a mount of `afflux mount` covers: the server sees it. `leads_there`
/// knows the paths to the disk's files. None if the mount is dead.
pub(super) fn below(mount_point: &Path, leads_there: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    processes::servers().into_iter().map(|server| seen_by(server, mount_point)).find(|path| leads_there(path))
}

/// The mount that has the directory of a mount. If that is one of `afflux mount`, too, then the one behind it, and so
/// on.
fn behind<'m>(mounts: &'m [Mounted], mount: &'m Mounted) -> impl Iterator<Item = &'m Mounted> {
    let (mut seen, mut path) = (vec![mount], Some(PathBuf::from(&mount.source)));
    std::iter::from_fn(move || {
        let wanted = path.take()?;
        let with = mounts.iter().filter(|mount| wanted.starts_with(&mount.mount_point) && !seen.contains(mount));
        // Of mounts at one mount point, the newest covers the others.
        let found = with.max_by_key(|mount| mount.mount_point.components().count())?;
        let rest = wanted.strip_prefix(&found.mount_point).ok()?;
        path = (found.kind == KIND).then(|| Path::new(&found.source).join(rest));
        seen.push(found);
        Some(found)
    })
}

/// The mounts in which the mount point of a mount is.
fn above<'m>(mounts: &'m [Mounted], mount: &'m Mounted) -> impl Iterator<Item = &'m Mounted> {
    let parent = |mount: &&'m Mounted| mounts.iter().find(|above| above.id == mount.parent && above.id != mount.id);
    std::iter::successors(Some(mount), parent).skip(1)
}

/// The path as a process sees it.
fn seen_by(process: u32, path: &Path) -> PathBuf {
    let below = path.components().filter(|part| matches!(part, Component::Normal(_)));
    Path::new("/proc").join(process.to_string()).join("root").join(below.collect::<PathBuf>())
}

#[cfg(test)]
mod tests;
