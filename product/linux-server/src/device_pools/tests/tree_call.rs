use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::thread::Thread;

use super::super::*;
use afflux_linux_device::pool::PoolTask;

/// Waits for a word if asked to, and returns its number.
struct Say {
    number: u32,
    gate: Option<Receiver<()>>,
}

impl PoolWork<u32> for Say {
    fn carry_out(self) -> (u32, Option<PoolTask>) {
        self.gate.into_iter().for_each(|gate| gate.recv().unwrap());
        (self.number, None)
    }
}

fn say(number: u32) -> Say {
    Say { number, gate: None }
}

fn say_when_told(number: u32) -> (Sender<()>, Say) {
    let (tell, gate) = channel();
    (tell, Say { number, gate: Some(gate) })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<R>(mut called: Called<R>) -> R {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match Future::poll(Pin::new(&mut called), &mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn begin<R>(called: &mut Called<R>) {
    assert!(Future::poll(Pin::new(called), &mut Context::from_waker(Waker::noop())).is_pending());
}

fn kept<W, R>() -> PooledCalls<W, R> {
    PooledCalls::new(CALLS_POOLED)
}

#[test]
fn a_call_that_is_over_leaves_its_memory_to_the_next() {
    let (pool, calls) = (WorkerPool::new("test", 1, 4), kept());
    assert_eq!(wait(HostCall::run_pooled(&calls, &pool, Lane::default(), say(1))), 1);
    for number in 2..10 {
        assert_eq!(wait(HostCall::run_pooled(&calls, &pool, Lane::default(), say(number))), number);
    }
    // The pool's thread may still have a call whose result it has given.
    assert!(calls.count() <= 2, "{} calls", calls.count());
}

#[test]
fn calls_under_way_keep_theirs_and_each_gets_its_own_result() {
    let (pool, calls) = (WorkerPool::new("test", 8, 8), kept());
    let (gates, mut called): (Vec<_>, Vec<_>) = (0..6)
        .map(|number| {
            let (gate, work) = say_when_told(number);
            (gate, HostCall::run_pooled(&calls, &pool, Lane::default(), work))
        })
        .unzip();
    called.iter_mut().for_each(begin);
    gates.iter().for_each(|gate| gate.send(()).unwrap());
    assert_eq!(called.into_iter().map(wait).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn nobody_gets_the_result_of_a_call_that_was_let_go() {
    let (pool, calls) = (WorkerPool::new("test", 1, 4), kept());
    let (gate, work) = say_when_told(1);
    let mut abandoned = HostCall::run_pooled(&calls, &pool, Lane::default(), work);
    begin(&mut abandoned);
    drop(abandoned);
    // The first call is queued or running, so the next one gets memory of its own.
    let mut next = HostCall::run_pooled(&calls, &pool, Lane::default(), say(2));
    begin(&mut next);
    assert_eq!(calls.count(), 2);
    gate.send(()).unwrap();
    assert_eq!(wait(next), 2);
    assert_eq!(wait(HostCall::run_pooled(&calls, &pool, Lane::default(), say(3))), 3);
}

#[test]
fn what_is_kept_is_bounded_and_holds_no_work() {
    let (pool, calls) = (WorkerPool::new("test", 1, 4), kept());
    let held = Arc::new(());
    struct Hold(#[expect(dead_code, reason = "it is held")] Arc<()>);
    impl PoolWork<()> for Hold {
        fn carry_out(self) -> ((), Option<PoolTask>) {
            ((), None)
        }
    }
    let called: Vec<_> = (0..CALLS_POOLED + 8)
        .map(|_| HostCall::run_pooled(&calls, &pool, Lane::default(), Hold(Arc::clone(&held))))
        .collect();
    assert_eq!(calls.count(), CALLS_POOLED);
    drop(called);
    // The call never began, and was dropped.
    assert_eq!(Arc::strong_count(&held), 1);
}
