use super::*;

/// A write up to `end` into a file with `accepted` known bytes.
struct Write {
    end: u64,
    accepted: u64,
}

impl GatedWrite for Write {
    fn end(&self) -> u64 {
        self.end
    }

    fn file_bytes(&self) -> u64 {
        self.accepted
    }

    fn take_grant(&mut self, _: WriteGrant, _: Begins) {
        unreachable!("the order alone is tested");
    }

    fn begin(self: Box<Self>) {
        unreachable!("the order alone is tested");
    }
}

/// Has a write come that ends after so many pages. Returns it if it begins.
fn enter(gate: &mut GateState, sharing: WriteSharing, pages: u64) -> Vec<(Begins, u64)> {
    if gate.try_enter(sharing) {
        return vec![(Begins::As(sharing), pages)];
    }
    gate.keep(sharing, Box::new(Write { end: pages * PAGE_BYTES, accepted: pages * PAGE_BYTES }));
    Vec::new()
}

/// The pages at which the writes end.
fn ends(begun: StartedWrites) -> Vec<(Begins, u64)> {
    begun.into_iter().map(|(begins, write)| (begins, write.end() / PAGE_BYTES)).collect()
}

const TOGETHER: Begins = Begins::As(WriteSharing::Together);
const LONGER: Begins = Begins::As(WriteSharing::Longer);
const ALONE: Begins = Begins::As(WriteSharing::Alone);

#[test]
fn the_first_makes_the_file_longer_itself_and_the_others_have_it_made() {
    let mut gate = GateState::default();
    assert_eq!(enter(&mut gate, WriteSharing::Longer, 1), [(LONGER, 1)]);
    for end in 2..=5 {
        assert_eq!(enter(&mut gate, WriteSharing::Longer, end), []);
    }
    assert_eq!(ends(gate.leave(WriteSharing::Longer, PAGE_BYTES)), [(Begins::Leads(5 * PAGE_BYTES), 2)]);
    // A write that comes meanwhile may end further out.
    assert_eq!(enter(&mut gate, WriteSharing::Longer, 6), []);
    let begun = ends(gate.grown(5 * PAGE_BYTES));
    assert_eq!(begun, [(TOGETHER, 3), (TOGETHER, 4), (TOGETHER, 5), (LONGER, 6)]);
    assert_eq!(ends(gate.leave(WriteSharing::Longer, 6 * PAGE_BYTES)), []);
    (0..4).for_each(|_| assert_eq!(ends(gate.leave(WriteSharing::Together, 0)), []));
    assert_eq!(enter(&mut gate, WriteSharing::Alone, 9), [(ALONE, 9)], "nothing is left");
}

#[test]
fn a_single_one_that_waits_makes_it_longer_itself() {
    let mut gate = GateState::default();
    enter(&mut gate, WriteSharing::Longer, 1);
    enter(&mut gate, WriteSharing::Longer, 2);
    assert_eq!(ends(gate.leave(WriteSharing::Longer, PAGE_BYTES)), [(LONGER, 2)]);
}

#[test]
fn those_that_are_inside_by_now_go_together() {
    let mut gate = GateState::default();
    enter(&mut gate, WriteSharing::Longer, 8);
    enter(&mut gate, WriteSharing::Longer, 2);
    enter(&mut gate, WriteSharing::Longer, 3);
    assert_eq!(ends(gate.leave(WriteSharing::Longer, 8 * PAGE_BYTES)), [(TOGETHER, 2), (TOGETHER, 3)]);
}

#[test]
fn where_one_failed_the_next_tries() {
    let mut gate = GateState::default();
    for end in 1..=3 {
        enter(&mut gate, WriteSharing::Longer, end);
    }
    assert_eq!(ends(gate.leave(WriteSharing::Longer, 0)), [(Begins::Leads(3 * PAGE_BYTES), 2)]);
    // The extension failed: the leader's own write made the file longer, but only up to its own end.
    assert_eq!(ends(gate.leave(WriteSharing::Longer, 2 * PAGE_BYTES)), [(LONGER, 3)]);
}

#[test]
fn a_file_is_made_as_long_as_was_accepted_up_to_a_bound_and_in_whole_pages() {
    let lengths = |accepted: u64| {
        let write = |end: u64| -> WaitingWrite { Box::new(Write { end: end * PAGE_BYTES, accepted }) };
        ahead(&VecDeque::from([write(1), write(3), write(2)]))
    };
    assert_eq!(lengths(3 * PAGE_BYTES), 3 * PAGE_BYTES);
    assert_eq!(lengths(10 * PAGE_BYTES + 17), 10 * PAGE_BYTES);
    assert_eq!(lengths(1 << 40), 3 * PAGE_BYTES + AHEAD_BYTES);
    // A caller of the device may leave the accepted size unknown.
    assert_eq!(lengths(0), 3 * PAGE_BYTES);
}

#[test]
fn one_that_wants_to_be_alone_waits_for_all_and_is_not_passed() {
    let mut gate = GateState::default();
    assert_eq!(enter(&mut gate, WriteSharing::Together, 1), [(TOGETHER, 1)]);
    assert_eq!(enter(&mut gate, WriteSharing::Longer, 2), [(LONGER, 2)]);
    assert_eq!(enter(&mut gate, WriteSharing::Longer, 3), []);
    assert_eq!(enter(&mut gate, WriteSharing::Alone, 4), []);
    assert_eq!(enter(&mut gate, WriteSharing::Together, 5), []);
    assert_eq!(enter(&mut gate, WriteSharing::Longer, 6), []);
    assert_eq!(enter(&mut gate, WriteSharing::Alone, 7), []);
    assert_eq!(ends(gate.leave(WriteSharing::Longer, 2 * PAGE_BYTES)), [(LONGER, 3)], "it came before");
    assert_eq!(ends(gate.leave(WriteSharing::Longer, 3 * PAGE_BYTES)), []);
    assert_eq!(ends(gate.leave(WriteSharing::Together, 0)), [(ALONE, 4)]);
    assert_eq!(ends(gate.leave(WriteSharing::Alone, 0)), [(TOGETHER, 5), (LONGER, 6)]);
    assert_eq!(ends(gate.leave(WriteSharing::Together, 0)), []);
    assert_eq!(ends(gate.leave(WriteSharing::Longer, 0)), [(ALONE, 7)]);
}
