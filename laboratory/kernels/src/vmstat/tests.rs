use super::*;

#[test]
fn dirtyable_memory_takes_five_reads() {
    let view = View { vm: VmStat { free: 1000, inactive_file: 900, ..VmStat::default() }, ..View::default() };
    assert_eq!(view.dirtyable(), 1901);
    assert_eq!(view.reads.get(), Reads { global: 5, dirty: 0, device: 0, absent: 2 });
}
