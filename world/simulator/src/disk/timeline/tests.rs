use super::*;

const WRITE: Operation = Operation::Write { offset: 0, len: 4096 };

/// Requests of files 0, 1 and so on in turn: submitted, started and ended at these instants, in the order of their
/// starts.
fn timeline(requests: &[(u64, u64, [u64; 3])]) -> Timeline {
    let mut timeline = Timeline::default();
    requests.iter().for_each(|(id, _, [_, started_ns, _])| timeline.started(*id, *started_ns));
    for (id, file, [submitted_ns, started_ns, ended_ns]) in requests {
        timeline.ended(*id, *file, WRITE, *submitted_ns, Some(*started_ns), *ended_ns);
    }
    timeline
}

#[test]
fn a_wait_behind_earlier_requests_is_the_queues_and_behind_later_ones_the_elevators() {
    // Request 1 of file 7 comes at 10. The disk carries out request 0, then the later requests 2 and 3, then request 1.
    let timeline = timeline(&[(0, 1, [0, 0, 30]), (2, 1, [12, 30, 40]), (3, 1, [35, 40, 60]), (1, 7, [10, 60, 65])]);
    assert_eq!(timeline.waited(7, false, 5, 70), DiskWait { elevator_ns: 30, queue_ns: 20, disk_ns: 5 });
    // A call that came when the request was already there.
    assert_eq!(timeline.waited(7, false, 45, 70), DiskWait { elevator_ns: 15, queue_ns: 0, disk_ns: 5 });
    assert_eq!(timeline.waited(7, true, 5, 70), DiskWait::default(), "it was no read");
    assert_eq!(timeline.waited(7, false, 65, 70), DiskWait::default(), "it had ended");
}

#[test]
fn a_call_waits_for_one_request_after_the_other() {
    // Two requests at once, of which the longer one counts, and a third that came 5 after its end.
    let timeline = timeline(&[(0, 7, [0, 0, 20]), (1, 7, [0, 20, 40]), (2, 7, [45, 50, 60])]);
    assert_eq!(timeline.waited(7, false, 0, 60), DiskWait { elevator_ns: 0, queue_ns: 25, disk_ns: 30 });
}
