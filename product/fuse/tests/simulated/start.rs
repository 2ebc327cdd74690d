//! INIT.

use crate::kernel::{Kernel, ROOT, u32_at, words};

const INIT: u32 = 26;

#[test]
fn both_sides_agree_on_flags_that_both_have() {
    let kernel = Kernel::new();
    let offered = words(&[7, 99, 131_072, u32::MAX, u32::MAX]);
    let answer = kernel.call(INIT, 0, &[offered, vec![0; 44]].concat()).unwrap();
    assert_eq!(answer.len(), 64);
    assert_eq!((u32_at(&answer, 0), u32_at(&answer, 4)), (7, 45));
    let flags = u32_at(&answer, 12);
    for (bit, is_set) in [
        (0, true),
        (3, true),
        (13, true),
        (16, false),
        (7, false),
        (1, false),
        (6, true),
        (12, false),
        (20, true),
        (29, true),
    ] {
        assert_eq!(flags & 1 << bit != 0, is_set, "bit {bit}");
    }
    assert_eq!(u32_at(&answer, 20), 1 << 20, "the largest WRITE");
    assert_ne!(u32_at(&answer, 32) & 1 << 4, 0, "mappings of direct files, in the second word");
    // An old kernel has one word of flags.
    let answer = kernel.call(INIT, 0, &words(&[7, 31, 0, 1 << 3])).unwrap();
    assert_eq!((u32_at(&answer, 4), u32_at(&answer, 12), u32_at(&answer, 32)), (31, 1 << 3, 0));
}

#[test]
fn other_versions_are_refused_or_asked_for_ours() {
    let kernel = Kernel::new();
    let answer = kernel.call(INIT, 0, &words(&[8, 0, 0, 0])).unwrap();
    assert_eq!(u32_at(&answer, 0), 7);
    assert_eq!(kernel.call(INIT, 0, &words(&[7, 22, 0, 0])), Err(71));
    assert_eq!(kernel.call(INIT, 0, &words(&[6, 9, 0, 0])), Err(71));
}

#[test]
fn what_the_machine_does_not_have_is_refused_by_name() {
    let kernel = Kernel::new();
    // ACCESS, POLL, and numbers that are of no operation.
    for opcode in [34, 40, 63, 64, 4096, u32::MAX] {
        assert_eq!(kernel.call(opcode, ROOT, &[0; 64]), Err(38), "{opcode}");
    }
    assert_eq!(kernel.call(39, ROOT, &[0; 32]), Err(25), "IOCTL");
}

#[test]
fn a_machine_that_refuses_answers_every_call_with_not_connected() {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    afflux_frontend::MessageMachine::refuse(&*kernel.mount);
    assert_eq!(kernel.write(fh, 0, b"late"), Err(107));
    assert_eq!(kernel.attributes(ROOT), Err(107));
}
