use std::sync::Arc;

use afflux_device::platform::Nanos;

use super::{EngineEvent, Follower, TRACED_EVENTS_MAX, Traced, Tracer};
use crate::devices::DeviceId;

fn happen(tracer: &Tracer, at: u64) {
    tracer.note(|| Traced {
        at: Nanos(at),
        device: Some(DeviceId(0)),
        file: None,
        client: None,
        event: EngineEvent::DeviceAdded,
    });
}

fn times(follower: &mut Follower, most: usize) -> (Vec<u64>, u64) {
    let (events, lost) = follower.take(most);
    (events.iter().map(|traced| traced.at.0).collect(), lost)
}

#[test]
fn who_follows_gets_what_happens_from_then_on_in_order() {
    let tracer = Arc::new(Tracer::default());
    happen(&tracer, 1);
    let mut follower = Follower::new(Arc::clone(&tracer));
    (2..7).for_each(|at| happen(&tracer, at));
    assert_eq!(times(&mut follower, 3), (vec![2, 3, 4], 0));
    assert_eq!(times(&mut follower, 3), (vec![5, 6], 0));
    assert_eq!(times(&mut follower, 3), (vec![], 0));
}

#[test]
fn while_nobody_follows_no_event_is_even_made() {
    let tracer = Arc::new(Tracer::default());
    tracer.note(|| unreachable!("nobody follows"));
    let follower = Follower::new(Arc::clone(&tracer));
    happen(&tracer, 1);
    drop(follower);
    tracer.note(|| unreachable!("nobody follows any more"));
    assert_eq!(tracer.ring.lock().unwrap().traced.len(), 0, "and nothing is kept");
}

#[test]
fn a_slow_follower_is_told_how_many_events_it_lost_and_costs_others_none() {
    let tracer = Arc::new(Tracer::default());
    let (mut slow, mut quick) = (Follower::new(Arc::clone(&tracer)), Follower::new(Arc::clone(&tracer)));
    let kept = TRACED_EVENTS_MAX as u64;
    for at in 0..kept + 10 {
        happen(&tracer, at);
        assert_eq!(times(&mut quick, 100), (vec![at], 0));
    }
    assert_eq!(times(&mut slow, 2), (vec![10, 11], 10));
    assert_eq!(times(&mut slow, 1), (vec![12], 0), "told once");
    assert_eq!(tracer.ring.lock().unwrap().traced.len(), TRACED_EVENTS_MAX);
}
