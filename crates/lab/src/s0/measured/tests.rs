use super::*;

#[test]
fn a_read_of_the_line_takes_each_group_whole() {
    let line = HotLine::default();
    line.0[3].store(5, Ordering::Relaxed);
    // The fourth word is in the groups of four only.
    assert_eq!(line.read(&[3], true), line.read(&[3], false));
    assert_ne!(line.read(&[4], true), line.read(&[4], false));
    assert!(GROUPS.iter().map(|(_, groups)| groups.iter().sum::<usize>()).eq([9, 4, 3, 2]));
}
