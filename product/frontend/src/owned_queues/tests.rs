use super::*;

type Queues = OwnedQueues<u32, u32, u32>;

fn evict(queues: &mut Queues) -> Option<u32> {
    let owner = queues.heaviest(|_, _| false)?;
    queues.take(owner, |_| Some(0))
}

fn check(queues: &Queues) {
    let len = queues.of.values().map(VecDeque::len).sum::<usize>();
    assert_eq!(queues.parties.of.values().map(|(count, _)| count).sum::<usize>(), len);
    assert_eq!(queues.parties.ordered.len(), queues.parties.of.len());
    assert_eq!(queues.users.values().map(|users| users.ordered.len()).sum::<usize>(), queues.of.len());
    assert!(queues.of.values().all(|items| !items.is_empty()), "an owner without items is forgotten");
}

#[test]
fn the_heaviest_user_of_the_heaviest_party_gives_its_oldest_item() {
    let mut queues = Queues::default();
    // One party with many users of an item each, one with a busy user beside a quiet one, and one with a single item.
    (0..10).for_each(|user| queues.push(1, user, 100 + user));
    queues.push(2, 1, 200);
    (1..6).for_each(|item| queues.push(2, 0, 200 + item));
    queues.push(3, 0, 300);
    check(&queues);
    let went: Vec<u32> = std::iter::from_fn(|| evict(&mut queues)).collect();
    assert_eq!(went[..4], [100, 101, 102, 103], "the users of the first party, the one that came first before others");
    assert_eq!(*went.last().unwrap(), 300);
    let at = |item| went.iter().position(|&it| it == item).unwrap();
    assert!((201..205).is_sorted_by_key(at) && at(204) < at(200), "the busy user's, the oldest first");
    assert!(queues.of.is_empty() && queues.parties.ordered.is_empty() && queues.users.is_empty());
}

#[test]
fn among_equals_the_one_that_came_last_stays() {
    let mut queues = Queues::default();
    for party in [5, 9, 1, 7] {
        queues.push(party, 0, party);
    }
    assert_eq!([(); 4].map(|()| evict(&mut queues).unwrap()), [5, 9, 1, 7]);
}

#[test]
fn a_spared_party_and_a_picked_item() {
    let mut queues = Queues::default();
    (0..5).for_each(|item| queues.push(0, 0, item));
    queues.push(1, 0, 9);
    assert_eq!(queues.heaviest(|party, count| party == 0 && count <= 5), Some((1, 0)));
    assert_eq!(queues.heaviest(|party, count| party == 0 && count <= 4), Some((0, 0)));
    assert_eq!(queues.take((0, 0), |items| items.iter().position(|&item| item == 3)), Some(3));
    assert_eq!(queues.take((0, 0), |items| items.iter().position(|&item| item == 3)), None);
    assert_eq!((queues.len_of((0, 0)), queues.len_of((7, 7))), (4, 0));
    check(&queues);
}
