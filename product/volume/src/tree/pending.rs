//! The result of a tree's call: at once, or later.
//!
//! Owns: its two forms: a future on the heap, and a call made elsewhere that holds its result in its own memory.
//! Does not own: the work of a call, the thread on which it is made.
//! Invariants: a call that has begun ends, even without a waiter.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::VolumeError;

/// The result of a tree's call.
pub struct TreeResult<'a, T>(Form<'a, T>);

enum Form<'a, T> {
    Future(Pin<Box<dyn Future<Output = Result<T, VolumeError>> + Send + 'a>>),
    Called(Called<Result<T, VolumeError>>),
}

impl<'a, T> TreeResult<'a, T> {
    /// The result of a future.
    pub fn by(future: impl Future<Output = Result<T, VolumeError>> + Send + 'a) -> Self {
        Self(Form::Future(Box::pin(future)))
    }

    /// A result that is known at once.
    pub fn now(result: Result<T, VolumeError>) -> Self
    where
        T: Send + 'a,
    {
        Self::by(ready(result))
    }
}

impl<T> From<Called<Result<T, VolumeError>>> for TreeResult<'_, T> {
    fn from(called: Called<Result<T, VolumeError>>) -> Self {
        Self(Form::Called(called))
    }
}

impl<T> Future for TreeResult<'_, T> {
    type Output = Result<T, VolumeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Form::Future(future) => future.as_mut().poll(cx),
            Form::Called(called) => Pin::new(called).poll(cx),
        }
    }
}

/// A call that another thread, for example, makes. The call stores its result in the same memory as its work, and the
/// next call may reuse the memory.
pub trait TreeCall<R>: Send + Sync {
    /// The result, once; until then, its arrival wakes the task. The first poll begins the call.
    fn poll(self: Arc<Self>, cx: &mut Context<'_>) -> Poll<R>;

    /// The waiter has gone. A call that has not begun is not made.
    fn abandon(&self);
}

/// The waiter for a [`TreeCall`].
pub struct Called<R>(Arc<dyn TreeCall<R>>);

impl<R> Called<R> {
    /// The call's only waiter.
    pub fn waits_for(call: Arc<dyn TreeCall<R>>) -> Self {
        Self(call)
    }
}

impl<R> Future for Called<R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        Arc::clone(&self.0).poll(cx)
    }
}

impl<R> Drop for Called<R> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
