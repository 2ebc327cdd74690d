//! A program's own thread as a reactor of the cache.
//!
//! Owns: the time limit of a part, the handle of the cache.
//! Does not own: the ring and operations in flight (`linux-device`).
//! Invariants: a part without remaining time checks once for completed reads (`a_part_without_time_looks_once`).

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use afflux_engine::Platform;

use crate::cache::Cache;
use crate::error::Error;

/// This thread as a reactor of the cache, for a program with a loop of its own. The program polls its calls in
/// [`drive`](Self::drive), and a ring of this thread makes their reads. The cache wakes no other thread for them.
///
/// Reads may stay in flight between two parts. They complete only while this thread drives the reactor or is in a
/// blocking call of the cache. Until then, other callers wait for the same pages, a sync or a change of size may wait,
/// too, and the disk looks slow or hung. The reads also keep their files' descriptors, even after [`Cache::close`]. So
/// a thread that stays away for long drops the reactor. The drop waits until the host has answered all reads in flight.
///
/// ```
/// use std::future::Future;
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
/// use std::time::Duration;
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let cache = afflux::Cache::builder().memory(16 << 20).build()?;
/// let file = cache.create(place.path().join("data"))?;
/// file.write_at(b"some bytes", 0)?;
/// let reactor = cache.thread_reactor();
/// let mut bytes = [0; 10];
/// let mut read = pin!(file.read_at_async(&mut bytes, 0));
/// // A loop of the program: 2 ms for reads, then something else.
/// let count = loop {
///     if let Some(count) = reactor.drive_for(&mut read, Duration::from_millis(2))? {
///         break count?;
///     }
/// };
/// assert_eq!(count, 10);
/// # Ok(())
/// # }
/// ```
pub struct ThreadReactor {
    reactor: afflux_linux_device::RetainedReactor,
    cache: Cache,
}

impl Cache {
    /// Makes this thread a reactor of the cache until the value is dropped.
    pub fn thread_reactor(&self) -> ThreadReactor {
        ThreadReactor { reactor: self.platform().keep_reactor(), cache: self.clone() }
    }
}

impl ThreadReactor {
    /// Polls a future of the program to its end, and drives this thread's reads meanwhile, those of earlier parts too.
    /// A blocking call in the future fails ([`Error::WaitInside`]).
    ///
    /// # Errors
    /// [`Error::WaitInside`] inside another such future, or on a thread of the cache.
    pub fn drive<F: Future>(&self, future: F) -> io::Result<F::Output> {
        Ok(self.reactor.drive(future).map_err(|_| Error::WaitInside)?)
    }

    /// [`ThreadReactor::drive`] for at most `time`; `None` if the future has not ended by then. With no time it looks
    /// once for completed reads.
    ///
    /// # Errors
    /// As [`ThreadReactor::drive`].
    pub fn drive_for<F: Future>(&self, future: F, time: Duration) -> io::Result<Option<F::Output>> {
        let platform = self.cache.platform();
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let end = platform.now().after(time_ns);
        self.drive(async {
            let (mut future, mut end, mut has_looked) = (pin!(future), pin!(platform.sleep_until(end)), false);
            poll_fn(|cx| {
                if let Poll::Ready(output) = future.as_mut().poll(cx) {
                    return Poll::Ready(Some(output));
                }
                let is_over = end.as_mut().poll(cx).is_ready();
                if is_over && has_looked {
                    return Poll::Ready(None);
                }
                if is_over {
                    cx.waker().wake_by_ref();
                }
                has_looked = true;
                Poll::Pending
            })
            .await
        })
    }
}
