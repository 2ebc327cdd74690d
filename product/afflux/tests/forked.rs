//! A child that was forked while a cache was open. The test has its own process: a fork copies one thread only, and
//! other threads' locks in their current state.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use afflux::{Cache, Error};

#[test]
fn a_forked_child_gets_errors_and_harms_nobody() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let file = cache.create(&path).unwrap();
    file.write_at(&[1; 10_000], 0).unwrap();
    file.sync_data().unwrap();
    cache.drop_clean_pages();
    let reactor = cache.thread_reactor();
    let own = file.clone();
    let mut read = Box::pin(async move {
        let mut bytes = [0; 10];
        own.read_exact_at_async(&mut bytes, 0).await.map(|()| bytes)
    });
    assert!(reactor.drive(smol::future::poll_once(&mut read)).unwrap().is_none(), "it waits for the disk");
    // SAFETY: the child makes calls that only look at memory, and ends without running any code at exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_refused =
            |result: std::io::Result<()>| result.is_err_and(|error| matches!(Error::of(&error), Some(Error::Forked)));
        let refused = is_refused(file.read_at(&mut [0; 10], 0).map(drop))
            && is_refused(file.write_at(&[2; 10], 0))
            && is_refused(file.sync_data())
            && is_refused(file.metadata().map(drop))
            && is_refused(cache.create("/nowhere").map(drop))
            && cache.stats().memory_bytes == 0
            && cache.clone().close().is_ok();
        // The read in flight is the parent's, and the child does not wait for it.
        drop(reactor);
        drop((file, cache));
        // SAFETY: ends the child.
        unsafe { libc::_exit(if refused { 7 } else { 8 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
    assert_eq!(reactor.drive(read).unwrap().unwrap(), [1; 10]);
    drop(reactor);
    file.write_at(&[3; 5_000], 0).unwrap();
    drop(file);
    cache.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [[3; 5_000], [1; 5_000]].concat());
}
