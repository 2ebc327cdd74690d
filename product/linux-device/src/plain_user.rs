//! The identity that writes the bytes of users.
//!
//! A file system may reserve blocks for root: ext4 reserves a twentieth of a disk. Bytes of users reach it by threads
//! of the server, which are root's. So the threads write as an unused user, who owns no reserved blocks.
//!
//! Owns: the number of the unused user, a thread's change to this number for one call, a ring's personality.
//! Does not own: which bytes are so written (`device`), the rights of callers (`host`).
//! Invariants: a thread has its own user again before it does anything else; where that cannot be, the process ends.
//! Files are open already when they are written, so the change takes no right that a write needs.

use std::process::abort;
use std::sync::OnceLock;

use io_uring::Submitter;
use rustix::process::geteuid;

/// Unused numbers of users: the last ones of a kernel, and the last ones of a container. 65534 is not among them, since
/// administrators give reserved blocks to it.
const NOBODYS: [u32; 2] = [0xffff_fff0, 65_519];

/// No user's number: the kernel treats it as a query.
const ASK: u32 = u32::MAX;

/// The number of the plain user, if this process is root's and may become that user.
pub fn plain_user() -> Option<u32> {
    static PLAIN: OnceLock<Option<u32>> = OnceLock::new();
    *PLAIN.get_or_init(|| {
        let is_taken = |number: &u32| PlainUser::become_one(*number).is_some();
        if geteuid().is_root() { NOBODYS.into_iter().find(is_taken) } else { None }
    })
}

/// A thread that is the plain user for the file system until this is dropped.
pub struct PlainUser {
    own: u32,
}

impl PlainUser {
    /// `None` if the thread stays what it is, since the process is not root's or may not change users.
    pub fn begin() -> Option<Self> {
        plain_user().and_then(Self::become_one)
    }

    fn become_one(number: u32) -> Option<Self> {
        let own = set_user(number);
        let plain = Self { own };
        (set_user(ASK) == number).then_some(plain)
    }

    /// Makes the plain user known to a ring: the number for the ring's entries. `None` as above, and where the host
    /// refuses.
    pub(crate) fn known_to(ring: &Submitter<'_>) -> Option<u16> {
        let _plain = Self::begin()?;
        ring.register_personality().ok()
    }
}

impl Drop for PlainUser {
    fn drop(&mut self) {
        set_user(self.own);
        if set_user(ASK) != self.own {
            // The thread's further calls would run as another user.
            abort();
        }
    }
}

/// Sets the thread's user for the file system, and returns the one before. The call does not report a refusal.
fn set_user(uid: u32) -> u32 {
    // SAFETY: a number alone is passed; the call acts on this thread's credentials and on no memory of ours.
    unsafe { libc::syscall(libc::SYS_setfsuid, uid) as u32 }
}
