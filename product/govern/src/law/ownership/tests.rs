use super::{Ownership, OwnershipStep, Values};

const fn held(ratio_ppm: u32) -> Values {
    Values { strict: true, ratio_ppm }
}

#[test]
fn a_limit_is_set_moved_and_put_back() {
    let mut ownership = Ownership::new(Values::KERNELS, false);
    assert_eq!(ownership.step(Values::KERNELS, None), OwnershipStep::Keep);
    assert_eq!(ownership.step(Values::KERNELS, Some(5_000)), OwnershipStep::Write(held(5_000)));
    assert_eq!(ownership.step(held(5_000), Some(5_000)), OwnershipStep::Keep);
    assert_eq!(ownership.step(held(5_000), Some(1_000)), OwnershipStep::Write(held(1_000)));
    assert_eq!(ownership.step(held(1_000), None), OwnershipStep::Write(Values::KERNELS));
    assert_eq!((ownership.ours(), ownership.step(Values::KERNELS, None)), (None, OwnershipStep::Keep));
}

#[test]
fn what_others_have_set_is_theirs() {
    for theirs in [held(7_000), Values::KERNELS, Values { strict: false, ratio_ppm: 5_000 }] {
        let mut ownership = Ownership::new(Values::KERNELS, false);
        ownership.step(Values::KERNELS, Some(5_000));
        assert_eq!(ownership.step(theirs, Some(5_000)), OwnershipStep::Foreign(theirs));
        assert_eq!(ownership.step(theirs, Some(9_000)), OwnershipStep::Keep, "it is reported once and left alone");
        assert_eq!(ownership.step(held(5_000), Some(9_000)), OwnershipStep::Keep, "also when it looks like ours again");
    }
    let mut untouched = Ownership::new(Values::KERNELS, false);
    assert_eq!(untouched.step(held(10), None), OwnershipStep::Foreign(held(10)), "before anything was set, too");
}

#[test]
fn a_device_that_was_set_before_is_governed_only_by_name() {
    let mut ownership = Ownership::new(held(10_000), false);
    assert_eq!(
        (ownership.foreign(), ownership.step(held(10_000), Some(5_000))),
        (Some(held(10_000)), OwnershipStep::Keep)
    );
    let mut named = Ownership::new(held(10_000), true);
    assert_eq!(named.step(held(10_000), Some(5_000)), OwnershipStep::Write(held(5_000)));
    assert_eq!(
        named.step(held(5_000), None),
        OwnershipStep::Write(held(10_000)),
        "and has its own values again in the end"
    );
}
