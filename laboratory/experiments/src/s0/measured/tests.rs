use super::*;

#[test]
fn a_read_of_the_line_takes_each_group_whole() {
    let line = HotLine::default();
    line.0[3].store(5, Ordering::Relaxed);
    // Only groups of four include the fourth word.
    assert_eq!(line.read(&[3], true), line.read(&[3], false));
    assert_ne!(line.read(&[4], true), line.read(&[4], false));
    assert!(GROUPS.iter().map(|(_, groups)| groups.iter().sum::<usize>()).eq([9, 4, 3, 2]));
}

#[test]
fn beside_others_only_rounds_count_in_which_they_got_on() {
    let beside = NeighbourLoad::new(2);
    assert_eq!(Quartiles::of(&beside, || ()).rounds, 0);
    let turn = || {
        beside.done.fetch_add(1, Ordering::Relaxed);
    };
    assert_eq!(Quartiles::of(&beside, turn).rounds, ROUNDS);
    assert_eq!(Quartiles::of(&NeighbourLoad::new(0), || ()).rounds, ROUNDS);
}
