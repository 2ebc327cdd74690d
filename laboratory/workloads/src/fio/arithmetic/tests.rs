use crate::fio::numbers::{KbBase, number};

fn worked(text: &str) -> Result<u64, String> {
    number(text, KbBase::Binary)
}

#[test]
fn arithmetic_is_worked_out_as_fio_does() {
    for (text, value) in [
        ("(4+8)", 12),
        ("(8 * 4k) + 1m", 32 * 1024 + (1 << 20)),
        ("(2^3^2)", 512),
        ("(10-2-3)", 5),
        ("(7/2)", 3),
        ("(7%4)", 3),
        ("(2+3*4)", 14),
        ("((2+3)*4)", 20),
        ("(-3+5)", 2),
        ("4k", 4096),
    ] {
        assert_eq!(worked(text), Ok(value), "{text}");
    }
}

#[test]
fn what_is_no_number_in_the_end_is_told() {
    for (text, told) in [
        ("(4+", "a number is missing"),
        ("(4", "a ')' is missing"),
        ("(4))", "')' is left over"),
        ("(1/0)", "divides by zero"),
        ("(1-2)", "is -1"),
        ("(2^64)", "out of range"),
        ("(8e * 9)", "is no unit"),
        ("()", "a number is missing"),
        (&format!("{}1", "(".repeat(1000)), "too many parentheses"),
    ] {
        let error = worked(text).expect_err(text);
        assert!(error.contains(told), "{text}: {error}");
    }
}
