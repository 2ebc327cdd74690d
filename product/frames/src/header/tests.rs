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
    for found in [FORM - 1, FORM + 1] {
        header.set(at::FORM, found);
        assert_eq!(header.check(BOOT), Err(HeaderError::Damaged));
        header.set(at::CHECKSUM, checksum(&header.constant()));
        assert_eq!(header.check(BOOT), Err(HeaderError::Form { found }));
    }
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

#[test]
fn a_file_of_the_header_tells_the_sizes() {
    let layout = Layout::new(1 << 20, 64).unwrap();
    let memory = Memory::anonymous(layout).unwrap();
    memory.header().begin(BOOT, 5);
    memory.header().set_holder(17);
    let mut bytes = [0; HEADER_BYTES];
    for (word, bytes) in memory.header().words.iter().zip(bytes.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    let mut header = HeaderBytes(bytes);
    assert_eq!((header.layout(BOOT), header.holder(), header.is_unused()), (Ok(layout), 17, false));
    assert_eq!(header.layout([9; 16]), Err(HeaderError::Boot));
    header.0[at::SIZES * 8] ^= 1;
    assert_eq!(header.layout(BOOT), Err(HeaderError::Damaged));
    assert!(HeaderBytes([0; HEADER_BYTES]).is_unused());
}

#[test]
fn a_changed_verifier_is_another_one_each_time() {
    let memory = Memory::anonymous(Layout::new(1 << 20, 64).unwrap()).unwrap();
    let verifiers: std::collections::BTreeSet<u64> = (0..100)
        .map(|_| {
            memory.header().change_verifier();
            memory.header().verifier()
        })
        .collect();
    assert_eq!(verifiers.len(), 100);
}

#[test]
fn a_number_stays_with_later_holders() {
    let memory = Memory::anonymous(Layout::new(1 << 20, 64).unwrap()).unwrap();
    let header = memory.header();
    header.set_holder(7);
    assert_eq!(header.number(), None);
    header.set_number(0);
    assert_eq!((header.number(), header.holder()), (Some(0), 7));
    header.set_number(u64::MAX);
    header.set_holder(8);
    assert_eq!((header.number(), header.holder()), (Some(u64::MAX), 8));
}
