use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Waits for a word if asked to, and returns its number.
struct Say {
    number: u32,
    gate: Option<Receiver<()>>,
}

impl Piece<u32> for Say {
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

fn wait<R>(mut called: Called<R>) -> R {
    let waker = Waker::from(Arc::new(crate::pool::tests::Unpark(std::thread::current())));
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

fn memory(calls: &KeptCalls<Say, u32>) -> Vec<*const PoolCall<Say, u32>> {
    let mut memory: Vec<_> = calls.0.lock().unwrap().iter().map(Arc::as_ptr).collect();
    memory.sort_unstable();
    memory
}

#[test]
fn a_call_that_is_over_leaves_its_memory_to_the_next() {
    let (pool, calls) = (WorkerPool::new("test", 1, 4), KeptCalls::default());
    assert_eq!(wait(calls.run_on(&pool, Lane::default(), say(1))), 1);
    let first = memory(&calls);
    for number in 2..10 {
        // The pool's thread drops a call after it has given the result.
        while Arc::strong_count(&calls.0.lock().unwrap()[0]) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(wait(calls.run_on(&pool, Lane::default(), say(number))), number);
    }
    assert_eq!(memory(&calls), first);
}

#[test]
fn calls_under_way_keep_theirs_and_each_gets_its_own_result() {
    let (pool, calls) = (WorkerPool::new("test", 8, 8), KeptCalls::default());
    let (gates, mut called): (Vec<_>, Vec<_>) = (0..6)
        .map(|number| {
            let (gate, work) = say_when_told(number);
            (gate, calls.run_on(&pool, Lane::default(), work))
        })
        .unzip();
    called.iter_mut().for_each(begin);
    gates.iter().for_each(|gate| gate.send(()).unwrap());
    assert_eq!(called.into_iter().map(wait).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn nobody_gets_the_result_of_a_call_that_was_let_go() {
    let (pool, calls) = (WorkerPool::new("test", 1, 4), KeptCalls::default());
    let (gate, work) = say_when_told(1);
    let mut abandoned = calls.run_on(&pool, Lane::default(), work);
    begin(&mut abandoned);
    drop(abandoned);
    // The first call is queued or running, so the next one gets memory of its own.
    let mut next = calls.run_on(&pool, Lane::default(), say(2));
    begin(&mut next);
    assert_eq!(memory(&calls).len(), 2);
    gate.send(()).unwrap();
    assert_eq!(wait(next), 2);
    assert_eq!(wait(calls.run_on(&pool, Lane::default(), say(3))), 3);
}

#[test]
fn what_is_kept_is_bounded_and_holds_no_work() {
    let (pool, calls) = (WorkerPool::new("test", 1, 4), KeptCalls::default());
    let held = Arc::new(());
    struct Hold(#[expect(dead_code, reason = "it is held")] Arc<()>);
    impl Piece<()> for Hold {
        fn carry_out(self) -> ((), Option<PoolTask>) {
            ((), None)
        }
    }
    let called: Vec<_> = (0..KEPT + 8).map(|_| calls.run_on(&pool, Lane::default(), Hold(Arc::clone(&held)))).collect();
    assert_eq!(calls.0.lock().unwrap().len(), KEPT);
    drop(called);
    // The call never began, and was dropped.
    assert_eq!(Arc::strong_count(&held), 1);
}
