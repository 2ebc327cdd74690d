use super::*;

fn lane(user: u32, object: u64) -> Lane {
    Lane { object: Some(object), user: Some(user) }
}

fn taken(queue: &mut WorkQueue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.take()).map(|(_, work)| work).collect()
}

#[test]
fn work_of_nobody_in_particular_comes_in_its_order() {
    let mut queue = WorkQueue::new(2);
    for work in ["first", "second", "third", "fourth"] {
        queue.push(Lane::default(), work);
    }
    assert_eq!((queue.len(), taken(&mut queue)), (4, vec!["first", "second", "third", "fourth"]));
    assert!(queue.is_empty());
}

#[test]
fn users_take_turns() {
    let mut queue = WorkQueue::new(16);
    for (at, work) in ["a", "b", "c"].into_iter().enumerate() {
        queue.push(lane(1, at as u64), work);
    }
    queue.push(lane(2, 10), "other");
    assert_eq!(taken(&mut queue), ["a", "other", "b", "c"]);
}

#[test]
fn an_object_has_half_of_the_threads() {
    let mut queue = WorkQueue::new(4);
    for work in ["one", "two", "three", "four"] {
        queue.push(lane(1, 7), work);
    }
    queue.push(lane(1, 8), "another object");
    assert_eq!(taken(&mut queue), ["one", "two", "another object"]);
    queue.end(lane(1, 8));
    assert_eq!(taken(&mut queue), [""; 0]);
    queue.end(lane(1, 7));
    assert_eq!(taken(&mut queue), ["three"]);
    queue.end(lane(1, 7));
    queue.end(lane(1, 7));
    assert_eq!(taken(&mut queue), ["four"]);
    queue.end(lane(1, 7));
    let is_over = |line: &Line<_>| line.queued.is_empty() && line.threads == 0;
    assert!(queue.lines.values().all(is_over) && queue.objects.is_empty() && queue.order.is_empty(), "no work is kept");
}

#[test]
fn the_memory_of_few_users_is_kept() {
    let mut queue = WorkQueue::new(4);
    for user in 0..200 {
        queue.push(lane(user, 7), "work");
        assert_eq!(taken(&mut queue), ["work"]);
        queue.end(lane(user, 7));
        assert_eq!(queue.lines.len(), POOLED_LINES.min(user as usize + 1));
    }
}

#[test]
fn a_user_has_three_quarters_of_the_threads() {
    let mut queue = WorkQueue::new(4);
    for object in 0..17 {
        queue.push(lane(1, object), "the user's");
    }
    assert_eq!(taken(&mut queue).len(), 3);
    queue.push(lane(2, 100), "another user's");
    assert_eq!(taken(&mut queue), ["another user's"]);
    queue.end(lane(1, 0));
    assert_eq!(taken(&mut queue), ["the user's"]);
}

#[test]
fn a_pool_of_one_thread_works() {
    let mut queue = WorkQueue::new(1);
    queue.push(lane(1, 1), "one");
    queue.push(lane(1, 1), "two");
    assert_eq!(taken(&mut queue), ["one"]);
    queue.end(lane(1, 1));
    assert_eq!(taken(&mut queue), ["two"]);
}
