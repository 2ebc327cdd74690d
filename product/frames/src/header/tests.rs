use super::*;
use crate::{Layout, Memory};

const BOOT: [u8; 16] = *b"this host's boot";

#[test]
fn a_header_checks_for_its_own_form_size_and_boot_alone() {
    let memory = Memory::anonymous(Layout::new(1 << 20, 64).unwrap()).unwrap();
    let header = memory.header();
    header.begin(BOOT, 5);
    assert_eq!(header.check(BOOT), Ok(()));
    assert_eq!(header.check([9; 16]), Err(HeaderError::Boot));
    let larger = Header::new(header.words, Layout::new(2 << 20, 64).unwrap());
    assert_eq!(larger.check(BOOT), Err(HeaderError::Layout));
    header.set(at::FORM, 7);
    assert_eq!(header.check(BOOT), Err(HeaderError::Damaged));
    header.set(at::CHECKSUM, header.checksum());
    assert_eq!(header.check(BOOT), Err(HeaderError::Form { found: 7 }));
    header.set(at::MAGIC, 1);
    assert_eq!(header.check(BOOT), Err(HeaderError::Foreign));
}

#[test]
fn each_bit_of_the_constant_part_is_checked() {
    let memory = Memory::anonymous(Layout::new(1 << 20, 64).unwrap()).unwrap();
    let header = memory.header();
    header.begin(BOOT, 5);
    for bit in 0..(at::CHECKSUM + 1) * 64 {
        let (word, mask) = (bit / 64, 1 << (bit % 64));
        header.set(word, header.get(word) ^ mask);
        assert!(header.check(BOOT).is_err(), "bit {bit}");
        header.set(word, header.get(word) ^ mask);
    }
    assert_eq!(header.check(BOOT), Ok(()));
}

#[test]
fn what_changes_is_kept() {
    let memory = Memory::anonymous(Layout::new(1 << 20, 64).unwrap()).unwrap();
    let header = memory.header();
    assert_eq!((header.state(), header.recoveries(), header.verifier()), (ArenaState::Fresh, 0, 0));
    header.set_state(ArenaState::Recovering);
    header.set_recoveries(2);
    header.set_verifier(77);
    assert_eq!((header.state(), header.recoveries(), header.verifier()), (ArenaState::Recovering, 2, 77));
    header.set(at::STATE, 99);
    assert_eq!(header.state(), ArenaState::Serving, "an unknown state is looked through");
    assert_eq!(header.check([0; 16]), Ok(()));
}
