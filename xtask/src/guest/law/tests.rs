use super::*;
use crate::words::{XtaskCmd, parsed};

fn given(words: &[&str]) -> xflags::Result<Parameters> {
    let XtaskCmd::GuestLaw(words) = parsed(&[&["guest-law"], words].concat())?.subcommand else { unreachable!() };
    Ok(parameters(&words))
}

#[test]
fn a_load_is_read_and_a_wrong_word_is_refused() {
    let (memory_mib, load) = given(&["--dirty-bytes", "400000000", "--seconds", "20", "--load", "at-rate"]).unwrap();
    assert_eq!(memory_mib, 4096);
    assert_eq!(load.map(|(_, value)| value), ["at-rate", "0", "400000000", "20", "5242880"]);
    for (wrong, told) in [
        (&["--seconds"][..], "a value"),
        (&["--seconds", "x"], "'x' is no whole number from 1"),
        (&["20"], "20"),
        (&["--load", "bursts"], "'bursts' is none of stream"),
    ] {
        let error = given(wrong).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_line_of_the_kernel_is_not_in_the_table() {
    let kept = ["# kernel: 6.1", "second dirty", "12 3 4"].map(is_of_table);
    assert_eq!((kept, is_of_table("[  1.7] reboot: Power down"), is_of_table("")), ([true; 3], false, false));
}
