//! Bytes of a file that become durable together with a change of its attributes.
//!
//! Owns: the form of such a meeting.
//! Does not own: the sync and the change, which the volume makes; the batch with both, which the tree makes.
//! Invariants: a sync waits for no change whose [`Joint`] was dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A change of attributes that takes the file's bytes along. While it lives, the next sync of the file gives its bytes
/// to the tree, and goes on to make them durable once the value is dropped. The future ends when the tree has the
/// bytes.
pub struct Joint(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Joint {
    /// A joint that a tree made. Its future is polled no more once it has ended, and is dropped with the joint.
    pub fn by(bytes_arrive: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Box::pin(bytes_arrive))
    }
}

impl Future for Joint {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}
