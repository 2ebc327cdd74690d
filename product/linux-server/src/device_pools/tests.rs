mod tree_call;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afflux_linux_device::{IoChoice, Reactors};

use super::*;

fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_device_that_hangs_takes_no_thread_and_no_place_from_another() {
    let pools = DevicePools::new(&WorkerPool::new("test", 2, 2));
    let (hangs, works) = (DeviceKey(1), DeviceKey(2));
    let (go, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (begun, has_begun) = mpsc::channel();
    // Two run, two are queued, the rest wait for a free slot.
    let mut hung: Vec<_> = (0..10)
        .map(|_| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let (gate, begun) = (Arc::clone(&gate), begun.clone());
            let pool = pools.of(hangs);
            Box::pin(pool.run(move || {
                begun.send(()).unwrap();
                gate.lock().unwrap().recv().unwrap();
            }))
        })
        .collect();
    for future in &mut hung {
        assert!(poll_once(future.as_mut()).is_pending());
    }
    (0..2).for_each(|_| has_begun.recv().unwrap());
    let (done, is_done) = mpsc::channel();
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let (platform, world) = (reactors.platform(), reactors.platform());
    let works = [pools.of(works), pools.common().clone()];
    let working = std::thread::spawn(move || {
        for (pool, number) in works.iter().cycle().zip(0..100) {
            done.send(world.block_on(pool.run(move || number))).unwrap();
        }
    });
    for number in 0..100 {
        let told = is_done.recv_timeout(Duration::from_secs(30)).expect("waits for another device");
        assert_eq!(told, number);
    }
    working.join().unwrap();
    assert!(hung.iter_mut().all(|future| poll_once(future.as_mut()).is_pending()), "the other device still hangs");
    (0..10).for_each(|_| go.send(()).unwrap());
    hung.into_iter().for_each(|future| platform.block_on(future));
}
