//! rule: with many nodes, the kernel is asked to forget two for each new one, and each node is named in time

use super::*;

fn handle(number: u64) -> FileHandle {
    FileHandle::from_bytes(&number.to_be_bytes()).unwrap()
}

fn many(count: u64, usual: usize) -> KernelNodes {
    let mut nodes = KernelNodes::new(handle(0), 1 << 20, None);
    nodes.surplus.usual = usual;
    for at in 1..count {
        nodes.look_up(handle(at)).unwrap();
    }
    nodes
}

#[test]
fn few_nodes_are_never_too_many() {
    let mut nodes = many(1000, 1000);
    assert_eq!(nodes.surplus(), Vec::<u64>::new());
    nodes.look_up(handle(1000)).unwrap();
    assert_eq!(nodes.surplus().len(), NAMED);
}

#[test]
fn all_nodes_but_the_root_are_named_in_turn() {
    let mut nodes = many(100, 10);
    let mut named = Vec::new();
    while named.len() < 2 * 99 {
        nodes.surplus.made = NAMED / 2;
        named.extend(nodes.surplus());
        assert_eq!(nodes.surplus(), Vec::<u64>::new(), "no node was made since");
    }
    for at in 1..100 {
        let number = nodes.known(&handle(at)).unwrap();
        assert!((2..4).contains(&named.iter().filter(|named| **named == number).count()), "{number}");
    }
    assert!(!named.contains(&ROOT));
}

// rule: a mount asks the kernel to forget nodes after a fixed number of steps, however many slots are free
#[test]
fn a_long_run_of_free_slots_is_examined_in_pieces() {
    const LIVING: u64 = 100;
    let count = 3 * SLOTS_EXAMINED as u64;
    let mut nodes = many(count, 10);
    for at in 1..count - LIVING {
        nodes.forget(nodes.known(&handle(at)).unwrap(), 1);
    }
    let named = [(); 4].map(|()| {
        nodes.surplus.made = NAMED / 2;
        nodes.surplus().len()
    });
    assert_eq!(named, [0, 0, NAMED, LIVING as usize - NAMED]);
}
