use super::*;

#[test]
fn the_name_of_a_place_means_that_place_and_no_special_one() {
    for id in [0, 1, 7, 65_535] {
        for generation in [0, 1, u32::MAX] {
            let at = StateidOther { memory: 9, id, generation };
            for seqid in [1, 2, u32::MAX] {
                assert_eq!(Stateid::of(at, seqid).meaning(), Ok(StateidKind::State(at)));
            }
        }
    }
}

#[test]
fn special_stateids_have_their_meanings_and_what_looks_like_them_has_none() {
    let of = |seqid, byte| Stateid { seqid, other: [byte; OTHER_BYTES] };
    assert_eq!(of(0, 0).meaning(), Ok(StateidKind::Anonymous));
    assert_eq!(of(1, 0).meaning(), Ok(StateidKind::Current));
    assert_eq!(of(u32::MAX, 0xff).meaning(), Ok(StateidKind::Bypass));
    assert_eq!(of(u32::MAX, 0).meaning(), Err(NfsStatus::BadStateid));
    assert_eq!(of(7, 0).meaning(), Err(NfsStatus::BadStateid));
    assert_eq!(of(7, 0xff).meaning(), Err(NfsStatus::BadStateid), "no stateid of an earlier server");
}

#[test]
fn sequence_numbers_are_old_present_or_of_the_future_and_wrap() {
    assert_eq!(next_seqid(u32::MAX), 1);
    for present in [1, 5, u32::MAX] {
        assert_eq!(check_seqid(0, present), Ok(()));
        assert_eq!(check_seqid(present, present), Ok(()));
        assert_eq!(check_seqid(next_seqid(present), present), Err(NfsStatus::BadStateid));
    }
    assert_eq!(check_seqid(4, 5), Err(NfsStatus::OldStateid));
    assert_eq!(check_seqid(u32::MAX, 2), Err(NfsStatus::OldStateid));
}
