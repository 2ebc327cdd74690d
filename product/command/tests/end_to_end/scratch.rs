//! Directories for tests, on the build's disk if other users can reach it, and bytes to fill files with.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{OnceLock, PoisonError, RwLock};

/// A directory that is removed at the end of its test. Every user may enter it, since tests act as several users.
pub(crate) struct Scratch(::afflux_scratch::Scratch);

impl Scratch {
    pub(crate) fn new() -> Self {
        let made = ::afflux_scratch::Scratch::new(place(), "e2e").unwrap();
        fs::set_permissions(made.path(), Permissions::from_mode(0o755)).unwrap();
        Self(made)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes a directory in it.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// The command, at a path where every user can run it.
    pub(crate) fn program_for_others(&self) -> PathBuf {
        let built = Path::new(env!("CARGO_BIN_EXE_afflux"));
        if is_open_to_others(built) {
            return built.to_owned();
        }
        let copy = self.path().join("afflux");
        if !copy.exists() {
            fs::copy(built, &copy).unwrap();
        }
        copy
    }
}

/// The directory of scratch directories. A checkout in a home that is closed to others does not suit tests as several
/// users.
fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        // `/var/tmp` is on a disk; the temporary directory may be in memory.
        let others = [PathBuf::from("/var/tmp"), std::env::temp_dir(), PathBuf::from("/tmp")];
        let is_alone = !rustix::process::geteuid().is_root();
        let mut places = [built.clone()].into_iter().chain(others);
        places.find(|place| is_alone || is_open_to_others(place)).unwrap_or(built)
    })
}

/// Whether every user can reach a path, and enter or run it.
fn is_open_to_others(path: &Path) -> bool {
    path.ancestors().all(|path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
}

/// Whether this process can act as several users, on files that all of them can reach. Prints the reason if not.
pub(crate) fn can_be_several_users() -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "only root can be several users".to_owned()
    } else if !is_open_to_others(place()) {
        format!("other users cannot reach {}, nor another place for files", place().display())
    } else {
        return true;
    };
    afflux_scratch::skipped!("{why}");
    false
}

/// A file system in a directory of its own; unmounted when dropped.
pub(crate) struct Mount {
    point: PathBuf,
    device: Option<String>,
}

/// `losetup` opens loop devices of other tests while it searches for a free one. A test whose device nobody else may
/// have open holds this for reading.
pub(crate) static LOOP_DEVICES: RwLock<()> = RwLock::new(());

impl Mount {
    /// A tmpfs of `bytes`; none, with a message, if that is not allowed.
    pub(crate) fn tmpfs(point: &Path, bytes: u64) -> Option<Self> {
        let size = format!("size={bytes}");
        let point_text = point.to_str()?;
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", point_text])?;
        Some(Self { point: point.to_path_buf(), device: None })
    }

    /// The directory as a mount of its own. Mounts in it go from all name spaces at once, as on a host with systemd:
    /// the servers of other tests have copies of all mounts. None if that is not allowed.
    pub(crate) fn shared(point: &Path) -> Option<Self> {
        let text = point.to_str()?;
        run("mount", &["--bind", text, text])?;
        let mounted = Self { point: point.to_path_buf(), device: None };
        run("mount", &["--make-shared", text])?;
        Some(mounted)
    }

    /// The directory `from` at a second path; none if that is not allowed.
    pub(crate) fn bind(from: &Path, point: &Path) -> Option<Self> {
        run("mount", &["--bind", from.to_str()?, point.to_str()?])?;
        Some(Self { point: point.to_path_buf(), device: None })
    }

    /// An ext4 in a file of `bytes`, on a loop device; none if that is not allowed.
    pub(crate) fn ext4(image: &Path, point: &Path, bytes: u64) -> Option<Self> {
        fs::File::create(image).ok()?.set_len(bytes).ok()?;
        run("mkfs.ext4", &["-q", "-F", "-m", "0", image.to_str()?])?;
        Self::of(image, point)
    }

    /// The file system in a file, on a loop device; none if that is not allowed.
    pub(crate) fn of(image: &Path, point: &Path) -> Option<Self> {
        let device = {
            let _alone = LOOP_DEVICES.write().unwrap_or_else(PoisonError::into_inner);
            run("losetup", &["-f", "--show", image.to_str()?])?.trim().to_owned()
        };
        let mounted = Self { point: point.to_path_buf(), device: Some(device.clone()) };
        run("mount", &[&device, point.to_str()?])?;
        Some(mounted)
    }
}

impl Mount {
    /// The loop device.
    pub(crate) fn device(&self) -> &str {
        self.device.as_deref().unwrap()
    }

    /// Makes it read-only from now on.
    pub(crate) fn take_no_changes(&self) {
        run("mount", &["-o", "remount,ro", self.point.to_str().unwrap()]).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A killed server holds its files until the kernel has torn down its rings, a moment after the process is gone.
        // After the last try the mount goes away with its last user.
        let unmount = |how: &[&str]| {
            let output = Command::new("umount").args(how).arg(&self.point).output();
            output.is_ok_and(|output| output.status.success())
        };
        if !afflux_scratch::within(std::time::Duration::from_secs(2), || unmount(&[])) {
            unmount(&["-l"]);
        }
        if let Some(device) = &self.device {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

/// The output of a command; none, with a message, if it cannot run or fails.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            afflux_scratch::skipped!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            afflux_scratch::skipped!("{program}: {error}");
            None
        }
    }
}

/// Bytes that differ by offset and by seed.
pub(crate) struct Bytes(u64);

impl Bytes {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    pub(crate) fn vec(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}
