use super::*;

fn elevator() -> Elevator {
    Elevator::new(QueueParameters {
        deadline: true,
        command_bytes_max: 64 << 10,
        read_expire_ns: 500,
        write_expire_ns: 5000,
        batch_commands: 4,
        writes_starved: 2,
    })
}

fn add(queue: &mut Elevator, now_ns: u64, request: u64, write: bool, page: u64) {
    queue.add(now_ns, request, request % 2, write, Span { position: page * 4096, len: 4096 });
}

/// Takes the next command: direction, first page, pages, and its requests.
fn next(queue: &mut Elevator, now_ns: u64) -> (bool, u64, u64, Vec<u64>) {
    let command = queue.next(now_ns).unwrap();
    let mut requests = Vec::new();
    queue.requests(command.token, |request| requests.push(request));
    queue.done(command.token);
    (command.write, command.span.position / 4096, command.span.len / 4096, requests)
}

fn pages(queue: &mut Elevator, now_ns: u64, count: usize) -> Vec<(bool, u64)> {
    (0..count).map(|_| next(queue, now_ns)).map(|(write, page, ..)| (write, page)).collect()
}

#[test]
fn requests_are_merged_behind_before_and_in_between() {
    let mut queue = elevator();
    for (request, page) in [(0, 10), (1, 11), (2, 9), (3, 13), (4, 12)] {
        add(&mut queue, 0, request, false, page);
    }
    // Another direction and a gap are not merged.
    add(&mut queue, 0, 5, true, 14);
    add(&mut queue, 0, 6, false, 15);
    assert_eq!(next(&mut queue, 0), (false, 9, 5, vec![2, 0, 1, 4, 3]));
    assert_eq!(queue.merges, 4);
    assert_eq!(pages(&mut queue, 0, 2), [(false, 15), (true, 14)]);
    assert!(queue.next(0).is_none());
}

#[test]
fn a_command_is_never_larger_than_the_largest() {
    let mut queue = elevator();
    (0..40).for_each(|at| add(&mut queue, 0, at, true, at));
    let sizes: Vec<u64> = (0..3).map(|_| next(&mut queue, 0).2).collect();
    assert_eq!(sizes, [16, 16, 8]);
    assert_eq!(queue.merges, 37);
}

#[test]
fn reads_go_first_in_batches_until_writes_have_starved() {
    let mut queue = elevator();
    for at in 0..20 {
        add(&mut queue, 0, at, false, at * 10);
        add(&mut queue, 0, 100 + at, true, at * 10 + 5);
    }
    let directions: Vec<bool> = pages(&mut queue, 0, 32).into_iter().map(|(write, _)| write).collect();
    let batches: Vec<bool> = directions.chunks(4).map(|batch| batch[0]).collect();
    assert!(directions.chunks(4).all(|batch| batch.iter().all(|write| *write == batch[0])));
    assert_eq!(batches, [false, false, true, false, false, true, false, true]);
}

#[test]
fn a_sweep_goes_upwards_and_the_oldest_goes_first_when_its_time_is_up() {
    let mut queue = elevator();
    [50, 30, 70, 90, 10, 60].into_iter().enumerate().for_each(|(at, page)| add(&mut queue, 0, at as u64, false, page));
    // The oldest begins a batch of four. Then the sweep has reached its end, and the oldest begins again.
    assert_eq!(pages(&mut queue, 0, 6), [50, 60, 70, 90, 30, 10].map(|page| (false, page)));
    let mut queue = elevator();
    [50, 60, 70, 80, 90].into_iter().enumerate().for_each(|(at, page)| add(&mut queue, 0, at as u64, false, page));
    add(&mut queue, 0, 9, false, 10);
    assert_eq!(pages(&mut queue, 0, 4), [50, 60, 70, 80].map(|page| (false, page)));
    add(&mut queue, 400, 10, false, 95);
    // Unexpired, the sweep would continue at 90. Both 10 and 90 came at 0, but 90 was first.
    assert_eq!(pages(&mut queue, 500, 1), [(false, 90)]);
    assert_eq!(pages(&mut queue, 500, 2), [(false, 95), (false, 10)]);
    // Expired: a new batch begins with the oldest, behind the head.
    let mut queue = elevator();
    [50, 60, 70, 80, 10, 90].into_iter().enumerate().for_each(|(at, page)| add(&mut queue, 0, at as u64, false, page));
    assert_eq!(pages(&mut queue, 0, 4), [50, 60, 70, 80].map(|page| (false, page)));
    assert_eq!(pages(&mut queue, 500, 2), [(false, 10), (false, 90)]);
}

#[test]
fn switches_between_files_are_counted_as_the_device_sees_them() {
    let mut queue = elevator();
    // Files 0 and 1 alternate in the order of arrival, and are apart on the medium.
    for at in 0..8 {
        add(&mut queue, 0, at, true, (at % 2) * 1000 + at * 2);
    }
    while queue.next(0).is_some() {}
    assert_eq!(queue.file_switches, 1);
}

#[test]
fn without_an_elevator_requests_go_as_they_come() {
    let mut queue = Elevator::new(QueueParameters { deadline: false, ..elevator().parameters });
    [3, 1, 2].into_iter().for_each(|page| add(&mut queue, 0, page, false, page));
    assert_eq!(pages(&mut queue, 0, 3), [3, 1, 2].map(|page| (false, page)));
    assert_eq!(queue.merges, 0);
}
