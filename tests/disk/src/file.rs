//! The disk as one file of a FUSE mount.
//!
//! Owns: the mount of the server, the controls of a disk.
//! Does not own: the bytes (`medium`), the answers to the kernel (`server`), the block device (`device`).
//! Invariants: the mount ends with the value. If the process dies first, a shell has the kernel fail every request to
//! the mount, though a thread of the process may still wait for such a request.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_scratch::Guard;
use fuser::{BackgroundSession, Config, MountOption};

use crate::medium::Medium;
use crate::server::{FILE, Parts, Server};
use crate::timing::{Clock, Rates};
use crate::{DiskOptions, SECTOR_BYTES};

/// Ends a mount without its server. `-f` fails the requests that wait.
const END: &str = r#"umount -f "$1"
umount -l "$1""#;

/// A disk as a file. Requests must be for whole sectors.
pub struct DiskFile {
    parts: Arc<Parts>,
    path: PathBuf,
    session: Option<BackgroundSession>,
    /// Dropped after the mount.
    _guard: Guard,
}

impl DiskFile {
    /// Makes a disk of zeros. Its parts are files in `directory`, which the caller removes later.
    pub fn new(directory: &Path, options: DiskOptions) -> io::Result<Self> {
        if !options.bytes.is_multiple_of(4096) || options.bytes == 0 {
            return Err(io::Error::other(format!("a disk of {} bytes: no multiple of 4096", options.bytes)));
        }
        let durable = File::options().read(true).write(true).create_new(true).open(directory.join("medium"))?;
        durable.set_len(options.bytes)?;
        let medium = Medium::new(durable, &options);
        let parts = Arc::new(Parts::new(medium, Clock::start(options.rates), options.bytes));
        let point = directory.join("point");
        std::fs::create_dir(&point)?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("afflux-disk".to_owned())];
        let guard = Guard::new(END, "", &[&point])?;
        let session = fuser::spawn_mount(Server(Arc::clone(&parts)), &point, &config)?;
        Ok(Self { parts, path: point.join(FILE), session: Some(session), _guard: guard })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the time of later requests.
    pub fn set_rates(&self, rates: Rates) {
        self.parts.clock.set(rates);
    }

    /// Answers no request from now on, until [`DiskFile::go_on`].
    pub fn hang(&self) {
        self.parts.clock.hang(true);
    }

    /// Ends a hang: the requests that waited are answered.
    pub fn go_on(&self) {
        self.parts.clock.hang(false);
    }

    /// Every request for these bytes fails from now on. Whole sectors of [`SECTOR_BYTES`] count.
    pub fn damage(&self, bytes: Range<u64>) {
        self.parts.medium().damage(bytes.start / SECTOR_BYTES..bytes.end.div_ceil(SECTOR_BYTES));
    }

    /// Turns the power off. About half of the sectors that no flush covered are lost; `seed` chooses them. Every
    /// request fails until [`DiskFile::power_on`].
    pub fn cut_power(&self, seed: u64) -> io::Result<()> {
        self.parts.medium().cut(seed)
    }

    /// Turns the power on again.
    pub fn power_on(&self) {
        self.parts.medium().power_on();
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}
