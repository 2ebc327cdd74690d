use super::*;

const PART: u64 = 65_540;

/// Hashes as a good function gives them.
fn hash(number: u64) -> PartHash {
    let mixed = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ mixed >> 32
}

#[test]
fn a_stream_read_ahead_once_writes_nothing() {
    let mut admission = PartAdmission::new(1_000 * PART, 1_000 * PART, 1_000);
    let entered = (0..1_000_000).filter(|part| admission.try_enter_again(hash(*part))).count();
    assert!(entered < 5, "{entered} parts of a stream entered");
}

#[test]
fn a_stream_enters_at_its_second_read_within_the_window() {
    let mut admission = PartAdmission::new(0, 1_000 * PART, 1_000);
    assert!((0..100).all(|part| !admission.try_enter_again(hash(part))));
    let again = (0..100).filter(|part| admission.try_enter_again(hash(*part))).count();
    assert_eq!(again, 100);
}

#[test]
fn parts_that_readers_wait_for_fill_the_free_space_once() {
    let mut admission = PartAdmission::new(400 * PART, 1_000 * PART, 1_000);
    let entered = (0..1_000_000).filter(|part| admission.try_enter(hash(*part), PART)).count();
    assert!((400..405).contains(&entered), "{entered} parts");
}

#[test]
fn bytes_that_are_read_from_the_disk_give_credit_up_to_its_size() {
    let mut admission = PartAdmission::new(0, 10 * PART, 1_000);
    assert!(!admission.try_enter(hash(1), PART));
    admission.credit(1_000 * PART);
    let entered = (100..200).filter(|part| admission.try_enter(hash(*part), PART)).count();
    assert_eq!(entered, 10);
}
