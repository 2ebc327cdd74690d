use super::{Pause, VAIN_PART};

/// How many searches `new` inodes cost, if each of them is in vain.
fn searches(inodes: usize, new: usize) -> usize {
    let pause = Pause::default();
    let mut searches = 0;
    for at in 0..new {
        if !pause.try_pass_search() {
            searches += 1;
            pause.begin(inodes + at);
        }
    }
    searches
}

#[test]
fn new_inodes_of_a_table_that_is_all_in_use_cost_few_searches() {
    assert_eq!(searches(1024, 1024 / VAIN_PART + 1), 1);
    // The examined inodes grow in number with the new inodes, not with their square.
    let looks = searches(10_000, 10_000) * 20_000;
    assert!(looks < 10_000 * 2 * VAIN_PART * 2, "{looks}");
}
