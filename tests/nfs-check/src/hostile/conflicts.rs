//! An honest client changes files, one after the other, that others may have delegated. Each change is timed.
//!
//! Owns: the shared files, the changes, the times of their answers.
//! Does not own: the holders of delegations (`attack`).
//! Invariants: DELAY is no answer: the change is sent again, and its time goes on. The call after a change reads its
//! bytes.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use afflux_nfs_client::Error;
use afflux_nfs_client::sessions::{ANONYMOUS, CURRENT, Compound};

use super::honest::{self, Honest};

/// Files that hostile clients open for reading.
pub(super) const SHARED: u64 = 64;
/// A file that was changed gets no delegation for ten seconds: each file rests for longer than that.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) fn name(number: u64) -> String {
    format!("shared-{number}")
}

/// Changes one file after the other until `goes_on` says no. Returns the times.
pub(super) fn change(
    nfs: SocketAddr,
    user: u32,
    directory: &[u8],
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Duration>, Error> {
    let mut honest = Honest::begin(nfs, user, directory, b"conflicts")?;
    for number in 0..SHARED {
        let opened = Compound::default().put(directory).open((3, 0), b"maker", name(number).as_bytes(), true);
        honest.call(&opened.close(CURRENT))?;
    }
    let mut times = Vec::new();
    while goes_on() {
        let number = times.len() as u64;
        let file = Compound::default().put(directory).lookup(name(number % SHARED).as_bytes());
        let data = number.to_be_bytes();
        let began = Instant::now();
        honest.call(&file.clone().write(ANONYMOUS, 0, 0, &data))?;
        times.push(began.elapsed());
        let read = honest.call(&file.read(ANONYMOUS, 0, data.len() as u32))?;
        if !read.results.ends_with(&data) {
            return Err(honest::OTHER_BYTES);
        }
        thread::sleep(PAUSE);
    }
    Ok(times)
}
