//! The claim of one process of this host to a volume in a store, and the last writer of the volume, if it ran on this
//! host.
//!
//! The claim is a name of the kernel that the process holds until its end, however it ends. A file in the state
//! directory has the epoch of the last writer. The writer holds a lock on the file until its end. So a process that
//! gets the lock knows that the writer in the file has ended, and need not wait for its last answer.
//!
//! Owns: the name, the file, its lock, its form.
//! Does not own: other hosts (`afflux_object::Holder`), the use of the knowledge (`afflux_object`), fencing, which
//! alone protects the volume.
//! Invariants: two processes of a host never have the claim to one volume at a time. Nothing remains of a claim. A note
//! of another start of the host's kernel counts for nothing: the directory may be on a disk of several hosts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};

use afflux_object::{EndedWriter, VolumeHeader};
use rustix::fs::{FlockOperation, OFlags, flock};
use tracing::debug;

use crate::serve::persisted::StateDirectory;

/// The kernel draws it at its start.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const NOTE_BYTES_MAX: u64 = 256;

pub(crate) struct LastWriter {
    file: File,
    boot: String,
}

impl LastWriter {
    /// Takes the lock, unless another process has it or the state directory cannot be used.
    pub(crate) fn take(state: &StateDirectory, header: &VolumeHeader) -> Option<Self> {
        let path = state.shared_file(&format!("volume-{:032x}", u128::from_be_bytes(header.id)))?;
        let taken = (|| -> io::Result<Self> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(Self { file, boot: fs::read_to_string(BOOT_ID)?.trim().to_owned() })
        })();
        taken.inspect_err(|error| debug!("{}: {error}; the next writer may wait", path.display())).ok()
    }

    /// The writer in the file.
    pub(crate) fn ended(&self) -> Option<EndedWriter> {
        let mut note = String::new();
        (&self.file).take(NOTE_BYTES_MAX).read_to_string(&mut note).ok()?;
        let mut words = note.lines().next()?.split(' ');
        let is_this_start = words.next()? == self.boot;
        let writer = EndedWriter { epoch: words.next()?.parse().ok()?, verifier: words.next()?.parse().ok()? };
        (is_this_start && words.next() == Some("whole")).then_some(writer)
    }

    /// Writes the process's own writer into the file.
    pub(crate) fn note(&self, writer: EndedWriter) {
        let note = format!("{} {} {} whole\n", self.boot, writer.epoch, writer.verifier);
        if let Err(error) = self.file.write_all_at(note.as_bytes(), 0) {
            debug!("the state directory takes no note of the writer: {error}; the next one may wait");
        }
    }
}

impl Drop for LastWriter {
    fn drop(&mut self) {
        // A child that has not begun its program yet has the file, too. Closing it would leave the lock to the child.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// A name of the kernel may have 107 bytes.
const NAME_BYTES_MAX: usize = 90;

pub(crate) struct StoreClaim {
    _name: UnixDatagram,
}

impl StoreClaim {
    /// Takes the claim, unless another process has it. The end of a long address stands for the whole: after a false
    /// conflict a start only needs the user's explicit request.
    pub(crate) fn take(url: &str, endpoint: Option<&str>) -> io::Result<Option<Self>> {
        let location = format!("{} {url}", endpoint.unwrap_or_default());
        let end = &location.as_bytes()[location.len().saturating_sub(NAME_BYTES_MAX)..];
        let address = SocketAddr::from_abstract_name([b"afflux volume ", end].concat())?;
        match UnixDatagram::bind_addr(&address) {
            Ok(name) => Ok(Some(Self { _name: name })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
