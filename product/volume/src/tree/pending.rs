//! What a call of a tree gives: its result later, or at once.
//!
//! Owns: the two forms, a future on the heap and a call that is under way elsewhere with its result in its own memory.
//! Does not own: what a call does, where it is made.
//! Invariants: a call that was begun ends, whoever still waits for it.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::VolumeError;

/// What a call of a tree gives.
pub struct Pending<'a, T>(Form<'a, T>);

enum Form<'a, T> {
    Future(Pin<Box<dyn Future<Output = Result<T, VolumeError>> + Send + 'a>>),
    Called(Called<Result<T, VolumeError>>),
}

impl<'a, T> Pending<'a, T> {
    /// By a future.
    pub fn by(future: impl Future<Output = Result<T, VolumeError>> + Send + 'a) -> Self {
        Self(Form::Future(Box::pin(future)))
    }

    /// At once.
    pub fn now(result: Result<T, VolumeError>) -> Self
    where
        T: Send + 'a,
    {
        Self::by(ready(result))
    }
}

impl<T> From<Called<Result<T, VolumeError>>> for Pending<'_, T> {
    fn from(called: Called<Result<T, VolumeError>>) -> Self {
        Self(Form::Called(called))
    }
}

impl<T> Future for Pending<'_, T> {
    type Output = Result<T, VolumeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Form::Future(future) => future.as_mut().poll(cx),
            Form::Called(called) => Pin::new(called).poll(cx),
        }
    }
}

/// A call that somebody else makes, such as a thread, and that keeps its result: in the same memory as what is to be
/// done, which may serve the next call.
pub trait Call<R>: Send + Sync {
    /// The result, once; until then the task is woken when it comes. The first poll begins the call.
    fn poll(self: Arc<Self>, cx: &mut Context<'_>) -> Poll<R>;

    /// Nobody waits for it any more. Not begun, it is not made.
    fn let_go(&self);
}

/// Who waits for a [`Call`].
pub struct Called<R>(Arc<dyn Call<R>>);

impl<R> Called<R> {
    /// The call's only waiter.
    pub fn waits_for(call: Arc<dyn Call<R>>) -> Self {
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
        self.0.let_go();
    }
}
