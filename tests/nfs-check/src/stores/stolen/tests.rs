use super::Processors;

#[test]
fn a_table_from_a_machine_with_stolen_time_says_so() {
    let at = |idle: u64, stolen: u64| Processors::read(&format!("cpu  10 0 10 {idle} 0 0 0 {stolen} 99 0\ncpu0 1"));
    assert!(at(0, 5).remark_at(&at(1_000, 10)).starts_with("**No figure of speed holds: the host took 4 "));
    assert!(at(0, 5).remark_at(&at(1_000, 5)).starts_with("The host took 0 "));
}
