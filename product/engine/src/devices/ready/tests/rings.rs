use std::collections::VecDeque;

use super::super::*;

fn all(rings: &Rings, list: u32) -> Vec<u32> {
    let numbers: Vec<u32> = rings.iter(list).collect();
    assert_eq!(rings.first(list), numbers.first().copied());
    numbers
}

#[test]
fn a_list_takes_over_another_and_numbers_leave_from_anywhere() {
    let mut rings = Rings::new(2);
    assert_eq!(all(&rings, 0), []);
    for number in [4, 0, 2] {
        rings.push(0, number);
    }
    for number in [1, 3] {
        rings.push(1, number);
    }
    rings.append(0, 1);
    assert_eq!((all(&rings, 0), all(&rings, 1)), (vec![4, 0, 2, 1, 3], vec![]));
    rings.append(0, 1);
    for number in [2, 4, 3] {
        rings.remove(number);
    }
    assert_eq!(all(&rings, 0), [0, 1]);
    rings.push(1, 4);
    rings.append(0, 1);
    assert_eq!(all(&rings, 0), [0, 1, 4]);
}

#[test]
fn random_steps_do_what_they_do_to_queues() {
    let mut random = 1_u64;
    let mut below = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let (mut rings, mut queues) = (Rings::new(3), [const { VecDeque::new() }; 3]);
    for _ in 0..20_000 {
        let (list, number) = (below(3) as usize, below(40) as u32);
        match queues.iter().position(|queue: &VecDeque<u32>| queue.contains(&number)) {
            _ if below(50) == 0 => {
                let from = (list + 1) % 3;
                let moved = std::mem::take(&mut queues[from]);
                queues[list].extend(moved);
                rings.append(list as u32, from as u32);
            }
            Some(holder) => {
                queues[holder].retain(|other| *other != number);
                rings.remove(number);
            }
            None => {
                queues[list].push_back(number);
                rings.push(list as u32, number);
            }
        }
        for (list, queue) in queues.iter().enumerate() {
            assert_eq!(all(&rings, list as u32), Vec::from(queue.clone()));
        }
    }
}
