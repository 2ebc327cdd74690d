use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::poll_fn;

use super::*;

fn reply() -> CachedReply {
    CachedReply { record: Bytes::from_static(b"done"), status: NfsStatus::Ok }
}

/// A call that ends once [`Wait::end`] was called.
#[derive(Clone, Default)]
struct Wait(Arc<Mutex<(bool, Option<Waker>)>>);

impl Wait {
    fn call(&self) -> SharedCall {
        let own = self.clone();
        SharedCall::new(Box::pin(poll_fn(move |cx| {
            let mut state = own.0.lock().unwrap();
            state.1 = Some(cx.waker().clone());
            if state.0 { Poll::Ready(reply()) } else { Poll::Pending }
        })))
    }

    fn end(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A task: counts its wakes, and polls the call in them.
struct Task {
    call: Mutex<SharedCall>,
    wakes: AtomicUsize,
    replies: AtomicUsize,
}

impl Task {
    fn of(call: &SharedCall) -> Arc<Self> {
        Arc::new(Self { call: Mutex::new(call.clone()), wakes: AtomicUsize::new(0), replies: AtomicUsize::new(0) })
    }

    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let polled = Pin::new(&mut *self.call.lock().unwrap()).poll(&mut Context::from_waker(&waker));
        self.replies.fetch_add(usize::from(polled.is_ready()), Ordering::Relaxed);
    }

    fn seen(&self) -> (usize, usize) {
        (self.wakes.load(Ordering::Relaxed), self.replies.load(Ordering::Relaxed))
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.poll();
    }
}

#[test]
fn a_waker_that_polls_the_call_at_once_finds_no_lock() {
    let wait = Wait::default();
    let task = Task::of(&wait.call());
    task.poll();
    wait.end();
    assert_eq!(task.seen(), (1, 1));
}

#[test]
fn each_task_that_waits_is_woken_once_however_often_it_polled() {
    let wait = Wait::default();
    let call = wait.call();
    let tasks = [Task::of(&call), Task::of(&call)];
    for _ in 0..3 {
        tasks.iter().for_each(Task::poll);
    }
    wait.end();
    assert_eq!(tasks.map(|task| task.seen()), [(1, 1); 2]);
    assert!(call.is_answered());
}

#[test]
fn a_call_that_is_woken_while_it_is_polled_is_polled_again() {
    let mut polls = 0;
    let call = SharedCall::new(Box::pin(poll_fn(move |cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls == 2 { Poll::Ready(reply()) } else { Poll::Pending }
    })));
    struct Woken(AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let (waker, mut call) = (Waker::from(Arc::clone(&woken)), call);
    let mut poll = || Pin::new(&mut call).poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert_eq!(poll(), Poll::Ready(reply()));
    assert_eq!(woken.0.load(Ordering::Relaxed), 1, "the task that has the reply is not woken");
}
