//! The adapters on real stores: memory, directories, a Ceph gateway, a server that follows a script.
//!
//! Owns: the contracts that every implementation of a seam fulfils, on each store.
//! Does not own: the core's own checks (`afflux-object`).
//! Invariants: a test that needs a program which is not there is skipped by name.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test crate, also outside its test functions")]

mod answers;
mod azurite;
mod bill;
mod child;
mod costs;
mod dependencies;
mod formats;
mod growth;
mod kills;
mod moto;
mod objects;
mod opening;
mod prefixes;
mod radosgw;
mod records;
mod scripted;
mod throttled;
mod views;
mod volume;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use afflux_object_store::{Options, Store, StoreError};
use afflux_scratch::Scratch;

/// Polls a future on this thread, which belongs to no runtime.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A directory for a volume.
fn scratch() -> Scratch {
    Scratch::guarded(&std::env::temp_dir(), "stores").unwrap()
}

fn url(scratch: &Scratch) -> String {
    format!("file://{}", scratch.path().display())
}

fn open(url: &str) -> Result<Store, StoreError> {
    wait(Store::open(url, &Options::default()))
}
